/* SPDX-License-Identifier: MIT-0 */
/*
 * Shows: a scan of a tree, that Ctrl-C ends in order; its progress; settings
 * from the environment.
 *
 * Try:   examples/scan_tree /usr/include
 *        PINION_WORKER_COUNT=1 examples/scan_tree /usr/include
 *
 * Counts lines. Workers may read windows of a file at once, so each file has a
 * counter, in memory that the scan provides.
 */
#include <pinion/pinion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

struct counts {
	unsigned long long lines; /* in a file, or in all files */
};

static struct counts all;
static struct pinion_scan *scan; /* NULL: none that a signal may cancel */

/* A new byte is counted once: the window's prefix was new in an earlier one. */
static int on_window(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	struct counts *counts = file->user;
	unsigned long long lines = 0;

	(void)arg;
	for (size_t i = window->prefix_bytes; i < window->length_bytes; i++) {
		lines += window->bytes[i] == '\n';
	}
	__atomic_fetch_add(&counts->lines, lines, __ATOMIC_RELAXED);
	return 0;
}

/* After the last window of a file whose open succeeded. */
static int on_close(void *arg, struct pinion_scan_file *file, int error)
{
	struct counts *counts = file->user;

	(void)arg;
	if (error == 0) {
		__atomic_fetch_add(&all.lines, counts->lines, __ATOMIC_RELAXED);
	}
	return 0;
}

static void on_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	(void)arg;
	if (outcome == PINION_SCAN_FAILED) {
		fprintf(stderr, "scan_tree: %s: %s\n", file->path, strerror(-error));
	}
}

/* Each two seconds, and at the end. */
static void on_progress(void *arg, const struct pinion_scan_stats *stats)
{
	fprintf(arg, "scan_tree: %llu files\n", (unsigned long long)stats->seen);
}

/* May be called in a signal handler: it only marks the scan as cancelled. */
static void on_interrupt(int number)
{
	(void)number;
	pinion_scan_cancel(scan);
}

static void on_message(void *arg, enum pinion_log_level level, const char *message)
{
	(void)arg;
	if (level <= PINION_LOG_WARN) {
		fprintf(stderr, "scan_tree: %s\n", message);
	}
}

/* Workers inherit the mask: the handler runs on main's thread alone. */
static int create_runtime(struct pinion_runtime **out_runtime)
{
	struct pinion_config config;
	struct pinion_tuning tuning;
	sigset_t interrupts;
	int rc;

	pinion_config_init(&config);
	pinion_tuning_init(&tuning);
	config.log = on_message;
	rc = pinion_config_from_env(&config, &tuning);
	sigemptyset(&interrupts);
	sigaddset(&interrupts, SIGINT);
	pthread_sigmask(SIG_BLOCK, &interrupts, NULL);
	return rc < 0 ? rc : pinion_runtime_create(&config, out_runtime);
}

static int scan_tree(struct pinion_runtime *runtime, const char *path)
{
	static const struct pinion_scan_ops ops = {
		.window = on_window, .close = on_close, .report = on_report};
	struct sigaction action = {.sa_handler = on_interrupt};
	struct pinion_scan_stats stats = {0};
	struct pinion_scan_config config;
	sigset_t interrupts;
	int rc;

	pinion_scan_config_init(&config);
	config.file_user_bytes = sizeof(struct counts);
	config.progress = on_progress;
	config.progress_ns = UINT64_C(2000000000);
	rc = pinion_scan_create(runtime, &config, &ops, stderr, &scan);
	if (rc < 0) {
		return rc;
	}
	sigaction(SIGINT, &action, NULL);
	sigemptyset(&interrupts);
	sigaddset(&interrupts, SIGINT);
	pthread_sigmask(SIG_UNBLOCK, &interrupts, NULL);
	rc = pinion_scan_add_tree(scan, path);
	pinion_scan_finish(scan, &stats, sizeof(stats));
	pthread_sigmask(SIG_BLOCK, &interrupts, NULL); /* the handler has no scan any more */
	pinion_scan_destroy(scan);
	printf("%llu files, %llu bytes, %llu lines; %llu failed, %llu cancelled\n",
		(unsigned long long)stats.done, (unsigned long long)stats.read_bytes,
		(unsigned long long)all.lines, (unsigned long long)stats.failed,
		(unsigned long long)stats.cancelled);
	return rc < 0 ? rc : (int)(stats.failed != 0);
}

int main(int argc, char **argv)
{
	struct pinion_runtime *runtime;
	int rc;

	if (argc != 2 || argv[1][0] == '-') {
		fprintf(stderr, "usage: scan_tree FOLDER\n");
		return 2;
	}
	rc = create_runtime(&runtime);
	if (rc < 0) {
		fprintf(stderr, "scan_tree: cannot start: %s\n", strerror(-rc));
		return 2;
	}
	rc = scan_tree(runtime, argv[1]);
	pinion_runtime_destroy(runtime);
	if (rc < 0) {
		fprintf(stderr, "scan_tree: %s: %s\n", argv[1], strerror(-rc));
	}
	return rc != 0;
}

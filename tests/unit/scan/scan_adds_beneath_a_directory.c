/* SPDX-License-Identifier: MIT */
/*
 * Goal: pinion_scan_add_file_beneath() reads files below a directory that the
 * caller has open, at any depth, follows no link on the way to them, and reads
 * nothing outside while the owner of the files exchanges a folder for a link.
 * Method: one table of paths, by rings and by calls, with openat2 and where a
 * filter refuses it; then adding one path over and over beside a thread that
 * exchanges. Files outside have bytes of their own. STRESS_ITERATIONS:
 * exchanges.
 */
#include "tests/support/beneath.h"
#include "tests/support/scans.h"
#include "tests/support/tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/inotify.h>
#include <sys/stat.h>

enum {
	LIMIT_SECONDS = 200,
	EXCHANGES = 10000,
	DEPTH = 100,
	NAME_BYTES = 200,
	BAD_FD = 9999,
};

static char *deep; /* a file's path below the root, longer than PATH_MAX */
static struct pin_atomic_u32 own_windows;
static struct pin_atomic_u32 escapes;
static struct pin_atomic_u32 is_over;
/* Of the file that was reported last; several workers report. */
static struct pin_atomic_u32 last_outcome;
static struct pin_atomic_u32 last_error; /* positive */
static struct pin_atomic_u32 last_mode;

static int on_window(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	(void)arg;
	(void)file;
	if (window->length_bytes > 0 && memchr(window->bytes, 'S', window->length_bytes) != NULL) {
		pin_fetch_add_acq_rel_u32(&escapes, 1);
	} else if (window->length_bytes > 0) {
		pin_fetch_add_acq_rel_u32(&own_windows, 1);
	}
	return 0;
}

static void on_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	(void)arg;
	pin_store_release_u32(&last_outcome, outcome);
	pin_store_release_u32(&last_error, (uint32_t)-error);
	pin_store_release_u32(&last_mode, file->mode);
}

static struct pinion_scan *scan_create(struct pinion_runtime *runtime)
{
	static const struct pinion_scan_ops ops = {.window = on_window, .report = on_report};
	struct pinion_scan *scan = NULL;

	expect_number("create", 0, pinion_scan_create(runtime, NULL, &ops, NULL, &scan));
	return scan;
}

static void check_one(struct pinion_runtime *runtime, int directory_fd, const char *path,
	enum pinion_scan_outcome outcome, int error)
{
	struct pinion_scan *scan = scan_create(runtime);
	struct pinion_scan_stats totals;
	uint32_t before = pin_load_acquire_u32(&own_windows);

	expect_number(path, 0, pinion_scan_add_file_beneath(scan, directory_fd, path));
	expect_number("finish", 0, pinion_scan_finish(scan, &totals, sizeof(totals)));
	expect_number("seen", 1, (long long)totals.seen);
	expect_number(path, outcome, pin_load_acquire_u32(&last_outcome));
	expect_number(path, -error, pin_load_acquire_u32(&last_error));
	expect_number(path, outcome == PINION_SCAN_DONE ? 1 : 0,
		pin_load_acquire_u32(&own_windows) - before);
	pinion_scan_destroy(scan);
}

static void check_table(struct pinion_runtime *runtime, int root_fd)
{
	static const struct {
		const char *path;
		enum pinion_scan_outcome outcome;
		int error;
	} cases[] = {
		{"file", PINION_SCAN_DONE, 0},
		{"folder/file", PINION_SCAN_DONE, 0},
		{"folder//.//file", PINION_SCAN_DONE, 0},
		{"", PINION_SCAN_FAILED, -ENOENT},
		{"none", PINION_SCAN_FAILED, -ENOENT},
		{"folder", PINION_SCAN_FAILED, -EISDIR},
		{"file/below", PINION_SCAN_FAILED, -ENOTDIR},
		{"fifo", PINION_SCAN_SKIPPED, -ENOTSUP},
		{"folder/../file", PINION_SCAN_FAILED, -EXDEV},
		{"../outside/file", PINION_SCAN_FAILED, -EXDEV},
		{"/etc/passwd", PINION_SCAN_FAILED, -EXDEV},
		{"out/file", PINION_SCAN_FAILED, -EXDEV},
		{"inward/file", PINION_SCAN_FAILED, -EXDEV},
		{"link", PINION_SCAN_FAILED, -EXDEV},
		{"self", PINION_SCAN_FAILED, -EXDEV},
	};
	int path_fd = open("root/folder", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int file_fd = open("root/file", O_RDONLY | O_CLOEXEC);

	for (size_t i = 0; i < PIN_ARRAY_COUNT(cases); i++) {
		check_one(runtime, root_fd, cases[i].path, cases[i].outcome, cases[i].error);
	}
	check_one(runtime, root_fd, deep, PINION_SCAN_DONE, 0);
	check_one(runtime, path_fd, "file", PINION_SCAN_DONE, 0);
	expect_number("mode of a file", 0, pin_load_acquire_u32(&last_mode));
	check_one(runtime, AT_FDCWD, "root/file", PINION_SCAN_DONE, 0);
	check_one(runtime, file_fd, "file", PINION_SCAN_FAILED, -ENOTDIR);
	check_one(runtime, BAD_FD, "file", PINION_SCAN_FAILED, -EBADF);
	close(path_fd);
	close(file_fd);
}

/* A special file is not opened: its other end would notice. */
static void check_unopened(struct pinion_runtime *runtime, int root_fd)
{
	struct inotify_event event;
	int notes = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	expect_ready("inotify", notes >= 0 && inotify_add_watch(notes, "root/fifo", IN_OPEN) >= 0);
	check_one(runtime, root_fd, "fifo", PINION_SCAN_SKIPPED, -ENOTSUP);
	expect_number("mode of the FIFO", S_IFIFO, pin_load_acquire_u32(&last_mode));
	expect_number("opens of the FIFO", -1, read(notes, &event, sizeof(event)));
	close(notes);
}

static void check_cancelled(struct pinion_runtime *runtime, int root_fd)
{
	struct pinion_scan *scan = scan_create(runtime);
	struct pinion_scan_stats totals;

	pinion_scan_cancel(scan);
	expect_number("add", -ECANCELED, pinion_scan_add_file_beneath(scan, root_fd, "file"));
	expect_number("add", -ECANCELED, pinion_scan_add_file_beneath(scan, root_fd, "../file"));
	expect_number("finish", 0, pinion_scan_finish(scan, &totals, sizeof(totals)));
	expect_number("cancelled", 2, (long long)totals.cancelled);
	pinion_scan_destroy(scan);
}

static void *exchange_all_along(void *arg)
{
	const uint64_t *count = arg;

	for (uint64_t i = 0; i < *count; i += 2) {
		beneath_exchange("root/folder", "root/out");
		beneath_exchange("root/folder", "root/out");
	}
	pin_store_release_u32(&is_over, 1);
	return NULL;
}

static void check_race(struct pinion_runtime *runtime, int root_fd)
{
	uint64_t count = tasks_iterations(EXCHANGES);
	struct pinion_scan *scan = scan_create(runtime);
	struct pinion_scan_stats totals;
	uint32_t added = 0;
	pthread_t owner;

	expect_ready("thread", pthread_create(&owner, NULL, exchange_all_along, &count) == 0);
	do {
		expect_number("add", 0, pinion_scan_add_file_beneath(scan, root_fd, "folder/file"));
		added++;
	} while (pin_load_acquire_u32(&is_over) == 0);
	pthread_join(owner, NULL);
	expect_number("finish", 0, pinion_scan_finish(scan, &totals, sizeof(totals)));
	pinion_scan_destroy(scan);
	printf("%u files during %llu exchanges, %llu failed\n", added, (unsigned long long)count,
		(unsigned long long)totals.failed);
	expect_number("seen", added, (long long)totals.seen);
	expect_number("ends", added, (long long)(totals.done + totals.failed));
}

static int live(void *arg)
{
	struct pinion_runtime *runtime;
	int root_fd = open("root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	runtimes_watchdog(LIMIT_SECONDS);
	runtime = beneath_start(arg);
	if (runtime == NULL) {
		return EXPECT_SKIPPED;
	}
	check_table(runtime, root_fd);
	check_unopened(runtime, root_fd);
	check_cancelled(runtime, root_fd);
	check_race(runtime, root_fd);
	expect_number("escapes", 0, pin_load_acquire_u32(&escapes));
	pinion_runtime_destroy(runtime);
	close(root_fd);
	return expect_status();
}

static void make_deep(void)
{
	char *folder = scratch_deep("root/deep", DEPTH, NAME_BYTES);

	expect_ready("asprintf", asprintf(&deep, "%s/leaf", folder + strlen("root/")) >= 0);
	free(folder);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("scan_adds_beneath_a_directory");
	expect_ready("root",
		mkdir("root", 0755) == 0 && mkdir("root/folder", 0755) == 0 &&
			mkdir("outside", 0755) == 0 && mkfifo("root/fifo", 0644) == 0 &&
			symlink("../outside", "root/out") == 0 &&
			symlink("folder", "root/inward") == 0 &&
			symlink("../outside/file", "root/link") == 0 &&
			symlink("self", "root/self") == 0);
	scratch_file("root/file", "own");
	scratch_file("root/folder/file", "own");
	scratch_file("outside/file", "SECRET");
	make_deep();
	beneath_each_way(live);
	free(deep);
	scratch_leave();
	return expect_status();
}

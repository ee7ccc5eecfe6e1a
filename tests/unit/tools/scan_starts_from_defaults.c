/* SPDX-License-Identifier: MIT */
/*
 * Goal: the defaults of a scan and its runtime, and that each setting changes
 * that alone (EX-52, EX-56); a scan opens no more files at once than its budget
 * has, each with memory of its own that starts out empty, and its totals add up
 * when it is finished (EX-51); a tree is discovered by the thread that adds it:
 * files that are hidden, or named in a .gitignore, are read, links are reported
 * and not followed; files that a .gitignore names are left out where that is
 * asked for, and are reported and counted (EX-53).
 * Method: tables of fields; an engine that counts open files; a small tree.
 */
#include "tests/support/scans.h"
#include "tools/scanning.h"

#include <errno.h>

enum {
	LIMIT_SECONDS = 60,
	FILES = 60,
	BUDGET = 3,
	WORKERS = 2,
	YIELDS = 2000,
};

static const uint64_t seed = 0x853c49e6748fea9b;

/* ---- settings and defaults ---- */

static void check_scan_defaults(void)
{
	struct pinion_scan_config config;

	memset(&config, 0xff, sizeof(config));
	pinion_scan_config_init(&config);
	expect_number("size", sizeof(config), config.size);
	expect_number("order", PINION_SCAN_PARALLEL, config.order);
	expect_number("direct", PINION_DIRECT_AUTO, config.direct);
	expect_number("overlap", 0, config.overlap_bytes);
	expect_number("window", 0, config.window_bytes);
	expect_number("files in flight", 0, config.files_in_flight);
	expect_number("windows in flight", 64, config.windows_in_flight);
	expect_number("holes", 0, config.report_holes);
	expect_number("ignore files", 0, config.skip_ignored);
	expect_number("gaps", 0, config.report_gaps);
	expect_number("walk order", PINION_SCAN_WALK_ANY, config.walk_order);
	expect_number("file timeout", 0, (long long)config.file_timeout_ns);
}

static void check_commands_defaults(void)
{
	struct scanning_options plain;
	struct scanning_options told;

	expect_true("options", scanning_options_init(&plain));
	expect_number("one worker per core", 0, plain.runtime.worker_count);
	expect_number("bound", 1, plain.runtime.bind_workers);
	expect_true("seed", plain.tuning.seed == seed);
	setenv("PINION_SEED", "7", 1);
	setenv("PINION_BIND_WORKERS", "none", 1);
	expect_true("options", scanning_options_init(&told));
	unsetenv("PINION_SEED");
	unsetenv("PINION_BIND_WORKERS");
	expect_true("workers", scanning_parse(&told, "workers", "5"));
	expect_number("workers", 5, told.runtime.worker_count);
	expect_number("seed", 7, (long long)told.tuning.seed);
	expect_number("bound", 0, told.runtime.bind_workers);
	told.runtime.worker_count = 0;
	told.tuning.seed = seed;
	told.runtime.bind_workers = 1;
	expect_true("its own tuning", told.runtime.tuning == &told.tuning);
	told.runtime.tuning = plain.runtime.tuning;
	expect_number("the rest is as before", 0,
		memcmp(&plain.tuning, &told.tuning, sizeof(plain.tuning)));
	expect_number("the configuration too", 0,
		memcmp(&plain.runtime, &told.runtime, sizeof(plain.runtime)));
	expect_number("the scan too", 0, memcmp(&plain.scan, &told.scan, sizeof(plain.scan)));
}

/* ---- a budget of files ---- */

static struct pin_atomic_u32 open_count;
static struct pin_atomic_u32 open_max;
static struct pin_atomic_u32 used_before;

static int count_open(void *arg, struct pinion_scan_file *file)
{
	uint32_t now = pin_fetch_add_acq_rel_u32(&open_count, 1) + 1;
	uint32_t most = pin_load_acquire_u32(&open_max);
	uint64_t *own = file->user;

	(void)arg;
	while (now > most && !pin_cas_acq_rel_u32(&open_max, &most, now)) {
	}
	if (*own != 0) {
		pin_fetch_add_acq_rel_u32(&used_before, 1);
	}
	*own = file->sequence + 1;
	return 0;
}

static int take_window(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	const uint64_t *own = file->user;

	(void)arg;
	(void)window;
	/* Time for more to be opened than may be. */
	for (int i = 0; i < YIELDS; i++) {
		sched_yield();
	}
	return *own == file->sequence + 1 ? 0 : -EBADMSG;
}

static int count_closed(void *arg, struct pinion_scan_file *file, int error)
{
	(void)arg;
	(void)file;
	(void)error;
	pin_fetch_sub_acq_rel_u32(&open_count, 1);
	return 0;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char reports[512]; /* those of paths that are not numbers */
static pthread_t link_reporter;

static void report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	const char *name = strrchr(file->path, '/');

	(void)arg;
	(void)error;
	if (name == NULL) {
		return;
	}
	pthread_mutex_lock(&lock);
	if (outcome == PINION_SCAN_SKIPPED) {
		link_reporter = pthread_self();
	}
	snprintf(reports + strlen(reports), sizeof(reports) - strlen(reports), "%s=%d ", name + 1,
		(int)outcome);
	pthread_mutex_unlock(&lock);
}

static const struct pinion_scan_ops counting_ops = {
	.open = count_open,
	.window = take_window,
	.close = count_closed,
	.report = report,
};

static struct pinion_scan *create(struct pinion_runtime *runtime, uint32_t files_in_flight)
{
	struct pinion_scan_config config;
	struct pinion_scan *scan = NULL;

	pinion_scan_config_init(&config);
	config.files_in_flight = files_in_flight;
	config.file_user_bytes = sizeof(uint64_t);
	expect_ready(
		"create", pinion_scan_create(runtime, &config, &counting_ops, NULL, &scan) == 0);
	return scan;
}

static void check_budget(struct pinion_runtime *runtime)
{
	struct pinion_scan *scan = create(runtime, BUDGET);
	struct pinion_scan_stats totals = {0};

	for (uint32_t i = 0; i < FILES; i++) {
		scans_make(i, 10000 + i);
	}
	for (uint32_t i = 0; i < FILES; i++) {
		scans_add(scan, i);
	}
	expect_number("finish", 0, pinion_scan_finish(scan, &totals, sizeof(totals)));
	expect_true("some were open", pin_load_acquire_u32(&open_max) > 0);
	expect_true("no more than the budget", pin_load_acquire_u32(&open_max) <= BUDGET);
	expect_number("memory was not empty", 0, pin_load_acquire_u32(&used_before));
	expect_number("left open", 0, pin_load_acquire_u32(&open_count));
	expect_number("seen", FILES, (long long)totals.seen);
	expect_number("done", FILES, (long long)totals.done);
	expect_number(
		"bytes", FILES * 10000 + FILES * (FILES - 1) / 2, (long long)totals.read_bytes);
	pinion_scan_destroy(scan);
	scans_forget();
}

/* ---- a tree ---- */

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	expect_ready(path, file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void expect_report(const char *wanted)
{
	expect_true(wanted, strstr(reports, wanted) != NULL);
}

static void check_tree(struct pinion_runtime *runtime)
{
	struct pinion_scan *scan = create(runtime, 0);
	struct pinion_scan_stats totals = {0};

	expect_ready("mkdir", mkdir("tree", 0755) == 0 && mkdir("tree/.dir", 0755) == 0);
	write_file("tree/plain", "a");
	write_file("tree/.hidden", "b");
	write_file("tree/.dir/inner", "c");
	write_file("tree/.gitignore", "ignored\n");
	write_file("tree/ignored", "d");
	expect_ready("symlink", symlink("plain", "tree/link") == 0);
	expect_ready("symlink", symlink(".", "tree/loop") == 0);
	expect_number("add", 0, pinion_scan_add_tree(scan, "tree"));
	expect_number("finish", 0, pinion_scan_finish(scan, &totals, sizeof(totals)));
	expect_report("plain=0 ");
	expect_report(".hidden=0 ");
	expect_report("inner=0 ");
	expect_report(".gitignore=0 ");
	expect_report("ignored=0 ");
	expect_report("link=2 ");
	expect_report("loop=2 ");
	expect_true("this thread walks", pthread_equal(link_reporter, pthread_self()));
	expect_number("seen", 7, (long long)totals.seen);
	expect_number("done", 5, (long long)totals.done);
	expect_number("skipped", 2, (long long)totals.skipped);
	pinion_scan_destroy(scan);
}

/* The same tree, by what its ignore file says. */
static void check_ignored(struct pinion_runtime *runtime)
{
	struct pinion_scan_stats totals = {0};
	struct pinion_scan_config config;
	struct pinion_scan *scan = NULL;

	memset(reports, 0, sizeof(reports));
	pinion_scan_config_init(&config);
	config.file_user_bytes = sizeof(uint64_t);
	config.skip_ignored = 1;
	expect_ready(
		"create", pinion_scan_create(runtime, &config, &counting_ops, NULL, &scan) == 0);
	write_file("tree/.ignore", "loop\n.dir\n");
	write_file("tree/.git", "a repository of its own\n");
	expect_number("add", 0, pinion_scan_add_tree(scan, "tree"));
	expect_number("finish", 0, pinion_scan_finish(scan, &totals, sizeof(totals)));
	expect_report("plain=0 ");
	expect_report(".hidden=0 ");
	expect_report(".gitignore=0 ");
	expect_report(".ignore=0 ");
	expect_report("ignored=4 ");
	expect_report(".git=4 ");
	expect_report(".dir=4 ");
	expect_report("loop=4 ");
	expect_report("link=2 ");
	expect_number("seen", 9, (long long)totals.seen);
	expect_number("done", 4, (long long)totals.done);
	expect_number("skipped", 1, (long long)totals.skipped);
	expect_number("ignored", 4, (long long)totals.ignored);
	pinion_scan_destroy(scan);
}

int main(void)
{
	struct pinion_runtime *runtime;

	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("scan_starts_from_defaults");
	check_scan_defaults();
	check_commands_defaults();
	runtime = runtimes_start(WORKERS, PINION_IO_AUTO);
	check_budget(runtime);
	check_tree(runtime);
	check_ignored(runtime);
	pinion_runtime_destroy(runtime);
	scratch_leave();
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: a scan ends, with every byte, however scarce buffers, slots, lanes and
 * descriptors are; when buffers are taken by others it waits for them; files
 * without a size are read to their end.
 * Method: one buffer of each size against many lanes and files; a limit of a
 * few descriptors in a child, for files and for trees of one file each; a task
 * that holds the only buffer; two scans on one worker; /proc. A deadlock trips
 * the watchdog.
 */
#include "tests/support/child.h"
#include "tests/support/scans.h"

#include "runtime/scan/scan.h"

#include <errno.h>
#include <semaphore.h>

enum {
	LIMIT_SECONDS = 60, /* of a case in a child */
	FILES = 40,
	MANY = 1000,
	DESCRIPTORS = 20,
	TREES = 100,
	/* Some for the walk and for what files need besides, and few files. */
	TREE_DESCRIPTORS = 24,
	LOOKS = 1000, /* at a thread, until it counts as waiting */
};

static struct pinion_runtime *start_scarce(uint32_t worker_count, uint32_t io_level)
{
	struct pinion_runtime *runtime = NULL;
	struct pinion_config config;

	runtimes_config(&config, worker_count, io_level);
	config.buffer_bytes = 64 << 10;
	config.buffer_count = 1;
	config.small_buffer_bytes = 8192;
	config.small_buffer_count = 1;
	runtimes_tuning.ring_entries = 8;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	return runtime;
}

static void scan_files(
	struct pinion_runtime *runtime, const struct pinion_scan_config *config, uint32_t count)
{
	struct pinion_scan *scan = scans_create(runtime, config);
	struct pinion_scan_stats totals;

	for (uint32_t i = 0; i < count; i++) {
		scans_add(scan, i);
	}
	expect_number("finish", 0, pinion_scan_finish(scan, &totals, sizeof(totals)));
	expect_number("seen", count, (long long)totals.seen);
	expect_number("done", count, (long long)totals.done);
	for (uint32_t i = 0; i < count && expect_failure_count == 0; i++) {
		scans_expect_end(i, PINION_SCAN_DONE, 0);
		expect_number("bytes", (long long)scans_files[i].size,
			(long long)pin_load_acquire_u64(&scans_files[i].new_bytes));
	}
	pinion_scan_destroy(scan);
}

/* Files open at once, by default: 64 for each worker. */
static void check_standard(void)
{
	struct pinion_runtime *runtime = runtimes_start(2, PINION_IO_AUTO);
	struct pinion_scan_config config;
	struct pinion_scan *scan;

	scans_setting = "standard";
	scans_config(&config);
	config.files_in_flight = 0;
	scan = scans_create(runtime, &config);
	expect_number("slots", 2 * 64, scan->slot_count);
	pinion_scan_destroy(scan);
	pinion_runtime_destroy(runtime);
}

static void check_scarce_buffers(uint32_t workers, uint32_t order, uint32_t io_level)
{
	struct pinion_runtime *runtime = start_scarce(workers, io_level);
	struct pinion_scan_config config;
	char setting[96];

	snprintf(setting, sizeof(setting), "scarce buffers: workers %u order %u level %u", workers,
		order, io_level);
	scans_setting = setting;
	scans_config(&config);
	config.order = order;
	config.windows_in_flight = 8;
	config.overlap_bytes = 100;
	scan_files(runtime, &config, FILES);
	config.window_bytes = 8192; /* the first window is small, later ones large */
	scan_files(runtime, &config, FILES);
	config.files_in_flight = 1;
	scan_files(runtime, &config, FILES);
	pinion_runtime_destroy(runtime);
	scans_setting = "";
}

static int scan_with_few_descriptors(void *arg)
{
	struct rlimit limit = {DESCRIPTORS, DESCRIPTORS};
	struct pinion_runtime *runtime;
	struct pinion_scan_config config;

	(void)arg;
	expect_ready("limit", setrlimit(RLIMIT_NOFILE, &limit) == 0);
	runtime = runtimes_start(2, PINION_IO_AUTO);
	scans_config(&config);
	scan_files(runtime, &config, MANY);
	pinion_runtime_destroy(runtime);
	return expect_status();
}

static void check_unsized(uint32_t order, uint32_t io_level)
{
	struct pinion_runtime *runtime = start_scarce(2, io_level);
	struct pinion_scan_config config;
	struct pinion_scan_stats totals;
	struct pinion_scan *scan;
	static const char *const paths[] = {
		"/proc/self/status", "/proc/cpuinfo", "/proc/kallsyms", "/proc/self/maps"};

	scans_setting = "unsized";
	scans_config(&config);
	config.order = order;
	config.window_bytes = 4096;
	scan = scans_create(runtime, &config);
	for (uint32_t i = 0; i < FILES; i++) {
		expect_number(
			"add", 0, pinion_scan_add_file(scan, paths[i % PIN_ARRAY_COUNT(paths)]));
	}
	expect_number("finish", 0, pinion_scan_finish(scan, &totals, sizeof(totals)));
	expect_number("unsized files done", FILES, (long long)totals.done);
	expect_true("all have some bytes", totals.read_bytes > FILES * 100);
	pinion_scan_destroy(scan);
	pinion_runtime_destroy(runtime);
	scans_setting = "";
}

/* ---- buffers that others hold ---- */

static struct pinion_runtime *shared_runtime;
static struct pinion_buffer held[2];
static sem_t is_held;
static struct pinion_task holder;
static struct pinion_task releaser;

static int hold_buffers(struct pinion_task *task)
{
	(void)task;
	if (pinion_buffer_acquire(shared_runtime, 1, &held[0]) != 0 ||
		pinion_buffer_acquire(shared_runtime, 64 << 10, &held[1]) != 0) {
		abort();
	}
	sem_post(&is_held);
	return 0;
}

static int release_buffers(struct pinion_task *task)
{
	(void)task;
	pinion_buffer_release(shared_runtime, &held[0]);
	pinion_buffer_release(shared_runtime, &held[1]);
	return 0;
}

/* After the file's start in the one worker's queue: its lanes wait by then. */
static void check_held_by_a_task(void)
{
	struct pinion_scan_config config;
	struct pinion_scan *scan;

	shared_runtime = start_scarce(1, PINION_IO_FALLBACK);
	scans_setting = "buffers held by a task";
	holder = (struct pinion_task){.run = hold_buffers};
	releaser = (struct pinion_task){.run = release_buffers};
	expect_number("spawn", 0, pinion_task_spawn(shared_runtime, &holder));
	while (sem_wait(&is_held) < 0) {
	}
	scans_config(&config);
	/* Its one lane asks for a buffer as soon as the file is open. */
	config.order = PINION_SCAN_IN_ORDER;
	scan = scans_create(shared_runtime, &config);
	scans_add(scan, FILES - 1);
	while (pin_load_acquire_u32(&scans_files[FILES - 1].opens) == 0) {
		sched_yield();
	}
	expect_number("spawn", 0, pinion_task_spawn(shared_runtime, &releaser));
	expect_number("finish", 0, pinion_scan_finish(scan, NULL, 0));
	scans_expect_end(FILES - 1, PINION_SCAN_DONE, 0);
	pinion_scan_destroy(scan);
	pinion_runtime_destroy(shared_runtime);
	scans_setting = "";
}

/* ---- roots of trees ---- */

static pid_t adding_thread;

/* Whether that thread of ours sleeps. */
static bool sleeps(pid_t thread)
{
	char path[64];
	char text[256] = "";
	const char *state;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
	file = fopen(path, "re");
	expect_ready(path, file != NULL && fgets(text, sizeof(text), file) != NULL);
	fclose(file);
	state = strrchr(text, ')');
	return state != NULL && state[1] == ' ' && state[2] == 'S';
}

/* Releases the buffers once the adding thread waits and goes on waiting. */
static void *release_when_it_waits(void *arg)
{
	(void)arg;
	for (uint32_t asleep = 0; asleep < LOOKS;) {
		asleep = sleeps(adding_thread) ? asleep + 1 : 0;
		sched_yield();
	}
	expect_number("spawn", 0, pinion_task_spawn(shared_runtime, &releaser));
	return NULL;
}

/* As many descriptors as are open, and this number more. */
static void limit_descriptors(uint32_t more)
{
	int next = dup(0);
	struct rlimit limit = {(rlim_t)next + more, (rlim_t)next + more};

	close(next);
	expect_ready("limit", setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

/*
 * Trees of one file, which waits for a buffer: its root stays open as long as
 * the file does.
 */
static void check_trees(void)
{
	struct pinion_scan_config config;
	struct pinion_scan_stats totals;
	struct pinion_scan *scan;
	pthread_t thread;
	char path[64];

	shared_runtime = start_scarce(1, PINION_IO_FALLBACK);
	scans_setting = "trees with few descriptors";
	holder = (struct pinion_task){.run = hold_buffers};
	releaser = (struct pinion_task){.run = release_buffers};
	expect_number("spawn", 0, pinion_task_spawn(shared_runtime, &holder));
	while (sem_wait(&is_held) < 0) {
	}
	adding_thread = gettid();
	expect_ready("thread", pthread_create(&thread, NULL, release_when_it_waits, NULL) == 0);
	limit_descriptors(TREE_DESCRIPTORS);
	scans_config(&config);
	config.order = PINION_SCAN_IN_ORDER;
	scan = scans_create(shared_runtime, &config);
	for (uint32_t i = 0; i < TREES; i++) {
		snprintf(path, sizeof(path), "trees/%u", i);
		expect_number("add", 0, pinion_scan_add_tree(scan, path));
	}
	expect_number("finish", 0, pinion_scan_finish(scan, &totals, sizeof(totals)));
	expect_number("failed", 0, (long long)totals.failed);
	expect_number("done", TREES, (long long)totals.done);
	pthread_join(thread, NULL);
	pinion_scan_destroy(scan);
	pinion_runtime_destroy(shared_runtime);
	scans_setting = "";
}

static void make_trees(void)
{
	char path[64];

	expect_ready("trees", mkdir("trees", 0755) == 0);
	for (uint32_t i = 0; i < TREES; i++) {
		snprintf(path, sizeof(path), "trees/%u", i);
		expect_ready(path, mkdir(path, 0755) == 0);
		snprintf(path, sizeof(path), "trees/%u/file", i);
		scratch_file(path, "bytes");
	}
}

static void *scan_other(void *arg)
{
	struct pinion_scan *scan = arg;

	for (uint32_t i = 0; i < FILES; i++) {
		(void)pinion_scan_add_file(scan, "39");
	}
	(void)pinion_scan_finish(scan, NULL, 0);
	return NULL;
}

static int ignore_window(
	void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	(void)arg;
	(void)file;
	(void)window;
	return 0;
}

static void ignore_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	(void)arg;
	(void)file;
	(void)outcome;
	(void)error;
}

static void check_two_scans(void)
{
	const struct pinion_scan_ops ops = {.window = ignore_window, .report = ignore_report};
	struct pinion_runtime *runtime = start_scarce(1, PINION_IO_AUTO);
	struct pinion_scan_config config;
	struct pinion_scan *other;
	pthread_t thread;

	scans_setting = "two scans on one worker";
	pinion_scan_config_init(&config);
	config.direct = PINION_DIRECT_ALWAYS;
	expect_ready("scan", pinion_scan_create(runtime, &config, &ops, NULL, &other) == 0);
	expect_ready("thread", pthread_create(&thread, NULL, scan_other, other) == 0);
	scans_config(&config);
	config.direct = PINION_DIRECT_ALWAYS;
	scan_files(runtime, &config, FILES);
	pthread_join(thread, NULL);
	pinion_scan_destroy(other);
	pinion_runtime_destroy(runtime);
	scans_setting = "";
}

/* A hang of one case must not hide the others: each in a child. */
static int run_case(void *arg)
{
	void (*const *body)(void) = arg;

	runtimes_watchdog(LIMIT_SECONDS);
	(*body)();
	return expect_status();
}

static void check_in_child(const char *what, void (*body)(void))
{
	expect_number(what, 0, child_code(child_run(run_case, &body, NULL, 0)));
}

int main(void)
{
	runtimes_watchdog(3 * LIMIT_SECONDS);
	expect_ready("semaphore", sem_init(&is_held, 0, 0) == 0);
	scratch_enter("scan_needs_little");
	for (uint32_t i = 0; i < MANY; i++) {
		/* Of small ones many, of large ones some. */
		scans_make(i, i < FILES ? i * 9001 : i % 7);
	}
	expect_number("few descriptors", 0,
		child_code(child_run(scan_with_few_descriptors, NULL, NULL, 0)));
	make_trees();
	check_standard();
	check_in_child("trees", check_trees);
	check_in_child("buffers held by a task", check_held_by_a_task);
	check_in_child("two scans", check_two_scans);
	for (uint32_t level = PINION_IO_AUTO; level <= PINION_IO_FALLBACK; level++) {
		for (uint32_t order = PINION_SCAN_PARALLEL; order <= PINION_SCAN_IN_ORDER;
			order++) {
			check_scarce_buffers(1, order, level);
			check_scarce_buffers(4, order, level);
			check_unsized(order, level);
		}
	}
	scans_forget();
	scratch_leave();
	return expect_status();
}

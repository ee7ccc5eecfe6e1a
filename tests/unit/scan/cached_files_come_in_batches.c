/* SPDX-License-Identifier: MIT */
/*
 * Goal: files of a tree that are found in the page cache are started by
 * several, each file is handed over and reported once, and after a slow file
 * the others of its batch go to other workers. Read in order, a file of a batch
 * is left to a free worker if an earlier one is still being read. Files that
 * wait for the disk and files that are added one by one start alone.
 * Method: the starts are counted as they pass from scan.c to slot.c; whether
 * files are in the page cache, and the time, are answered by the test.
 */
#include "runtime/scan/scan.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <pinion/scan.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define WRAP(type, name, ...) \
	type __real_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

enum {
	LIMIT_SECONDS = 60,
	FILES = 200,
	FILE_BYTES = 3000,
	SLOTS = 64,
	BATCH = 16,
	/* A thread that has waited long for slots goes on with this part. */
	FEW_SLOTS = SLOTS / 8,
};

static bool is_cached;
static uint32_t start_count;
static uint64_t longest;
static struct pin_atomic_u32 window_count;
static struct pin_atomic_u32 report_count[FILES];

/* Of the scan: it stands still, or hurries. */
static uint64_t step_ns;
static struct pin_atomic_u64 made_up_ns;

static struct pin_atomic_u32 handed_on_count;

/* With `awaits_other`: until callbacks have run on two workers at a time. */
static bool awaits_other;
static struct pin_atomic_u32 here_count;
static struct pin_atomic_u32 has_met;

/* Declared in <unistd.h> with "...", which comes to the same here. */
WRAP(long, syscall, long number, long a, long b, long c, long d, long e, long f)
{
	if (number == 451) {	/* cachestat, on every architecture */
		errno = ENOSYS; /* the first byte is read instead, as below */
		return -1;
	}
	return __real_syscall(number, a, b, c, d, e, f);
}

WRAP(ssize_t, preadv2, int fd, const struct iovec *vector, int count, off_t offset, int flags)
{
	(void)flags;
	if (!is_cached) {
		errno = EAGAIN;
		return -1;
	}
	return preadv(fd, vector, count, offset);
}

WRAP(void, pin_slots_start, const struct pin_slots *batch)
{
	start_count++;
	longest = batch->count > longest ? batch->count : longest;
	__real_pin_slots_start(batch);
}

static uint64_t make_up_time(void)
{
	return pin_fetch_add_acq_rel_u64(&made_up_ns, step_ns);
}

/*
 * The first file takes long, so that its batch is not gone on with here; the
 * next waits for another worker.
 */
static void meet_other(void)
{
	pin_fetch_add_acq_rel_u32(&here_count, 1);
	while (pin_fetch_add_acq_rel_u32(&window_count, 0) > 1 &&
		pin_load_acquire_u32(&has_met) == 0) {
		if (pin_load_acquire_u32(&here_count) > 1) {
			pin_store_release_u32(&has_met, 1);
		}
	}
	pin_fetch_sub_acq_rel_u32(&here_count, 1);
}

static int take(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	(void)arg;
	(void)file;
	expect_number("bytes", FILE_BYTES, (long long)window->length_bytes);
	pin_fetch_add_acq_rel_u32(&window_count, 1);
	if (awaits_other) {
		meet_other();
	}
	return 0;
}

static int note_open(void *arg, struct pinion_scan_file *file)
{
	const struct pin_slot *slot = PIN_CONTAINER_OF(file, struct pin_slot, file);

	(void)arg;
	if (slot->was_handed_on) {
		pin_fetch_add_acq_rel_u32(&handed_on_count, 1);
	}
	return 0;
}

static void note_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	const char *name = strrchr(file->path, '/');
	unsigned long number = strtoul(name != NULL ? name + 1 : file->path, NULL, 10);

	(void)arg;
	expect_number("outcome", PINION_SCAN_DONE, outcome);
	expect_number("error", 0, error);
	pin_fetch_add_acq_rel_u32(&report_count[number], 1);
}

/* ---- scans ---- */

static struct pinion_scan *begin(
	struct pinion_runtime *runtime, uint32_t order, bool knows_cached, const char *what)
{
	static const struct pinion_scan_ops ops = {
		.open = note_open, .window = take, .report = note_report};
	static struct pin_host host;
	struct pinion_scan_config config;
	struct pinion_scan *scan = NULL;

	printf("%s\n", what);
	start_count = 0;
	longest = 0;
	pin_store_release_u32(&window_count, 0);
	memset(report_count, 0, sizeof(report_count));
	pinion_scan_config_init(&config);
	config.order = order;
	config.files_in_flight = SLOTS;
	config.windows_in_flight = 2;
	expect_ready(what, pinion_scan_create(runtime, &config, &ops, NULL, &scan) == 0);
	host = *scan->host;
	host.now_ns = make_up_time;
	scan->host = &host;
	/* As after other files, where workers have found out. */
	for (uint32_t i = 0; i < pinion_runtime_worker_count(runtime); i++) {
		pin_store_relaxed_u32(&scan->workers[i].finds_cached, knows_cached);
	}
	return scan;
}

static void end(struct pinion_scan *scan, uint32_t file_count)
{
	struct pinion_scan_stats stats;

	expect_number("finish", 0, pinion_scan_finish(scan, &stats, sizeof(stats)));
	expect_number("done", file_count, (long long)stats.done);
	expect_number("seen", file_count, (long long)stats.seen);
	for (uint32_t i = 0; i < file_count; i++) {
		expect_number("reports", 1, pin_load_acquire_u32(&report_count[i]));
	}
	pinion_scan_destroy(scan);
}

static void make_files(const char *folder, uint32_t count)
{
	static uint8_t bytes[FILE_BYTES];
	char path[64];

	expect_ready(folder, mkdir(folder, 0755) == 0);
	for (uint32_t i = 0; i < count; i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/%u", folder, i);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		expect_ready(path, fd >= 0 && write(fd, bytes, FILE_BYTES) == FILE_BYTES);
		close(fd);
	}
}

static void scan_tree(struct pinion_runtime *runtime, uint32_t order, const char *what)
{
	struct pinion_scan *scan = begin(runtime, order, is_cached, what);

	expect_number("add", 0, pinion_scan_add_tree(scan, "many"));
	end(scan, FILES);
}

static void start_alone(struct pinion_runtime *runtime)
{
	struct pinion_scan *scan;

	is_cached = false;
	scan_tree(runtime, PINION_SCAN_PARALLEL, "not cached");
	expect_number("starts", FILES, start_count);
	is_cached = true;
	scan = begin(runtime, PINION_SCAN_PARALLEL, true, "one by one");
	for (uint32_t i = 0; i < BATCH; i++) {
		char path[64];

		snprintf(path, sizeof(path), "many/%u", i);
		expect_number("add", 0, pinion_scan_add_file(scan, path));
		/* None is held back. */
		expect_number("starts", i + 1, start_count);
	}
	end(scan, BATCH);
}

static void start_by_several(struct pinion_runtime *runtime, uint32_t order)
{
	is_cached = true;
	scan_tree(runtime, order, "cached");
	expect_number("longest batch", BATCH, (long long)longest);
	/* All but the last are a batch, or the slots that were waited for. */
	expect_number("few starts", 1, start_count <= FILES / FEW_SLOTS + 1);
}

static void leave_the_rest(void)
{
	struct pinion_runtime *runtime = runtimes_start(2, PINION_IO_AUTO);
	struct pinion_scan *scan = begin(runtime, PINION_SCAN_PARALLEL, true, "a slow file");

	awaits_other = true;
	step_ns = 1000 * 1000 * 1000;
	expect_number("add", 0, pinion_scan_add_tree(scan, "few"));
	end(scan, BATCH);
	awaits_other = false;
	step_ns = 0;
	expect_number("starts", 1, start_count);
	expect_number("met", 1, pin_load_acquire_u32(&has_met));
	pinion_runtime_destroy(runtime);
}

/* Files that are not in the cache after all, each long for its batch. */
static void leave_to_the_free(void)
{
	struct pinion_runtime *runtime = runtimes_start(2, PINION_IO_AUTO);

	is_cached = false;
	while (expect_failure_count == 0 && pin_load_acquire_u32(&handed_on_count) == 0) {
		struct pinion_scan *scan =
			begin(runtime, PINION_SCAN_IN_ORDER, true, "one is free");

		expect_number("add", 0, pinion_scan_add_tree(scan, "few"));
		end(scan, BATCH);
		expect_number("starts", 1, start_count);
	}
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("cached_files_come_in_batches");
	make_files("many", FILES);
	make_files("few", BATCH);
	for (uint32_t level = PINION_IO_AUTO; level <= PINION_IO_FALLBACK; level++) {
		struct pinion_runtime *runtime = runtimes_start(1, level);

		start_alone(runtime);
		start_by_several(runtime, PINION_SCAN_PARALLEL);
		start_by_several(runtime, PINION_SCAN_IN_ORDER);
		pinion_runtime_destroy(runtime);
	}
	leave_the_rest();
	leave_to_the_free();
	scratch_leave();
	return expect_status();
}

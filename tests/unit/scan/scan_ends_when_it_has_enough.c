/* SPDX-License-Identifier: MIT */
/*
 * Goal: when `window` returns PINION_SCAN_ENOUGH no further window of that file
 * is read or handed over, the file ends as DONE, and the totals have the bytes
 * that were handed over; in order, in parallel, with and without rings. Other
 * files are read to their ends. A hole whose `window` returns something else
 * than 0 is not counted. A file whose `open` returns it is not read at all, and
 * closed.
 * Method: files of many windows, counted as they come; one of them sparse.
 */
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"

#include "runtime/base/atomic.h"
#include "runtime/base/base.h"

#include <errno.h>
#include <pinion/scan.h>

enum {
	WINDOW = 64 << 10,
	WINDOWS = 200,
	DATA = 16, /* windows before the hole */
	ENOUGH_AT = 5,
	TRIES = 50,
	LIMIT_SECONDS = 60,
};

#define HOLE_SIZE (UINT64_C(1) << 30)

static uint32_t enough_at; /* the window that returns it */
static int hole_result;	   /* what a hole returns */
static struct pin_atomic_u32 has_enough;
static struct pin_atomic_u32 windows_before;
static struct pin_atomic_u32 windows_after;
static struct pin_atomic_u32 holes;
static struct pin_atomic_u32 other_windows;
static struct pin_atomic_u32 done_count;
static int wanted_error;
static bool is_done_at_open;
static uint32_t close_count; /* of that file */

static int take_window(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	(void)arg;
	if (strcmp(file->path, "other") == 0) {
		pin_fetch_add_acq_rel_u32(&other_windows, 1);
		return 0;
	}
	pin_fetch_add_acq_rel_u32(
		pin_load_acquire_u32(&has_enough) != 0 ? &windows_after : &windows_before, 1);
	if (window->is_hole) {
		pin_fetch_add_acq_rel_u32(&holes, 1);
		return hole_result;
	}
	if (window->index == enough_at) {
		pin_store_release_u32(&has_enough, 1);
		return PINION_SCAN_ENOUGH;
	}
	return 0;
}

static int open_file(void *arg, struct pinion_scan_file *file)
{
	(void)arg;
	return is_done_at_open && strcmp(file->path, "other") != 0 ? PINION_SCAN_ENOUGH : 0;
}

static int close_file(void *arg, struct pinion_scan_file *file, int error)
{
	(void)arg;
	(void)error;
	close_count += strcmp(file->path, "other") != 0 ? 1 : 0;
	return 0;
}

static void note_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	int wanted = strcmp(file->path, "other") == 0 ? 0 : wanted_error;

	(void)arg;
	expect_number(file->path, wanted == 0 ? PINION_SCAN_DONE : PINION_SCAN_FAILED, outcome);
	expect_number(file->path, wanted, error);
	pin_fetch_add_acq_rel_u32(&done_count, 1);
}

static struct pinion_scan_stats scan_files(
	uint32_t workers, uint32_t level, uint32_t order, const char *path)
{
	static const struct pinion_scan_ops ops = {
		.open = open_file,
		.window = take_window,
		.close = close_file,
		.report = note_report,
	};
	struct pinion_runtime *runtime = runtimes_start(workers, level);
	struct pinion_scan_stats totals;
	struct pinion_scan_config config;
	struct pinion_scan *scan;

	pin_store_release_u32(&has_enough, 0);
	pin_store_release_u32(&windows_before, 0);
	pin_store_release_u32(&windows_after, 0);
	pin_store_release_u32(&holes, 0);
	pin_store_release_u32(&other_windows, 0);
	pin_store_release_u32(&done_count, 0);
	pinion_scan_config_init(&config);
	config.order = order;
	config.window_bytes = WINDOW;
	config.report_holes = 1;
	expect_ready("create", pinion_scan_create(runtime, &config, &ops, NULL, &scan) == 0);
	expect_number("add", 0, pinion_scan_add_file(scan, path));
	expect_number("add", 0, pinion_scan_add_file(scan, "other"));
	expect_number("finish", 0, pinion_scan_finish(scan, &totals, sizeof(totals)));
	expect_number("destroy", 0, pinion_scan_destroy(scan));
	pinion_runtime_destroy(runtime);
	expect_number("reports", 2, pin_load_acquire_u32(&done_count));
	expect_number("windows of the other", WINDOWS, pin_load_acquire_u32(&other_windows));
	return totals;
}

/* On one worker nothing is under way when a window has returned. */
static void check_one_worker(uint32_t level, uint32_t order)
{
	struct pinion_scan_stats totals;
	uint32_t before;

	enough_at = ENOUGH_AT;
	totals = scan_files(1, level, order, "large");
	before = pin_load_acquire_u32(&windows_before);
	if (order == PINION_SCAN_IN_ORDER) {
		expect_number("windows in order", ENOUGH_AT + 1, before);
	}
	expect_true("fewer than all", before < WINDOWS);
	expect_number("windows after it", 0, pin_load_acquire_u32(&windows_after));
	expect_number("done", 2, (long long)totals.done);
	expect_number(
		"bytes", (WINDOWS + (long long)before) * WINDOW, (long long)totals.read_bytes);
}

static void check_open(uint32_t level)
{
	struct pinion_scan_stats totals;

	is_done_at_open = true;
	close_count = 0;
	totals = scan_files(1, level, PINION_SCAN_IN_ORDER, "large");
	is_done_at_open = false;
	expect_number(
		"windows of a file done at its open", 0, pin_load_acquire_u32(&windows_before));
	expect_number("closed", 1, close_count);
	expect_number("done", 2, (long long)totals.done);
	expect_number("bytes", (long long)WINDOWS * WINDOW, (long long)totals.read_bytes);
}

/*
 * The worker of the first window may get no CPU until others have read all the
 * rest, though not time after time.
 */
static void check_workers(uint32_t level)
{
	uint32_t count = WINDOWS;

	enough_at = 0;
	for (int i = 0; i < TRIES && count == WINDOWS; i++) {
		struct pinion_scan_stats totals =
			scan_files(3, level, PINION_SCAN_PARALLEL, "large");

		count = pin_load_acquire_u32(&windows_before) +
			pin_load_acquire_u32(&windows_after);
		expect_number("bytes", (WINDOWS + (long long)count) * WINDOW,
			(long long)totals.read_bytes);
	}
	expect_true("fewer than all", count < WINDOWS);
}

/* The data in front is counted, the hole only when all of it was taken. */
static void check_hole(uint32_t order, int result, int error)
{
	struct pinion_scan_stats totals;
	long long data_bytes = (long long)DATA * WINDOW;
	long long hole_bytes;

	enough_at = UINT32_MAX;
	hole_result = result;
	wanted_error = error;
	totals = scan_files(1, PINION_IO_AUTO, order, "sparse");
	wanted_error = 0;
	hole_bytes = (long long)totals.hole_bytes;
	if (pin_load_acquire_u32(&holes) == 0) {
		printf("no holes on this file system: that part is left out\n");
		return;
	}
	expect_number("one hole", 1, pin_load_acquire_u32(&holes));
	expect_true("hole bytes", result == 0 ? hole_bytes > 0 : hole_bytes == 0);
	if (order == PINION_SCAN_IN_ORDER && result != 0) {
		long long others_bytes = (long long)WINDOWS * WINDOW;

		/* Up to where the overlap in front of the hole is zeros too. */
		expect_true("bytes read",
			(long long)totals.read_bytes - others_bytes >= data_bytes &&
				(long long)totals.read_bytes - others_bytes <=
					data_bytes + 2 * WINDOW);
	}
}

static void make_file(const char *name, uint32_t windows, uint64_t size)
{
	static const uint8_t bytes[WINDOW] = {'x'};
	int fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

	expect_ready(name, fd >= 0);
	for (uint32_t i = 0; i < windows; i++) {
		expect_ready(name, write(fd, bytes, WINDOW) == WINDOW);
	}
	expect_ready(name, ftruncate(fd, (off_t)size) == 0 && close(fd) == 0);
}

int main(void)
{
	static const uint32_t levels[] = {PINION_IO_AUTO, PINION_IO_FALLBACK};

	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("scan_ends_when_it_has_enough");
	make_file("large", WINDOWS, (uint64_t)WINDOWS * WINDOW);
	make_file("other", WINDOWS, (uint64_t)WINDOWS * WINDOW);
	make_file("sparse", DATA, HOLE_SIZE);
	for (size_t i = 0; i < PIN_ARRAY_COUNT(levels); i++) {
		check_one_worker(levels[i], PINION_SCAN_PARALLEL);
		check_one_worker(levels[i], PINION_SCAN_IN_ORDER);
		check_workers(levels[i]);
		check_open(levels[i]);
	}
	for (uint32_t order = PINION_SCAN_PARALLEL; order <= PINION_SCAN_IN_ORDER; order++) {
		check_hole(order, 0, 0);
		check_hole(order, PINION_SCAN_ENOUGH, 0);
		check_hole(order, -ETIME, -ETIME);
	}
	scratch_leave();
	return expect_status();
}

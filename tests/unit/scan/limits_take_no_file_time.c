/* SPDX-License-Identifier: MIT */
/*
 * Goal: the time that a file's reads wait inside the library, for a rate or for
 * the device's depth, does not count against `file_timeout_ns`: each file is
 * read, however long it was held back. A request with a deadline of its own
 * ends by it all the same.
 * Method: a rate of a byte in a second holds back all reads but the first. It
 * is lifted when a deadline of twice the timeout has come, which a request in
 * the same device wait queue had.
 */
#include "tests/support/requests.h"
#include "tests/support/scans.h"

#include <fcntl.h>
#include <pinion/limit.h>
#include <pinion/pinion.h>

enum {
	LIMIT_SECONDS = 120,
	FILES = 8,
	WINDOW_BYTES = 64 << 10,
	FILE_BYTES = 3 * WINDOW_BYTES,
	TIMEOUT_MS = 1000,
	HELD_TIMEOUTS = 2,
};

static struct pinion_runtime *runtime;
static struct pinion_file own;
static struct pin_atomic_u64 byte_count;
static struct pin_atomic_u32 report_count;

static void limit(uint64_t bytes_per_second)
{
	struct pinion_limits limits;

	pinion_limits_init(&limits);
	limits.bytes_per_second = bytes_per_second;
	expect_number("limits", 0, pinion_runtime_set_limits(runtime, &limits));
}

/* The page cache answers at once, and would not be limited. */
static void leave_cache(struct pinion_file *file)
{
	file->cached_percent = 0;
	file->flags = 0;
	posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED);
}

static int open_file(void *arg, struct pinion_scan_file *file)
{
	(void)arg;
	leave_cache(&file->file);
	return 0;
}

static int take_window(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	(void)arg;
	(void)file;
	pin_fetch_add_acq_rel_u64(&byte_count, window->length_bytes);
	return 0;
}

static void note_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	(void)arg;
	(void)file;
	expect_number("outcome", PINION_SCAN_DONE, outcome);
	expect_number("error", 0, error);
	pin_fetch_add_acq_rel_u32(&report_count, 1);
}

static const struct pinion_scan_ops ops = {
	.open = open_file, .window = take_window, .report = note_report};

static uint64_t throttled_count(void)
{
	struct pinion_device_stats figures;

	return pinion_device_get_stats(runtime, 0, &figures, sizeof(figures)) == 0
		? figures.throttled
		: 0;
}

/* A read that is held back as well, until its own deadline. */
static void wait_in_line(void)
{
	static uint8_t block[4096];
	struct requests_one one;

	requests_begin_transfer(&one, PINION_OP_READ, &own, block, 0, sizeof(block));
	one.request.deadline_ns =
		pinion_clock_now_ns() + (uint64_t)HELD_TIMEOUTS * TIMEOUT_MS * 1000 * 1000;
	expect_number("its own deadline counts", -ETIME, requests_do(runtime, &one));
}

static void check(uint32_t io_level, uint32_t order)
{
	struct pinion_scan_config config;
	struct pinion_scan_stats totals;
	struct pinion_scan *scan;

	pin_store_release_u32(&report_count, 0);
	pin_store_release_u64(&byte_count, 0);
	runtime = runtimes_start(2, io_level);
	limit(1);
	pinion_scan_config_init(&config);
	config.order = order;
	config.window_bytes = WINDOW_BYTES;
	config.direct = PINION_DIRECT_NEVER;
	config.file_timeout_ns = (uint64_t)TIMEOUT_MS * 1000 * 1000;
	expect_ready("scan", pinion_scan_create(runtime, &config, &ops, NULL, &scan) == 0);
	for (uint32_t i = 0; i < FILES; i++) {
		scans_add(scan, i);
	}
	while (throttled_count() == 0) {
		sched_yield();
	}
	wait_in_line();
	limit(0);
	expect_number("finish", 0, pinion_scan_finish(scan, &totals, sizeof(totals)));
	expect_number("done", FILES, (long long)totals.done);
	expect_number("reports", FILES, pin_load_acquire_u32(&report_count));
	expect_number("bytes", FILES * FILE_BYTES, (long long)pin_load_acquire_u64(&byte_count));
	pinion_scan_destroy(scan);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("limits_take_no_file_time");
	for (uint32_t i = 0; i < FILES; i++) {
		scans_make(i, FILE_BYTES);
	}
	expect_ready("own", pinion_file_open(&own, "0", PINION_DIRECT_NEVER) == 0);
	leave_cache(&own);
	check(PINION_IO_AUTO, PINION_SCAN_PARALLEL);
	check(PINION_IO_FALLBACK, PINION_SCAN_IN_ORDER);
	pinion_file_close(&own);
	scans_forget();
	scratch_leave();
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: with `file_timeout_ns` a file from which nothing comes ends as FAILED
 * with -ETIME, once, and those beside it are read whole; the scan ends by
 * itself. Without io_uring, where such a read would block, too; without a
 * limit it fails with that error there. A limit out of range is refused.
 * Method: /proc/kmsg, read dry first, beside a plain file.
 */
#include "tests/support/kmsg.h"
#include "tests/support/scans.h"

enum {
	LIMIT_SECONDS = 60,
	HUNG_FILES = 3,
	TIMEOUT_NS = 120 * 1000 * 1000,
};

static struct pin_atomic_u32 failed_count;
static struct pin_atomic_u32 done_count;
static struct pin_atomic_u64 byte_count;
static int expected_error;

static int take_window(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	(void)arg;
	if (file->file.size_bytes > 0) {
		pin_fetch_add_acq_rel_u64(&byte_count, window->length_bytes);
	}
	return 0;
}

static void note_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	(void)arg;
	if (outcome == PINION_SCAN_DONE) {
		expect_number("the plain file", 0, strcmp(file->path, "plain"));
		pin_fetch_add_acq_rel_u32(&done_count, 1);
		return;
	}
	expect_number("outcome", PINION_SCAN_FAILED, outcome);
	expect_number("error", expected_error, error);
	pin_fetch_add_acq_rel_u32(&failed_count, 1);
}

static const struct pinion_scan_ops ops = {.window = take_window, .report = note_report};

static void check(uint32_t io_level, uint32_t order, uint64_t timeout_ns)
{
	struct pinion_runtime *runtime = runtimes_start(2, io_level);
	struct pinion_scan_stats totals;
	struct pinion_scan_config config;
	struct pinion_scan *scan;

	pin_store_release_u32(&failed_count, 0);
	pin_store_release_u32(&done_count, 0);
	pin_store_release_u64(&byte_count, 0);
	expected_error = timeout_ns == 0 ? -EAGAIN : -ETIME;
	pinion_scan_config_init(&config);
	config.order = order;
	config.file_timeout_ns = timeout_ns;
	expect_ready("scan", pinion_scan_create(runtime, &config, &ops, NULL, &scan) == 0);
	for (int i = 0; i < HUNG_FILES; i++) {
		expect_number("add", 0, pinion_scan_add_file(scan, KMSG_PATH));
	}
	expect_number("add", 0, pinion_scan_add_file(scan, "plain"));
	expect_number("finish", 0, pinion_scan_finish(scan, &totals, sizeof(totals)));
	expect_number("reported as failed", HUNG_FILES, pin_load_acquire_u32(&failed_count));
	expect_number("reported as done", 1, pin_load_acquire_u32(&done_count));
	expect_number("bytes", 5, (long long)pin_load_acquire_u64(&byte_count));
	expect_number("failed", HUNG_FILES, (long long)totals.failed);
	expect_number("done", 1, (long long)totals.done);
	pinion_scan_destroy(scan);
	pinion_runtime_destroy(runtime);
}

static void check_range(void)
{
	struct pinion_runtime *runtime = runtimes_start(1, PINION_IO_FALLBACK);
	struct pinion_scan_config config;
	struct pinion_scan *scan;

	pinion_scan_config_init(&config);
	config.file_timeout_ns = (UINT64_C(1) << 62) + 1;
	expect_number("too long", -EINVAL, pinion_scan_create(runtime, &config, &ops, NULL, &scan));
	config.file_timeout_ns = 0;
	config.walk_order = UINT32_MAX;
	expect_number("no order", -EINVAL, pinion_scan_create(runtime, &config, &ops, NULL, &scan));
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_range();
	kmsg_read_dry();
	scratch_enter("file_timeout_fails_hung_files");
	scratch_file("plain", "plain");
	for (uint32_t level = PINION_IO_AUTO; level <= PINION_IO_FALLBACK; level++) {
		check(level, PINION_SCAN_PARALLEL, TIMEOUT_NS);
		check(level, PINION_SCAN_IN_ORDER, TIMEOUT_NS);
	}
	check(PINION_IO_FALLBACK, PINION_SCAN_PARALLEL, 0);
	scratch_leave();
	return expect_status();
}

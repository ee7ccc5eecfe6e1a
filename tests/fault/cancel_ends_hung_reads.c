/* SPDX-License-Identifier: MIT */
/*
 * Goal: pinion_scan_cancel() alone ends a scan whose reads never end: each file
 * ends once, as cancelled with -ECANCELED, and finish, drain and destroy
 * return. With several workers, in order and in parallel, with a shared ring,
 * and where the cancel comes from a callback of a file that goes on.
 * Method: /proc/kmsg, whose read waits for the next message of the kernel; its
 * descriptor is the ring's to wait for. Read dry first, so that it waits.
 */
#include "tests/support/kmsg.h"
#include "tests/support/scans.h"

enum {
	LIMIT_SECONDS = 60,
	HUNG_FILES = 5,
};

static struct pinion_scan *current_scan;
static struct pin_atomic_u32 opened_count;
static struct pin_atomic_u32 cancelled_count;
static struct pin_atomic_u32 other_count;

static int note_open(void *arg, struct pinion_scan_file *file)
{
	(void)arg;
	(void)file;
	pin_fetch_add_acq_rel_u32(&opened_count, 1);
	return 0;
}

static int take_window(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	(void)arg;
	(void)file;
	(void)window;
	return 0;
}

static int cancel_in_window(
	void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	if (file->file.size_bytes > 0) {
		pinion_scan_cancel(current_scan);
	}
	return take_window(arg, file, window);
}

static void note_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	bool is_cancelled = outcome == PINION_SCAN_CANCELLED && error == -ECANCELED;

	(void)arg;
	(void)file;
	pin_fetch_add_acq_rel_u32(is_cancelled ? &cancelled_count : &other_count, 1);
}

static void check(uint32_t order, uint32_t workers, bool shares_ring, bool is_from_window)
{
	const struct pinion_scan_ops ops = {
		.open = note_open,
		.window = is_from_window ? cancel_in_window : take_window,
		.report = note_report,
	};
	struct pinion_scan_stats totals;
	struct pinion_scan_config config;
	struct pinion_config runtime_config;
	struct pinion_runtime *runtime;

	pin_store_release_u32(&opened_count, 0);
	pin_store_release_u32(&cancelled_count, 0);
	pin_store_release_u32(&other_count, 0);
	runtimes_config(&runtime_config, workers, PINION_IO_RING);
	runtimes_tuning.ring_sharing = shares_ring;
	expect_ready("create", pinion_runtime_create(&runtime_config, &runtime) == 0);
	pinion_scan_config_init(&config);
	config.order = order;
	expect_ready("scan", pinion_scan_create(runtime, &config, &ops, NULL, &current_scan) == 0);
	for (int i = 0; i < HUNG_FILES; i++) {
		expect_number("add", 0, pinion_scan_add_file(current_scan, KMSG_PATH));
	}
	while (pin_load_acquire_u32(&opened_count) < HUNG_FILES) {
		sched_yield();
	}
	if (is_from_window) {
		expect_number("add", 0, pinion_scan_add_file(current_scan, "plain"));
	} else {
		pinion_scan_cancel(current_scan);
		pinion_scan_cancel(current_scan);
	}
	expect_number("finish", 0, pinion_scan_finish(current_scan, &totals, sizeof(totals)));
	expect_number("hung files", HUNG_FILES, pin_load_acquire_u32(&cancelled_count));
	expect_number("others", is_from_window, pin_load_acquire_u32(&other_count));
	expect_number("cancelled", HUNG_FILES, (long long)totals.cancelled);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_scan_destroy(current_scan);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	struct pinion_runtime *runtime;
	struct pinion_config config;

	runtimes_watchdog(LIMIT_SECONDS);
	runtimes_config(&config, 1, PINION_IO_RING);
	if (pinion_runtime_create(&config, &runtime) < 0) {
		printf("skipped: no io_uring here\n");
		return EXPECT_SKIPPED;
	}
	pinion_runtime_destroy(runtime);
	kmsg_read_dry();
	scratch_enter("cancel_ends_hung_reads");
	scratch_file("plain", "plain");
	for (uint32_t order = PINION_SCAN_PARALLEL; order <= PINION_SCAN_IN_ORDER; order++) {
		for (uint32_t workers = 1; workers <= 3; workers += 2) {
			check(order, workers, false, false);
			check(order, workers, true, false);
			check(order, workers, false, true);
		}
	}
	scratch_leave();
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: an engine's error ends its file as FAILED with that error, from each
 * callback, and no window follows; paths that cannot be read are reported as
 * promised; cancelling ends a scan early; the totals always add up.
 * Method: engines that fail at chosen points, paths of every kind, a cancel
 * from inside a window; callers of other versions.
 */
#include "tests/support/scans.h"

#include <errno.h>
#include <limits.h>

enum {
	LIMIT_SECONDS = 60,
	SIZE = 256 << 10,
	WINDOW = 16 << 10,
	MANY = 300,
};

static struct pinion_scan *current_scan;
static int open_result;
static int close_result;
static const void *reported_user;

static int third_result;

static int fail_third(const struct pinion_scan_file *file, const struct pinion_window *window)
{
	(void)file;
	return window->index == 2 ? third_result : 0;
}

static int cancel_at_first(const struct pinion_scan_file *file, const struct pinion_window *window)
{
	(void)file;
	(void)window;
	pinion_scan_cancel(current_scan);
	return 0;
}

static void check_window_error(uint32_t order, int result, int error)
{
	struct pinion_runtime *runtime = runtimes_start(2, PINION_IO_AUTO);
	struct pinion_scan_config config;
	struct pinion_scan_stats totals;

	third_result = result;
	scans_window_hook = fail_third;
	scans_config(&config);
	config.order = order;
	config.window_bytes = WINDOW;
	/* With one lane what follows the error cannot be under way already. */
	config.windows_in_flight = order == PINION_SCAN_IN_ORDER ? 8 : 1;
	current_scan = scans_create(runtime, &config);
	scans_add(current_scan, 0);
	expect_number("finish", 0, pinion_scan_finish(current_scan, &totals, sizeof(totals)));
	scans_expect_end(0, PINION_SCAN_FAILED, error);
	expect_number("windows up to the error", 3, pin_load_acquire_u32(&scans_files[0].windows));
	expect_number("failed", 1, (long long)totals.failed);
	pinion_scan_destroy(current_scan);
	pinion_runtime_destroy(runtime);
	scans_window_hook = NULL;
}

static int open_as_told(void *arg, struct pinion_scan_file *file)
{
	(void)arg;
	(void)file;
	return open_result;
}

static int close_as_told(void *arg, struct pinion_scan_file *file, int error)
{
	(void)arg;
	(void)file;
	return error == 0 ? close_result : 0;
}

static void keep_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	reported_user = file->user;
	scans_files[0].outcome = outcome;
	scans_files[0].error = error;
	pin_fetch_add_acq_rel_u32(&scans_files[0].reports, 1);
	(void)arg;
}

/* One path through an engine that fails when opened or closed. */
static void check_callbacks(
	const char *path, int open_rc, int close_rc, enum pinion_scan_outcome outcome, int error)
{
	struct pinion_runtime *runtime = runtimes_start(2, PINION_IO_AUTO);
	struct pinion_scan_ops ops = {
		.open = open_as_told,
		.window = scans_window,
		.close = close_as_told,
		.report = keep_report,
	};
	struct pinion_scan_config config;
	struct pinion_scan_stats totals;

	open_result = open_rc;
	close_result = close_rc;
	scans_setting = path;
	scans_config(&config);
	config.window_bytes = WINDOW;
	scans_in_order = false;
	pin_store_release_u32(&scans_files[0].reports, 0);
	expect_ready("scan", pinion_scan_create(runtime, &config, &ops, NULL, &current_scan) == 0);
	expect_number("add", 0, pinion_scan_add_file(current_scan, path));
	expect_number("finish", 0, pinion_scan_finish(current_scan, &totals, sizeof(totals)));
	scans_expect_end(0, outcome, error);
	expect_number("seen", 1, (long long)totals.seen);
	pinion_scan_destroy(current_scan);
	pinion_runtime_destroy(runtime);
	scans_setting = "";
}

static void check_cancel(uint32_t order)
{
	struct pinion_runtime *runtime = runtimes_start(2, PINION_IO_AUTO);
	struct pinion_scan_config config;
	struct pinion_scan_stats totals;
	int cancelled = 0;
	int rc = 0;
	int added = 0;

	scans_window_hook = cancel_at_first;
	scans_config(&config);
	config.order = order;
	config.window_bytes = WINDOW;
	config.files_in_flight = 4;
	current_scan = scans_create(runtime, &config);
	for (; added < MANY && rc == 0; added++) {
		/* Not the file's number: only the totals are looked at. */
		rc = pinion_scan_add_file(current_scan, "./0");
	}
	cancelled = rc;
	(void)pinion_scan_finish(current_scan, &totals, sizeof(totals));
	expect_number("add after the cancel", -ECANCELED, cancelled);
	expect_number("seen", added, (long long)totals.seen);
	expect_true("some were cancelled", totals.cancelled > 0);
	expect_number("ends add up", (long long)totals.seen,
		(long long)(totals.done + totals.failed + totals.skipped + totals.cancelled));
	expect_number("failed", 0, (long long)totals.failed);
	pinion_scan_destroy(current_scan);
	pinion_runtime_destroy(runtime);
	scans_window_hook = NULL;
}

/* In the middle of one large file, which is thus neither done nor failed. */
static void check_cancel_one(uint32_t order)
{
	struct pinion_runtime *runtime = runtimes_start(2, PINION_IO_AUTO);
	struct pinion_scan_config config;

	scans_window_hook = cancel_at_first;
	scans_config(&config);
	config.order = order;
	config.window_bytes = 4096;
	config.windows_in_flight = 2;
	current_scan = scans_create(runtime, &config);
	scans_add(current_scan, 0);
	expect_number("finish", 0, pinion_scan_finish(current_scan, NULL, 0));
	scans_expect_end(0, PINION_SCAN_CANCELLED, -ECANCELED);
	pinion_scan_destroy(current_scan);
	pinion_runtime_destroy(runtime);
	scans_window_hook = NULL;
}

/* A tree in which there is nothing but directories, so that none is visited. */
static void check_cancelled_walk(void)
{
	struct pinion_runtime *runtime = runtimes_start(1, PINION_IO_AUTO);
	struct pinion_scan_config config;
	struct pinion_scan_stats totals;

	scans_config(&config);
	current_scan = scans_create(runtime, &config);
	expect_number("a walk to its end", 0, pinion_scan_add_tree(current_scan, "folder"));
	pinion_scan_cancel(current_scan);
	expect_number("a cancelled walk", -ECANCELED, pinion_scan_add_tree(current_scan, "folder"));
	(void)pinion_scan_finish(current_scan, &totals, sizeof(totals));
	expect_number("seen in directories", 0, (long long)totals.seen);
	pinion_scan_destroy(current_scan);
	pinion_runtime_destroy(runtime);
}

/* Of a program that knows the first total only, and of a newer one. */
static void check_totals_sizes(void)
{
	struct pinion_runtime *runtime = runtimes_start(1, PINION_IO_AUTO);
	struct pinion_scan_config config;
	uint64_t first[2] = {99, 99};
	struct {
		struct pinion_scan_stats known;
		uint64_t later;
	} newer;

	scans_config(&config);
	current_scan = scans_create(runtime, &config);
	scans_add(current_scan, 0);
	expect_number("an old program's", 0,
		pinion_scan_finish(
			current_scan, (struct pinion_scan_stats *)(void *)first, sizeof(first[0])));
	expect_number("seen", 1, (long long)first[0]);
	expect_number("and no more", 99, (long long)first[1]);
	memset(&newer, 0xff, sizeof(newer));
	expect_number(
		"a newer one's", 0, pinion_scan_finish(current_scan, &newer.known, sizeof(newer)));
	expect_number("done", 1, (long long)newer.known.done);
	expect_number("what it alone knows", 0, (long long)newer.later);
	pinion_scan_destroy(current_scan);
	pinion_runtime_destroy(runtime);
}

static void check_config(void)
{
	struct pinion_runtime *runtime = runtimes_start(1, PINION_IO_AUTO);
	struct {
		struct pinion_scan_config known;
		uint8_t tail[8];
	} newer;
	const struct {
		const char *what;
		size_t offset;
		uint32_t value;
	} bad[] = {
		{"order", offsetof(struct pinion_scan_config, order), 2},
		{"direct", offsetof(struct pinion_scan_config, direct), 3},
		{"overlap_bytes", offsetof(struct pinion_scan_config, overlap_bytes),
			(1 << 20) + 1},
		{"overlap over the buffer", offsetof(struct pinion_scan_config, overlap_bytes),
			(64 << 10) - 4095},
		{"window_bytes", offsetof(struct pinion_scan_config, window_bytes), 4097},
		{"window over the buffer", offsetof(struct pinion_scan_config, window_bytes),
			(64 << 10) + 4096},
		{"files_in_flight", offsetof(struct pinion_scan_config, files_in_flight), 65537},
		{"windows_in_flight", offsetof(struct pinion_scan_config, windows_in_flight), 1025},
		{"windows_in_flight 0", offsetof(struct pinion_scan_config, windows_in_flight), 0},
		{"report_holes", offsetof(struct pinion_scan_config, report_holes), 2},
		{"skip_ignored", offsetof(struct pinion_scan_config, skip_ignored), 2},
		{"size", offsetof(struct pinion_scan_config, size), 4},
	};
	struct pinion_scan *scan = NULL;
	int rc;

	for (size_t i = 0; i < PIN_ARRAY_COUNT(bad); i++) {
		struct pinion_scan_config config;

		scans_config(&config);
		memcpy((uint8_t *)&config + bad[i].offset, &bad[i].value, sizeof(uint32_t));
		expect_number(bad[i].what, -EINVAL,
			pinion_scan_create(runtime, &config, &scans_ops, NULL, &scan));
	}
	pinion_scan_config_init_sized(&newer.known, sizeof(newer));
	newer.tail[3] = 1;
	expect_number("unknown tail", -E2BIG,
		pinion_scan_create(runtime, &newer.known, &scans_ops, NULL, &scan));
	pinion_scan_destroy(scan);
	scan = NULL;
	pinion_scan_config_init(&newer.known);
	newer.known.file_user_bytes = UINT32_MAX;
	rc = pinion_scan_create(runtime, &newer.known, &scans_ops, NULL, &scan);
	expect_true("4 GiB of user memory per file is not taken for none",
		rc == -EINVAL || rc == -ENOMEM);
	pinion_scan_destroy(scan);
	pinion_scan_destroy(NULL);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("scan_ends_as_told");
	scans_make(0, SIZE);
	expect_ready("others",
		mkfifo("fifo", 0600) == 0 && mkdir("folder", 0700) == 0 &&
			mkdir("folder/below", 0700) == 0 && symlink("loop", "loop") == 0 &&
			symlink("0", "link") == 0);
	check_window_error(PINION_SCAN_PARALLEL, -EBADMSG, -EBADMSG);
	check_window_error(PINION_SCAN_IN_ORDER, -EBADMSG, -EBADMSG);
	check_window_error(PINION_SCAN_PARALLEL, PINION_SCAN_ENOUGH + 1, -EINVAL);
	check_window_error(PINION_SCAN_IN_ORDER, INT_MAX, -EINVAL);
	check_callbacks("0", 0, 0, PINION_SCAN_DONE, 0);
	check_callbacks("link", 0, 0, PINION_SCAN_DONE, 0);
	check_callbacks("0", -EBADMSG, 0, PINION_SCAN_FAILED, -EBADMSG);
	check_callbacks("0", 0, -EBADMSG, PINION_SCAN_FAILED, -EBADMSG);
	check_callbacks("0", PINION_SCAN_STREAM + 1, 0, PINION_SCAN_FAILED, -EINVAL);
	check_callbacks("0", 0, 1, PINION_SCAN_FAILED, -EINVAL);
	check_callbacks("missing", 0, 0, PINION_SCAN_FAILED, -ENOENT);
	check_callbacks("folder", 0, 0, PINION_SCAN_FAILED, -EISDIR);
	check_callbacks("fifo", 0, 0, PINION_SCAN_SKIPPED, -ENOTSUP);
	check_callbacks("loop", 0, 0, PINION_SCAN_FAILED, -ELOOP);
	check_callbacks("0", -ENOTSUP, 0, PINION_SCAN_FAILED, -ENOTSUP);
	check_cancel(PINION_SCAN_PARALLEL);
	check_cancel(PINION_SCAN_IN_ORDER);
	check_cancel_one(PINION_SCAN_PARALLEL);
	check_cancel_one(PINION_SCAN_IN_ORDER);
	check_cancelled_walk();
	check_callbacks("missing", 0, 0, PINION_SCAN_FAILED, -ENOENT);
	expect_true("no user memory for a file that was never opened", reported_user == NULL);
	check_totals_sizes();
	check_config();
	scans_forget();
	scratch_leave();
	return expect_status();
}

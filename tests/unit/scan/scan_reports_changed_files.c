/* SPDX-License-Identifier: MIT */
/*
 * Goal: a file that shrinks or grows while it is scanned fails as ESTALE, also
 * when it has its old size again at the end but some of it was never handed
 * over; a replaced or unlinked file is done, with the bytes it had when it was
 * opened; others are not disturbed, nothing hangs.
 * Method: the first window's callback truncates, extends, renames another over
 * or unlinks the file.
 */
#include "tests/support/scans.h"

#include <errno.h>

enum {
	LIMIT_SECONDS = 60,
	SIZE = 256 << 10,
	WINDOW = 16 << 10,
	CHANGED = 0,
	OTHER = 1,
};

enum change {
	CHANGE_SHRINK,
	CHANGE_EMPTY,
	CHANGE_GROW,
	CHANGE_SHRINK_FOR_A_WHILE,
	CHANGE_REPLACE, /* from here on the opened file stays as it was */
	CHANGE_UNLINK,
	CHANGE_COUNT,
};

static enum change change;

static void set_size(off_t size)
{
	expect_ready("truncate", truncate("0", size) == 0);
}

static int change_file(const struct pinion_scan_file *file, const struct pinion_window *window)
{
	if (file->path[0] != '0') {
		return 0;
	}
	if (window->index == 0) {
		switch (change) {
		case CHANGE_SHRINK:
		case CHANGE_SHRINK_FOR_A_WHILE:
			set_size(WINDOW + 100);
			break;
		case CHANGE_EMPTY:
			set_size(0);
			break;
		case CHANGE_GROW:
			set_size(SIZE + 1);
			break;
		case CHANGE_REPLACE:
			expect_ready("rename", rename("new", "0") == 0);
			break;
		case CHANGE_UNLINK:
			expect_ready("unlink", unlink("0") == 0);
			break;
		case CHANGE_COUNT:
			break;
		}
	} else if (window->index == 4 && change == CHANGE_SHRINK_FOR_A_WHILE) {
		set_size(SIZE);
	}
	return 0;
}

static void check(uint32_t order, uint32_t direct, uint32_t lanes, uint32_t io_level)
{
	struct pinion_runtime *runtime = runtimes_start(2, io_level);
	struct pinion_scan_config config;
	struct pinion_scan_stats totals;
	struct pinion_scan *scan;
	bool is_done = change >= CHANGE_REPLACE;
	char setting[96];

	snprintf(setting, sizeof(setting), "change %d order %u direct %u lanes %u level %u",
		(int)change, order, direct, lanes, io_level);
	scans_setting = setting;
	free((void *)(uintptr_t)scans_files[CHANGED].bytes);
	scans_make(CHANGED, SIZE);
	if (change == CHANGE_REPLACE) {
		scratch_file("new", "of another size, and with other bytes");
	}
	if (!is_done) {
		free((void *)(uintptr_t)scans_files[CHANGED].bytes);
		scans_files[CHANGED].bytes = NULL;
	}
	scans_config(&config);
	config.order = order;
	config.direct = direct;
	config.windows_in_flight = lanes;
	config.window_bytes = WINDOW;
	config.overlap_bytes = 0;
	scan = scans_create(runtime, &config);
	scans_add(scan, CHANGED);
	scans_add(scan, OTHER);
	expect_number("finish", 0, pinion_scan_finish(scan, &totals, sizeof(totals)));
	scans_expect_end(
		CHANGED, is_done ? PINION_SCAN_DONE : PINION_SCAN_FAILED, is_done ? 0 : -ESTALE);
	scans_expect_end(OTHER, PINION_SCAN_DONE, 0);
	expect_number("seen", 2, (long long)totals.seen);
	expect_number("failed", is_done ? 0 : 1, (long long)totals.failed);
	pinion_scan_destroy(scan);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("scan_reports_changed_files");
	scans_make(OTHER, SIZE);
	scans_window_hook = change_file;
	for (change = CHANGE_SHRINK; change < CHANGE_COUNT; change++) {
		for (uint32_t direct = PINION_DIRECT_AUTO; direct <= PINION_DIRECT_NEVER;
			direct++) {
			for (uint32_t level = PINION_IO_AUTO; level <= PINION_IO_FALLBACK;
				level++) {
				check(PINION_SCAN_IN_ORDER, direct, 1, level);
				/*
				 * Reads ahead of the change may have seen the
				 * old file.
				 */
				if (change != CHANGE_SHRINK_FOR_A_WHILE) {
					check(PINION_SCAN_IN_ORDER, direct, 8, level);
					check(PINION_SCAN_PARALLEL, direct, 8, level);
				}
			}
		}
	}
	scans_forget();
	scratch_leave();
	return expect_status();
}

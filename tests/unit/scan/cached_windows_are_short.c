/* SPDX-License-Identifier: MIT */
/*
 * Goal: windows of a file in the page cache have 512 KiB of new bytes where the
 * caller names no size: an engine finds them in the core's cache. G6.
 * Method: a file of four such windows, and the lengths of its windows.
 */
#include "tests/support/instant.h"

enum { FILE_PARTS = 16, WINDOW_BYTES = 512 << 10, WINDOWS = 4 };

static uint32_t window_count;

static int look(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	(void)arg;
	(void)file;
	__atomic_fetch_add(&window_count, 1, __ATOMIC_RELAXED);
	expect_number("new bytes", WINDOW_BYTES,
		(long long)(window->length_bytes - window->prefix_bytes));
	return 0;
}

int main(void)
{
	static const struct pinion_scan_ops ops = {.window = look, .report = instant_report};
	struct pinion_runtime *runtime = NULL;
	struct pinion_config machine;
	struct pinion_scan_config config;
	struct pinion_scan *scan = NULL;

	scratch_enter("cached_windows_are_short");
	(void)instant_file(FILE_PARTS);
	runtimes_config(&machine, 1, PINION_IO_AUTO);
	machine.buffer_bytes = 1 << 20;
	expect_ready("runtime", pinion_runtime_create(&machine, &runtime) == 0);
	pinion_scan_config_init(&config);
	config.direct = PINION_DIRECT_NEVER;
	expect_ready("scan", pinion_scan_create(runtime, &config, &ops, NULL, &scan) == 0);
	expect_number("add", 0, pinion_scan_add_file(scan, "file"));
	expect_number("finish", 0, pinion_scan_finish(scan, NULL, 0));
	expect_number("windows", WINDOWS, window_count);
	pinion_scan_destroy(scan);
	pinion_runtime_destroy(runtime);
	scratch_leave();
	return expect_status();
}

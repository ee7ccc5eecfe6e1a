/* SPDX-License-Identifier: MIT */
/*
 * Goal: a file that is read through the page cache has no readahead, as that
 * pays no rate, while there is a rate of bytes, of the runtime or of the
 * device; with a rate of requests alone, or with none, it is as ever.
 * Method: the library's call that turns it off is wrapped, and the last advice
 * for the whole of a file noted.
 */
#include "tests/support/scans.h"

#include <fcntl.h>
#include <pinion/limit.h>
#include <sys/stat.h>

enum { LIMIT_SECONDS = 60, FILES = 3, FILE_BYTES = 8192, PLENTY = 1 << 30 };

static int advice; /* the last one */
static uint64_t device;

int __real_posix_fadvise(int fd, off_t offset, off_t length, int new_advice);
int __wrap_posix_fadvise(int fd, off_t offset, off_t length, int new_advice);

int __wrap_posix_fadvise(int fd, off_t offset, off_t length, int new_advice)
{
	if (offset == 0 && length == 0) {
		__atomic_store_n(&advice, new_advice, __ATOMIC_SEQ_CST);
	}
	return __real_posix_fadvise(fd, offset, length, new_advice);
}

static int note_device(void *arg, struct pinion_scan_file *file)
{
	device = file->file.device;
	return scans_open(arg, file);
}

static void scan_files(struct pinion_runtime *runtime, uint32_t direct)
{
	static const struct pinion_scan_ops ops = {
		.open = note_device,
		.window = scans_window,
		.close = scans_close,
		.report = scans_report,
	};
	struct pinion_scan_config config;
	struct pinion_scan *scan = NULL;

	scans_config(&config);
	config.direct = direct;
	pinion_scan_destroy(scans_create(runtime, &config)); /* clears the outcomes */
	expect_number("create", 0, pinion_scan_create(runtime, &config, &ops, NULL, &scan));
	for (uint32_t i = 0; i < FILES; i++) {
		scans_add(scan, i);
	}
	expect_number("finish", 0, pinion_scan_finish(scan, NULL, 0));
	pinion_scan_destroy(scan);
}

static void check(const char *what, uint32_t direct, const struct pinion_limits *common,
	const struct pinion_limits *own, bool is_off)
{
	struct pinion_runtime *runtime = runtimes_start(1, PINION_IO_AUTO);

	expect_number("limits", 0, pinion_runtime_set_limits(runtime, common));
	expect_number("its own", 0, pinion_device_set_limits(runtime, device, own));
	__atomic_store_n(&advice, POSIX_FADV_NORMAL, __ATOMIC_SEQ_CST);
	scan_files(runtime, direct);
	expect_number(what, is_off ? POSIX_FADV_RANDOM : POSIX_FADV_NORMAL,
		__atomic_load_n(&advice, __ATOMIC_SEQ_CST));
	pinion_runtime_stop(runtime);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	struct pinion_limits bytes;
	struct pinion_limits requests;

	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("limited_files");
	pinion_limits_init(&bytes);
	pinion_limits_init(&requests);
	bytes.bytes_per_second = PLENTY;
	requests.requests_per_second = PLENTY;
	for (uint32_t i = 0; i < FILES; i++) {
		scans_make(i, FILE_BYTES);
	}
	check("none", PINION_DIRECT_NEVER, NULL, NULL, false);
	check("requests", PINION_DIRECT_NEVER, &requests, &requests, false);
	check("bytes", PINION_DIRECT_NEVER, &bytes, NULL, true);
	check("bytes of the device", PINION_DIRECT_NEVER, &requests, &bytes, true);
	scratch_leave();
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: a small file in the page cache costs one open, one fstat and one read:
 * it is opened by a plain call after another cached file was, and the read that
 * shows its end spares the question for its size. A file that fills its last
 * page is asked for its size again; a file that has grown fails as ESTALE;
 * where the plain open is refused the ring opens the file.
 * Method: one worker; the library's calls are wrapped, counted, and answered so
 * that each file is in the page cache.
 */
#include "tests/support/scans.h"

#include <errno.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20u /* as in newer <linux/openat2.h> */
#endif

#define WRAP(type, name, ...) \
	type __real_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

enum {
	LIMIT_SECONDS = 60,
	FILES = 10,
	WHOLE_PAGES = 8192,
	PART_OF_A_PAGE = 5000,
	GROWTH = 1,
};

static struct pin_atomic_u32 open_count; /* plain ones of cached names */
static struct pin_atomic_u32 fstat_count;
static struct pin_atomic_u32 read_count;
static bool refuses_open;
static bool grows_at_open;
static bool grows_in_window;

/* Declared in <unistd.h> with "...", which comes to the same here. */
WRAP(long, syscall, long number, long a, long b, long c, long d, long e, long f)
{
#ifdef SYS_cachestat
	bool is_cachestat = number == SYS_cachestat;
#else
	bool is_cachestat = number == 451; /* on every architecture */
#endif

	if (is_cachestat) {
		errno = ENOSYS; /* the first byte is read instead, as below */
		return -1;
	}
	if (number == SYS_openat2) {
		struct open_how how = *(const struct open_how *)(uintptr_t)c;

		if ((how.resolve & RESOLVE_CACHED) != 0) {
			pin_fetch_add_acq_rel_u32(&open_count, 1);
			if (refuses_open) {
				errno = EAGAIN;
				return -1;
			}
			how.resolve &= ~(uint64_t)RESOLVE_CACHED;
			return __real_syscall(number, a, b, (long)(uintptr_t)&how, d, e, f);
		}
	}
	return __real_syscall(number, a, b, c, d, e, f);
}

WRAP(int, fstat, int fd, struct stat *status)
{
	pin_fetch_add_acq_rel_u32(&fstat_count, 1);
	return __real_fstat(fd, status);
}

WRAP(ssize_t, preadv2, int fd, const struct iovec *vector, int count, off_t offset, int flags)
{
	(void)flags;		   /* the bytes are in the cache */
	if (vector->iov_len > 1) { /* else the library asks whether it is cached */
		pin_fetch_add_acq_rel_u32(&read_count, 1);
	}
	return preadv(fd, vector, count, offset);
}

static void grow(const char *path, off_t size)
{
	expect_ready("truncate", truncate(path, size + GROWTH) == 0);
}

static int open_and_grow(void *arg, struct pinion_scan_file *file)
{
	if (grows_at_open) {
		grow(file->path, (off_t)file->file.size_bytes);
	}
	return scans_open(arg, file);
}

static int window_and_grow(const struct pinion_scan_file *file, const struct pinion_window *window)
{
	(void)window;
	if (grows_in_window) {
		grow(file->path, (off_t)file->file.size_bytes);
	}
	return 0;
}

struct expected {
	uint32_t opens;
	uint32_t fstats;
	uint32_t reads;
	int error;
};

static void check(
	const char *setting, uint64_t size, uint32_t io_level, const struct expected *expected)
{
	static const struct pinion_scan_ops ops = {
		.open = open_and_grow,
		.window = scans_window,
		.close = scans_close,
		.report = scans_report,
	};
	struct pinion_runtime *runtime = runtimes_start(1, io_level);
	struct pinion_scan_config config;
	struct pinion_scan *scan = NULL;

	scans_setting = setting;
	for (uint32_t i = 0; i < FILES; i++) {
		scans_make(i, size);
	}
	scans_config(&config);
	/* One after the other: each open finds what the last file was. */
	config.files_in_flight = 1;
	config.windows_in_flight = 2;
	pinion_scan_destroy(scans_create(runtime, &config)); /* clears the outcomes */
	expect_number("create", 0, pinion_scan_create(runtime, &config, &ops, NULL, &scan));
	pin_store_relaxed_u32(&open_count, 0);
	pin_store_relaxed_u32(&fstat_count, 0);
	pin_store_relaxed_u32(&read_count, 0);
	for (uint32_t i = 0; i < FILES; i++) {
		scans_add(scan, i);
	}
	expect_number("finish", 0, pinion_scan_finish(scan, NULL, 0));
	expect_number(setting, expected->opens, pin_load_acquire_u32(&open_count));
	expect_number(setting, expected->fstats, pin_load_acquire_u32(&fstat_count));
	expect_number(setting, expected->reads, pin_load_acquire_u32(&read_count));
	for (uint32_t i = 0; i < FILES; i++) {
		scans_expect_end(i, expected->error == 0 ? PINION_SCAN_DONE : PINION_SCAN_FAILED,
			expected->error);
		expect_number("bytes", (long long)size,
			(long long)pin_load_acquire_u64(&scans_files[i].new_bytes));
	}
	pinion_scan_destroy(scan);
	pinion_runtime_destroy(runtime);
	scans_forget();
}

int main(void)
{
	/* The first file is opened through the ring: nothing is known yet. */
	static const struct expected least = {FILES - 1, FILES, FILES, 0};
	static const struct expected asked = {FILES - 1, 2 * FILES, FILES, 0};
	static const struct expected stale = {FILES - 1, 2 * FILES, FILES, -ESTALE};

	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("cached_files_cost_few_calls");
	scans_window_hook = window_and_grow;
	for (uint32_t level = PINION_IO_AUTO; level <= PINION_IO_FALLBACK; level++) {
		check("the last page has room", PART_OF_A_PAGE, level, &least);
		check("whole pages", WHOLE_PAGES, level, &asked);
		refuses_open = true;
		check("plain opens are refused", PART_OF_A_PAGE, level, &least);
		refuses_open = false;
		grows_at_open = true;
		check("grown before the read", PART_OF_A_PAGE, level, &stale);
		grows_at_open = false;
		grows_in_window = true;
		check("grown after its only read", PART_OF_A_PAGE, level, &least);
		check("grown after the read of whole pages", WHOLE_PAGES, level, &stale);
		grows_in_window = false;
	}
	scratch_leave();
	return expect_status();
}

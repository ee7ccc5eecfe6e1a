/* SPDX-License-Identifier: MIT */
/*
 * Goal: after sixteen files in a row that were in the page cache a small file
 * is read from there without a question to the kernel. Where that was wrong the
 * file is read all the same, the next ones are asked about again, and pages
 * that the attempt has brought into the cache are dropped, unless some were
 * there. Files of more than one window, files with holes and files that are not
 * of a scan are asked about.
 * Method: one worker and one file at a time; questions are counted, and the
 * read of one file is answered by the test.
 */
#include "runtime/io/file.h"
#include "tests/support/scans.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#define WRAP(type, name, ...) \
	type __real_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

enum {
	LIMIT_SECONDS = 60,
	CACHESTAT = 451, /* on every architecture */
	ASKED_FIRST = 16,
	FILES = 24,
	ODD_FILE = 20,
	SIZE = 5000,
	ODD_SIZE = 9001,
	LARGE_SIZE = 300 * 1000,
	THERE_BYTES = 4096,
};

enum miss {
	MISS_NONE,
	MISS_ALL,     /* not a byte is cached */
	MISS_PART,    /* the first page is */
	MISS_UNKNOWN, /* the file system knows no RWF_NOWAIT */
};

static enum miss miss;
static struct pin_atomic_u32 question_count;
static struct pin_atomic_u32 dropped_count;

/* Declared in <unistd.h> with "...", which comes to the same here. */
WRAP(long, syscall, long number, long a, long b, long c, long d, long e, long f)
{
	if (number == CACHESTAT) {
		errno = ENOSYS; /* the first byte is read instead, as below */
		return -1;
	}
	return __real_syscall(number, a, b, c, d, e, f);
}

WRAP(int, posix_fadvise, int fd, off_t offset, off_t length, int advice)
{
	(void)fd;
	(void)offset;
	if (advice == POSIX_FADV_DONTNEED) {
		expect_number("dropped bytes", ODD_SIZE, length);
		pin_fetch_add_acq_rel_u32(&dropped_count, 1);
	}
	return 0;
}

WRAP(ssize_t, preadv2, int fd, const struct iovec *vector, int count, off_t offset, int flags)
{
	struct iovec first = {.iov_base = vector->iov_base, .iov_len = THERE_BYTES};

	(void)flags;
	if (vector->iov_len == 1) {
		pin_fetch_add_acq_rel_u32(&question_count, 1);
	}
	if (vector->iov_len != ODD_SIZE + 1 || miss == MISS_NONE) {
		return preadv(fd, vector, count, offset);
	}
	if (miss == MISS_PART) {
		return preadv(fd, &first, 1, offset);
	}
	errno = miss == MISS_ALL ? EAGAIN : EOPNOTSUPP;
	return -1;
}

static void check(const char *setting, uint32_t io_level, uint32_t questions, uint32_t dropped)
{
	struct pinion_runtime *runtime = runtimes_start(1, io_level);
	struct pinion_scan_config config;
	struct pinion_scan *scan;

	scans_setting = setting;
	scans_config(&config);
	config.files_in_flight = 1;
	config.windows_in_flight = 2;
	scan = scans_create(runtime, &config);
	pin_store_release_u32(&question_count, 0);
	pin_store_release_u32(&dropped_count, 0);
	for (uint32_t i = 0; i < FILES; i++) {
		scans_add(scan, i);
	}
	expect_number("finish", 0, pinion_scan_finish(scan, NULL, 0));
	expect_number(setting, questions, pin_load_acquire_u32(&question_count));
	expect_number(setting, dropped, pin_load_acquire_u32(&dropped_count));
	for (uint32_t i = 0; i < FILES; i++) {
		scans_expect_end(i, PINION_SCAN_DONE, 0);
		expect_number("bytes", (long long)scans_files[i].size,
			(long long)pin_load_acquire_u64(&scans_files[i].new_bytes));
	}
	pinion_scan_destroy(scan);
	pinion_runtime_destroy(runtime);
}

static void make_files(uint64_t odd_size)
{
	scans_forget();
	for (uint32_t i = 0; i < FILES; i++) {
		scans_make(i, i == ODD_FILE ? odd_size : SIZE);
	}
}

/* The odd file ends in a hole. */
static void make_hole(void)
{
	char path[16];
	uint8_t *bytes = calloc(1, LARGE_SIZE);

	snprintf(path, sizeof(path), "%d", ODD_FILE);
	expect_ready("hole", bytes != NULL && truncate(path, 0) == 0);
	expect_ready("hole", truncate(path, ODD_SIZE) == 0);
	free((void *)(uintptr_t)scans_files[ODD_FILE].bytes);
	scans_files[ODD_FILE].bytes = bytes;
}

/* An open that is not a scan's: its reader need not read it as a whole. */
static void check_other_open(void)
{
	struct pin_device_cache cache = {.cached_row = ASKED_FIRST};
	struct pinion_file file;
	int fd = open("0", O_RDONLY | O_CLOEXEC);

	pin_store_release_u32(&question_count, 0);
	expect_ready("open", fd >= 0);
	expect_number("adopt", 0, pin_file_adopt(&file, fd, PINION_DIRECT_AUTO, 0, &cache));
	expect_number("questions", 1, pin_load_acquire_u32(&question_count));
	expect_number("cached", 100, file.cached_percent);
	expect_number("assumed", 0, file.flags & PIN_FILE_ASSUMED);
	pinion_file_close(&file);
}

int main(void)
{
	/* Those after the odd file. */
	enum { ASKED_AGAIN = FILES - ODD_FILE - 1 };

	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("cached_files_are_assumed");
	for (uint32_t level = PINION_IO_AUTO; level <= PINION_IO_FALLBACK; level++) {
		make_files(ODD_SIZE);
		miss = MISS_NONE;
		check("all are cached", level, ASKED_FIRST, 0);
		miss = MISS_ALL;
		check("one is not cached", level, ASKED_FIRST + ASKED_AGAIN, 1);
		miss = MISS_PART;
		check("one is cached in part", level, ASKED_FIRST + ASKED_AGAIN, 0);
		miss = MISS_UNKNOWN;
		check("one is refused", level, ASKED_FIRST + 1 + ASKED_AGAIN, 0);
		miss = MISS_NONE;
		make_hole();
		check("one has a hole", level, ASKED_FIRST + 1, 0);
		make_files(LARGE_SIZE);
		check("one is large", level, ASKED_FIRST + 1, 0);
	}
	check_other_open();
	scans_forget();
	scratch_leave();
	return expect_status();
}

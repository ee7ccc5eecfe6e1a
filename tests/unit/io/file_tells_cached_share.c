/* SPDX-License-Identifier: MIT */
/*
 * Goal: a file just written is known as cached and read through the cache, one
 * just evicted as not cached and read past it where the file system can; from
 * half of its pages on the cache is taken for the faster way.
 * Method: write, fsync, open; posix_fadvise(DONTNEED), open. mincore(2) shows
 * the truth; skipped where the file system does not evict. For shares of it
 * cachestat(2) answers what the test says.
 */
#include "tests/support/cached.h"
#include "tests/support/expect.h"
#include "tests/support/scratch.h"
#include "tests/support/syscalls.h"

#include "runtime/host/kernel.h"

#include <pinion/file.h>
#include <sys/syscall.h>

enum {
	PAGES = 64,
	SIZE = PAGES * CACHED_PAGE_BYTES,
};

static uint64_t pages_told;

static bool tell_pages(long number, const long *arguments, long *out_result)
{
	if (number != __NR_cachestat) {
		return false;
	}
	((struct pin_cachestat *)arguments[2])->cached_count = pages_told;
	*out_result = 0;
	return true;
}

static void expect_share(uint64_t pages, uint32_t percent, bool is_cached)
{
	struct pinion_file file;

	pages_told = pages;
	expect_number("open", 0, pinion_file_open(&file, "file", PINION_DIRECT_AUTO));
	expect_number("percent", percent, file.cached_percent);
	expect_number("by the cache", is_cached, file.way == PINION_WAY_CACHED);
	pinion_file_close(&file);
}

static void check_shares(void)
{
	syscalls_hook = tell_pages;
	expect_share(0, 0, false);
	expect_share(PAGES / 2 - 1, 48, false);
	expect_share(PAGES / 2, 50, true);
	expect_share(PAGES - 1, 98, true);
	expect_share(PAGES, 100, true);
	expect_share(PAGES + 1, 100, true);
	syscalls_hook = NULL;
}

int main(void)
{
	static char bytes[SIZE];
	struct pinion_file file;
	void *kept;
	int fd;

	syscalls_begin();
	scratch_enter("file_tells_cached_share");
	fd = open("file", O_CREAT | O_RDWR | O_CLOEXEC, 0644);
	expect_ready("file", fd >= 0);
	memset(bytes, 'x', sizeof(bytes));
	expect_ready("write", write(fd, bytes, SIZE) == SIZE && fsync(fd) == 0);
	check_shares();
	kept = cached_keep(fd, SIZE);
	if (cached_count(fd, PAGES) == PAGES) {
		expect_number("open", 0, pinion_file_open(&file, "file", PINION_DIRECT_AUTO));
		expect_number("cached percent after a write", 100, file.cached_percent);
		expect_number("direct when cached", 0, file.is_direct);
		pinion_file_close(&file);
		expect_number("open", 0, pinion_file_open(&file, "file", PINION_DIRECT_ALWAYS));
		expect_number("still cached after that", PAGES, cached_count(fd, PAGES));
		pinion_file_close(&file);
	}
	cached_let_go(kept, SIZE);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	if (cached_count(fd, PAGES) != 0) {
		printf("skipped: this file system does not evict on request\n");
		scratch_leave();
		return expect_failure_count == 0 ? EXPECT_SKIPPED : 1;
	}
	expect_number("open", 0, pinion_file_open(&file, "file", PINION_DIRECT_AUTO));
	expect_number("cached percent after eviction", 0, file.cached_percent);
	expect_number("resident after looking", 0, cached_count(fd, PAGES));
	pinion_file_close(&file);
	close(fd);
	scratch_leave();
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: a file just written is known as cached and read through the cache, one
 * just evicted as not cached and read past it where the file system can.
 * Method: write, fsync, open; posix_fadvise(DONTNEED), open. mincore(2) says
 * what is true; skipped where the file system does not evict.
 */
#include "tests/support/cached.h"
#include "tests/support/expect.h"
#include "tests/support/scratch.h"

#include <pinion/file.h>

enum {
	PAGES = 64,
	SIZE = PAGES * CACHED_PAGE_BYTES,
};

int main(void)
{
	static char bytes[SIZE];
	struct pinion_file file;
	void *kept;
	int fd;

	scratch_enter("file_tells_cached_share");
	fd = open("file", O_CREAT | O_RDWR | O_CLOEXEC, 0644);
	expect_ready("file", fd >= 0);
	memset(bytes, 'x', sizeof(bytes));
	expect_ready("write", write(fd, bytes, SIZE) == SIZE && fsync(fd) == 0);
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

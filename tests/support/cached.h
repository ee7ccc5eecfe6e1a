/* SPDX-License-Identifier: MIT */
/*
 * How much of a file the page cache holds, by mincore(2).
 */
#ifndef PIN_TESTS_SUPPORT_CACHED_H
#define PIN_TESTS_SUPPORT_CACHED_H

#include "tests/support/expect.h"

#include <stdint.h>
#include <sys/mman.h>

enum {
	CACHED_PAGE_BYTES = 4096,
	CACHED_PAGES_MAX = 256,
};

/* Of its first `page_count` pages. */
static inline uint32_t cached_count(int fd, uint32_t page_count)
{
	size_t bytes = (size_t)page_count * CACHED_PAGE_BYTES;
	void *memory = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	unsigned char pages[CACHED_PAGES_MAX];
	uint32_t count = 0;

	expect_ready("mmap", page_count <= CACHED_PAGES_MAX && memory != MAP_FAILED);
	expect_ready("mincore", mincore(memory, bytes, pages) == 0);
	munmap(memory, bytes);
	for (uint32_t i = 0; i < page_count; i++) {
		count += pages[i] & 1;
	}
	return count;
}

/*
 * Keeps them there, where that may be, until cached_let_go(); NULL: the kernel
 * may take them when it needs memory.
 */
static inline void *cached_keep(int fd, size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);

	if (memory != MAP_FAILED && mlock(memory, bytes) == 0) {
		return memory;
	}
	if (memory != MAP_FAILED) {
		munmap(memory, bytes);
	}
	return NULL;
}

static inline void cached_let_go(void *memory, size_t bytes)
{
	if (memory != NULL) {
		munmap(memory, bytes);
	}
}

#endif

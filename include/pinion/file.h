/* SPDX-License-Identifier: MIT */
/*
 * A regular file open for reading, with what one must know to read it past the
 * page cache: alignment, size, and whether O_DIRECT works here at all.
 */
#ifndef PINION_FILE_H
#define PINION_FILE_H

#include <pinion/version.h>
#include <stdint.h>

PINION_BEGIN_DECLS

/* Whether reads go past the page cache. */
enum pinion_direct {
	/*
	 * Past the cache unless the file's data is already in it: O_DIRECT on
	 * cached data is several times slower than reading the cache.
	 */
	PINION_DIRECT_AUTO = 0,
	PINION_DIRECT_ALWAYS = 1, /* wherever the file system allows it */
	PINION_DIRECT_NEVER = 2,
};

/*
 * Shape: embeddable; every field is set by pinion_file_open() and may be read.
 * Owns: the descriptor, until pinion_file_close().
 * Since: 0.1
 */
struct pinion_file {
	int fd;
	/*
	 * Nonzero: reads need the alignments below and bypass the page cache.
	 */
	uint32_t is_direct;
	/*
	 * Alignment of memory and of offset and length, bytes; 1 when not
	 * direct.
	 */
	uint32_t memory_align_bytes;
	uint32_t offset_align_bytes;
	/*
	 * Size when it was opened. 0 also for files that only look empty
	 * (/proc).
	 */
	uint64_t size_bytes;
	/*
	 * Bytes of it that occupy disk space; less than size_bytes means holes.
	 */
	uint64_t allocated_bytes;
	uint64_t device;
	uint64_t inode;
	/*
	 * Share of it found in the page cache when opened, 0 … 100, or 255:
	 * unknown.
	 */
	uint32_t cached_percent;
	uint32_t flags;
};

/*
 * Opens `path` for reading and finds out how to read it.
 *
 * Units: `direct` is one of enum pinion_direct. `path` may be longer than
 * PATH_MAX. Symbolic links in the last component are followed.
 * Context: any thread; blocks.
 * Errors: those of open(2). -EISDIR: a directory. -ENOTSUP: not a regular file
 * (FIFO, socket, device); it is never opened in a way that blocks or has
 * effects.
 * Source: statx(2) STATX_DIOALIGN, BLKSSZGET, cachestat(2).
 * Since: 0.1
 */
PINION_API int pinion_file_open(struct pinion_file *file, const char *path, uint32_t direct);

/*
 * Closes it; a file that never opened (fd < 0) is accepted. Any thread. Since:
 * 0.1
 */
PINION_API void pinion_file_close(struct pinion_file *file);

PINION_END_DECLS

#endif

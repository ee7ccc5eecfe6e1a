/* SPDX-License-Identifier: MIT */
/*
 * The files a bench reads: named by the user, or made for the occasion.
 *
 * Files that are made have no name: each is unlinked before the first byte is
 * written, and read by way of /proc/self/fd. So no file is left over, however
 * the program ends.
 */
#ifndef PINION_TOOLS_BENCH_FILESET_H
#define PINION_TOOLS_BENCH_FILESET_H

#include <stddef.h>
#include <stdint.h>

struct fileset_file {
	char *path; /* as pinion_scan_add_file() takes it */
	int fd;	    /* opened with O_DIRECT; to write as well if it was made */
	uint64_t size_bytes;
};

struct fileset {
	struct fileset_file *files;
	uint32_t count;
	uint64_t total_bytes;
};

/*
 * Both refuse what O_DIRECT cannot be used on, and tmpfs, which has no device
 * below it. Errors are reported, except -ECANCELED: a signal came.
 */
int fileset_open(const char *const *paths, uint32_t count, struct fileset **out_set);

/* Makes `count` files of equal size with data that nothing compresses. */
int fileset_make(
	const char *directory, uint32_t count, uint64_t total_bytes, struct fileset **out_set);

/* Such data as that; a seed is not 0. */
void fileset_fill(uint8_t *bytes, size_t length, uint64_t seed);

void fileset_destroy(struct fileset *set);

#endif

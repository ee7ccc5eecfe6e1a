/* SPDX-License-Identifier: MIT */
/*
 * The parts of a file that its stream was not fed, and from offsets of the
 * stream to those of the file. One file's, in the order of their offsets.
 */
#ifndef PINION_TOOLS_SCAN_SKIPS_H
#define PINION_TOOLS_SCAN_SKIPS_H

#include <stddef.h>
#include <stdint.h>

struct skip {
	uint64_t at;	/* where it is left out, in what the stream was fed */
	uint64_t total; /* bytes, with the parts before it */
};

/* Zero-initialise. */
struct skips {
	struct skip *items;
	size_t count;
	size_t capacity;
};

/* [offset, offset + length) of the file is left out. 0 or -ENOMEM. */
int skips_add(struct skips *skips, uint64_t offset, uint64_t length);

/* Where in the file a match starts, or ends, that does so at `at`. */
uint64_t skips_place_start(const struct skips *skips, uint64_t at);
uint64_t skips_place_end(const struct skips *skips, uint64_t at);

/* Another stream begins. */
void skips_clear(struct skips *skips);

void skips_free(struct skips *skips);

#endif

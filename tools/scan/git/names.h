/* SPDX-License-Identifier: MIT */
/*
 * Strings kept once each, and numbered: paths and authors of a history.
 */
#ifndef PINION_TOOLS_SCAN_GIT_NAMES_H
#define PINION_TOOLS_SCAN_GIT_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct git_name {
	const char *bytes; /* NUL terminated; in a block */
	uint32_t length;
	uint32_t next;
};

struct git_name_block;

/* Zero-initialise. */
struct git_names {
	struct git_name *items;
	size_t count;
	size_t capacity;
	uint32_t *heads; /* by hash, one more than an index; 0: none */
	size_t head_count;
	struct git_name_block *blocks;
};

/* The number of this string, added if it is new. 0, -ENOMEM or -E2BIG. */
int git_names_add(struct git_names *names, const char *bytes, size_t length, uint32_t *out_index);

void git_names_fini(struct git_names *names);

/* FNV-1a. */
uint64_t git_hash(const void *bytes, size_t length);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Memory of things that are made piece by piece and freed as a whole: the tree
 * of a TOML file, a filter expression.
 */
#ifndef PINION_TOOLS_SCAN_RULE_MEMORY_H
#define PINION_TOOLS_SCAN_RULE_MEMORY_H

#include <stddef.h>

/* Zero-initialise. */
struct rule_memory {
	struct rule_memory_block *blocks;
};

/* Zeroed and aligned for any object; NULL: out of memory. */
void *rule_memory_take(struct rule_memory *memory, size_t bytes);

/* A NUL-terminated copy. */
char *rule_memory_copy(struct rule_memory *memory, const char *bytes, size_t length);

void rule_memory_free(struct rule_memory *memory);

#endif

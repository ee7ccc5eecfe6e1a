/* SPDX-License-Identifier: MIT */
/*
 * What a matcher saw, before anything is decided: for each place where a
 * rule's match ends, the leftmost place where such a match starts. Of a
 * confirmed rule: a part of the file that its matches are within.
 */
#ifndef PINION_TOOLS_SCAN_CANDIDATES_H
#define PINION_TOOLS_SCAN_CANDIDATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct candidate {
	uint64_t start; /* absolute offsets; the match is [start, end) */
	uint64_t end;
	uint32_t rule;
	/*
	 * The first bytes of the match, for a redacted excerpt; all zero when
	 * they are not known (a rule without a longest match).
	 */
	uint8_t head[4];
	bool is_example; /* found, and not to be shown: examples.h */
	/* Of YARA: as finding.string. */
	uint32_t string;
};

/* A growable list. Zero-initialise. */
struct candidates {
	struct candidate *items;
	size_t count;
	size_t capacity;
};

/* Returns 0 or -ENOMEM. */
int candidates_add(struct candidates *list, const struct candidate *item);

/* By rule, then end: the order in which findings are decided. */
void candidates_sort_by_end(struct candidates *list);

/* By start, end, rule and string: the order in which findings are shown. */
void candidates_sort_by_start(struct candidates *list);

void candidates_free(struct candidates *list);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What a mistyped word may have been meant for.
 */
#ifndef PINION_TOOLS_SPELLING_H
#define PINION_TOOLS_SPELLING_H

#include <stdint.h>

/* Initialise `word` only, then offer every word it could be. */
struct spelling {
	const char *word;
	const char *nearest; /* NULL: none is near */
	uint32_t distance;
};

void spelling_offer(struct spelling *spelling, const char *known);

/*
 * How many letters apart two words are: inserted, deleted, replaced or
 * swapped with a neighbour. Words above 63 letters are as far as can be.
 */
uint32_t spelling_distance(const char *left, const char *right);

#endif

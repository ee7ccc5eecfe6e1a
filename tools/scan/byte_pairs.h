/* SPDX-License-Identifier: MIT */
/*
 * The pairs of neighbouring bytes that a text has, as a set that may say yes
 * too often: a text without the first or the last pair of a word does not hold
 * the word. Of lists of a thousand words nearly all are ruled out by that, in a
 * few instructions each; the text of a secret has some forty pairs.
 */
#ifndef PINION_TOOLS_SCAN_BYTE_PAIRS_H
#define PINION_TOOLS_SCAN_BYTE_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	BYTE_PAIRS_COUNT = 1024,
	/* For fewer words the set is not worth its making. */
	BYTE_PAIRS_WORDS_MIN = 8,
};

/* Zero-initialise. */
struct byte_pairs {
	uint64_t bits[BYTE_PAIRS_COUNT / 64];
};

/* Each pair of small letters has a number of its own. */
static inline uint32_t byte_pairs_index(uint8_t first, uint8_t second)
{
	return (first ^ (uint32_t)second << 5) % BYTE_PAIRS_COUNT;
}

static inline void byte_pairs_add(struct byte_pairs *pairs, uint8_t first, uint8_t second)
{
	uint32_t index = byte_pairs_index(first, second);

	pairs->bits[index / 64] |= (uint64_t)1 << (index % 64);
}

static inline bool byte_pairs_have(const struct byte_pairs *pairs, uint8_t first, uint8_t second)
{
	uint32_t index = byte_pairs_index(first, second);

	return (pairs->bits[index / 64] >> (index % 64) & 1) != 0;
}

#endif

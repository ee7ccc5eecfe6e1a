/* SPDX-License-Identifier: MIT */
/*
 * Places of blocks to read or write: at random, any block of any file of the
 * set with equal chance; or in order, file by file, and again from the first.
 * Both sides of a subject choose in the same way.
 */
#ifndef PINION_TOOLS_BENCH_PLACING_H
#define PINION_TOOLS_BENCH_PLACING_H

#include <stdbool.h>
#include <stdint.h>

struct placing {
	const uint64_t *block_counts; /* of each file, none is 0 */
	uint32_t file_count;
	uint32_t block_bytes;
	bool is_sequential;
	/* At random: not 0. Otherwise of the next block. */
	uint64_t state;
	uint32_t file_index;
};

static inline uint64_t placing_next_in_order(struct placing *placing, uint32_t *out_file_index)
{
	if (placing->state >= placing->block_counts[placing->file_index]) {
		placing->state = 0;
		placing->file_index = (placing->file_index + 1) % placing->file_count;
	}
	*out_file_index = placing->file_index;
	return placing->state++ * placing->block_bytes;
}

/* `bits` of 32, as a part of a whole, of `count` below 2^32: no division. */
static inline uint64_t placing_scale(uint64_t bits, uint64_t count)
{
	return (bits & 0xffffffff) * count >> 32;
}

/* Offset and file of the next block. */
static inline uint64_t placing_next(struct placing *placing, uint32_t *out_file_index)
{
	uint64_t bits;

	if (placing->is_sequential) {
		return placing_next_in_order(placing, out_file_index);
	}
	/* xorshift64* */
	placing->state ^= placing->state >> 12;
	placing->state ^= placing->state << 25;
	placing->state ^= placing->state >> 27;
	bits = placing->state * 0x2545f4914f6cdd1dULL;
	*out_file_index = (uint32_t)placing_scale(bits >> 32, placing->file_count);
	return placing_scale(bits, placing->block_counts[*out_file_index]) * placing->block_bytes;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Characters of the file one after the other, and the bits of their bytes.
 */
#include "tools/scan/utf16.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	BLOCKS_FIRST = 16,
	/* The number of blocks that is worth moving the others. */
	FORGET_BLOCKS = 4096,
	PAIRS_MIN = 8,
	REPLACEMENT = 0xfffd,
};

enum utf16_kind utf16_kind_of(const uint8_t *bytes, size_t length, size_t *out_mark_bytes)
{
	size_t pairs = (length < UTF16_LOOK_BYTES ? length : UTF16_LOOK_BYTES) / 2;
	size_t even = 0;
	size_t odd = 0;

	*out_mark_bytes = 0;
	/* UTF-32 has the mark, too, and zeros after it. */
	if (length >= 2 && (bytes[0] ^ bytes[1]) == 1 && (bytes[0] & bytes[1]) == 0xfe &&
		!(length >= 4 && bytes[0] == 0xff && bytes[2] == 0 && bytes[3] == 0)) {
		*out_mark_bytes = 2;
		return bytes[0] == 0xff ? UTF16_LITTLE : UTF16_BIG;
	}
	for (size_t i = 0; i < pairs; i++) {
		even += bytes[2 * i] == 0;
		odd += bytes[2 * i + 1] == 0;
	}
	if (pairs < PAIRS_MIN || even + odd < pairs / 2 || (even > odd / 8 && odd > even / 8)) {
		return UTF16_NONE;
	}
	return odd > even ? UTF16_LITTLE : UTF16_BIG;
}

/* Room for the bits of that many more bytes. */
static int reserve(struct utf16 *state, size_t more)
{
	uint64_t last = (state->bytes + more) / UTF16_BLOCK_BYTES + 1;
	size_t wanted = (size_t)(last - state->first_block);
	size_t capacity = state->block_capacity == 0 ? BLOCKS_FIRST : state->block_capacity;
	struct utf16_block *blocks;

	while (capacity < wanted) {
		capacity *= 2;
	}
	if (capacity > state->block_capacity) {
		blocks = realloc(state->blocks, capacity * sizeof(*blocks));
		if (blocks == NULL) {
			return -ENOMEM;
		}
		state->blocks = blocks;
		state->block_capacity = capacity;
	}
	return 0;
}

/* A byte of UTF-8. */
static void note_byte(struct utf16 *state, bool begins_unit)
{
	size_t index = (size_t)(state->bytes / UTF16_BLOCK_BYTES - state->first_block);
	size_t at = (size_t)(state->bytes % UTF16_BLOCK_BYTES);

	if (index == state->block_count) {
		state->blocks[index] = (struct utf16_block){.units_before = state->units};
		state->block_count++;
	}
	if (begins_unit) {
		state->blocks[index].bits[at / 64] |= UINT64_C(1) << (at % 64);
		state->units++;
	}
	state->bytes++;
}

static size_t put(struct utf16 *state, uint32_t code, uint8_t *out)
{
	size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	static const uint8_t leads[] = {0, 0, 0xc0, 0xe0, 0xf0};

	for (size_t i = length - 1; i > 0; i--) {
		out[i] = (uint8_t)(0x80 | (code & 0x3f));
		code >>= 6;
	}
	out[0] = (uint8_t)(leads[length] | code);
	for (size_t i = 0; i < length; i++) {
		note_byte(state, i == 0 || (length == 4 && i == 2));
	}
	return length;
}

static size_t put_unit(struct utf16 *state, uint32_t unit, uint8_t *out)
{
	bool is_high = unit >= 0xd800 && unit < 0xdc00;
	bool is_low = unit >= 0xdc00 && unit < 0xe000;
	uint32_t high = state->high;
	size_t length = 0;

	state->high = 0;
	if (high != 0 && is_low) {
		return put(state, 0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00), out);
	}
	if (high != 0) {
		length = put(state, REPLACEMENT, out);
	}
	if (is_high) {
		state->high = unit;
		return length;
	}
	return length + put(state, is_low ? REPLACEMENT : unit, out + length);
}

long utf16_decode(struct utf16 *state, const uint8_t *bytes, size_t length, uint8_t *out)
{
	size_t made = 0;

	if (reserve(state, utf16_room(length)) != 0) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < length; i++) {
		uint32_t first = state->odd;

		if (!state->has_odd) {
			state->odd = bytes[i];
			state->has_odd = true;
			continue;
		}
		state->has_odd = false;
		made += put_unit(state,
			state->kind == UTF16_BIG ? first << 8 | bytes[i]
						 : first | (uint32_t)bytes[i] << 8,
			out + made);
	}
	return (long)made;
}

/* The units that begin before a byte. */
static uint64_t units_before(const struct utf16 *state, uint64_t offset)
{
	uint64_t index = offset / UTF16_BLOCK_BYTES;
	size_t at = (size_t)(offset % UTF16_BLOCK_BYTES);
	const struct utf16_block *block;
	uint64_t units;

	if (offset >= state->bytes || index < state->first_block) {
		return state->units;
	}
	block = &state->blocks[index - state->first_block];
	units = block->units_before;
	for (size_t i = 0; i < at / 64; i++) {
		units += (uint64_t)__builtin_popcountll(block->bits[i]);
	}
	if (at % 64 != 0) {
		uint64_t mask = (UINT64_C(1) << (at % 64)) - 1;

		units += (uint64_t)__builtin_popcountll(block->bits[at / 64] & mask);
	}
	return units;
}

void utf16_place(const struct utf16 *state, uint64_t *start, uint64_t *end)
{
	uint64_t first = units_before(state, *start + 1);

	*end = state->origin + 2 * units_before(state, *end);
	*start = state->origin + 2 * (first > 0 ? first - 1 : 0);
}

void utf16_forget(struct utf16 *state, uint64_t offset)
{
	uint64_t first = offset / UTF16_BLOCK_BYTES;
	size_t gone;

	if (first < state->first_block + FORGET_BLOCKS || state->block_count == 0) {
		return;
	}
	gone = (size_t)(first - state->first_block);
	gone = gone < state->block_count ? gone : state->block_count - 1;
	state->block_count -= gone;
	state->first_block += gone;
	memmove(state->blocks, state->blocks + gone, state->block_count * sizeof(*state->blocks));
}

void utf16_fini(struct utf16 *state)
{
	free(state->blocks);
	state->blocks = NULL;
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: however an object is cut into chunks, each byte is new in one of them,
 * and a search finds as many matches as in one piece, at the same places, each
 * in one chunk.
 * Method: random objects of few letters and random words in them, cut into
 * random pieces in buffers of a pool, each with the end of the last one in its
 * headroom, as much as is needed or more.
 */
#include "tests/support/random.h"
#include "tests/support/users.h"

#include <pinion/chunk.h>

enum {
	OBJECTS = 400,
	OBJECT_MAX = 20000,
	PIECE_MAX = 4096,
	WORD_MAX = 12,
};

static uint8_t object[OBJECT_MAX];
static uint8_t is_found[OBJECT_MAX]; /* how often a word that begins there was */
static uint8_t is_new[OBJECT_MAX];
static uint8_t word[WORD_MAX];

static bool has_word(const uint8_t *at, uint32_t word_length)
{
	return memcmp(at, word, word_length) == 0;
}

static void search(const struct pinion_chunk *chunk, uint32_t word_length)
{
	const uint8_t *data = pinion_chunk_data(chunk);
	struct pinion_chunk_range range = pinion_chunk_new_range(chunk);

	for (uint32_t i = 0; i + word_length <= chunk->length; i++) {
		if (has_word(data + i, word_length) &&
			pinion_chunk_keeps(
				chunk, pinion_chunk_to_absolute(chunk, i + word_length))) {
			is_found[pinion_chunk_to_absolute(chunk, i)]++;
		}
	}
	for (uint32_t i = range.begin; i < range.end; i++) {
		uint64_t at = pinion_chunk_to_absolute(chunk, i);

		expect_true("new", pinion_chunk_is_new_byte(chunk, at));
		expect_number("its byte", object[at], data[i]);
		is_new[at]++;
	}
}

static struct pinion_chunk cut(
	struct pinion_pool *pool, uint32_t offset, uint32_t length, int32_t buffer_offset)
{
	struct pinion_chunk chunk = {
		.base_offset = offset, .length = length, .buffer_offset = buffer_offset};
	struct pinion_buffer buffer = users_take(pool);

	expect_number("init", 0, pinion_chunk_init_in(&chunk, pool, &buffer));
	memcpy(pinion_chunk_data(&chunk), object + offset, length);
	return chunk;
}

static void release(struct pinion_pool *pool, struct pinion_chunk *chunk)
{
	struct pinion_buffer buffer = pinion_chunk_into_buffer(chunk);

	users_give(pool, &buffer);
}

static void check_object(struct random_source *source, struct pinion_pool *pool)
{
	uint32_t length = 1 + (uint32_t)random_below(source, OBJECT_MAX);
	uint32_t word_length = 1 + (uint32_t)random_below(source, WORD_MAX);
	uint32_t overlap = word_length - 1 + (uint32_t)random_below(source, WORD_MAX);
	uint32_t piece_max = 1 + (uint32_t)random_below(source, PIECE_MAX);
	uint64_t letters = 1 + random_below(source, 3);
	struct pinion_chunk before = {.length = 0};
	uint32_t offset = 0;

	for (uint32_t i = 0; i < length; i++) {
		object[i] = (uint8_t)random_below(source, letters);
	}
	for (uint32_t i = 0; i < word_length; i++) {
		word[i] = (uint8_t)random_below(source, letters);
	}
	memset(is_found, 0, sizeof(is_found));
	memset(is_new, 0, sizeof(is_new));
	while (offset < length) {
		uint32_t most = length - offset < piece_max ? length - offset : piece_max;
		uint32_t piece = 1 + (uint32_t)random_below(source, most);
		struct pinion_chunk chunk = cut(
			pool, offset, piece, (int32_t)random_below(source, PIECE_MAX - piece + 1));

		if (offset > 0) {
			expect_true("prepend", pinion_chunk_prepend(&chunk, &before, overlap) >= 0);
			release(pool, &before);
		}
		expect_number("first", offset == 0, pinion_chunk_is_first(&chunk));
		search(&chunk, word_length);
		offset += piece;
		before = chunk;
	}
	release(pool, &before);
	for (uint32_t i = 0; i < length && expect_failure_count == 0; i++) {
		bool is_there = i + word_length <= length && has_word(object + i, word_length);

		expect_number("new once", 1, is_new[i]);
		expect_number("found as in one piece", is_there, is_found[i]);
	}
}

int main(void)
{
	struct random_source source;
	uint64_t seed = random_begin(&source);
	struct pinion_pool *pool = users_pool(NULL, 1, 2, 2);

	for (int i = 0; i < OBJECTS && expect_failure_count == 0; i++) {
		check_object(&source, pool);
		if (expect_failure_count != 0) {
			printf("object %d of PINION_SEED=%llu\n", i, (unsigned long long)seed);
		}
	}
	if (expect_failure_count == 0) {
		users_end(pool);
	}
	return expect_status();
}

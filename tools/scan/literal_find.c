/* SPDX-License-Identifier: MIT */
/*
 * Two bytes at once, in vectors: of GCC and clang, so that one source serves
 * every processor. On x86-64 there is a second copy for those with AVX2.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tools/scan/literal_find.h"

#include <stdbool.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
	VECTOR_BYTES = 32,
	VECTORS = 4,
	/* Places that are looked at together. */
	BLOCK = VECTOR_BYTES * VECTORS,
	WORD_BYTES = 8,
	/* Bytes compared first: more are seldom alike by chance. */
	COMPARED_FIRST = 16,
	/* Bytes compared in vain, beside a share for each byte searched. */
	VAIN_MIN = 4096,
	VAIN_SHARE = 4,
};

typedef uint8_t vector __attribute__((vector_size(VECTOR_BYTES)));

union block {
	vector vectors[VECTORS];
	uint64_t words[BLOCK / WORD_BYTES];
};

/*
 * Most frequent first, as in text and source; zeros are in binary files. All
 * others count as rare.
 */
static const char frequent[] = "\0 etaoinsrlcdhup_mfg.,\n\tbvwy-()=/0;:\"k1x*>2'Ej<STAIC3R"
			       "&4NLOD[]P58679qM{}FBUHGzVWKX#!|+%Y$\\QJZ@~?^`";

/* 0: rare. */
static size_t frequency(uint8_t byte)
{
	const char *place = memchr(frequent, byte, sizeof(frequent) - 1);

	return place != NULL ? sizeof(frequent) - (size_t)(place - frequent) : 0;
}

void literal_init(struct literal *literal, const void *bytes, size_t length)
{
	size_t rarest = 0;
	size_t next = length > 1 ? 1 : 0;

	*literal = (struct literal){.bytes = bytes, .length = length};
	for (size_t i = 1; i < length; i++) {
		size_t here = frequency(literal->bytes[i]);

		if (here < frequency(literal->bytes[rarest])) {
			next = rarest;
			rarest = i;
		} else if (i == next || here < frequency(literal->bytes[next])) {
			next = i;
		}
	}
	literal->first = rarest < next ? rarest : next;
	literal->second = rarest < next ? next : rarest;
}

/* A search under way. */
struct search {
	const struct literal *literal;
	const uint8_t *from;
	const uint8_t *end;
	size_t vain; /* bytes compared */
};

static uint64_t read_word(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

static uint32_t read_half(const uint8_t *bytes)
{
	uint32_t half;

	memcpy(&half, bytes, sizeof(half));
	return half;
}

/* Without a call, which would cost more: `length` is at most COMPARED_FIRST. */
static inline bool are_alike(const uint8_t *left, const uint8_t *right, size_t length)
{
	size_t last;

	if (length >= sizeof(uint64_t)) {
		last = length - sizeof(uint64_t);
		return read_word(left) == read_word(right) &&
			read_word(left + last) == read_word(right + last);
	}
	if (length >= sizeof(uint32_t)) {
		last = length - sizeof(uint32_t);
		return read_half(left) == read_half(right) &&
			read_half(left + last) == read_half(right + last);
	}
	return memcmp(left, right, length) == 0;
}

static inline bool is_here(struct search *search, const uint8_t *place)
{
	const struct literal *literal = search->literal;
	size_t length = literal->length;
	size_t first = length < COMPARED_FIRST ? length : COMPARED_FIRST;

	search->vain += first;
	if (!are_alike(place, literal->bytes, first)) {
		return false;
	}
	search->vain += length - first;
	return memcmp(place + first, literal->bytes + first, length - first) == 0;
}

static const uint8_t *find_in_block(
	struct search *search, const union block *block, const uint8_t *place)
{
	for (size_t i = 0; i < BLOCK / WORD_BYTES; i++) {
		uint64_t word = block->words[i];

		while (word != 0) {
			/* Of a byte that is alike all bits are set. */
			unsigned bit = (unsigned)__builtin_ctzll(word) / 8 * 8;
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
			unsigned byte = 7 - bit / 8;
#else
			unsigned byte = bit / 8;
#endif
			const uint8_t *hit = place + i * WORD_BYTES + byte;

			if (is_here(search, hit)) {
				return hit;
			}
			word &= ~(UINT64_C(0xff) << bit);
		}
	}
	return NULL;
}

typedef const uint8_t *(*find_in_block_fn)(
	struct search *search, const union block *block, const uint8_t *place);

static inline __attribute__((always_inline)) const uint8_t *find(
	struct search *search, find_in_block_fn find_hit)
{
	const struct literal *literal = search->literal;
	const uint8_t *place = search->from;
	vector first = literal->bytes[literal->first] - (vector){0};
	vector second = literal->bytes[literal->second] - (vector){0};

	while ((size_t)(search->end - place) >= BLOCK + literal->length - 1 &&
		search->vain / VAIN_SHARE < VAIN_MIN + (size_t)(place - search->from)) {
		union block block;
		uint64_t any = 0;
		vector all = {0};

		for (size_t i = 0; i < VECTORS; i++) {
			vector left;
			vector right;

			memcpy(&left, place + literal->first + i * VECTOR_BYTES, sizeof(left));
			memcpy(&right, place + literal->second + i * VECTOR_BYTES, sizeof(right));
			block.vectors[i] = (vector)(left == first) & (vector)(right == second);
			all |= block.vectors[i];
		}
		for (size_t i = 0; i < VECTOR_BYTES / WORD_BYTES; i++) {
			uint64_t word;

			memcpy(&word, (const uint8_t *)&all + i * WORD_BYTES, sizeof(word));
			any |= word;
		}
		if (any != 0) {
			const uint8_t *hit = find_hit(search, &block, place);

			if (hit != NULL) {
				return hit;
			}
		}
		place += BLOCK;
	}
	return memmem(place, (size_t)(search->end - place), literal->bytes, literal->length);
}

#if defined(__x86_64__)

/* As find_in_block(), with a bit for each byte. */
static __attribute__((target("avx2"))) const uint8_t *find_in_block_avx2(
	struct search *search, const union block *block, const uint8_t *place)
{
	for (size_t i = 0; i < VECTORS; i++) {
		__m256i alike = _mm256_loadu_si256((const __m256i *)&block->vectors[i]);
		uint32_t bits = (uint32_t)_mm256_movemask_epi8(alike);

		for (; bits != 0; bits &= bits - 1) {
			const uint8_t *hit = place + i * VECTOR_BYTES + __builtin_ctz(bits);

			if (is_here(search, hit)) {
				return hit;
			}
		}
	}
	return NULL;
}

static __attribute__((target("avx2"))) const uint8_t *find_avx2(struct search *search)
{
	return find(search, find_in_block_avx2);
}

static const uint8_t *find_best(struct search *search)
{
	return __builtin_cpu_supports("avx2") ? find_avx2(search) : find(search, find_in_block);
}

#else

static const uint8_t *find_best(struct search *search)
{
	return find(search, find_in_block);
}

#endif

const uint8_t *literal_find(const struct literal *literal, const uint8_t *from, const uint8_t *end)
{
	struct search search = {.literal = literal, .from = from, .end = end};

	if ((size_t)(end - from) < literal->length) {
		return NULL;
	}
	if (literal->length == 1) {
		return memchr(from, literal->bytes[0], (size_t)(end - from));
	}
	return find_best(&search);
}

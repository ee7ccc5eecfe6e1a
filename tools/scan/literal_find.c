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
	/* Blocks after which a byte of the sums of newlines may be full. */
	SUMMED_MAX = 255 / VECTORS,
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

/* The rarest byte that is neither; of a shorter string the first of both. */
static size_t find_third(const struct literal *literal)
{
	size_t third = literal->first;
	size_t lowest = SIZE_MAX;

	for (size_t i = 0; i < literal->length; i++) {
		if (i != literal->first && i != literal->second &&
			frequency(literal->bytes[i]) < lowest) {
			third = i;
			lowest = frequency(literal->bytes[i]);
		}
	}
	return third;
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
	literal->third = find_third(literal);
}

/* A search under way. */
struct search {
	const struct literal *literal;
	const uint8_t *from;
	const uint8_t *end;
	size_t vain; /* bytes compared */
	struct literal_lines lines;
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

static inline bool is_any(const vector *found)
{
	uint64_t any = 0;

	for (size_t i = 0; i < VECTOR_BYTES / WORD_BYTES; i++) {
		uint64_t word;

		memcpy(&word, (const uint8_t *)found + i * WORD_BYTES, sizeof(word));
		any |= word;
	}
	return any != 0;
}

static inline size_t sum(const vector *counts)
{
	size_t total = 0;

	for (size_t i = 0; i < VECTOR_BYTES; i++) {
		total += (*counts)[i];
	}
	return total;
}

/* For one kind of processor. */
struct kind {
	const uint8_t *(*find_in_block)(
		struct search *search, const union block *block, const uint8_t *place);
	bool (*is_any)(const vector *found);
	size_t (*sum)(const vector *counts);
};

static bool is_vain(const struct search *search, const uint8_t *place)
{
	return search->vain / VAIN_SHARE >= VAIN_MIN + (size_t)(place - search->from);
}

/* Keeps the places that have the third byte, too; false: there is none. */
static inline __attribute__((always_inline)) bool has_third(
	const struct search *search, const struct kind *kind, const uint8_t *place, vector *found)
{
	const struct literal *literal = search->literal;
	vector third = literal->bytes[literal->third] - (vector){0};
	vector all = {0};

#pragma GCC unroll 4
	for (size_t i = 0; i < VECTORS; i++) {
		vector part;

		memcpy(&part, place + literal->third + i * VECTOR_BYTES, sizeof(part));
		found[i] &= (vector)(part == third);
		all |= found[i];
	}
	return kind->is_any(&all);
}

/*
 * The loop of find(), each copy for one kind, and with newlines counted or not:
 * that adds a fifth to its time, and a second pass over the bytes half of it.
 */
static inline __attribute__((always_inline)) const uint8_t *find_vectors(
	struct search *search, const struct kind *kind, bool counts, const uint8_t **out_place)
{
	const struct literal *literal = search->literal;
	const uint8_t *place = search->from;
	vector first = literal->bytes[literal->first] - (vector){0};
	vector second = literal->bytes[literal->second] - (vector){0};
	vector newline = '\n' - (vector){0};
	vector newlines = {0};
	unsigned summed = 0;
	const uint8_t *stop = place; /* no block begins there */

	if ((size_t)(search->end - place) >= BLOCK + literal->length - 1) {
		stop = search->end - (BLOCK + literal->length - 1) + 1;
	}
	while (place < stop) {
		vector found[VECTORS];
		vector all = {0};

#pragma GCC unroll 4
		for (size_t i = 0; i < VECTORS; i++) {
			vector left;
			vector right;

			memcpy(&left, place + literal->first + i * VECTOR_BYTES, sizeof(left));
			memcpy(&right, place + literal->second + i * VECTOR_BYTES, sizeof(right));
			found[i] = (vector)(left == first) & (vector)(right == second);
			all |= found[i];
			if (counts) {
				newlines -= (vector)(left == newline);
			}
		}
		if (counts && ++summed == SUMMED_MAX) {
			search->lines.newlines += kind->sum(&newlines);
			newlines = (vector){0};
			summed = 0;
		}
		if (kind->is_any(&all) && has_third(search, kind, place, found)) {
			union block block;
			const uint8_t *hit;

			memcpy(block.vectors, found, sizeof(found));
			hit = kind->find_in_block(search, &block, place);
			if (hit != NULL) {
				return hit;
			}
			if (is_vain(search, place)) {
				stop = place;
			}
		}
		place += BLOCK;
	}
	if (counts) {
		search->lines.newlines += kind->sum(&newlines);
		search->lines.from = search->from + literal->first;
		search->lines.until = place + literal->first;
	}
	*out_place = place;
	return NULL;
}

/*
 * Moves the start to where the vectors of the first byte are aligned: those
 * that are not cost twice where they are in two cache lines, as half of them
 * would be.
 */
static const uint8_t *find_unaligned(struct search *search)
{
	const struct literal *literal = search->literal;

	while ((uintptr_t)(search->from + literal->first) % VECTOR_BYTES != 0 &&
		(size_t)(search->end - search->from) >= literal->length) {
		const uint8_t *place = search->from++;

		if (place[literal->first] == literal->bytes[literal->first] &&
			place[literal->second] == literal->bytes[literal->second] &&
			is_here(search, place)) {
			return place;
		}
	}
	return NULL;
}

static inline __attribute__((always_inline)) const uint8_t *find(
	struct search *search, const struct kind *kind, bool counts)
{
	const struct literal *literal = search->literal;
	const uint8_t *place = search->from;
	const uint8_t *hit = find_unaligned(search);

	if (hit == NULL) {
		hit = find_vectors(search, kind, counts, &place);
	}
	return hit != NULL
		? hit
		: memmem(place, (size_t)(search->end - place), literal->bytes, literal->length);
}

static const struct kind any_kind = {
	.find_in_block = find_in_block,
	.is_any = is_any,
	.sum = sum,
};

static const uint8_t *find_anywhere(struct search *search, bool counts)
{
	return counts ? find(search, &any_kind, true) : find(search, &any_kind, false);
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

static inline __attribute__((target("avx2"))) bool is_any_avx2(const vector *found)
{
	__m256i all = _mm256_loadu_si256((const __m256i *)found);

	return _mm256_testz_si256(all, all) == 0;
}

static inline __attribute__((target("avx2"))) size_t sum_avx2(const vector *counts)
{
	__m256i bytes = _mm256_loadu_si256((const __m256i *)counts);
	__m256i sums = _mm256_sad_epu8(bytes, _mm256_setzero_si256());

	return (size_t)(_mm256_extract_epi64(sums, 0) + _mm256_extract_epi64(sums, 1) +
		_mm256_extract_epi64(sums, 2) + _mm256_extract_epi64(sums, 3));
}

static const struct kind avx2_kind = {
	.find_in_block = find_in_block_avx2,
	.is_any = is_any_avx2,
	.sum = sum_avx2,
};

static __attribute__((target("avx2"))) const uint8_t *find_avx2(struct search *search)
{
	return find(search, &avx2_kind, false);
}

static __attribute__((target("avx2"))) const uint8_t *find_and_count_avx2(struct search *search)
{
	return find(search, &avx2_kind, true);
}

static const uint8_t *find_best(struct search *search, bool counts)
{
	if (!__builtin_cpu_supports("avx2")) {
		return find_anywhere(search, counts);
	}
	return counts ? find_and_count_avx2(search) : find_avx2(search);
}

#else

static const uint8_t *find_best(struct search *search, bool counts)
{
	return find_anywhere(search, counts);
}

#endif

const uint8_t *literal_find(const struct literal *literal, const uint8_t *from, const uint8_t *end)
{
	return literal_find_and_count(literal, from, end, NULL);
}

const uint8_t *literal_find_and_count(const struct literal *literal, const uint8_t *from,
	const uint8_t *end, struct literal_lines *out_lines)
{
	struct search search = {.literal = literal, .from = from, .end = end};
	const uint8_t *hit = NULL;

	if ((size_t)(end - from) >= literal->length) {
		hit = literal->length == 1 ? memchr(from, literal->bytes[0], (size_t)(end - from))
					   : find_best(&search, out_lines != NULL);
	}
	if (out_lines != NULL) {
		*out_lines = hit == NULL ? search.lines : (struct literal_lines){0};
	}
	return hit;
}

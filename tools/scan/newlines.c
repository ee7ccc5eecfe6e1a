/* SPDX-License-Identifier: MIT */
/*
 * Counts with vectors of 32 bytes, of GCC and clang, so that one source serves
 * every processor; on x86-64 there is a second copy for those with AVX2. Each
 * lane adds up to 255 newlines before the lanes are summed. Lines of source
 * code are short: memchr(3) for each of them takes several times as long.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tools/scan/newlines.h"

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
	LANES = 32,
	STEP = 4 * LANES,
	STEPS_MAX = 255, /* what a lane can count */
};

typedef uint8_t lanes __attribute__((vector_size(LANES)));

static inline __attribute__((always_inline)) void count_part(
	const uint8_t *bytes, const lanes *newline, lanes *sums)
{
	lanes part;

	memcpy(&part, bytes, sizeof(part));
	/* Of each lane: -1 where it is a newline, else 0. */
	*sums -= (lanes)(part == *newline);
}

static size_t sum_lanes(const lanes *sums)
{
	size_t count = 0;

	for (size_t i = 0; i < LANES; i++) {
		count += (*sums)[i];
	}
	return count;
}

/*
 * At most STEPS_MAX steps. The sums are apart so that they stay in registers.
 */
static inline __attribute__((always_inline)) size_t count_steps(
	const uint8_t *bytes, size_t steps, size_t (*total)(const lanes *sums))
{
	const uint8_t *end = bytes + steps * STEP;
	lanes first = {0};
	lanes second = {0};
	lanes third = {0};
	lanes fourth = {0};
	lanes newline = '\n' - (lanes){0};

	for (; bytes < end; bytes += STEP) {
		count_part(bytes, &newline, &first);
		count_part(bytes + LANES, &newline, &second);
		count_part(bytes + 2 * LANES, &newline, &third);
		count_part(bytes + 3 * LANES, &newline, &fourth);
	}
	return total(&first) + total(&second) + total(&third) + total(&fourth);
}

#if defined(__x86_64__)

static inline __attribute__((target("avx2"))) size_t sum_lanes_avx2(const lanes *sums)
{
	__m256i bytes = _mm256_loadu_si256((const __m256i *)sums);
	__m256i words = _mm256_sad_epu8(bytes, _mm256_setzero_si256());

	return (size_t)(_mm256_extract_epi64(words, 0) + _mm256_extract_epi64(words, 1) +
		_mm256_extract_epi64(words, 2) + _mm256_extract_epi64(words, 3));
}

static __attribute__((target("avx2"))) size_t count_steps_avx2(const uint8_t *bytes, size_t steps)
{
	return count_steps(bytes, steps, sum_lanes_avx2);
}

static size_t count_steps_best(const uint8_t *bytes, size_t steps)
{
	return __builtin_cpu_supports("avx2") ? count_steps_avx2(bytes, steps)
					      : count_steps(bytes, steps, sum_lanes);
}

#else

static size_t count_steps_best(const uint8_t *bytes, size_t steps)
{
	return count_steps(bytes, steps, sum_lanes);
}

#endif

size_t newlines_count(const uint8_t *bytes, size_t length)
{
	size_t count = 0;

	while (length >= STEP) {
		size_t steps = length / STEP < STEPS_MAX ? length / STEP : STEPS_MAX;

		count += count_steps_best(bytes, steps);
		bytes += steps * STEP;
		length -= steps * STEP;
	}
	for (size_t i = 0; i < length; i++) {
		count += bytes[i] == '\n';
	}
	return count;
}

size_t newlines_last_start(const uint8_t *bytes, size_t length)
{
	const uint8_t *last = length == 0 ? NULL : memrchr(bytes, '\n', length);

	return last == NULL ? 0 : (size_t)(last - bytes) + 1;
}

size_t newlines_first(const uint8_t *bytes, size_t length)
{
	const uint8_t *first = length == 0 ? NULL : memchr(bytes, '\n', length);

	return first == NULL ? length : (size_t)(first - bytes);
}

/* SPDX-License-Identifier: MIT */
/*
 * Counts with vectors of 16 bytes, which every 64-bit processor has. Each
 * lane adds up to 255 newlines before the lanes are summed. Lines of source
 * code are short: memchr(3) for each of them takes several times as long.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tools/scan/newlines.h"

#include <string.h>

enum {
	LANES = 16,
	VECTORS = 4, /* at a time, so that their sums do not wait */
	STEP = LANES * VECTORS,
	STEPS_MAX = 255, /* what a lane can count */
};

typedef uint8_t lanes __attribute__((vector_size(LANES)));

static size_t sum_lanes(const lanes *sums)
{
	size_t count = 0;

	for (size_t i = 0; i < VECTORS; i++) {
		for (size_t j = 0; j < LANES; j++) {
			count += sums[i][j];
		}
	}
	return count;
}

/* At most STEPS_MAX steps. */
static size_t count_steps(const uint8_t *bytes, size_t steps)
{
	lanes newline;
	lanes sums[VECTORS] = {{0}};

	memset(&newline, '\n', sizeof(newline));
	for (size_t i = 0; i < steps; i++) {
		for (size_t j = 0; j < VECTORS; j++) {
			lanes part;

			memcpy(&part, bytes + i * STEP + j * LANES, sizeof(part));
			/* Equal lanes are -1. */
			sums[j] -= (lanes)(part == newline);
		}
	}
	return sum_lanes(sums);
}

size_t newlines_count(const uint8_t *bytes, size_t length)
{
	size_t count = 0;

	while (length >= STEP) {
		size_t steps = length / STEP < STEPS_MAX ? length / STEP : STEPS_MAX;

		count += count_steps(bytes, steps);
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

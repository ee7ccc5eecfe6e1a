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
	STEP = 4 * LANES,
	STEPS_MAX = 255, /* what a lane can count */
};

typedef uint8_t lanes __attribute__((vector_size(LANES)));

static size_t sum_lanes(lanes sums)
{
	size_t count = 0;

	for (size_t i = 0; i < LANES; i++) {
		count += sums[i];
	}
	return count;
}

/* Of each lane: -1 where it is a newline, else 0. */
static inline lanes find(const uint8_t *bytes, lanes newline)
{
	lanes part;

	memcpy(&part, bytes, sizeof(part));
	return (lanes)(part == newline);
}

/*
 * At most STEPS_MAX steps. The sums are apart so that they stay in registers.
 */
static size_t count_steps(const uint8_t *bytes, size_t steps)
{
	const uint8_t *end = bytes + steps * STEP;
	lanes first = {0};
	lanes second = {0};
	lanes third = {0};
	lanes fourth = {0};
	lanes newline;

	memset(&newline, '\n', sizeof(newline));
	for (; bytes < end; bytes += STEP) {
		first -= find(bytes, newline);
		second -= find(bytes + LANES, newline);
		third -= find(bytes + 2 * LANES, newline);
		fourth -= find(bytes + 3 * LANES, newline);
	}
	return sum_lanes(first) + sum_lanes(second) + sum_lanes(third) + sum_lanes(fourth);
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

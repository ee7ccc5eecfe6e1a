/* SPDX-License-Identifier: MIT */
/*
 * The buckets of a histogram of times: 32 for each power of two, so that a
 * bucket is at most a thirty-second of its values wide. Its middle is within
 * 1.6 % of each of them.
 *
 *     value          bucket                  width
 *     0 … 63 ns      value / 2               2
 *     2^p … 2^(p+1)  32 (p - 5) + next five  2^(p - 5)     p = 6 … 35
 *     from 2^36 on   the last                               69 s
 *
 * Pure arithmetic, on any thread.
 *
 * Source: Tene's HdrHistogram, the layout with sub-buckets of equal width.
 */
#ifndef PIN_OBSERVE_HISTOGRAM_H
#define PIN_OBSERVE_HISTOGRAM_H

#include "runtime/base/base.h"
#include "runtime/base/check.h"

#include <pinion/metrics.h>

enum {
	PIN_HISTOGRAM_PARTS = 32,    /* of a power of two */
	PIN_HISTOGRAM_PARTS_LOG = 5, /* of these the logarithm */
	/* Of the last power of two; below 64 there is one row of parts. */
	PIN_HISTOGRAM_POWER_MAX = 35,
	PIN_HISTOGRAM_ROWS = PIN_HISTOGRAM_POWER_MAX - PIN_HISTOGRAM_PARTS_LOG + 1,
};

_Static_assert(PIN_HISTOGRAM_ROWS *PIN_HISTOGRAM_PARTS == PINION_HISTOGRAM_BUCKETS, "all of them");
_Static_assert(PIN_HISTOGRAM_ROWS <= 32, "a bit each");

static inline uint32_t pin_histogram_bucket(uint64_t value)
{
	/* Values below 32 share the row of those below 64. */
	uint32_t power = 63 - (uint32_t)__builtin_clzll(value | PIN_HISTOGRAM_PARTS);
	uint32_t row = power - PIN_HISTOGRAM_PARTS_LOG;
	uint32_t bucket;

	if (PIN_UNLIKELY(power > PIN_HISTOGRAM_POWER_MAX)) {
		return PINION_HISTOGRAM_BUCKETS - 1;
	}
	if (row == 0) {
		return (uint32_t)(value >> 1);
	}
	bucket = row * PIN_HISTOGRAM_PARTS + ((uint32_t)(value >> row) % PIN_HISTOGRAM_PARTS);
	PIN_DCHECK(bucket < PINION_HISTOGRAM_BUCKETS);
	return bucket;
}

/* Its lowest value. */
static inline uint64_t pin_histogram_lowest(uint32_t bucket)
{
	uint32_t row = bucket / PIN_HISTOGRAM_PARTS;
	uint64_t part = bucket % PIN_HISTOGRAM_PARTS;

	PIN_DCHECK(bucket < PINION_HISTOGRAM_BUCKETS);
	return row == 0 ? 2 * part : (PIN_HISTOGRAM_PARTS + part) << row;
}

static inline uint64_t pin_histogram_width(uint32_t bucket)
{
	uint32_t row = bucket / PIN_HISTOGRAM_PARTS;

	PIN_DCHECK(bucket < PINION_HISTOGRAM_BUCKETS);
	return row == 0 ? 2 : UINT64_C(1) << row;
}

/* The value that a reader of the bucket gets. */
static inline uint64_t pin_histogram_middle(uint32_t bucket)
{
	return pin_histogram_lowest(bucket) + pin_histogram_width(bucket) / 2;
}

#endif

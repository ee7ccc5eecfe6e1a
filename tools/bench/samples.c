/* SPDX-License-Identifier: MIT */
/*
 * Quantiles and the interval of a median.
 */
#include "tools/bench/samples.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* An interval that reaches further from its ratio is noise. */
static const double noise_max = 0.15;
/* The probability of a value outside the interval, on one side. */
static const double tail_max = 0.025;

int samples_add(struct samples *samples, double value)
{
	if (samples->count == samples->capacity) {
		uint32_t capacity = samples->capacity == 0 ? 64 : samples->capacity * 2;
		double *values = realloc(samples->values, capacity * sizeof(*values));

		if (values == NULL) {
			return -ENOMEM;
		}
		samples->values = values;
		samples->capacity = capacity;
	}
	samples->values[samples->count++] = value;
	return 0;
}

void samples_clear(struct samples *samples)
{
	samples->count = 0;
}

void samples_free(struct samples *samples)
{
	free(samples->values);
	*samples = (struct samples){0};
}

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left;
	double b = *(const double *)right;

	return (a > b) - (a < b);
}

void samples_sort(struct samples *samples)
{
	if (samples->count > 1) {
		qsort(samples->values, samples->count, sizeof(*samples->values), compare);
	}
}

double samples_quantile(const struct samples *sorted, double share)
{
	double position = share * (sorted->count - 1);
	uint32_t below = (uint32_t)position;
	double low = sorted->values[below];

	if (below + 1 >= sorted->count) {
		return low;
	}
	return low + (sorted->values[below + 1] - low) * (position - below);
}

/*
 * How many of the sorted values to leave out at either end. The median is
 * outside of the remaining ones when at most that many of `count` fair coins
 * show heads, or as few show tails.
 */
static uint32_t trim_count(uint32_t count)
{
	double chance = ldexp(1.0, -(int)count); /* of exactly `heads` heads */
	double tail = chance;			 /* of at most as many */
	uint32_t heads = 0;

	while (heads < count) {
		chance *= (double)(count - heads) / (heads + 1);
		if (tail + chance > tail_max) {
			break;
		}
		tail += chance;
		heads++;
	}
	return heads;
}

struct samples_ratio samples_conclude(const struct samples *sorted)
{
	uint32_t count = sorted->count;
	uint32_t trim = trim_count(count);
	struct samples_ratio result = {
		.ratio = samples_quantile(sorted, 0.5),
		.low = sorted->values[trim],
		.high = sorted->values[count - 1 - trim],
	};

	result.is_conclusive = count >= SAMPLES_PAIRS_MIN &&
		result.low >= result.ratio * (1 - noise_max) &&
		result.high <= result.ratio * (1 + noise_max);
	return result;
}

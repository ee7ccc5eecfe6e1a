/* SPDX-License-Identifier: MIT */
/*
 * Quantiles and the interval of a median.
 */
#include "tools/bench/figures.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* An interval that reaches further from its ratio is noise. */
static const double noise_max = 0.15;
/* The probability of a value outside the interval, on one side. */
static const double tail_max = 0.025;

int figures_add(struct figures *figures, double value)
{
	if (figures->count == figures->capacity) {
		uint32_t capacity = figures->capacity == 0 ? 64 : figures->capacity * 2;
		double *values = realloc(figures->values, capacity * sizeof(*values));

		if (values == NULL) {
			return -ENOMEM;
		}
		figures->values = values;
		figures->capacity = capacity;
	}
	figures->values[figures->count++] = value;
	return 0;
}

void figures_clear(struct figures *figures)
{
	figures->count = 0;
}

void figures_free(struct figures *figures)
{
	free(figures->values);
	*figures = (struct figures){0};
}

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left;
	double b = *(const double *)right;

	return (a > b) - (a < b);
}

void figures_sort(struct figures *figures)
{
	if (figures->count > 1) {
		qsort(figures->values, figures->count, sizeof(*figures->values), compare);
	}
}

double figures_quantile(const struct figures *sorted, double share)
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

struct figures_ratio figures_conclude(const struct figures *sorted)
{
	uint32_t count = sorted->count;
	uint32_t trim = trim_count(count);
	struct figures_ratio result = {
		.ratio = figures_quantile(sorted, 0.5),
		.low = sorted->values[trim],
		.high = sorted->values[count - 1 - trim],
	};

	result.is_conclusive = count >= FIGURES_PAIRS_MIN &&
		result.low >= result.ratio * (1 - noise_max) &&
		result.high <= result.ratio * (1 + noise_max);
	return result;
}

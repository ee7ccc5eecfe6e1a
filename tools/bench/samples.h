/* SPDX-License-Identifier: MIT */
/*
 * Statistics of a bench: its samples, and the conclusions they allow.
 * Arithmetic only.
 *
 * A ratio is taken per pair, ours over the floor measured right beside it, so
 * that what changes slowly (a shared disk, the clock of a CPU) divides out.
 * The interval is the one of the sign test for the median: it assumes nothing
 * about how noise is distributed but that pairs are independent, and it needs
 * no random numbers.
 */
#ifndef PINION_TOOLS_BENCH_FIGURES_H
#define PINION_TOOLS_BENCH_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

/* A growable list of samples. Zero-initialise. */
struct samples {
	double *values;
	uint32_t count;
	uint32_t capacity;
};

/* The fewest pairs for which an interval of 95 % exists: 1 - 2/2^6 = 97 %. */
#define SAMPLES_PAIRS_MIN 6u
/* Beyond these an interval could not be computed, nor would it be narrower. */
#define SAMPLES_PAIRS_MAX 1000u

struct samples_ratio {
	double ratio; /* median over the pairs */
	double low;   /* with `high`: holds the true median at 95 % or more */
	double high;
	bool is_conclusive; /* there is an interval, within ±15 % */
};

/* Returns 0 or -ENOMEM. */
int samples_add(struct samples *samples, double value);
void samples_clear(struct samples *samples);
void samples_free(struct samples *samples);

/* Needed by all below. */
void samples_sort(struct samples *samples);

/*
 * The quantile of that share, 0 … 1, of the sorted samples, interpolated. There
 * must be at least one.
 */
double samples_quantile(const struct samples *sorted, double share);

/* Of sorted ratios of pairs, 1 … SAMPLES_PAIRS_MAX. */
struct samples_ratio samples_conclude(const struct samples *sorted);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Pairs of turns.
 */
#include "tools/bench/measure.h"

#include "tools/report.h"
#include "tools/signals.h"

#include <errno.h>
#include <time.h>

uint64_t bench_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* One turn of one side; its median is what the pair is made of. */
static int measure_side(const struct bench_subject *subject, void *state, enum bench_side side,
	struct bench_results *results, double *out_median)
{
	struct samples *block = &results->block;
	int rc;

	samples_clear(block);
	rc = subject->run(state, side, block);
	for (uint32_t i = 0; rc == 0 && i < block->count; i++) {
		rc = samples_add(&results->samples[side], block->values[i]);
	}
	if (rc == -ENOMEM) {
		report_line("%s", report_reason(rc));
	}
	if (rc == 0 && signals_interrupted()) {
		rc = -ECANCELED;
	}
	if (rc == 0) {
		samples_sort(block);
		*out_median = samples_quantile(block, 0.5);
	}
	return rc;
}

static int measure_pair(const struct bench_subject *subject, void *state, bool is_backward,
	struct bench_results *results)
{
	double medians[BENCH_SIDE_COUNT];
	int rc = 0;

	for (int turn = 0; rc == 0 && turn < BENCH_SIDE_COUNT; turn++) {
		int side = is_backward ? BENCH_SIDE_COUNT - 1 - turn : turn;

		if (bench_has_side(subject, side)) {
			rc = measure_side(
				subject, state, (enum bench_side)side, results, &medians[side]);
		}
	}
	for (int side = BENCH_FLOOR; rc == 0 && side < BENCH_SIDE_COUNT; side++) {
		if (bench_has_side(subject, side)) {
			rc = samples_add(
				&results->ratios[side], medians[BENCH_OURS] / medians[side]);
		}
	}
	return rc;
}

static void clear_results(struct bench_results *results)
{
	for (int side = 0; side < BENCH_SIDE_COUNT; side++) {
		samples_clear(&results->samples[side]);
		samples_clear(&results->ratios[side]);
	}
}

void bench_results_free(struct bench_results *results)
{
	for (int side = 0; side < BENCH_SIDE_COUNT; side++) {
		samples_free(&results->samples[side]);
		samples_free(&results->ratios[side]);
	}
	samples_free(&results->block);
}

int bench_measure(const struct bench_subject *subject, void *state, uint64_t duration_ns,
	struct bench_results *results)
{
	uint64_t end_ns = bench_now_ns() + duration_ns;
	int rc = measure_pair(subject, state, false, results);

	clear_results(results);
	for (uint32_t pair = 0; rc == 0 && pair < SAMPLES_PAIRS_MAX &&
		(pair < SAMPLES_PAIRS_MIN || bench_now_ns() < end_ns);
		pair++) {
		rc = measure_pair(subject, state, pair % 2 == 1, results);
	}
	for (int side = 0; side < BENCH_SIDE_COUNT; side++) {
		samples_sort(&results->samples[side]);
		samples_sort(&results->ratios[side]);
	}
	return rc;
}

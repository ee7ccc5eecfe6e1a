/* SPDX-License-Identifier: MIT */
/*
 * The turns in which a subject's sides are measured.
 *
 * Ours and the floor are measured in pairs in one process, A-B then B-A, so
 * that neither always has the warmer machine. One turn of each goes before and
 * does not count.
 */
#ifndef PINION_TOOLS_BENCH_MEASURE_H
#define PINION_TOOLS_BENCH_MEASURE_H

#include "tools/bench/subject.h"

/*
 * Takes turns for that long, and at least SAMPLES_PAIRS_MIN of them; results
 * come sorted. Returns 0, or what the subject's `run` returned, which is
 * reported. The results are to be freed in any case.
 */
int bench_measure(const struct bench_subject *subject, void *state, uint64_t duration_ns,
	struct bench_results *results);

void bench_results_free(struct bench_results *results);

#endif

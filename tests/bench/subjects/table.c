/* SPDX-License-Identifier: MIT */
/*
 * The table of tests/bench/pinion: all subjects. It stands in for that of
 * tools/bench/subjects.c.
 */
#include "tests/bench/subjects/further.h"

const struct bench_subject *const bench_subjects[] = {
	BENCH_SUBJECTS(BENCH_LIST) FURTHER_SUBJECTS(BENCH_LIST)};
const uint32_t bench_subject_count = sizeof(bench_subjects) / sizeof(bench_subjects[0]);

/* SPDX-License-Identifier: MIT */
/*
 * The table of subjects of `pinion bench`.
 */
#include "tools/bench/subject.h"

const struct bench_subject *const bench_subjects[] = {BENCH_SUBJECTS(BENCH_LIST)};
const uint32_t bench_subject_count = sizeof(bench_subjects) / sizeof(bench_subjects[0]);

/* SPDX-License-Identifier: MIT */
/*
 * The mutant of tests/bench/pinion in which ours is 10 % slower in every
 * subject: its table stands in for that of subjects/table.c.
 * tests/bench/mutants compares the two.
 */
#include "tests/bench/subjects/further.h"

#define SUBJECTS(apply) BENCH_SUBJECTS(apply) FURTHER_SUBJECTS(apply)

static int run_slowed(const struct bench_subject *subject, void *state, enum bench_side side,
	struct samples *out_figures)
{
	int rc = subject->run(state, side, out_figures);

	for (uint32_t i = 0; side == BENCH_OURS && i < out_figures->count; i++) {
		out_figures->values[i] *= subject->is_rate ? 1 / 1.1 : 1.1;
	}
	return rc;
}

#define DEFINE_TWIN(subject) \
	static int subject##_run(void *state, enum bench_side side, struct samples *out_figures) \
	{ \
		return run_slowed(&bench_##subject, state, side, out_figures); \
	} \
	static struct bench_subject subject##_mutant;

SUBJECTS(DEFINE_TWIN)

#define LIST_TWIN(subject) &subject##_mutant,

const struct bench_subject *const bench_subjects[] = {SUBJECTS(LIST_TWIN)};
const uint32_t bench_subject_count = sizeof(bench_subjects) / sizeof(bench_subjects[0]);

#define INIT_TWIN(subject) \
	subject##_mutant = bench_##subject; \
	subject##_mutant.run = subject##_run;

/* Before main(), as no code calls this. */
__attribute__((constructor)) static void init_mutants(void)
{
	SUBJECTS(INIT_TWIN)
}

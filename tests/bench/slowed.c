/* SPDX-License-Identifier: MIT */
/*
 * The twin of `pinion` in which ours is 10 % slower in every subject: its table
 * stands in for that of tools/bench/subjects.c. tests/bench/twins compares the
 * two.
 */
#include "tools/bench/subject.h"

/* clang-format off */
/* The subjects, in the order of tools/bench/subjects.c. */
#define SUBJECTS(apply) \
	apply(nop) \
	apply(read) \
	apply(read_random) \
	apply(read_random_cached) \
	apply(read_blocks) \
	apply(read_blocks_cached) \
	apply(write) \
	apply(write_random) \
	apply(sum) \
	apply(scan) \
	apply(spawn) \
	apply(yield) \
	apply(inject) \
	apply(batch) \
	apply(inject_wait) \
	apply(steal) \
	apply(steal_spawn) \
	apply(forkjoin) \
	apply(wake) \
	apply(wake_worker) \
	apply(wake_ring) \
	apply(wake_worker_ring) \
	apply(wake_qos) \
	apply(wake_ring_qos) \
	apply(wake_completion) \
	apply(idle) \
	apply(idle_ring) \
	apply(timer) \
	apply(timer_late) \
	apply(lanes) \
	apply(lanes_qos) \
	apply(lanes_busy) \
	apply(classes) \
	apply(execute) \
	apply(execute_together) \
	apply(thread_pool) \
	apply(channel) \
	apply(channel_pass) \
	apply(startup) \
	apply(walk) \
	apply(pool) \
	apply(pool_outside) \
	apply(pool_malloc) \
	apply(pool_two) \
	apply(pool_pass) \
	apply(pool_steal)
/* clang-format on */

static int run_slowed(const struct bench_subject *subject, void *state, enum bench_side side,
	struct figures *out_figures)
{
	int rc = subject->run(state, side, out_figures);

	for (uint32_t i = 0; side == BENCH_OURS && i < out_figures->count; i++) {
		out_figures->values[i] *= subject->is_rate ? 1 / 1.1 : 1.1;
	}
	return rc;
}

#define DEFINE_TWIN(subject) \
	static int subject##_run(void *state, enum bench_side side, struct figures *out_figures) \
	{ \
		return run_slowed(&bench_##subject, state, side, out_figures); \
	} \
	static struct bench_subject subject##_twin;

SUBJECTS(DEFINE_TWIN)

#define LIST_TWIN(subject) &subject##_twin,

const struct bench_subject *const bench_subjects[] = {SUBJECTS(LIST_TWIN)};
const uint32_t bench_subject_count = sizeof(bench_subjects) / sizeof(bench_subjects[0]);

#define INIT_TWIN(subject) \
	subject##_twin = bench_##subject; \
	subject##_twin.run = subject##_run;

/* Before main(), as nobody calls this. */
__attribute__((constructor)) static void init_twins(void)
{
	SUBJECTS(INIT_TWIN)
}

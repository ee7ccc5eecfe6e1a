/* SPDX-License-Identifier: MIT */
/*
 * The table of subjects, in the order of `pinion bench list`.
 */
#include "tools/bench/subject.h"

const struct bench_subject *const bench_subjects[] = {
	&bench_nop,
	&bench_read,
	&bench_read_random,
	&bench_read_random_cached,
	&bench_read_blocks,
	&bench_read_blocks_cached,
	&bench_write,
	&bench_write_random,
	&bench_sum,
	&bench_scan,
	&bench_spawn,
	&bench_yield,
	&bench_inject,
	&bench_batch,
	&bench_inject_wait,
	&bench_steal,
	&bench_steal_spawn,
	&bench_forkjoin,
	&bench_wake,
	&bench_wake_worker,
	&bench_wake_ring,
	&bench_wake_worker_ring,
	&bench_wake_completion,
	&bench_idle,
	&bench_idle_ring,
	&bench_timer,
	&bench_timer_late,
	&bench_lanes,
	&bench_lanes_busy,
	&bench_classes,
	&bench_execute,
	&bench_channel,
	&bench_channel_pass,
	&bench_startup,
	&bench_walk,
	&bench_pool,
	&bench_pool_outside,
	&bench_pool_malloc,
	&bench_pool_two,
	&bench_pool_pass,
};
const uint32_t bench_subject_count = sizeof(bench_subjects) / sizeof(bench_subjects[0]);

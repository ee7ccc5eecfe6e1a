/* SPDX-License-Identifier: MIT */
/*
 * The subjects that tests/bench/pinion has and `pinion bench` lacks: what a
 * change of the library may make slower, and few users ask for.
 */
#ifndef PIN_TESTS_BENCH_SUBJECTS_FURTHER_H
#define PIN_TESTS_BENCH_SUBJECTS_FURTHER_H

#include "tools/bench/subject.h"

/* clang-format off */
#define FURTHER_SUBJECTS(apply) \
	apply(read_blocks) \
	apply(read_blocks_cached) \
	apply(write_random) \
	apply(read_first) \
	apply(sum_first) \
	apply(read_first_cached) \
	apply(yield) \
	apply(forkjoin_fifo) \
	apply(inject) \
	apply(inject_burst) \
	apply(batch) \
	apply(inject_wait) \
	apply(steal_spawn) \
	apply(lone) \
	apply(lone_stream) \
	apply(wake_worker) \
	apply(wake_ring) \
	apply(wake_worker_ring) \
	apply(wake_qos) \
	apply(wake_ring_qos) \
	apply(wake_completion) \
	apply(idle_ring) \
	apply(timer_late) \
	apply(lanes_qos) \
	apply(lanes_busy) \
	apply(classes) \
	apply(urgent) \
	apply(urgent_own) \
	apply(execute) \
	apply(execute_together) \
	apply(thread_pool) \
	apply(channel) \
	apply(channel_pass) \
	apply(startup) \
	apply(pool_outside) \
	apply(pool_malloc) \
	apply(pool_two) \
	apply(pool_pass) \
	apply(pool_steal) \
	apply(scan_large_warm) \
	apply(scan_named_warm) \
	apply(scan_rare_warm) \
	apply(scan_small_warm) \
	apply(scan_start)
/* clang-format on */

FURTHER_SUBJECTS(BENCH_DECLARE)

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The subjects about wakes beyond `wake`: by another worker, of one that sleeps
 * in its ring, and with idle CPUs kept awake (tools/bench/wake.h).
 */
#include "tools/bench/wake.h"

const struct bench_subject bench_wake_worker = {
	.name = "wake_worker",
	.brief = "from a spawn in one worker to the task on another that sleeps, against a futex",
	.sides = {[BENCH_OURS] = "pinion_task_spawn_shared", [BENCH_FLOOR] = "futex-wake"},
	.variant = &(const struct wake_way){.worker_count = 2},
	WAKE_SHARED,
};

const struct bench_subject bench_wake_ring = {
	.name = "wake_ring",
	.brief = "as wake, to a worker that sleeps in its ring, as a read of its is pending",
	.sides = {[BENCH_OURS] = "pinion_task_spawn", [BENCH_FLOOR] = "futex-wake"},
	.variant = &(const struct wake_way){.worker_count = 1, .sleeps_in_ring = true},
	WAKE_SHARED,
};

const struct bench_subject bench_wake_worker_ring = {
	.name = "wake_worker_ring",
	.brief = "as wake_worker, to a worker that sleeps in its ring",
	.sides = {[BENCH_OURS] = "pinion_task_spawn_shared", [BENCH_FLOOR] = "futex-wake"},
	.variant = &(const struct wake_way){.worker_count = 2, .sleeps_in_ring = true},
	WAKE_SHARED,
};

const struct bench_subject bench_wake_qos = {
	.name = "wake_qos",
	.brief = "as wake, where idle CPUs are asked to stay awake (cpu_latency_us 0)",
	.sides = {[BENCH_OURS] = "pinion_task_spawn", [BENCH_FLOOR] = "futex-wake"},
	.variant = &(const struct wake_way){.worker_count = 1, .keeps_cpus_awake = true},
	WAKE_SHARED,
};

const struct bench_subject bench_wake_ring_qos = {
	.name = "wake_ring_qos",
	.brief = "as wake_ring, where idle CPUs are asked to stay awake",
	.sides = {[BENCH_OURS] = "pinion_task_spawn", [BENCH_FLOOR] = "futex-wake"},
	.variant =
		&(const struct wake_way){
			.worker_count = 1, .sleeps_in_ring = true, .keeps_cpus_awake = true},
	WAKE_SHARED,
};

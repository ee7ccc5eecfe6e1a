/* SPDX-License-Identifier: MIT */
/*
 * The subjects `lanes_qos` and `lanes_busy`: `lanes` with idle CPUs kept awake,
 * and without a free worker.
 */
#include "tools/bench/lanes.h"

const struct bench_subject bench_lanes_qos = {
	.name = "lanes_qos",
	.brief = "as lanes, where idle CPUs are asked to stay awake",
	.sides = {[BENCH_OURS] = "pinion_task_spawn", [BENCH_FLOOR] = "futex-wake"},
	.variant = &(const struct lanes_way){.has_free_worker = true, .keeps_cpus_awake = true},
	LANES_SHARED,
};

const struct bench_subject bench_lanes_busy = {
	.name = "lanes_busy",
	.axes = BENCH_BY(BENCH_WORKERS),
	.brief = "as lanes, where no worker is free, so that it waits until a job has ended",
	.sides = {[BENCH_OURS] = "pinion_task_spawn", [BENCH_FLOOR] = "look-between-tasks"},
	.variant = &(const struct lanes_way){.has_free_worker = false},
	LANES_SHARED,
};

/* SPDX-License-Identifier: MIT */
/*
 * The subject `yield`: what a task costs that spawns itself, so that the queue
 * is empty each time.
 */
#include "tools/bench/spawn.h"

const struct bench_subject bench_yield = {
	.name = "yield",
	.brief = "a task that spawns itself and returns, against calls from a bare deque",
	.sides = {[BENCH_OURS] = "pinion_task_spawn", [BENCH_FLOOR] = "chase-lev-deque"},
	.variant = &(const struct spawn_way){.batch_count = 1},
	SPAWN_SHARED,
};

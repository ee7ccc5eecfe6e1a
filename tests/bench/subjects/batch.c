/* SPDX-License-Identifier: MIT */
/*
 * The subject `batch`: as `inject`, but ours hands its tasks over in batches.
 */
#include "tests/bench/subjects/inject.h"

#include <pinion/pinion.h>

static int push_batch(struct inject *inject, uint32_t first_index)
{
	return pinion_task_spawn_batch(
		inject->runtime, &inject->pointers[first_index], INJECT_STRIDE);
}

const struct bench_subject bench_batch = {
	.name = "batch",
	.unit = "ns",
	.brief = "an empty task of a batch of 64 spawned outside and run, against a queue",
	.sides = {[BENCH_OURS] = "pinion_task_spawn_batch", [BENCH_FLOOR] = "mpmc-ring"},
	.variant = &(const struct inject_way){push_batch},
	.start = inject_start,
	.run = inject_run,
	.stop = inject_stop,
};

/* SPDX-License-Identifier: MIT */
/*
 * The subject `batch`: as `inject`, but ours hands its tasks over in batches.
 */
#include "tools/bench/inject.h"

#include <pinion/pinion.h>

static int push_batch(struct inject *inject, uint32_t first_index)
{
	return pinion_spawn_batch(inject->runtime, &inject->pointers[first_index], INJECT_STRIDE);
}

static int batch_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	return inject_start(bench, push_batch, out_setting, out_state);
}

const struct bench_subject bench_batch = {
	.name = "batch",
	.unit = "ns",
	.brief = "an empty task of a batch of 64 spawned outside and run, against a queue",
	.sides = {[BENCH_OURS] = "pinion_spawn_batch", [BENCH_FLOOR] = "mpmc-ring"},
	.start = batch_start,
	.run = inject_run,
	.stop = inject_stop,
};

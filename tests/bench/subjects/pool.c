/* SPDX-License-Identifier: MIT */
/*
 * The subjects `pool_outside` and `pool_malloc`: buffers of a pool by a thread
 * without a cache, and against malloc(3) (tools/bench/pool.h).
 */
#include "tools/bench/pool.h"

#include <stdlib.h>

static bool use_malloc(struct pools *pools)
{
	(void)pools;
	for (uint32_t i = 0; i < POOL_PAIRS; i++) {
		void *volatile bytes = malloc(POOL_BUFFER_BYTES);

		if (bytes == NULL) {
			return false;
		}
		free(bytes);
	}
	return true;
}

static int pool_run_malloc(void *state, enum bench_side side, struct samples *out_figures)
{
	return pools_take_figures(
		state, side == BENCH_OURS ? pools_use_ours : use_malloc, out_figures);
}

const struct bench_subject bench_pool_outside = {
	.name = "pool_outside",
	.unit = "ns",
	.brief = "as pool, by a thread without a cache, against a bounded queue",
	.sides = {[BENCH_OURS] = "pinion_pool", [BENCH_FLOOR] = "mpmc-queue"},
	.variant = &(const struct pool_way){.buffer_count = POOL_BUFFERS, .is_outside = true},
	.start = pool_start,
	.run = pool_run,
	.stop = pool_stop,
};

const struct bench_subject bench_pool_malloc = {
	.name = "pool_malloc",
	.unit = "ns",
	.brief = "as pool, by a thread with a cache, against malloc and free of 64 KiB",
	.sides = {[BENCH_OURS] = "pinion_pool", [BENCH_FLOOR] = "malloc"},
	.variant = &(const struct pool_way){.buffer_count = POOL_BUFFERS},
	.start = pool_start,
	.run = pool_run_malloc,
	.stop = pool_stop,
};

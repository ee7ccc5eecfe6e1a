/* SPDX-License-Identifier: MIT */
/*
 * What a buffer costs, taken from a pool and given back. In ours the thread has
 * a cache of its own or has none; the floor keeps the same buffers in a bare
 * bounded queue.
 */
#ifndef PINION_TOOLS_BENCH_POOL_H
#define PINION_TOOLS_BENCH_POOL_H

#include "tools/bench/mpmc.h"

#include <pinion/pool.h>

enum {
	POOL_BUFFERS = 64,
	POOL_BUFFER_BYTES = 64 << 10,
	POOL_PAIRS = 50000, /* of one figure */
	POOL_FIGURES = 8,   /* of one turn */
};

/* The differences between one subject and another. */
struct pool_way {
	uint32_t buffer_count; /* 1 … POOL_BUFFERS */
	bool is_outside;       /* the thread has no cache */
};

struct pools {
	struct pinion_pool *pool;
	struct bench_mpmc queue;
	/*
	 * Elements of the queue: their addresses differ, and their bytes are
	 * never touched.
	 */
	struct pinion_task items[POOL_BUFFERS];
};

/*
 * Initialises a zeroed struct; the calling thread is attached. Returns 0 or an
 * error that is reported. `pools_fini` accepts a struct that is initialised in
 * part.
 */
int pools_init(struct pools *pools, const struct pool_way *way, struct bench_setting *out_setting);
void pools_fini(struct pools *pools);

/* The samples of a turn; `use` takes and gives back POOL_PAIRS times. */
int pools_take_figures(
	struct pools *pools, bool (*use)(struct pools *pools), struct samples *out_figures);
bool pools_use_ours(struct pools *pools);

/* Of a subject with one thread: its variant is a pool_way. */
int pool_start(struct bench *bench, struct bench_setting *out_setting, void **out_state);
int pool_run(void *state, enum bench_side side, struct samples *out_figures);
void pool_stop(void *state);

static inline bool pools_take(struct pools *pools, struct pinion_buffer *out_buffer)
{
	return pinion_pool_try_acquire(pools->pool, out_buffer) == 0;
}

static inline bool pools_give(struct pools *pools, struct pinion_buffer *buffer)
{
	return pinion_pool_release(pools->pool, buffer) == 0;
}

#endif

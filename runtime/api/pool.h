/* SPDX-License-Identifier: MIT */
/*
 * A pool as users have it: the buffers (memory/pool.h), their memory, those who
 * wait for one (worker/wait.h), and which cache is the calling thread's.
 *
 * A worker's cache has its worker's number, if the pool was made with its
 * runtime. Another thread is attached: the caches taken are marked in
 * `attached`, and the thread keeps a short list of its pools in thread-local
 * memory, by a number that no two pools of a process share, as another pool may
 * come to lie where one was that the thread forgot to leave.
 *
 * [BUFFERS-1] detach flushes its magazine, then clears its mark (release) ->
 * attach sets it (CAS, acquire): two owners of one magazine see what each did.
 */
#ifndef PIN_API_POOL_H
#define PIN_API_POOL_H

#include "runtime/host/lock.h"
#include "runtime/host/process_live.h"
#include "runtime/memory/pool.h"
#include "runtime/worker/wait.h"

#include <pinion/pool.h>

struct pinion_pool {
	struct pin_pool pool;
	/* [const] */
	struct pinion_runtime *runtime; /* NULL: none */
	struct pin_arena arena;		/* without a runtime: its memory */
	struct pin_pool_region *regions;
	uint64_t number;
	bool has_short_way; /* nothing is to be done with a buffer between uses */
	uint64_t mapped_bytes;
	uint32_t worker_count;
	uint32_t forked;		 /* pin_forked_now() of its process */
	struct pin_atomic_u32 *attached; /* [W:any R:any] 1: the cache is taken */
	/* [W:any R:any] */
	struct pin_atomic_u32 owners;
	struct pin_atomic_u32 is_closed;
	struct pin_waiters waiters PIN_CACHE_ALIGNED;
	/* [const] for its beginning and its end */
	uint32_t cache_count;
	const struct pin_host *host;
	struct pin_host own_host; /* with an allocator of the embedder's */
	struct pin_live live;
};

/* Gets one for the oldest who waits; for pin_waiters_init(). */
bool pin_buffers_take(void *arg, uint64_t demand, struct pin_waiters_value *out_value);

#endif

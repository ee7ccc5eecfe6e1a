/* SPDX-License-Identifier: MIT */
/*
 * Where a buffer goes that is given back: into the magazine of who gives it
 * back, into that one's bundle if it is of another node, or past both. pool.h
 * tells when which.
 */
#ifndef PIN_MEMORY_POOL_HOME_H
#define PIN_MEMORY_POOL_HOME_H

#include "runtime/memory/pool_internal.h"

enum {
	/* Buffers that move between a magazine and a free list at once. */
	PIN_POOL_BATCH_MAX = 64,
};

/* Of the caller with that magazine, or OUTSIDE: it is free as soon as here. */
void pin_pool_put(struct pin_pool *pool, uint32_t magazine, uint32_t index);

/*
 * Inside: the `count` oldest, but no more than are moved at once, or all go
 * home, into the list of each one's node. They are to be seen all the time.
 */
void pin_pool_pass_on(struct pin_pool *pool, struct pin_magazine *magazine, uint32_t count);
void pin_pool_pass_all_on(struct pin_pool *pool, struct pin_magazine *magazine);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A pool: the buffers of one size cut from a worker's arena.
 *
 * Only the owning worker acquires and releases, so the free list is a plain
 * stack of indices; the last buffer released is the next acquired, while it is
 * still in the cache. Nothing is kept inside the buffers themselves.
 *
 * Invariants: (1) each buffer is either on the stack or in use, never both;
 * a second release aborts. (2) free + in use == count.
 */
#ifndef PIN_MEMORY_POOL_H
#define PIN_MEMORY_POOL_H

#include "runtime/base/base.h"

#include <stdbool.h>

struct pin_pool {
	uint8_t *memory;	/* [const] the first buffer */
	uint32_t buffer_bytes;	/* [const] */
	uint32_t buffer_count;	/* [const] */
	uint32_t free_count;	/* [own] */
	uint32_t *free_indices; /* [own] the stack; [const] pointer, we own it */
	bool *in_use;		/* [own] one per buffer */
};

/* `memory` holds `buffer_count` buffers and outlives the pool. -ENOMEM. */
int pin_pool_init(
	struct pin_pool *pool, uint8_t *memory, uint32_t buffer_bytes, uint32_t buffer_count);
void pin_pool_fini(struct pin_pool *pool);

/* NULL when all are in use. */
uint8_t *pin_pool_acquire(struct pin_pool *pool, uint32_t *out_index);

/* Aborts when `bytes` is not the buffer of that index or is free already. */
void pin_pool_release(struct pin_pool *pool, const uint8_t *bytes, uint32_t index);

#endif

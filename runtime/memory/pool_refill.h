/* SPDX-License-Identifier: MIT */
/*
 * Where a buffer is looked for that is not in the own magazine, and how it is
 * made sure that there is none. pool.h tells why that takes two looks.
 */
#ifndef PIN_MEMORY_POOL_REFILL_H
#define PIN_MEMORY_POOL_REFILL_H

#include "runtime/memory/pool_internal.h"

/* One from any free list, the caller's own node first. */
bool pin_pool_take_listed(struct pin_pool *pool, uint32_t node, uint32_t *out_index);

/* One from any tray, likewise; from *giver on round, and tells whose it was. */
bool pin_pool_take_laid_out(
	struct pin_pool *pool, uint32_t node, uint32_t *out_index, uint32_t *giver);

/*
 * With the lock: from lists, from trays, from magazines, or nowhere. Each round
 * that ends with neither was spoilt by somebody's release. An owner who comes
 * here has an empty magazine: it saw that itself, or found a thief inside, who
 * leaves nothing and was done before the lock was free. `own`: its magazine, or
 * OUTSIDE.
 */
bool pin_pool_search(struct pin_pool *pool, uint32_t own, uint32_t node, uint32_t *out_index);

#endif

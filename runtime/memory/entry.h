/* SPDX-License-Identifier: MIT */
/*
 * What a pool knows of one buffer. It stands in an array of its own, never in
 * the buffer's pages, which belong to whoever has the buffer and to devices.
 *
 * `state` tells its life. The generation, the lower half, is even while it is
 * free and odd while it is in use, and then a handle with that very number is
 * the one that may give it back. Every acquire and every release adds one, so a
 * handle is good once. The upper half counts the requests in flight that use
 * it; only without any is the whole what the handle says.
 */
#ifndef PIN_MEMORY_ENTRY_H
#define PIN_MEMORY_ENTRY_H

#include "runtime/base/atomic.h"

struct pin_entry {
	uint8_t *bytes; /* [const] where its payload begins */
	/* [W:who takes it or gives it back R:any] */
	struct pin_atomic_u64 state;  /* requests in flight << 32 | generation */
	struct pin_atomic_u32 holder; /* the magazine, FAR or OUTSIDE */
	/* [W:who pushes it R:any] in a free list: */
	struct pin_atomic_u32 next;  /* index below it, plus one; 0: none */
	struct pin_atomic_u32 depth; /* how many there are from it on down */
	uint32_t node;		     /* [const] number of its home's free list */
};

#endif

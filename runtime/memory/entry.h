/* SPDX-License-Identifier: MIT */
/*
 * What a pool knows of one buffer. It stands in an array of its own, never in
 * the buffer's pages, which belong to whoever has the buffer and to devices.
 *
 * `state` tells its life. The generation, the lower half, is even while it is
 * free and odd while it is in use, and then a handle with that very number is
 * the one that may give it back. Every acquire and every release adds one, so a
 * handle is good once. Above it stands how many requests in flight use it, and
 * two bits that tell how it is given back: pool.h, [POOL-2]. Only without any
 * of these is the whole what the handle says, and may its holder give it back
 * by plain stores.
 */
#ifndef PIN_MEMORY_ENTRY_H
#define PIN_MEMORY_ENTRY_H

#include "runtime/base/atomic.h"

#define PIN_ENTRY_REQUEST (1ull << 32) /* one of them */
#define PIN_ENTRY_REQUESTS_MASK (PIN_ENTRY_CLOSING - PIN_ENTRY_REQUEST)
#define PIN_ENTRY_CLOSING (1ull << 62) /* the holder's plain stores are to end */
#define PIN_ENTRY_SHARED (1ull << 63)  /* they have ended, all go by CAS */

struct pin_entry {
	uint8_t *bytes; /* [const] where its payload begins */
	/* [W:who takes it or gives it back R:any] */
	struct pin_atomic_u64 state;  /* SHARED, CLOSING, requests in flight, generation */
	struct pin_atomic_u32 holder; /* the magazine, FAR or OUTSIDE */
	/* [W:who pushes it R:any] in a free list: */
	struct pin_atomic_u32 next;  /* index below it, plus one; 0: none */
	struct pin_atomic_u32 depth; /* how many there are from it on down */
	uint32_t node;		     /* [const] number of its home's free list */
};

static inline bool pin_entry_is_used(uint64_t state)
{
	return (state & 1) != 0;
}

/* Of a free one: its next use begins. What is shared stays so. */
static inline uint64_t pin_entry_begin_use(uint64_t state)
{
	return state + 1;
}

/* The same of one in use that ends; the generation may come round. */
static inline uint64_t pin_entry_end_use(uint64_t state)
{
	return (state & ~(uint64_t)UINT32_MAX) | (uint32_t)(state + 1);
}

/* It is this use, whether shared or not, and no request has it. */
static inline bool pin_entry_is_as_given(uint64_t state, uint32_t generation)
{
	return (state & ~(PIN_ENTRY_CLOSING | PIN_ENTRY_SHARED)) == generation;
}

#endif

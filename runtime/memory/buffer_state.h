/* SPDX-License-Identifier: MIT */
/*
 * What a pool knows of one buffer. It is in an array of its own, never in the
 * buffer's pages, which belong to the buffer's holder and to devices.
 *
 * `state` is its life. The generation, the lower half, is even while it is free
 * and odd while it is in use, and then the handle with that very number may
 * give it back. Every acquire and every release adds one, so a handle is good
 * once. Above it are the number of requests in flight that use it, and two bits
 * that say how it is given back: pool.h, [POOL-2]. Only without any of these is
 * the whole what the handle says, and may its holder give it back by plain
 * stores.
 *
 * Requests that the holder itself begins are counted above its number: no other
 * thread writes that word while it holds the buffer, so its plain stores
 * overwrite nothing. A use ends only when both counts are none.
 */
#ifndef PIN_MEMORY_BUFFER_STATE_H
#define PIN_MEMORY_BUFFER_STATE_H

#include "runtime/base/atomic.h"
#include "runtime/base/check.h"

#define PIN_ENTRY_REQUEST (1ull << 32) /* one of them */
#define PIN_ENTRY_REQUESTS_MASK (PIN_ENTRY_CLOSING - PIN_ENTRY_REQUEST)
#define PIN_ENTRY_CLOSING (1ull << 62) /* the holder's plain stores are to end */
#define PIN_ENTRY_SHARED (1ull << 63)  /* they have ended, all go by CAS */

/*
 * Of `holder`: only a thread with a magazine of the same node has requests
 * there.
 */
#define PIN_ENTRY_NUMBERS (1u << 14)	/* of magazines */
#define PIN_ENTRY_OWN PIN_ENTRY_NUMBERS /* a request of its own */
#define PIN_ENTRY_FAR (1u << 31)	/* the buffer is of another node */

struct pin_entry {
	uint8_t *bytes; /* [const] where its payload begins */
	/* [W:taker or giver R:any] */
	struct pin_atomic_u64 state;  /* SHARED, CLOSING, requests in flight, generation */
	struct pin_atomic_u32 holder; /* FAR, own requests, magazine; or PIN_POOL_OUTSIDE */
	/* [W:pusher R:any] in a free list: */
	struct pin_atomic_u32 next;  /* index below it, plus one; 0: none */
	struct pin_atomic_u32 depth; /* how many there are from it on down */
	uint32_t node;		     /* [const] number of its home's free list */
};

static inline bool pin_entry_is_used(uint64_t state)
{
	return (state & 1) != 0;
}

/* Of a free one: its next use begins. A shared one stays so. */
static inline uint64_t pin_entry_begin_use(uint64_t state)
{
	PIN_DCHECK(!pin_entry_is_used(state));
	PIN_DCHECK((state & PIN_ENTRY_REQUESTS_MASK) == 0);
	return state + 1;
}

/* The same for the end of a use; the generation may wrap. */
static inline uint64_t pin_entry_end_use(uint64_t state)
{
	PIN_DCHECK(pin_entry_is_used(state));
	PIN_DCHECK((state & PIN_ENTRY_REQUESTS_MASK) == 0);
	return (state & ~(uint64_t)UINT32_MAX) | (uint32_t)(state + 1);
}

/* It is this use, whether shared or not, and no request has it but own ones. */
static inline bool pin_entry_is_as_given(uint64_t state, uint32_t generation)
{
	return (state & ~(PIN_ENTRY_CLOSING | PIN_ENTRY_SHARED)) == generation;
}

/* Whether a request has it that its holder has begun, from `holder`. */
static inline bool pin_entry_has_own(uint32_t holder)
{
	return holder < PIN_ENTRY_FAR && holder >= PIN_ENTRY_OWN;
}

/* Whether that is the owner of magazine `number`, of the buffer's node. */
static inline bool pin_entry_is_held_by(uint32_t holder, uint32_t number)
{
	return (holder & (PIN_ENTRY_FAR | (PIN_ENTRY_NUMBERS - 1))) == number;
}

/* True of a holder with a magazine of the buffer's node. */
static inline bool pin_entry_has_owner(uint32_t holder)
{
	return holder < PIN_ENTRY_FAR;
}

/* The number of the magazine, unless it has none. */
static inline uint32_t pin_entry_number(uint32_t holder)
{
	return holder & (PIN_ENTRY_NUMBERS - 1);
}

#endif

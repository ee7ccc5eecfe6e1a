/* SPDX-License-Identifier: MIT */
/*
 * A tray: the few free buffers that the owner of a robbed magazine lays out for
 * others, oldest first.
 *
 * The owner puts them in at one end, anybody takes them out at the other. The
 * places and the count of what was put in share a line, so that a theft brings
 * one line of the owner's along, and the owner none of the thieves': it looks
 * how far they are when the tray seems full.
 *
 * [TRAY-1] put fills the place, then counts it (exchange, release half) -> take
 * and looks load the count (acquire): they find the index, and what the last
 * user did with the buffer.
 * [TRAY-4] the exchange is seq_cst -> who asks whether all is empty passes a
 * seq_cst fence between two looks: the second finds what was put before it. By
 * a plain store put could return while that is still in the store buffer:
 *
 *     owner                          asks
 *     put := 1, buffered
 *     returns: the buffer is free    fence, looks: put is 0
 *                                    "nothing is free"
 *     put seen by all
 *
 * and no fence_all brings it out, as nobody needs one while all are marked.
 * [TRAY-2] take reads the place, then moves `taken` past it (CAS, release half)
 * -> the owner that fills it again has loaded `taken` (acquire).
 * [TRAY-3] a look loads the count of puts, then that of takes: if they are
 * equal, and the first is the same at a second look, the tray was empty from
 * the one look to the other.
 *
 *              put   take   look
 *     put       X     -      -       one owner
 *     take      -     -      -
 *
 * Progress: put is wait-free, take lock-free. The counts have 64 bits and do
 * not come round.
 */
#ifndef PIN_MEMORY_MAGAZINE_TRAY_H
#define PIN_MEMORY_MAGAZINE_TRAY_H

#include "runtime/base/atomic.h"
#include "runtime/base/base.h"

#define PIN_TRAY_PLACES 8u

struct pin_tray {
	/* [W:owner R:any] */
	struct pin_atomic_u64 put PIN_CACHE_ALIGNED; /* so many ever */
	struct pin_atomic_u32 places[PIN_TRAY_PLACES];
	/* [own] */
	uint64_t seen_taken; /* at least so many were taken */
	/* [W:any R:any] */
	struct pin_atomic_u64 taken PIN_CACHE_ALIGNED; /* so many ever */
};

/* By the owner. False: `most`, not more than there are places, lie there. */
static inline bool pin_tray_put(struct pin_tray *tray, uint32_t index, uint32_t most)
{
	uint64_t put = pin_load_relaxed_u64(&tray->put);

	if (PIN_UNLIKELY(put - tray->seen_taken >= most)) {
		tray->seen_taken = pin_load_acquire_u64(&tray->taken); /* [TRAY-2] */
		if (put - tray->seen_taken >= most) {
			return false;
		}
	}
	pin_store_relaxed_u32(&tray->places[put % PIN_TRAY_PLACES], index);
	pin_exchange_seq_cst_u64(&tray->put, put + 1); /* [TRAY-1] [TRAY-4] */
	return true;
}

/* How many it held at some moment, or a few more. */
static inline uint32_t pin_tray_count(const struct pin_tray *tray)
{
	uint64_t taken = pin_load_acquire_u64(&tray->taken);	   /* [TRAY-3] */
	uint64_t count = pin_load_acquire_u64(&tray->put) - taken; /* [TRAY-1] */

	return count < PIN_TRAY_PLACES ? (uint32_t)count : PIN_TRAY_PLACES;
}

/* Takes the oldest, up to `max`; how many. */
static inline uint32_t pin_tray_take(struct pin_tray *tray, uint32_t *out_indices, uint32_t max)
{
	for (;;) {
		uint64_t taken = pin_load_acquire_u64(&tray->taken);
		uint64_t count = pin_load_acquire_u64(&tray->put) - taken; /* [TRAY-1] */

		if (count == 0) {
			return 0;
		}
		count = count < max ? count : max;
		for (uint64_t i = 0; i < count; i++) {
			out_indices[i] =
				pin_load_relaxed_u32(&tray->places[(taken + i) % PIN_TRAY_PLACES]);
		}
		if (pin_cas_acq_rel_u64(&tray->taken, &taken, taken + count)) { /* [TRAY-2] */
			return (uint32_t)count;
		}
	}
}

/* Changes whenever something is put in. Both: [TRAY-3]. */
static inline uint64_t pin_tray_state(const struct pin_tray *tray)
{
	return pin_load_acquire_u64(&tray->put); /* [TRAY-1] */
}

static inline bool pin_tray_state_is_empty(const struct pin_tray *tray, uint64_t state)
{
	return pin_load_acquire_u64(&tray->taken) == state; /* [TRAY-3] */
}

#endif

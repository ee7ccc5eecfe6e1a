/* SPDX-License-Identifier: MIT */
/*
 * The injector: where work enters from outside and overflows to from within;
 * any worker takes from it, oldest first.
 *
 * Two parts. A pusher puts its elements on a stack of newcomers, with one
 * compare-and-swap, and waits for no other. A popper holds the lock of a list
 * in order; when that runs dry it takes all newcomers at once and turns them
 * round. What one thread pushed thus comes out in the order it was pushed.
 *
 * How much may be in it is decided where work is admitted; it has no bound of
 * its own and never fails.
 *
 * Progress: push is lock-free; pop blocks, for a handful of instructions and
 * while another turns newcomers round. Any thread.
 *
 * [INJECT-1] push (CAS, seq_cst) -> a parking worker's re-check loads both
 * parts after its own fence: see parker.h.
 * [INJECT-2] newcomers are taken (exchange) after a length that is not 0 -> a
 * thread that finds none (acquire) sees that: elements pushed and not popped
 * show in one part or the other at any time. A cancel of many relies on it,
 * which must not miss elements that another is just turning round.
 */
#ifndef PIN_QUEUE_INJECTOR_H
#define PIN_QUEUE_INJECTOR_H

#include "runtime/base/base.h"
#include "runtime/base/list.h"
#include "runtime/host/host.h"
#include "runtime/queue/deque.h"

struct pin_injector {
	const struct pin_host *host;			   /* [const] */
	uint32_t batch_min;				   /* [const] */
	uint32_t batch_max;				   /* [const] */
	struct pin_atomic_u64 newcomers PIN_CACHE_ALIGNED; /* [W:any R:any] newest first */
	struct pin_lock lock PIN_CACHE_ALIGNED;
	struct pin_list list;	      /* [lock:lock] */
	struct pin_atomic_u64 length; /* [W:lock holder R:any] of the list */
	struct pin_atomic_u64 popped; /* [W:lock holder R:any] ever */
};

/* With batches of 4 … 64. */
void pin_injector_init(struct pin_injector *injector, const struct pin_host *host);

/* Before others use it; `min` is 1 … `max`. */
void pin_injector_set_batch(struct pin_injector *injector, uint32_t min, uint32_t max);

/* Appends `list`, which is not empty, and leaves it empty. */
void pin_injector_push(struct pin_injector *injector, struct pin_list *list);

/*
 * Moves the oldest elements to the end of `out_list`: one share when
 * `share_count` workers divide the queue, but `batch_min` at least, `batch_max`
 * at most, and never more than `room`, which is not 0. Returns how many;
 * *out_has_more says whether others may find some, too.
 */
uint32_t pin_injector_pop(struct pin_injector *injector, uint32_t share_count, uint32_t room,
	struct pin_list *out_list, bool *out_has_more);

/*
 * The same, by the owner of a deque: the oldest into *out_first, the others
 * into `to`, which has room for `room` - 1; thieves see them at once.
 */
uint32_t pin_injector_pop_into(struct pin_injector *injector, uint32_t share_count, uint32_t room,
	struct pin_deque *to, struct pin_link **out_first, bool *out_has_more);

/*
 * How many are in it, at one instant. Holds up those who pop for as long as it
 * takes to walk past the newcomers.
 */
uint64_t pin_injector_count(struct pin_injector *injector);

/*
 * Ever. A thread that sees one counted sees everything before its push:
 * [QLIMIT-1].
 */
static inline uint64_t pin_injector_popped(const struct pin_injector *injector)
{
	return pin_load_acquire_u64(&injector->popped); /* [QLIMIT-1] */
}

/* All that had been pushed, as far as the caller knows, has been popped. */
static inline bool pin_injector_is_empty(const struct pin_injector *injector)
{
	/* [INJECT-1] [INJECT-2] both, in this order */
	return pin_load_acquire_u64(&injector->newcomers) == 0 &&
		pin_load_acquire_u64(&injector->length) == 0;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The injector: where work enters from outside and overflows to from within;
 * any worker takes from it, oldest first.
 *
 * An intrusive list under a lock, with its length beside it so that finding it
 * empty costs one load. How much may be in it is decided where work is
 * admitted; the list itself has no bound and never fails.
 *
 * Progress: blocking, for a handful of instructions. Any thread; push and pop
 * exclude each other.
 *
 * [INJECT-1] push stores the length (seq_cst by way of the waker's fence) ->
 * a parking worker's re-check loads it behind its own fence: see parker.h.
 */
#ifndef PIN_SCHED_INJECTOR_H
#define PIN_SCHED_INJECTOR_H

#include "runtime/base/base.h"
#include "runtime/base/list.h"
#include "runtime/host/lock.h"

struct pin_injector {
	const struct pin_host *host; /* [const] */
	struct pin_lock lock PIN_CACHE_ALIGNED;
	struct pin_list list;	      /* [lock:lock] */
	struct pin_atomic_u64 length; /* [W:lock holder R:any] */
};

void pin_injector_init(struct pin_injector *injector, const struct pin_host *host);

/* Appends the `count` elements of `list` and leaves it empty. */
void pin_injector_push(struct pin_injector *injector, struct pin_list *list, uint64_t count);

/*
 * Moves the oldest elements behind `out_list`: one share when `share_count`
 * workers divide what there is, but 4 at least and 64 at most, and never more
 * than `room`, which is not 0. Returns how many; *out_left is how many remain.
 */
uint32_t pin_injector_pop(struct pin_injector *injector, uint32_t share_count, uint32_t room,
	struct pin_list *out_list, uint64_t *out_left);

static inline uint64_t pin_injector_length(const struct pin_injector *injector)
{
	return pin_load_acquire_u64(&injector->length); /* [INJECT-1] */
}

#endif

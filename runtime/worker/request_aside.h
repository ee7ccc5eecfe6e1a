/* SPDX-License-Identifier: MIT */
/*
 * Aside: requests that are in flight on another ring of their worker than its
 * first, as that cannot carry them: extra_rings.h, extra_rings_commands.h. They
 * are in its lists and end as all do, but such a ring takes no cancels: what is
 * aside ends when its device ends it.
 *
 * One count says whether there are any, so that a worker without them looks at
 * that and at nothing else.
 *
 * On the worker alone.
 */
#ifndef PIN_WORKER_REQUEST_ASIDE_H
#define PIN_WORKER_REQUEST_ASIDE_H

#include "runtime/base/check.h"
#include "runtime/worker/state.h"

/* It is on that ring now, and in flight. */
static inline void pin_aside_enter(struct pin_worker *worker, struct pin_request *private)
{
	private->is_aside = true;
	worker->aside_count++;
	pin_flight_list_push(&worker->flying, &private->link);
}

/* It has left that ring, and is still in the list. */
static inline void pin_aside_leave(struct pin_worker *worker, struct pin_request *private)
{
	PIN_CHECK(private->is_aside && worker->aside_count > 0);
	private->is_aside = false;
	worker->aside_count--;
}

static inline bool pin_aside_is_busy(const struct pin_worker *worker)
{
	return PIN_UNLIKELY(worker->aside_count > 0);
}

static inline bool pin_aside_ring_has_gathered(const struct pin_ring *ring)
{
	return ring->in_flight > 0 && pin_ring_unsubmitted(ring) > 0;
}

/* Of these, some wait to be submitted. */
static inline bool pin_aside_has_gathered(const struct pin_worker *worker)
{
	return pin_aside_is_busy(worker) &&
		(pin_aside_ring_has_gathered(&worker->polled) ||
			pin_aside_ring_has_gathered(&worker->wide));
}

#endif

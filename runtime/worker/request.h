/* SPDX-License-Identifier: MIT */
/*
 * Requests between those who submit and cancel them and the worker whose ring
 * they are on (io/request.h).
 *
 * A ring belongs to its worker, and where rings are shared, to who has its
 * lock (ring_lock.h). Submitted from outside, a request is offered to a worker
 * (request_offers.h), whose sleep that ends; cancelled from elsewhere, it goes
 * to its worker by the inbox. The task carries the message. From its start to
 * its end a request is in one of two lists of the worker: in flight, or waiting
 * for room in the ring. Deadlines are on a wheel that waits have too, and sleep
 * ends for them as for timers.
 *
 *     IDLE       the caller's
 *     CLAIMED    likewise, while the others of its batch are checked
 *     POSTED     offered, to be submitted by who takes it
 *     FLYING     the worker's
 *     CANCELLED  cancelled; in the inbox, and perhaps the worker's as well
 *     ENDING     the worker's, which knows that it is cancelled
 *
 * The word holds the state and whose worker it is. Of the end and a cancel one
 * is first: POSTED is left by compare-and-swap, to FLYING by the worker, to
 * CANCELLED by who cancels; FLYING is left under a lock of the worker's
 * (`cancels`), to IDLE by the worker, to CANCELLED by who cancels, or, on the
 * worker itself, to ENDING. That lock costs its owner no locked instruction, as
 * each completion takes it; who cancels from elsewhere pays for both. CANCELLED
 * and ENDING are the worker's to leave. The task's link is free while a request
 * is FLYING, so the one message at a time needs no memory of its own; and since
 * that message may lie in the inbox when the request ends, its task becomes
 * ready only when the message has been taken (`has_ended`).
 *
 * A deadline is the worker's own business: it changes no state, only what the
 * request ends with (`ended_by`), and of deadline and cancel the first to get
 * to the worker counts. Either way the kernel is asked for its end, again if it
 * misses it, and what it then completes with decides: a result that came first
 * is the result.
 *
 * A cancel of many (PINION_OP_CANCEL) is itself a request: it travels through
 * the inboxes of all workers, its own first, behind all that was posted before.
 *
 * [FLIGHT-1] a change of the word -> the next: who moves it on sees the request
 * as it was left, and finds the right inbox. What is changed under the lock is
 * ordered by that: [OWNED-1], [OWNED-2].
 */
#ifndef PIN_WORKER_REQUEST_H
#define PIN_WORKER_REQUEST_H

#include "runtime/worker/state.h"

enum pin_flight_state {
	PIN_FLIGHT_IDLE = 0,	  /* -> POSTED, FLYING or CLAIMED by submit */
	PIN_FLIGHT_POSTED = 1,	  /* -> FLYING by the worker, CANCELLED by cancel */
	PIN_FLIGHT_FLYING = 2,	  /* -> IDLE by the worker; CANCELLED, ENDING by cancel */
	PIN_FLIGHT_CANCELLED = 3, /* -> ENDING by the worker */
	PIN_FLIGHT_ENDING = 4,	  /* -> IDLE by the worker */
	PIN_FLIGHT_CLAIMED = 5,	  /* -> POSTED, FLYING, or IDLE again, by submit */
};

enum {
	PIN_FLIGHT_STATE_MASK = 7,
	PIN_FLIGHT_WORKER_SHIFT = 3,
};

void pin_flight_init(struct pin_worker *worker);

/* By anyone but the worker, which is in there for a few instructions only. */
void pin_flight_lock_cancels(struct pin_worker *owner);

static inline uint32_t pin_flight_word(const struct pin_worker *worker, enum pin_flight_state state)
{
	return worker->index << PIN_FLIGHT_WORKER_SHIFT | state;
}

static inline enum pin_flight_state pin_flight_state_of(uint32_t word)
{
	return (enum pin_flight_state)(word & PIN_FLIGHT_STATE_MASK);
}

static inline bool pin_flight_change(struct pin_request *private, uint32_t word, uint32_t to)
{
	return pin_cas_seq_cst_u32(&private->word, &word, to); /* [FLIGHT-1] */
}

/* By the worker that has its message, whoever it was sent to. */
static inline bool pin_flight_change_own(const struct pin_worker *worker,
	struct pin_request *private, enum pin_flight_state from, enum pin_flight_state to)
{
	uint32_t word = pin_load_acquire_u32(&private->word); /* [FLIGHT-1] */

	return pin_flight_state_of(word) == from &&
		pin_flight_change(private, word, pin_flight_word(worker, to));
}

static inline void pin_flight_set(struct pin_request *private, uint32_t word)
{
	pin_store_release_u32(&private->word, word); /* [FLIGHT-1] */
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The end of requests: taking completions in, giving a request back to its
 * caller, and having its task entered. Where rings are shared, another worker
 * may do that for one that is stuck: the taker; what it may enter itself goes
 * into its own queue, the rest home by the inbox. See request.h.
 *
 * All of it with the ring's lock (ring_lock.h), which the first two take.
 */
#ifndef PIN_WORKER_COMPLETE_H
#define PIN_WORKER_COMPLETE_H

#include "runtime/worker/request.h"

/*
 * On the worker: submits what has gathered and takes in what is over; how much
 * that was.
 */
uint32_t pin_flight_poll(struct pin_worker *worker);

/*
 * On `taker`, which has nothing to do: the same for the ring of `worker`, if
 * that one is stuck and its ring shared. What is over goes into the taker's
 * deque, or back to its worker's inbox. False: nothing was done.
 */
bool pin_flight_relieve(struct pin_worker *worker, struct pin_worker *taker);

/* One whose deadline, on the worker's wheel, has come; in the ring's lock. */
void pin_flight_expire(struct pin_worker *worker, struct pin_timer *timer);

/*
 * On the worker, of one that is in flight and that no ring may have: part after
 * part as long as rates allow; blocks.
 */
void pin_flight_carry_out(struct pin_worker *worker, struct pinion_request *request);

/* Has a ring of the worker's ask before a long transfer's next part. */
void pin_flight_ask_parts(struct pin_worker *worker, struct pin_ring *ring);

/* One that has its result: out of its list, and to its caller. */
void pin_flight_end(
	struct pin_worker *worker, struct pin_worker *taker, struct pinion_request *request);

/* The same on the worker, with a result. */
void pin_flight_end_with(struct pin_worker *worker, struct pinion_request *request, int32_t result);

/* Ends it now, or has the kernel do so; what comes first counts. */
void pin_flight_abandon(struct pin_worker *worker, struct pinion_request *request, int32_t error);

/*
 * Has its task entered, when it is out of its list and IDLE. It is the caller's
 * again as soon as its task is entered. `taker` is the calling worker.
 */
void pin_flight_hand_over(
	struct pin_worker *worker, struct pin_worker *taker, struct pinion_request *request);

/* On the worker: it has none. */
static inline bool pin_flight_is_over(const struct pin_worker *worker)
{
	return pin_flight_list_is_empty(&worker->flying) &&
		pin_flight_list_is_empty(&worker->waiting);
}

#endif

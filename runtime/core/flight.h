/* SPDX-License-Identifier: MIT */
/*
 * Requests between those who submit and cancel them and the worker whose ring
 * they are on (io/request.h).
 *
 * A ring belongs to its worker, and where rings are shared, to who has its
 * lock (relief.h). Submitted or cancelled from elsewhere, a request goes to
 * that worker by its inbox, which also ends its sleep; the task carries the
 * message. From its start to its end a request is in one of two lists of the
 * worker: in flight, or waiting for room in the ring. Deadlines are on a wheel
 * that waits have too, and sleep ends for them as for timers.
 *
 *     IDLE       the caller's
 *     POSTED     in an inbox, to be submitted there
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
 * to the worker counts. Either way the kernel is asked once for its end, and
 * what it then completes with decides: a result that came first is the result.
 *
 * A cancel of many (PINION_OP_CANCEL) is itself a request: it travels through
 * the inboxes of all workers, its own first, behind all that was posted before.
 *
 * [FLIGHT-1] a change of the word -> the next: who moves it on sees the request
 * as it was left, and finds the right inbox. What is changed under the lock is
 * ordered by that: [OWNED-1], [OWNED-2].
 */
#ifndef PIN_CORE_FLIGHT_H
#define PIN_CORE_FLIGHT_H

#include "runtime/core/worker_state.h"

void pin_flight_init(struct pin_worker *worker);

/* On the worker: starts a request. Errors as pinion_request_submit(). */
int pin_worker_submit_one(struct pin_worker *worker, struct pinion_request *request);

/* The same for `count` of them, all or none. */
int pin_worker_submit(
	struct pin_worker *worker, struct pinion_request *const *requests, uint32_t count);

/*
 * Elsewhere: 0 if all can be submitted, and then they are the library's. Takes
 * back what it did if one cannot.
 */
int pin_flight_claim(struct pinion_request *const *requests, uint32_t count);
void pin_flight_disclaim(struct pinion_request *const *requests, uint32_t count);

/* Puts a claimed one, which was admitted, on the inbox of `target`. */
void pin_flight_post(struct pin_worker *target, struct pinion_request *request);

/*
 * Any thread: 0, or -EALREADY. *out_must_post: the caller must put it on the
 * inbox of worker *out_index. `worker` is the calling one or NULL.
 */
int pin_flight_cancel(struct pin_shared *shared, struct pin_worker *worker,
	struct pinion_request *request, bool *out_must_post, uint32_t *out_index);

/* Whether `task` is a request's message rather than a task to be run. */
bool pin_flight_is_message(const struct pinion_task *task);

/* On the worker, from its inbox: does what the message says. */
void pin_flight_take(struct pin_worker *worker, struct pinion_task *task);

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

/* Submits what waits for room, in order, as far as there is some. */
void pin_flight_resume(struct pin_worker *worker);

/* One whose deadline, on the worker's wheel, has come; in the ring's lock. */
void pin_flight_expire(struct pin_worker *worker, struct pin_timer *timer);

/* On the worker: it has none. */
bool pin_flight_is_over(const struct pin_worker *worker);

/* Asks for the end of all there is; nothing starts any more. */
void pin_flight_stop(struct pin_worker *worker);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Offers: requests that were submitted from outside, and sent to one worker,
 * but that any may begin.
 *
 * They are dealt out in turns, so that all rings are used. A worker takes its
 * own at the start of a loop, before it runs anything, so none waits behind a
 * task that was there already; where it is stuck they stay in its queue, which
 * others may take from as well: the sentry finds them there and wakes a
 * sleeper, who begins them on its own ring. What a worker has begun stays with
 * its ring.
 *
 * Who offers something to a worker that is awake makes sure that the sentry is:
 *
 *     who offers                          sentry
 *     a  push                             1  word := ASLEEP
 *     b  the worker is parked: wake it    2  seq_cst fence
 *     c  else: seq_cst fence              3  some worker is not parked:
 *     d  word is ASLEEP: tell                word := AWAKE, look again later
 *
 * [OFFERS-1] c against 2: of two fences one is first; either d sees that the
 * sentry sleeps, or the sentry sees in 3 the worker that was seen awake in b.
 * [PARK-1] is what a and b are for a worker that goes to sleep.
 *
 * A cancel of many goes from worker to worker and ends what was submitted
 * before it. An offer must not move past it, from a worker that it has yet to
 * see to one that it has seen; so nothing is adopted while there is such a
 * cancel (`cancels`), and each worker it comes to first begins its own offers.
 * What a worker that has left was offered moves to the heir (wake.h), under a
 * lock that each thread takes which is about to move such a cancel there too:
 * so it comes behind the offers.
 * [OFFERS-2] it is counted (RMW) before it is sent -> a worker that it has
 * been to sees the count (acquire).
 *
 * Source: docs/decisions/stalls.md, "External submissions are queued on a
 * worker".
 */
#ifndef PIN_WORKER_REQUEST_OFFERS_H
#define PIN_WORKER_REQUEST_OFFERS_H

#include "runtime/worker/state.h"

/* Any thread but a worker's: leaves what is in `list`, not nothing, with it. */
void pin_offers_push(struct pin_worker *target, struct pin_list *list);

/* Oldest first; NULL: none. By the worker, or who adopts. */
struct pin_link *pin_offers_pop(struct pin_worker *target);

static inline bool pin_offers_is_empty(const struct pin_worker *worker)
{
	return pin_injector_is_empty(&worker->offers);
}

/* By another worker: it is stuck, and what it was offered may be taken. */
bool pin_offers_may_adopt(const struct pin_worker *worker);

/* From before a cancel of many is sent until it has been everywhere. */
void pin_offers_hold(struct pin_shared *shared);
void pin_offers_release(struct pin_shared *shared);

#endif

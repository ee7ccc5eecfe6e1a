/* SPDX-License-Identifier: MIT */
/*
 * How a worker leaves while its runtime goes on: when a crew becomes smaller
 * (api/internal.h).
 *
 * A worker that is asked to leave takes nothing more of what others may run as
 * well. What it has of that, in its LIFO slot, its deque, on its wheel of
 * timers, it gives to all, and a wake that was meant for it to another. What is
 * bound to it, waits that its tasks have begun, requests, tasks in its inbox,
 * credit that is being granted to it, it brings to an end; it sleeps for that
 * without being in the parked set, in its ring if anything is in flight there.
 * When nothing is left it gives back the credit that it kept and goes OUT, and
 * its thread ends.
 *
 *     IN       it serves its lanes
 *     LEAVING  asked to go; it runs what is bound to it
 *     OUT      gone; its place may be taken by another thread
 *
 * Its inbox and its offers stay, since others may have found the worker before.
 * Who leaves something there and finds it OUT takes all of it and gives it to
 * the heir, a worker that never leaves. (If it then finds that another thread
 * has come in the meantime, it gives back what was in the inbox: some of it may
 * be bound to that one.)
 *
 *     pusher                           worker
 *     a  push into the inbox           1  service := OUT
 *     b  seq_cst fence                 2  seq_cst fence
 *     c  service is OUT: forward       3  forward
 *
 * [RETIRE-1] a-b-c against 1-2-3: of two fences one is first; either the pusher
 * sees OUT or the worker sees what was pushed. Without either, it would stay
 * there until a next worker comes. Both may take: the inbox is taken as one.
 * [RETIRE-2] who resizes: service := LEAVING, then a wake, as for any work:
 * [PARK-1], [PARK-2].
 *
 * Its rings go as well: the next thread makes its own, as a ring is its
 * thread's. Others may still use them then, a waker that has yet to ring the
 * doorbell, and the sentry. So who resizes joins the thread and waits for them:
 *
 *     worker                     waker                 resizer
 *     PARK_RING                  sets NOTIFIED there
 *     1  finds NOTIFIED:         a  rings the          i   joins the thread
 *          rings_due += 1              doorbell        ii  rung = rings_due
 *        …, OUT, thread ends     b  rung += 1          iii frees the ring
 *
 * [RETIRE-3] of those that notify a sleeper in its ring one finds it so, and
 * rings; the worker counts that when it is up (1), the waker when it has rung
 * (b, release), and ii (acquire) waits for all that rang. Else a doorbell would
 * ring in another's file descriptor. The sentry looks at rings under a lock
 * (`rings_lock`), as far as they are open, and they are closed under it.
 *
 * What stays with the place is the arena, as pools may be in it, and its CPU.
 *
 * Two things a worker does as the last of several, and so once more on its way
 * out: it hands on a wake by which it was counted as a searcher [SEARCH-1], and
 * it looks whether all is over [END-1], as its last task may have been the last
 * of all, with the others asleep.
 *
 * Called on the worker.
 */
#ifndef PIN_WORKER_RETIRE_H
#define PIN_WORKER_RETIRE_H

#include "runtime/worker/state.h"

static inline bool pin_retire_is_asked(const struct pin_worker *worker)
{
	return pin_load_acquire_u32(&worker->service) != PIN_SERVICE_IN; /* [RETIRE-2] */
}

/* By who resizes, of a worker whose thread was joined: every doorbell rang. */
static inline bool pin_retire_has_rung(const struct pin_worker *worker)
{
	return pin_load_acquire_u32(&worker->rung) == worker->rings_due; /* [RETIRE-3] */
}

/* Gives to others what they may run. Again and again is fine. */
void pin_retire_hand_over(struct pin_worker *worker);

/* After that. False: something is bound to it. */
bool pin_retire_try_leave(struct pin_worker *worker);

/* Until there is something for it alone. */
void pin_retire_sleep(struct pin_worker *worker);

#endif

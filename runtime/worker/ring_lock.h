/* SPDX-License-Identifier: MIT */
/*
 * Remote reaping: another worker submits and reaps in the ring of a stalled
 * one.
 *
 * Usually a ring is its worker's alone (SINGLE_ISSUER, DEFER_TASKRUN), and its
 * completions wait while a task blocks or computes there. With `ring_sharing`
 * the ring is set up without either, so that completions get into its queue
 * whatever the worker does, and a worker that has found nothing else submits
 * gathered entries in the ring of a stalled one and reaps it. The tasks of
 * completed requests are then tasks like any other, on whichever worker.
 *
 * For that ring, requests in flight and their deadlines have a lock, which
 * costs the worker no locked instruction (queue/biased_lock.h). The worker is
 * in it while it touches any of them, also while it sleeps in the ring; others
 * go away then. Without `ring_sharing` nothing of this is done.
 *
 *     worker                              remote reaper
 *     a  no task, so: park, publish       1  not parked, ends no task, and
 *     b  nothing seen: go to sleep           its ring has something
 *     c  enter the lock                   2  take the lock
 *     d  was notified: leave again        3  submit, reap
 *     e  wait in the ring                 4  release the lock
 *
 * Between a and c the remote reaper may come and reap the very doorbell that
 * was to end the wait in e. [REAP-1] a ringing thread stores its token first,
 * and the remote reaper is out of the lock before the worker is in: so it finds
 * it in d. (Ringing threads are in pin_wake_worker() and its like, in
 * worker/wake.c.)
 *
 * The same holds for the room that another worker makes: the worker checks it
 * in the lock, when it chooses how to sleep and again in d, for requests of its
 * own that have to wait for some.
 *
 * Values that the watchdog and other workers read without the lock are hints:
 * [REAP-2] the worker opens the ring (release) when it is set up -> another
 * that reads it loads that (acquire), and finds its queues mapped.
 *
 * Source: docs/decisions/rings.md, "Other workers can reap the ring of a
 * stalled worker".
 */
#ifndef PIN_WORKER_RING_LOCK_H
#define PIN_WORKER_RING_LOCK_H

#include "runtime/base/check.h"
#include "runtime/worker/state.h"

/* On the worker, with its ring set up; the ring is its own so far. */
static inline void pin_remote_reap_open(struct pin_worker *worker)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	PIN_DCHECK(worker->ring.is_initialised);
	pin_store_release_u32(&worker->ring_is_open, 1); /* [REAP-2] */
}

/* Publishes the ring's state at the end of the lock, for readers without it. */
static inline void pin_remote_reap_publish(struct pin_worker *worker)
{
	uint32_t count = pin_ring_unsubmitted(&worker->ring);

	if (pin_load_relaxed_u32(&worker->gathered_count) != count) {
		pin_store_relaxed_u32(&worker->gathered_count, count);
	}
}

/* By the worker, who must not be in it. */
static inline void pin_remote_reap_enter(struct pin_worker *worker)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	if (PIN_UNLIKELY(worker->shares_ring)) {
		pin_biased_enter(&worker->ring_lock, worker->shared->host);
	}
}

static inline void pin_remote_reap_leave(struct pin_worker *worker)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	if (PIN_UNLIKELY(worker->shares_ring)) {
		pin_remote_reap_publish(worker);
		pin_biased_leave(&worker->ring_lock);
	}
}

/* The same by another worker; false: not now. */
static inline bool pin_remote_reap_take(struct pin_worker *worker)
{
	PIN_DCHECK(!pin_worker_is_current(worker));
	PIN_DCHECK(worker->shares_ring);
	return pin_biased_take(&worker->ring_lock, worker->shared->host);
}

static inline void pin_remote_reap_release(struct pin_worker *worker)
{
	PIN_DCHECK(!pin_worker_is_current(worker));
	pin_remote_reap_publish(worker);
	pin_biased_release(&worker->ring_lock);
}

/* Entries that have not been submitted; on the worker it is no guess. */
static inline bool pin_remote_reap_has_gathered(const struct pin_worker *worker)
{
	if (PIN_LIKELY(!worker->shares_ring)) {
		return pin_ring_unsubmitted(&worker->ring) > 0;
	}
	return pin_load_relaxed_u32(&worker->gathered_count) > 0;
}

/* By the worker: pin_ring_poll() would find something to do. */
static inline bool pin_remote_reap_has_work(const struct pin_worker *worker)
{
	if (PIN_LIKELY(!worker->shares_ring)) {
		return pin_ring_has_work(&worker->ring);
	}
	return pin_remote_reap_has_gathered(worker) || pin_ring_has_completions(&worker->ring) ||
		pin_sync_waits_are_due(&worker->ring);
}

/* By the worker, in it: requests that wait for room in the ring can go on. */
static inline bool pin_remote_reap_has_room_for_more(const struct pin_worker *worker)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	return PIN_UNLIKELY(!pin_request_list_is_empty(&worker->waiting)) &&
		pin_ring_room(&worker->ring) > 0;
}

/* By any other thread: there is something in it that others may reap. */
static inline bool pin_remote_reap_is_wanted(const struct pin_worker *worker)
{
	PIN_DCHECK(!pin_worker_is_current(worker));
	return worker->shares_ring &&
		pin_load_acquire_u32(&worker->ring_is_open) != 0 && /* [REAP-2] */
		pin_remote_reap_has_work(worker);
}

#endif

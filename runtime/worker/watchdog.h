/* SPDX-License-Identifier: MIT */
/*
 * The watchdog: work that waits for a stuck worker starts elsewhere.
 *
 * A worker wakes sleepers for its spawns when that is worth a wake, and at the
 * end of its turn. A task that queues less and then blocks, or computes for
 * long, would keep it to itself all the while: in its deque, in its LIFO slot,
 * on its wheel of timers. The watchdog is a thread of its own that looks at
 * workers twice in `watchdog_us`. A worker that has been awake, has ended no
 * task since the last check and has something that others may run, is stuck;
 * the watchdog wakes a sleeper, which finds it as any searcher does.
 *
 * No worker could do it instead: each may be stuck itself, or be woken by its
 * completions all the time, and would have to hand the duty on at every wake.
 *
 * While all workers sleep, so does the watchdog, without a timeout. The first
 * worker that keeps something to itself wakes it, once for all:
 *
 *     worker                              watchdog
 *     a  parker := RUNNING                1  word := ASLEEP
 *     b  seq_cst fence                    2  seq_cst fence
 *     c  word is ASLEEP: must notify,     3  some worker is not parked:
 *        before it keeps anything            word := AWAKE, look again later
 *     d  notify: ASLEEP -> AWAKE, wake    4  sleep while the word is ASLEEP
 *
 * [WATCHDOG-1] b against 2: of two fences one is first; either the worker knows
 * in c that the watchdog sleeps, or the watchdog sees it awake in 3 and stays.
 * So a worker checks once when it gets up, and spawning costs it a test of a
 * flag of its own. A worker that finds AWAKE in d is seen in the next 3 as
 * well. The word is changed by read-modify-write only, and compared by the
 * kernel before a sleep, so neither d nor the end of the runtime is missed.
 *
 * Not covered, since no other may run it: work in a worker's inbox or ready
 * list, and completions in its ring unless others may reap it (ring_lock.h).
 * Threads that queue submissions on a worker for any to begin wake it
 * themselves: request_external.c.
 *
 * The same thread looks for tasks that do not end, by the clock:
 * watchdog.c.
 *
 * Source: docs/decisions/waking.md, "A watchdog finds tasks kept by a stalled
 * worker".
 */
#ifndef PIN_WORKER_WATCHDOG_H
#define PIN_WORKER_WATCHDOG_H

#include "runtime/base/check.h"
#include "runtime/worker/state.h"

enum pin_watchdog_state {
	PIN_WATCHDOG_AWAKE = 0,	 /* looks again soon, moves it to ASLEEP; or there is none */
	PIN_WATCHDOG_ASLEEP = 1, /* a worker moves it to AWAKE, to notify it */
	PIN_WATCHDOG_ENDED = 2,	 /* from either, by stop; the last */
};

/* Decides whether there is to be one; before workers are set up. */
void pin_watchdog_init(struct pin_shared *shared);

/* After the workers' threads. Errors: those of starting a thread. */
int pin_watchdog_start(struct pin_shared *shared);

/*
 * After the workers' threads have ended. Accepts a watchdog that was not
 * started.
 */
void pin_watchdog_stop(struct pin_shared *shared);

/* Step d, by the worker. */
void pin_watchdog_tell(struct pin_worker *worker);

/*
 * After a fence, by a thread that left something with a worker that is awake.
 */
void pin_watchdog_tell_of_other(struct pin_shared *shared);

static inline bool pin_watchdog_must_tell(const struct pin_worker *worker)
{
	return (pin_lifo_closed_for(&worker->lifo) & PIN_SLOW_REASON_TELL) != 0;
}

/*
 * By a worker that is about to leave something in its own queues, perhaps
 * without a wake.
 */
static inline void pin_watchdog_note_kept(struct pin_worker *worker)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	if (PIN_UNLIKELY(pin_watchdog_must_tell(worker))) {
		pin_watchdog_tell(worker);
	}
}

/* By the worker: whether to wake the watchdog before anything is kept. */
static inline void pin_watchdog_set_must_tell(struct pin_worker *worker, bool must_tell)
{
	if (must_tell && !pin_watchdog_must_tell(worker)) {
		pin_lifo_close(&worker->lifo, PIN_SLOW_REASON_TELL);
	} else if (!must_tell && pin_watchdog_must_tell(worker)) {
		pin_lifo_open(&worker->lifo, PIN_SLOW_REASON_TELL);
	}
}

/* Steps b and c, by a worker that has got up. */
static inline void pin_watchdog_note_awake(struct pin_worker *worker)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	if (worker->shared->has_watchdog) {
		pin_fence_seq_cst(); /* [WATCHDOG-1] */
		pin_watchdog_set_must_tell(worker,
			pin_load_relaxed_u32(&worker->shared->watchdog) ==
				PIN_WATCHDOG_ASLEEP); /* [WATCHDOG-1] */
	}
}

/* The thread. */
void *pin_watchdog_main(void *shared);

/* ---- watchdog stall ---- */

/*
 * Stalled tasks: a task that has run for longer than `stall_ms` without a sign
 * of progress is named in the log, once, with its worker and lane.
 *
 * The watchdog's thread checks twice in that time (worker/watchdog.h), also
 * while all workers sleep, since the begin of a task sends it no wake. So tasks
 * pay nothing for it but the store of what they are, which failures need as
 * well.
 *
 * Signs of life of a worker: it ends a task, parks, asks a device over and
 * over, or its job's progress changes (pinion_job_set_progress).
 *
 * Stalled rings: completions that have waited for longer than `cq_stall_us`
 * while their worker was awake and reaped none. It is in a long task: with
 * deferred task work they do not even appear until it asks, and no other thread
 * may do so. Reported once for each such wait, and counted with its length, as
 * far as checks show. Others see by loads alone that a ring owes completions
 * and how many were reaped, so the worker pays nothing. Rings that have none
 * waiting at one check are not stalled.
 *
 * The rings beside the first (request.h) count with it. Of a polled one no
 * thread knows the completions until the worker asks; so requests in flight
 * there wait if the worker has not entered the kernel for that long. A worker
 * that asks again and again is not in a task, however long the device takes.
 *
 * [STALL-1] the worker opens its wide ring (release) when it is set up -> the
 * watchdog loads that (acquire) and finds its queues mapped. They stay so until
 * the watchdog's thread has ended.
 */

static inline bool pin_stall_are_rings_watched(const struct pin_shared *shared)
{
	return shared->tuning.cq_stall_us != 0 && !shared->is_fallback;
}

static inline bool pin_stall_is_watched(const struct pin_shared *shared)
{
	return shared->tuning.stall_ms != 0 || pin_stall_are_rings_watched(shared);
}

/* By the worker, where it ends no task and is alive nevertheless. */
static inline void pin_stall_note_life(struct pin_worker *worker)
{
	PIN_DCHECK(pin_worker_is_current(worker)); /* it is the word's only writer */
	/* Relaxed, and its own: only the change matters. */
	pin_store_relaxed_u32(&worker->life, pin_load_relaxed_u32(&worker->life) + 1);
}

/* By the watchdog. Looks if it is time; returns when to come again. */
uint64_t pin_stall_look(struct pin_shared *shared);

#endif

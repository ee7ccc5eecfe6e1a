/* SPDX-License-Identifier: MIT */
/*
 * The watchdog: work that waits for a stalled worker starts elsewhere.
 *
 * A worker wakes sleepers for its spawns when that is worth a wake, and at the
 * end of its turn. A task that queues less and then blocks, or computes for
 * long, would keep it to itself all the while: in its deque, in its LIFO slot,
 * on its wheel of timers. The watchdog is a thread of its own that checks the
 * workers twice in `watchdog_us`. A worker that has been awake, has ended no
 * task since the last check and has something that others may run, is stalled;
 * the watchdog wakes a sleeper, which finds it as any searcher does.
 *
 * No worker could do it instead: each may be stalled itself, or be woken by its
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
 * The same thread looks for stalls by the clock (stall.c), for as long as any
 * worker shows signs of life. So it has a state in between: it dozes. A worker
 * that keeps something then treats it as asleep, all others as awake. A worker
 * that gets up beside a watchdog that is fast asleep wakes it at once, to doze:
 *
 *     worker                              watchdog
 *     a  parker := RUNNING                1  word := ASLEEP
 *     b  seq_cst fence                    2  seq_cst fence
 *     c  word is ASLEEP: -> DOZING, wake  3  some worker is not parked:
 *     d  its tasks                           word := DOZING, look again later
 *
 * [WATCHDOG-2] b against 2, as in [WATCHDOG-1]: else a task that never ends
 * could go on unseen. It falls asleep only when no worker has shown a sign of
 * life between two checks, so a worker that sleeps for less than `stall_ms`
 * never wakes it.
 *
 * Source: docs/decisions/waking.md, "A watchdog finds tasks kept by a stalled
 * worker".
 */
#ifndef PIN_WORKER_WATCHDOG_H
#define PIN_WORKER_WATCHDOG_H

#include "runtime/base/check.h"
#include "runtime/worker/stall.h"
#include "runtime/worker/state.h"

enum pin_watchdog_state {
	PIN_WATCHDOG_AWAKE = 0,	 /* looks again soon, moves it to a deeper one; or there is none */
	PIN_WATCHDOG_ASLEEP = 1, /* a worker moves it to AWAKE or DOZING, to notify it */
	PIN_WATCHDOG_ENDED = 2,	 /* from any, by stop; the last */
	PIN_WATCHDOG_DOZING = 3, /* looks for stalls: as ASLEEP, or it moves it there itself */
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

/* A worker has got up: to watch it for stalls. */
void pin_watchdog_tell_awake(struct pin_shared *shared);

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
	struct pin_shared *shared = worker->shared;
	uint32_t state;

	PIN_DCHECK(pin_worker_is_current(worker));
	if (!shared->has_watchdog_listener) {
		return;
	}
	pin_fence_seq_cst();				 /* [WATCHDOG-1] [WATCHDOG-2] */
	state = pin_load_relaxed_u32(&shared->watchdog); /* [WATCHDOG-1] [WATCHDOG-2] */
	if (PIN_UNLIKELY(state == PIN_WATCHDOG_ASLEEP && pin_stall_are_tasks_watched(shared))) {
		pin_watchdog_tell_awake(shared);
	}
	pin_watchdog_set_must_tell(worker,
		shared->has_watchdog &&
			(state == PIN_WATCHDOG_ASLEEP || state == PIN_WATCHDOG_DOZING));
}

/* The thread. */
void *pin_watchdog_main(void *shared);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The sentry sees to it that what waits behind a stuck worker starts elsewhere.
 *
 * A worker tells sleepers of what it spawns when that is worth a wake, and at
 * the end of its turn. A task that queues less and then blocks, or computes for
 * long, would keep it to itself all the while: in its deque, in its LIFO slot,
 * on its wheel of timers. The sentry is a thread of its own that looks at
 * workers twice in `watchdog_us`. Whoever has been awake, has ended no task
 * since the last look and has something that others may run, is stuck; the
 * sentry wakes a sleeper, who finds it as any searcher does.
 *
 * No worker could do it instead: each may be stuck itself, or be woken by its
 * completions all the time, and would have to hand the duty on at every wake.
 *
 * While all workers sleep, so does the sentry, without a timeout. It is told to
 * get up by the first worker that keeps something to itself, once for all:
 *
 *     worker                              sentry
 *     a  parker := RUNNING                1  word := ASLEEP
 *     b  seq_cst fence                    2  seq_cst fence
 *     c  word is ASLEEP: must tell,       3  some worker is not parked:
 *        before it keeps anything            word := AWAKE, look again later
 *     d  tell: ASLEEP -> AWAKE, wake      4  sleep while the word is ASLEEP
 *
 * [SENTRY-1] b against 2: of two fences one is first; either the worker knows
 * in c that the sentry sleeps, or the sentry sees it awake in 3 and stays. So a
 * worker looks once when it gets up, and spawning costs it a look at a flag of
 * its own. Who finds AWAKE in d is seen in the next 3 likewise.
 * The word is changed by read-modify-write only, and compared by the kernel
 * before a sleep, so neither d nor the end of the runtime is missed.
 *
 * Not told, since nobody else may run it: what lies in a worker's inbox or
 * ready list, and what completes in its ring unless others may reap it
 * (ring_lock.h). What others leave with a worker for any to begin they tell
 * themselves: request_offers.c.
 *
 * The same thread looks for tasks that do not end, by the clock:
 * watchdog.c.
 *
 * Source: docs/decisions/stalls.md, "A watchdog finds tasks kept by a stalled
 * worker".
 */
#ifndef PIN_WORKER_WATCHDOG_H
#define PIN_WORKER_WATCHDOG_H

#include "runtime/worker/state.h"

enum pin_sentry_state {
	PIN_SENTRY_AWAKE = 0,  /* looks again soon, moves it to ASLEEP; or there is none */
	PIN_SENTRY_ASLEEP = 1, /* a worker moves it to AWAKE, by tell */
	PIN_SENTRY_ENDED = 2,  /* from either, by stop; the last */
};

/* Decides whether there is to be one; before workers are set up. */
void pin_sentry_init(struct pin_shared *shared);

/* After the workers' threads. Errors: those of starting a thread. */
int pin_sentry_start(struct pin_shared *shared);

/* After the workers' threads have ended. Accepts one that was not started. */
void pin_sentry_stop(struct pin_shared *shared);

/* Step d, by the worker. */
void pin_sentry_tell(struct pin_worker *worker);

/* Behind a fence, by who left something with a worker that is awake. */
void pin_sentry_tell_of_other(struct pin_shared *shared);

static inline bool pin_sentry_must_tell(const struct pin_worker *worker)
{
	return (pin_lifo_closed_for(&worker->lifo) & PIN_DETOUR_TELL) != 0;
}

/*
 * By a worker that is about to leave something in its own queues, of which it
 * may tell nobody.
 */
static inline void pin_sentry_note_kept(struct pin_worker *worker)
{
	if (PIN_UNLIKELY(pin_sentry_must_tell(worker))) {
		pin_sentry_tell(worker);
	}
}

/* By the worker: whether the sentry is to be told before anything is kept. */
static inline void pin_sentry_set_must_tell(struct pin_worker *worker, bool must_tell)
{
	if (must_tell && !pin_sentry_must_tell(worker)) {
		pin_lifo_close(&worker->lifo, PIN_DETOUR_TELL);
	} else if (!must_tell && pin_sentry_must_tell(worker)) {
		pin_lifo_open(&worker->lifo, PIN_DETOUR_TELL);
	}
}

/* Steps b and c, by a worker that has got up. */
static inline void pin_sentry_note_awake(struct pin_worker *worker)
{
	if (worker->shared->has_sentry) {
		pin_fence_seq_cst(); /* [SENTRY-1] */
		pin_sentry_set_must_tell(worker,
			pin_load_relaxed_u32(&worker->shared->sentry) ==
				PIN_SENTRY_ASLEEP); /* [SENTRY-1] */
	}
}

/* The thread. */
void *pin_sentry_main(void *shared);

/* ---- watchdog stall ---- */

/*
 * Stalled tasks: one that has run for longer than `stall_ms` without a sign of
 * progress is named in the log, once, with its worker and lane.
 *
 * The sentry's thread looks twice in that time (worker/watchdog.h), also while
 * all workers sleep, since nobody tells it that a task begins. So tasks pay
 * nothing for it but the store of what they are, which failures need as well.
 *
 * Signs of life of a worker: it ends a task, parks, asks a device over and
 * over, or its job's progress changes (pinion_job_set_progress).
 *
 * Stalled rings: completions that have waited for longer than `cq_stall_us`
 * while their worker was awake and reaped none. It is in a long task: with
 * deferred task work they do not even appear until it asks, and nobody else may
 * do so. Told once for each such wait, and counted with how long it lasted, as
 * far as looks tell. Others see by loads alone that a ring owes completions and
 * how many were reaped, so the worker pays nothing. Rings that have none
 * waiting at one look are not stalled.
 *
 * The rings beside the first (request.h) count with it. Of a polled one
 * nobody knows what has completed until the worker asks; so what is in flight
 * there waits if the worker has not entered the kernel for so long. One that
 * asks again and again is not in a task, however long the device takes.
 *
 * [STALL-1] the worker opens its wide ring (release) when it is set up -> the
 * sentry loads that (acquire) and finds its queues mapped. They stay so until
 * the sentry's thread has ended.
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
	/* Relaxed, and its own: only the change matters. */
	pin_store_relaxed_u32(&worker->life, pin_load_relaxed_u32(&worker->life) + 1);
}

/* By the sentry. Looks if it is time; returns when to come again. */
uint64_t pin_stall_look(struct pin_shared *shared);

#endif

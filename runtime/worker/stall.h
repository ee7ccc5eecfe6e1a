/* SPDX-License-Identifier: MIT */
/*
 * The stall watch: names each stall in the log, once, with its cause as far as
 * that can be seen, and counts it.
 *
 *     a task      that has run for longer than `stall_ms` without a sign of
 *                 progress, with its worker and lane, and what it waits for
 *     a device    of whose requests none has completed for ten times as long:
 *                 device_stall.h
 *     a lane      in which tasks wait and none has begun for ten times as long
 *     a ring      whose completions have waited for longer than `cq_stall_us`
 *
 * The watchdog's thread looks twice in `stall_ms`, and not at all while all
 * workers sleep (watchdog.h). No worker could look instead: it may be the
 * stalled one. So a runtime with one worker is watched as all others are. Tasks
 * pay nothing for it but the store of their function, which failures need as
 * well.
 *
 * Signs of life of a worker: it ends a task, parks, asks a device over and
 * over, or its job's progress changes (pinion_job_set_progress). A worker that
 * could run but had a CPU for less than a quarter of the time is not stalled:
 * the machine has more to do. A time in which the watchdog itself did not run
 * counts for no worker: the process was stopped, or its machine.
 *
 * Stalled rings: completions that have waited for longer than `cq_stall_us`
 * while their worker was awake and reaped none. The worker is in a long task:
 * with deferred task work completions do not even appear until it asks, and no
 * other thread may do so. Each such wait is reported once, and counted with its
 * length, as far as checks show. Others see by loads alone that a ring owes
 * completions and how many were reaped, so the worker pays nothing. Rings that
 * have none waiting at one check are not stalled.
 *
 * Secondary rings (request.h) count with the first. No thread knows the
 * completions of a polled ring until the worker asks; so requests in flight
 * there wait if the worker has not entered the kernel for that long. A worker
 * that asks again and again is not in a task, however long the device takes.
 *
 * [STALL-1] the worker opens its command ring (release) when it is set up ->
 * the watchdog loads that (acquire) and finds its queues mapped. They stay so
 * until the watchdog's thread has ended.
 */
#ifndef PIN_WORKER_STALL_H
#define PIN_WORKER_STALL_H

#include "runtime/base/check.h"
#include "runtime/worker/state.h"

static inline bool pin_stall_are_rings_watched(const struct pin_shared *shared)
{
	return shared->tuning.cq_stall_us != 0 && !shared->is_fallback;
}

/* And devices, and lanes. */
static inline bool pin_stall_are_tasks_watched(const struct pin_shared *shared)
{
	return shared->tuning.stall_ms != 0;
}

static inline bool pin_stall_is_watched(const struct pin_shared *shared)
{
	return pin_stall_are_tasks_watched(shared) || pin_stall_are_rings_watched(shared);
}

/* By the worker, where it ends no task and is alive nevertheless. */
static inline void pin_stall_note_life(struct pin_worker *worker)
{
	PIN_DCHECK(worker == pin_worker_self); /* it is the word's only writer */
	/* Relaxed, and its own: only the change matters. */
	pin_store_relaxed_u32(&worker->life, pin_load_relaxed_u32(&worker->life) + 1);
}

/*
 * By the watchdog. Looks if it is time; returns when to come again. Without
 * `is_watching` at rings only: all workers sleep.
 */
uint64_t pin_stall_look(struct pin_shared *shared, bool is_watching);

/*
 * After the threads of the workers and the watchdog have ended: nothing is
 * stalled any more, and the metrics page has that.
 */
void pin_stall_end(struct pin_shared *shared);

/* Between the last two checks no worker has shown a sign of life. */
static inline bool pin_stall_is_quiet(const struct pin_shared *shared)
{
	return shared->stalls.is_quiet;
}

#endif

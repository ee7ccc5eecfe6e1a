/* SPDX-License-Identifier: MIT */
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
 * The rings beside the first (request_aside.h) count with it. Of a polled one
 * nobody knows what has completed until the worker asks; so what is in flight
 * there waits if the worker has not entered the kernel for so long. One that
 * asks again and again is not in a task, however long the device takes.
 *
 * [STALL-1] the worker opens its wide ring (release) when it is set up -> the
 * sentry loads that (acquire) and finds its queues mapped. They stay so until
 * the sentry's thread has ended.
 */
#ifndef PIN_WORKER_WATCHDOG_STALL_H
#define PIN_WORKER_WATCHDOG_STALL_H

#include "runtime/worker/state.h"

static inline bool pin_stall_are_rings_watched(const struct pin_shared *shared)
{
	return shared->config.cq_stall_us != 0 && !shared->is_fallback;
}

static inline bool pin_stall_is_watched(const struct pin_shared *shared)
{
	return shared->config.stall_ms != 0 || pin_stall_are_rings_watched(shared);
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

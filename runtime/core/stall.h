/* SPDX-License-Identifier: MIT */
/*
 * Stalled tasks: one that has run for longer than `stall_ms` without a sign of
 * progress is named in the log, once, with its worker and lane.
 *
 * The sentry's thread looks twice in that time (core/sentry.h), also while all
 * workers sleep, since nobody tells it that a task begins. So tasks pay nothing
 * for it but the store of what they are, which failures need as well.
 *
 * Signs of life of a worker: it ends a task, parks, asks a device over and
 * over, or its job's progress changes (pinion_job_set_progress).
 */
#ifndef PIN_CORE_STALL_H
#define PIN_CORE_STALL_H

#include "runtime/core/worker_state.h"

static inline bool pin_stall_is_watched(const struct pin_shared *shared)
{
	return shared->config.stall_ms != 0;
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

/* SPDX-License-Identifier: MIT */
/*
 * How tasks get to a worker: spawned on it, posted to it, left for any.
 *
 * What a worker spawns goes into its own queue, where it is not told to others
 * at once: waking costs more than most tasks. A sleeper is woken when so many
 * have been spawned, or when what waits is longer than a wake takes.
 *
 * Called on the worker that is the first argument, unless said otherwise.
 *
 * Source: docs/DECISIONS.md, "A hoard is worth waking for".
 */
#ifndef PIN_CORE_SPAWN_H
#define PIN_CORE_SPAWN_H

#include "runtime/core/sentry.h"
#include "runtime/core/wake.h"
#include "runtime/core/worker_state.h"

#include <errno.h>
#include <pinion/timer.h>

/*
 * Begins to stop: refuses work, cancels what is queued, wakes everybody. Any
 * thread.
 */
void pin_shared_stop(struct pin_shared *shared);

/* Into the worker's deque, or half of that to the injector if it is full. */
void pin_spawn_enqueue(struct pin_worker *worker, struct pin_link *link);

/* To the queue of its lane; of normal: as above. */
void pin_spawn_route(struct pin_worker *worker, struct pin_link *link);

/* Queues tasks of any lanes, in order. -ESHUTDOWN: none. */
int pin_worker_spawn_lanes(
	struct pin_worker *worker, struct pinion_task *const *tasks, uint32_t count);

/* Queues `count` tasks likewise. -ESHUTDOWN: none. */
int pin_worker_spawn_batch(
	struct pin_worker *worker, struct pinion_task *const *tasks, uint32_t count);

/*
 * As pin_worker_spawn(), but never refused: when the runtime is being stopped
 * the task is given to its `cancel`.
 */
void pin_worker_respawn(struct pin_worker *worker, struct pinion_task *task);

/* Queues a task for any worker; `worker` is the calling one. -ESHUTDOWN. */
int pin_worker_spawn_shared(struct pin_worker *worker, struct pinion_task *task);

/* Queues a task that `target` and nobody else is to run. -ESHUTDOWN. */
int pin_worker_spawn_on(
	struct pin_worker *worker, struct pin_worker *target, struct pinion_task *task);

/* Starts a claimed timer on the calling worker. */
void pin_worker_timer_start(struct pin_worker *worker, struct pinion_timer *timer);

/* Tells `target` of a cancelled timer of its; `worker` calls, or NULL. */
void pin_worker_timer_cancelled(
	struct pin_worker *worker, struct pin_worker *target, struct pinion_timer *timer);

/*
 * Queues a task on the calling worker and nowhere else: the continuation of
 * something that owns the worker's buffers. Never refused.
 */
void pin_worker_spawn_bound(struct pin_worker *worker, struct pinion_task *task);

/* ---- inline, as every spawn passes through here; all calls come last ---- */

/* Whether somebody sleeps whom what waits here is worth waking. Returns 0. */
int pin_spawn_look(struct pin_worker *worker);

/* Full, or not any more. Returns 0. */
int pin_spawn_enqueue_slowly(struct pin_worker *worker, struct pin_link *link);

/* As pin_spawn_keep(), where the sentry has to be told before. */
int pin_spawn_after_telling(struct pin_worker *worker, struct pinion_task *task);

static PIN_INLINE int pin_spawn_note_enqueued(struct pin_worker *worker)
{
	return PIN_UNLIKELY(pin_hoard_note_spawn(&worker->hoard)) ? pin_spawn_look(worker) : 0;
}

static PIN_INLINE int pin_spawn_push(struct pin_worker *worker, struct pin_link *link)
{
	if (PIN_UNLIKELY(!pin_deque_push_known(&worker->deque, link))) {
		return pin_spawn_enqueue_slowly(worker, link);
	}
	return pin_spawn_note_enqueued(worker);
}

/* Where others may steal it; the sentry need not be told. Returns 0. */
static PIN_INLINE int pin_spawn_keep(struct pin_worker *worker, struct pinion_task *task)
{
	struct pin_link *link = pin_task_link(task);

	pin_meter_add(&worker->meter.tasks_spawned, 1);
	if (PIN_LIKELY(worker->uses_lifo)) {
		link = pin_lifo_replace(&worker->lifo, link);
		if (link == NULL) {
			return 0;
		}
	}
	return pin_spawn_push(worker, link);
}

/*
 * Queues a task of the normal lane on the calling worker, where others may
 * steal it. -ESHUTDOWN.
 */
static PIN_INLINE int pin_worker_spawn(struct pin_worker *worker, struct pinion_task *task)
{
	if (PIN_UNLIKELY(pin_shared_is_stopping(worker->shared))) {
		return -ESHUTDOWN;
	}
	if (PIN_UNLIKELY(worker->must_tell)) {
		return pin_spawn_after_telling(worker, task);
	}
	return pin_spawn_keep(worker, task);
}

#endif

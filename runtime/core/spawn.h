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

#include "runtime/core/worker_state.h"

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

/*
 * Queues a task of the normal lane on the calling worker, where others may
 * steal it. -ESHUTDOWN.
 */
int pin_worker_spawn(struct pin_worker *worker, struct pinion_task *task);

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

#endif

/* SPDX-License-Identifier: MIT */
/*
 * How tasks get to a worker: spawned on it, posted to it, left for any.
 *
 * A worker's spawns go into its own queue, without a wake for each: waking
 * costs more than most tasks. A sleeper is woken after a number of spawns, or
 * when the waiting tasks are longer than a wake takes.
 *
 * A task that was spawned alone, as into the LIFO slot, would wait for its
 * spawner, however long that goes on. So a spawn also wakes a sleeper if its
 * worker has woken none for a spawn lately (the pause of policy/wake_batch.h).
 * PIN_SLOW_REASON_ANNOUNCE closes the slot for that, so while the bit is not
 * set a spawn costs no further instruction:
 *
 *     spawner                              sleeper
 *     a  put the task into its queue       1  publish its bit
 *     b  the bit is set: no worker         2  seq_cst fence
 *        sleeps? clear it                  3  the first in its set sets the
 *     c  seq_cst fence                        bits of all that are awake,
 *     d  a sleeper: wake it, set the          then fence_all
 *        bit again                         4  look at the slots of all
 *
 * [ANNOUNCE-1] b-c-d against 1-2-3: a spawner that clears its bit beside a
 * worker that falls asleep sees it in d, or that worker sees the bit cleared in
 * 3. So while any worker sleeps the bit is set, except in a pause; then the
 * spawner sets it when it next reads the clock.
 * [ANNOUNCE-2] a-c-d against 1-2-4: a spawner that goes without a wake, as no
 * worker sleeps or another searches, has put its task before that worker looks
 * at the slots in 4. It does not sleep while one is filled whose owner runs no
 * task to its end meanwhile.
 *
 * Left to the watchdog: a task that spawns in a pause and goes on; and where
 * the slot is not used, a spawn in the instant in which the first worker falls
 * asleep.
 *
 * Called on the worker that is the first argument, unless said otherwise.
 *
 * Source: docs/decisions/waking.md, "Spawns wake a sleeper when they are worth
 * a wake".
 */
#ifndef PIN_WORKER_SPAWN_H
#define PIN_WORKER_SPAWN_H

#include "runtime/base/check.h"
#include "runtime/worker/events.h"
#include "runtime/worker/state.h"
#include "runtime/worker/wake.h"
#include "runtime/worker/watchdog.h"

#include <errno.h>
#include <pinion/timer.h>

/* Begins to stop: refuses work, cancels queued tasks, wakes all. Any thread. */
void pin_shared_stop(struct pin_shared *shared);

/* Into the worker's deque, or half of that to the injector if it is full. */
void pin_spawn_enqueue(struct pin_worker *worker, struct pin_link *link);

/*
 * Wakes a sleeper for a task that its worker may well run itself next, or for a
 * number of spawns, of which perhaps none is left. If that was in vain lately
 * it wakes one only now and then.
 */
void pin_spawn_tell_of_last(struct pin_worker *worker);

/* A sleeper was woken for this worker's queue: its spawns are announced. */
static inline void pin_spawn_note_told(struct pin_worker *worker)
{
	pin_deque_set_mark(&worker->deque, pin_wake_batch_note_told(&worker->wake_batch));
}

/* After a wake for its queue, before which `woken` was NULL. */
static inline void pin_spawn_count_told(struct pin_worker *worker)
{
	if (worker->woken != NULL) {
		pin_meter_add(&worker->meter.spawns_announced, 1);
	}
}

/* The next spawn checks whether any worker sleeps. */
static inline void pin_spawn_look_soon(struct pin_worker *worker)
{
	uint32_t unspent = pin_deque_until_mark(&worker->deque);

	PIN_DCHECK(pin_worker_is_current(worker));
	if (unspent > 0) {
		pin_deque_set_mark(
			&worker->deque, pin_wake_batch_look_soon(&worker->wake_batch, unspent));
	}
}

/*
 * Any thread: the worker's next spawn looks for a sleeper. Whether it would not
 * have.
 */
static inline bool pin_spawn_set_announce(struct pin_worker *worker)
{
	if ((pin_lifo_closed_for(&worker->lifo) & PIN_SLOW_REASON_ANNOUNCE) != 0) {
		return false;
	}
	pin_lifo_close(&worker->lifo, PIN_SLOW_REASON_ANNOUNCE); /* [ANNOUNCE-1] */
	return true;
}

/* By a worker that falls asleep, the first in its set; after its fence. */
void pin_spawn_set_announce_all(struct pin_worker *sleeper);

/* By the worker, which has got up. */
static inline void pin_spawn_note_awake(struct pin_worker *worker)
{
	if (worker->shared->announces) {
		(void)pin_spawn_set_announce(worker);
	}
}

/* The clock was read: the pause may be over. */
static inline void pin_spawn_note_time(struct pin_worker *worker)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	if (PIN_UNLIKELY(worker->now_ns >= worker->announce_ns)) {
		worker->announce_ns = PIN_NO_DEADLINE;
		(void)pin_spawn_set_announce(worker);
	}
}

/* To the queue of its lane; of normal: as above. */
void pin_spawn_route(struct pin_worker *worker, struct pin_link *link);

/* Queues tasks of any lanes, in order. -ESHUTDOWN: none. */
int pin_worker_spawn_lanes(
	struct pin_worker *worker, struct pinion_task *const *tasks, uint32_t count);

/* Queues `count` tasks, in order. -ESHUTDOWN: none. */
int pin_worker_spawn_batch(
	struct pin_worker *worker, struct pinion_task *const *tasks, uint32_t count);

/*
 * As pin_worker_spawn(), but never refused: when the runtime is being stopped
 * the task is given to its `cancel`.
 */
void pin_worker_respawn(struct pin_worker *worker, struct pinion_task *task);

/* Queues a task for any worker; `worker` is the calling one. -ESHUTDOWN. */
int pin_worker_spawn_shared(struct pin_worker *worker, struct pinion_task *task);

/* Queues a task that only `target` is to run. -ESHUTDOWN. */
int pin_worker_spawn_on(
	struct pin_worker *worker, struct pin_worker *target, struct pinion_task *task);

/* Starts a claimed timer on the calling worker. */
void pin_worker_timer_start(struct pin_worker *worker, struct pinion_timer *timer);

/* Notifies `target` of a cancelled timer of its; `worker` calls, or NULL. */
void pin_worker_timer_cancelled(
	struct pin_worker *worker, struct pin_worker *target, struct pinion_timer *timer);

/*
 * Queues a task on the calling worker and nowhere else, for work that owns the
 * worker's buffers and continues. Never refused.
 */
void pin_worker_spawn_bound(struct pin_worker *worker, struct pinion_task *task);

/* ---- inline, as every spawn passes through here; all calls come last ---- */

/* At the mark, or full; or not any more. Returns 0. */
int pin_spawn_push_slowly(struct pin_worker *worker, struct pin_link *link);

/* As pin_worker_spawn(), where the slot is closed. */
int pin_spawn_past_slot(struct pin_worker *worker, struct pinion_task *task);

static PIN_INLINE int pin_spawn_push(struct pin_worker *worker, struct pin_link *link)
{
	return PIN_LIKELY(pin_deque_push_known(&worker->deque, link))
		? 0
		: pin_spawn_push_slowly(worker, link);
}

/*
 * Queues a claimed task of the normal lane on the calling worker, where others
 * may steal it. -ESHUTDOWN: it is released.
 */
static PIN_INLINE int pin_worker_spawn(struct pin_worker *worker, struct pinion_task *task)
{
	struct pin_link *before;

	PIN_DCHECK(pin_worker_is_current(worker));
	PIN_DCHECK(pin_task_lane(task) == PINION_LANE_NORMAL);
	if (PIN_UNLIKELY(!pin_lifo_enter(&worker->lifo, PIN_LIFO_ALL))) {
		return pin_spawn_past_slot(worker, task);
	}
	PIN_TRACE3(spawn_local, worker->index, task, task->run);
	pin_meter_add(&worker->meter.tasks_spawned, 1);
	before = pin_lifo_exchange(&worker->lifo, pin_task_link(task));
	return PIN_LIKELY(before != NULL) ? pin_spawn_push(worker, before) : 0;
}

#endif

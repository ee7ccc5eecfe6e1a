/* SPDX-License-Identifier: MIT */
/*
 * The ways into a worker's own queues, and the decision whether a spawn is
 * worth a sleeper's wake-up.
 *
 * Every spawn on a worker ends here; the common one is inline in spawn.h, and
 * this file has its slow paths. policy/wake_batch.h has the arithmetic.
 */
#include "runtime/worker/spawn.h"
#include "runtime/base/check.h"
#include "runtime/worker/events.h"
#include "runtime/worker/lane.h"
#include "runtime/worker/state.h"
#include "runtime/worker/timer.h"
#include "runtime/worker/wait.h"
#include "runtime/worker/wake.h"
#include "runtime/worker/watchdog.h"
#include "runtime/worker/worker.h"

#include <errno.h>

void pin_shared_stop(struct pin_shared *shared)
{
	pin_fetch_or_seq_cst_u32(&shared->flags, PIN_SHARED_STOPPING);
	/* A worker that spawns looks at its own slot only. */
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		pin_lifo_close(&shared->workers[i].lifo, PIN_SLOW_REASON_STOPPING);
	}
	pin_gate_close(&shared->gate);
	pin_wake_all(shared);
	pin_room_close(shared);
	pin_wait_stop_pools(shared);
}

/* The older half and, last of all, the task that found no room. */
static PIN_APART PIN_COLD void overflow(struct pin_worker *worker, struct pin_link *link)
{
	struct pin_list half = {0};

	uint32_t count = pin_deque_pop_half(&worker->deque, &half);

	PIN_DCHECK(count <= worker->deque.capacity / 2);
	PIN_DCHECK((count == 0) == pin_list_is_empty(&half));
	pin_list_push(&half, link);
	pin_deque_go_deep(&worker->deque);
	pin_meter_add(&worker->meter.tasks_shared, count + 1); /* [QLIMIT-1] */
	pin_injector_push(&worker->shared->injector, &half);
	worker->woken = NULL;
	pin_wake_one(worker->shared, worker);
	pin_spawn_note_told(worker);
	pin_spawn_count_told(worker);
}

static void tell(struct pin_worker *worker)
{
	pin_spawn_note_told(worker);
	worker->woken = NULL;
	pin_wake_one(worker->shared, worker);
	pin_spawn_count_told(worker);
}

/*
 * Wakes a sleeper that is not needed for certain, and learns whether the last
 * one so woken has run anything since.
 */
static void tell_and_pause(struct pin_worker *worker)
{
	const struct pin_worker *before = worker->announced;
	/* First: the worker that is woken now may be the same, and quick. */
	bool is_vain = before != NULL &&
		pin_meter_read(&before->meter.tasks_run) == worker->announced_runs;

	tell(worker);
	if (worker->woken == NULL) {
		return;
	}
	pin_wake_batch_begin_pause(&worker->wake_batch, worker->shared->host->now_ns(), is_vain);
	worker->paused_runs = 0;
	worker->announced = worker->woken;
	worker->announced_runs = pin_meter_read(&worker->woken->meter.tasks_run);
}

void pin_spawn_tell_of_last(struct pin_worker *worker)
{
	if (PIN_UNLIKELY(pin_wake_batch_is_vain(&worker->wake_batch)) &&
		pin_wake_batch_is_paused(&worker->wake_batch, worker->shared->host->now_ns())) {
		pin_spawn_note_told(worker);
	} else {
		tell_and_pause(worker);
	}
}

/* ---- lone spawns ---- */

/*
 * No sleeper in sight: spawns go the short way until one falls asleep. False:
 * one does just now.
 */
static bool stop_announcing(struct pin_worker *worker)
{
	pin_lifo_open(&worker->lifo, PIN_SLOW_REASON_ANNOUNCE); /* [ANNOUNCE-1] */
	pin_fence_seq_cst();					/* [ANNOUNCE-1] [ANNOUNCE-2] */
	if (!pin_wake_sees_any_sleeper(worker->shared)) {	/* [ANNOUNCE-1] */
		return true;
	}
	(void)pin_spawn_set_announce(worker);
	return false;
}

/*
 * In a pause. A task that spawns again may go on for long, so its next spawn
 * checks anew; tasks that spawn once each are short, and their worker reads the
 * clock between them.
 */
static void wait_for_pause(struct pin_worker *worker)
{
	uint64_t runs = pin_meter_read(&worker->meter.tasks_run);

	if (worker->paused_runs != runs + 1 && worker->paused_runs != 0) {
		pin_lifo_open(&worker->lifo, PIN_SLOW_REASON_ANNOUNCE);
		worker->announce_ns = worker->wake_batch.pause_end_ns;
		worker->paused_runs = 0;
	} else {
		worker->paused_runs = runs + 1;
	}
}

/* After a spawn: wakes a sleeper for it if there is one and it is time. */
static PIN_APART void announce(struct pin_worker *worker, uint32_t reasons)
{
	struct pin_wake_batch *wake_batch = &worker->wake_batch;

	PIN_DCHECK(worker->shared->announces);
	if ((reasons & PIN_SLOW_REASON_FOUND) != 0) {
		pin_lifo_open(&worker->lifo, PIN_SLOW_REASON_FOUND);
		pin_wake_batch_end_pause(wake_batch);
	}
	if (!pin_wake_sees_any_sleeper(worker->shared) && stop_announcing(worker)) {
		return;
	}
	if (pin_wake_batch_is_paused(wake_batch, worker->shared->host->now_ns())) {
		wait_for_pause(worker);
	} else {
		tell_and_pause(worker); /* [ANNOUNCE-2] */
	}
}

/* After spawns that did not pass the slot. */
static void announce_queued(struct pin_worker *worker)
{
	uint32_t reasons = pin_lifo_closed_for(&worker->lifo);

	if (PIN_UNLIKELY((reasons & PIN_SLOW_REASON_ANNOUNCE) != 0)) {
		announce(worker, reasons);
	}
}

void pin_spawn_set_announce_all(struct pin_worker *sleeper)
{
	struct pin_shared *shared = sleeper->shared;
	bool is_any_new = false;

	PIN_DCHECK(shared->announces);
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		struct pin_worker *worker = &shared->workers[i];

		if (worker != sleeper && !pin_parker_is_parked(&worker->parker)) {
			is_any_new |= pin_spawn_set_announce(worker);
		}
	}
	if (is_any_new) {
		(void)shared->host->fence_all(); /* [ANNOUNCE-3] */
	}
}

/*
 * Whether a worker sleeps and the waiting tasks are worth its wake. The check
 * has no fence: it misses a worker that goes to sleep just now, which a later
 * check finds. It also sets the place of the next check.
 */
static void look_for_sleeper(struct pin_worker *worker)
{
	struct pin_wake_batch *wake_batch = &worker->wake_batch;
	struct pin_deque *deque = &worker->deque;
	uint64_t average_ns = pin_queue_interval_average_ns(&worker->queue_interval);

	if (pin_wake_batch_is_fence_due(wake_batch)) {
		pin_spawn_tell_of_last(worker);
	} else if (!pin_wake_sees_sleeper(worker->worker_class)) {
		pin_deque_set_mark(deque,
			pin_wake_batch_note_nobody(
				wake_batch, pin_deque_count_known(deque), average_ns));
	} else if (pin_load_relaxed_u32(&worker->worker_class->searching) != 0) {
		pin_deque_set_mark(deque, pin_wake_batch_note_kept(wake_batch));
	} else if (pin_wake_batch_is_long(wake_batch, pin_deque_count(deque), average_ns)) {
		tell(worker);
	} else if (pin_wake_batch_is_full(wake_batch)) {
		pin_spawn_tell_of_last(worker);
	} else {
		pin_deque_set_mark(deque, pin_wake_batch_note_kept(wake_batch));
	}
}

PIN_APART int pin_spawn_push_slowly(struct pin_worker *worker, struct pin_link *link)
{
	bool is_at_mark = pin_deque_until_mark(&worker->deque) == 0;

	PIN_DCHECK(pin_worker_is_current(worker));
	if (!pin_deque_has_room(&worker->deque)) {
		overflow(worker, link);
		return 0;
	}
	pin_deque_put(&worker->deque, link);
	if (is_at_mark) {
		look_for_sleeper(worker);
	}
	return 0;
}

void pin_spawn_enqueue(struct pin_worker *worker, struct pin_link *link)
{
	PIN_DCHECK(pin_task_is_runnable(pin_task_of(link)));
	(void)pin_spawn_push(worker, link);
}

static void share(struct pin_worker *worker, struct pinion_task *task)
{
	pin_lane_push_one(worker->shared, worker, task);
}

void pin_spawn_route(struct pin_worker *worker, struct pin_link *link)
{
	if (PIN_UNLIKELY((pin_task_of(link)->flags & PIN_TASK_LANES) != 0)) {
		pin_lane_push_one(worker->shared, worker, pin_task_of(link));
	} else {
		pin_watchdog_note_kept(worker);
		pin_spawn_enqueue(worker, link);
	}
}

/* Before it is queued: another worker may run it at once. */
static PIN_APART void note_spawned(
	struct pin_worker *worker, struct pinion_task *const *tasks, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		pin_event_note_task(worker, PIN_TRACE_SPAWN_LOCAL, pin_task_lane(tasks[i]),
			tasks[i], (uintptr_t)tasks[i]->run);
	}
}

/* As pin_watchdog_note_kept(), and by the same test it is traced. */
static PIN_APART void note_respawned(struct pin_worker *worker, struct pinion_task *task)
{
	if (worker->is_traced) {
		note_spawned(worker, &task, 1);
	}
	pin_watchdog_note_kept(worker);
}

/* Into a queue that all share. */
static PIN_APART void respawn_global(struct pin_worker *worker, struct pinion_task *task)
{
	pin_event_spawn_global(worker, NULL, task);
	share(worker, task);
}

void pin_worker_respawn(struct pin_worker *worker, struct pinion_task *task)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	pin_meter_add(&worker->meter.tasks_spawned, 1);
	/* In LIFO order the own queue has no place after its waiting tasks. */
	if (PIN_UNLIKELY((task->flags & PIN_TASK_LANES) != 0) || worker->deque.takes_newest) {
		respawn_global(worker, task);
	} else {
		if (PIN_UNLIKELY((pin_lifo_closed_for(&worker->lifo) &
					 (PIN_SLOW_REASON_TELL | PIN_SLOW_REASON_TRACED)) != 0)) {
			note_respawned(worker, task);
		}
		pin_spawn_enqueue(worker, pin_task_link(task));
	}
}

static PIN_APART int spawn_for(
	struct pin_worker *worker, struct pinion_task *task, uint32_t reasons)
{
	struct pin_link *link = pin_task_link(task);

	if ((reasons & PIN_SLOW_REASON_STOPPING) != 0) {
		pin_task_release(task);
		return -ESHUTDOWN;
	}
	PIN_TRACE3(spawn_local, worker->index, task, task->run);
	if ((reasons & PIN_SLOW_REASON_TRACED) != 0) {
		note_spawned(worker, &task, 1);
	}
	pin_watchdog_note_kept(worker);
	pin_meter_add(&worker->meter.tasks_spawned, 1);
	if ((reasons & PIN_SLOW_REASON_UNUSED) == 0) {
		link = pin_lifo_replace(&worker->lifo, link);
	}
	if (link != NULL) {
		(void)pin_spawn_push(worker, link);
	}
	/* Once more: a thief or the watchdog may have been the reason. */
	announce_queued(worker); /* [ANNOUNCE-3] */
	return 0;
}

PIN_APART int pin_spawn_past_slot(struct pin_worker *worker, struct pinion_task *task)
{
	uint32_t reasons = pin_lifo_closed_for(&worker->lifo);

	PIN_DCHECK(pin_worker_is_current(worker));
	PIN_DCHECK(pin_task_lane(task) == PINION_LANE_NORMAL); /* others have no slot */
	if (PIN_UNLIKELY(reasons != PIN_SLOW_REASON_UNUSED)) {
		return spawn_for(worker, task, reasons);
	}
	/* In LIFO order it is that, with each spawn. */
	PIN_TRACE3(spawn_local, worker->index, task, task->run);
	pin_meter_add(&worker->meter.tasks_spawned, 1);
	return pin_spawn_push(worker, pin_task_link(task));
}

/*
 * Fills the deque first and gives the rest to the injector as one list: one
 * lock and one wake, however many tasks there are.
 */
int pin_worker_spawn_batch(
	struct pin_worker *worker, struct pinion_task *const *tasks, uint32_t count)
{
	struct pin_list rest = {0};
	uint32_t queued = 0;

	PIN_DCHECK(pin_worker_is_current(worker));
	if (pin_shared_is_stopping(worker->shared)) {
		return -ESHUTDOWN;
	}
	if (PIN_UNLIKELY(worker->is_traced)) {
		note_spawned(worker, tasks, count);
	}
	pin_meter_add(&worker->meter.tasks_spawned, count);
	pin_watchdog_note_kept(worker);
	for (; queued < count && pin_deque_room(&worker->deque) > 0; queued++) {
		PIN_TRACE3(spawn_local, worker->index, tasks[queued], tasks[queued]->run);
		pin_spawn_enqueue(worker, pin_task_link(tasks[queued]));
	}
	if (queued < count) {
		for (uint32_t i = queued; i < count; i++) {
			PIN_TRACE3(spawn_local, worker->index, tasks[i], tasks[i]->run);
			pin_list_push(&rest, pin_task_link(tasks[i]));
		}
		pin_meter_add(&worker->meter.tasks_shared, count - queued); /* [QLIMIT-1] */
		pin_injector_push(&worker->shared->injector, &rest);
		pin_wake_one(worker->shared, worker);
	}
	announce_queued(worker);
	return 0;
}

int pin_worker_spawn_lanes(
	struct pin_worker *worker, struct pinion_task *const *tasks, uint32_t count)
{
	if (pin_shared_is_stopping(worker->shared)) {
		return -ESHUTDOWN;
	}
	pin_meter_add(&worker->meter.tasks_spawned, count);
	for (uint32_t i = 0; i < count; i++) {
		if ((tasks[i]->flags & PIN_TASK_LANES) != 0) {
			pin_event_spawn_global(worker, NULL, tasks[i]);
		} else {
			PIN_TRACE3(spawn_local, worker->index, tasks[i], tasks[i]->run);
			if (worker->is_traced) {
				note_spawned(worker, &tasks[i], 1);
			}
		}
		pin_spawn_route(worker, pin_task_link(tasks[i]));
	}
	announce_queued(worker);
	return 0;
}

int pin_worker_spawn_shared(struct pin_worker *worker, struct pinion_task *task)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	if (pin_shared_is_stopping(worker->shared)) {
		return -ESHUTDOWN;
	}
	pin_meter_add(&worker->meter.tasks_spawned, 1);
	pin_meter_add(&worker->meter.spawned_shared, 1);
	pin_event_spawn_global(worker, NULL, task);
	share(worker, task);
	return 0;
}

int pin_worker_spawn_on(
	struct pin_worker *worker, struct pin_worker *target, struct pinion_task *task)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	PIN_DCHECK(target->shared == worker->shared);
	if (pin_shared_is_stopping(worker->shared)) {
		return -ESHUTDOWN;
	}
	pin_meter_add(&worker->meter.tasks_spawned, 1);
	pin_meter_add(&worker->meter.spawned_on, 1);
	pin_event_spawn_global(worker, target, task);
	if (target == worker) {
		pin_list_push(&worker->posted, pin_task_link(task));
	} else {
		pin_inbox_push(&target->inbox, pin_task_link(task));
		pin_wake_worker(target, worker);
	}
	return 0;
}

void pin_worker_timer_start(struct pin_worker *worker, struct pinion_timer *timer)
{
	pin_meter_add(&worker->meter.tasks_spawned, 1);
	pin_meter_add(&worker->meter.spawned_timers, 1);
	pin_watchdog_note_kept(worker);
	pin_timer_arm(worker, timer);
}

/*
 * After a push. The worker checks at the start of its next turn; in case that
 * is far, the watchdog has to be awake, which sends another worker.
 */
static void tell_of_cancel(struct pin_worker *target, struct pin_worker *worker)
{
	pin_wake_worker(target, worker);
	if (!pin_parker_is_parked(&target->parker)) {
		pin_fence_seq_cst(); /* [EXTERNAL-1] */
		pin_watchdog_tell_of_other(target->shared);
	}
}

/*
 * Removes the timer from a stalled worker's wheel, so that the cancel need not
 * wait for its current task.
 */
static bool is_taken_off(struct pin_worker *target, struct pinion_timer *timer)
{
	return target->shared->worker_count > 1 && !pin_parker_is_parked(&target->parker) &&
		pin_search_is_stalled(target) && pin_timer_take_off(target, timer);
}

void pin_worker_timer_cancelled(
	struct pin_worker *worker, struct pin_worker *target, struct pinion_timer *timer)
{
	struct pin_link *link = pin_task_link(&timer->task);

	PIN_DCHECK(pin_worker_is_caller(target->shared, worker));
	PIN_DCHECK(pin_task_kind(&timer->task) == PIN_TASK_TIMER);
	if (target == worker) {
		pin_watchdog_note_kept(worker);
		pin_timer_drop(worker, timer);
	} else if (is_taken_off(target, timer)) {
		pin_inbox_push(&target->shared->timer_inbox, link);
		pin_wake_one(target->shared, worker);
	} else {
		pin_inbox_push(&target->timer_cancels, link);
		tell_of_cancel(target, worker);
	}
}

void pin_worker_spawn_bound(struct pin_worker *worker, struct pinion_task *task)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	PIN_DCHECK(pin_task_is_runnable(task));
	pin_meter_add(&worker->meter.tasks_spawned, 1);
	pin_list_push(&worker->ready, pin_task_link(task));
}

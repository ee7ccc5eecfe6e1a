/* SPDX-License-Identifier: MIT */
/*
 * Where a worker's next task comes from, besides the lanes that all share: one
 * function for each source, in the order that loop.h lists.
 *
 * On the worker. Each runs one task or callback and returns true, or finds
 * none. Code that most polls pass through is inline, to be part of the loop.
 */
#ifndef PIN_LOOP_NEXT_TASK_H
#define PIN_LOOP_NEXT_TASK_H

#include "runtime/base/check.h"
#include "runtime/worker/events.h"
#include "runtime/worker/spawn.h"
#include "runtime/worker/state.h"
#include "runtime/worker/timer.h"
#include "runtime/worker/wake.h"
#include "runtime/worker/watchdog.h"
#include "runtime/worker/worker.h"

/* ---- running ---- */

/*
 * Entering a task: its `run`, or its `cancel` while the runtime stops, each
 * counted by the worker that does it.
 *
 * On the worker. Before a task is entered it is released: from there on it is
 * its user's, may be spawned anew, and nothing here refers to its memory.
 */

/* By a worker that searches no more. Returns what the task did. */
static PIN_INLINE int pin_run_found(
	struct pin_worker *worker, struct pinion_task *task, enum pin_trace_source source)
{
	int rc;

	PIN_DCHECK(!worker->is_searching);
	PIN_DCHECK(worker->running_kind == PIN_RUNNING_TASK);
	PIN_DCHECK(pin_task_is_runnable(task));
	pin_task_release(task);
	pin_running_enter(worker, (pin_fault_fn)task->run);
	PIN_TRACE4(task_begin, worker->index, task, task->run, source);
	rc = task->run(task);
	PIN_DCHECK(pin_worker_is_current(worker));
	PIN_TRACE2(task_end, worker->index, rc);
	if (PIN_UNLIKELY(rc < 0)) {
		pin_fault_note(worker, rc);
	}
	pin_meter_add(&worker->meter.tasks_run, 1); /* [END-1] */
	return rc;
}

/*
 * By a searching worker, which has succeeded, or one with a trace. Apart, for
 * the sake of the others.
 */
void pin_run_otherwise(
	struct pin_worker *worker, struct pinion_task *task, enum pin_trace_source source);

/*
 * Whatever the runtime's state: a request that has begun is brought to its end.
 */
static PIN_INLINE void pin_run_task(
	struct pin_worker *worker, struct pinion_task *task, enum pin_trace_source source)
{
	if (PIN_UNLIKELY(worker->slow_reasons != 0)) {
		pin_run_otherwise(worker, task, source);
	} else {
		(void)pin_run_found(worker, task, source);
	}
}

void pin_run_cancel(struct pin_worker *worker, struct pinion_task *task);

/* As the runtime's state and the task's flags ask for. */
void pin_run_or_cancel(
	struct pin_worker *worker, struct pin_link *link, enum pin_trace_source source);

/* The same, in line: for the path of most tasks. */
static PIN_INLINE void pin_run_queued(
	struct pin_worker *worker, struct pin_link *link, enum pin_trace_source source)
{
	if (PIN_LIKELY(!pin_shared_is_stopping(worker->shared) && worker->slow_reasons == 0)) {
		(void)pin_run_found(worker, pin_task_of(link), source);
	} else {
		pin_run_or_cancel(worker, link, source);
	}
}

/* ---- the next task ---- */

enum {
	/*
	 * Batches in a row after which a worker submits at once, rather than
	 * look through the queues of others before.
	 */
	PIN_UNSEARCHED_BATCHES_MAX = 7,
};

/* Entries taken from the inbox: tasks and messages. */
bool pin_poll_posted(struct pin_worker *worker);

/* Whichever of deque, ready list and posted ones has its turn. */
bool pin_poll_in_turns(struct pin_worker *worker);

/* From the queue that all share, in which something was seen. */
bool pin_poll_injected(struct pin_worker *worker);

/*
 * Begins external submissions, before any task could hold them up; whether
 * there were any.
 */
bool pin_poll_external(struct pin_worker *worker);

/* Other workers' queues, and what else they keep. */
bool pin_poll_others(struct pin_worker *worker);

/* The task of an urgent request that is over. */
bool pin_poll_urgent(struct pin_worker *worker);

/* Other tasks for this worker alone. */
bool pin_poll_bound(struct pin_worker *worker);

/*
 * Completions. A request that has begun is brought to its end, also in a stop.
 */
static PIN_INLINE bool pin_poll_ready(struct pin_worker *worker)
{
	struct pin_link *link = pin_list_pop(&worker->ready);

	if (link == NULL) {
		return false;
	}
	pin_meter_add(&worker->meter.ready_polls, 1);
	pin_run_task(worker, pin_task_of(link), PIN_SOURCE_COMPLETION);
	return true;
}

static PIN_INLINE bool pin_poll_deque(struct pin_worker *worker)
{
	struct pin_link *link = pin_deque_pop(&worker->deque);

	if (link == NULL) {
		return false;
	}
	pin_run_queued(worker, link, PIN_SOURCE_LOCAL);
	return true;
}

static PIN_INLINE bool pin_poll_lifo(struct pin_worker *worker)
{
	struct pin_link *link = pin_lifo_take(&worker->lifo);
	uint32_t row;

	if (link == NULL) {
		if (PIN_UNLIKELY(!pin_lifo_is_empty(&worker->lifo))) {
			/* A thief is in it, and will be out in a moment. */
			worker->shared->host->yield();
		}
		pin_store_relaxed_u32(&worker->lifo_row, 0);
		return false;
	}
	/* Relaxed: its own, and a figure for others. */
	row = pin_load_relaxed_u32(&worker->lifo_row);
	if (row >= worker->shared->tuning.lifo_polls) {
		/* Two that spawn each other must not keep all others out. */
		pin_store_relaxed_u32(&worker->lifo_row, 0);
		pin_spawn_enqueue(worker, link);
		return false;
	}
	pin_store_relaxed_u32(&worker->lifo_row, row + 1);
	pin_meter_add(&worker->meter.lifo_polls, 1);
	pin_run_queued(worker, link, PIN_SOURCE_SLOT);
	return true;
}

static inline bool pin_poll_is_look_due(const struct pin_worker *worker)
{
	return pin_queue_interval_is_due(&worker->queue_interval, worker->polls_since_look,
		worker->now_ns - worker->look_ns);
}

static PIN_INLINE bool pin_poll_own(struct pin_worker *worker)
{
	if (PIN_UNLIKELY(!pin_list_is_empty(&worker->posted))) {
		return pin_poll_in_turns(worker);
	}
	if (pin_list_is_empty(&worker->ready)) {
		return pin_poll_deque(worker);
	}
	return PIN_LIKELY(pin_deque_is_drained(&worker->deque)) ? pin_poll_ready(worker)
								: pin_poll_in_turns(worker);
}

static PIN_INLINE bool pin_poll_inbox(struct pin_worker *worker)
{
	if (PIN_LIKELY(pin_inbox_is_empty(&worker->inbox))) {
		return false;
	}
	pin_inbox_take(&worker->inbox, &worker->posted);
	return pin_poll_posted(worker);
}

static PIN_INLINE bool pin_poll_injector(struct pin_worker *worker)
{
	worker->polls_since_look = 0;
	worker->look_ns = worker->now_ns;
	return PIN_UNLIKELY(!pin_injector_is_empty(&worker->shared->injector)) &&
		pin_poll_injected(worker);
}

/*
 * True if the deque, or the ready list, is the next source. The other sources
 * are ORed into one test because all are almost always empty.
 */
static PIN_INLINE bool pin_poll_is_deque_next(
	const struct pin_worker *worker, const struct pin_shared *shared)
{
	return (pin_lifo_bits(&worker->lifo) | pin_list_bits(&worker->ready) |
		       pin_list_bits(&worker->posted) | pin_shared_flags(shared)) == 0;
}

static PIN_INLINE bool pin_poll_is_ready_next(
	const struct pin_worker *worker, const struct pin_shared *shared)
{
	return (pin_lifo_bits(&worker->lifo) | pin_deque_count_known(&worker->deque) |
		       pin_list_bits(&worker->posted) | pin_shared_flags(shared)) == 0;
}

/*
 * Run tasks of the deque, in FIFO order, or ready ones, whichever is next, one
 * after the other as long as each is what pin_poll_near() would find and no
 * check is due: `limit` at most. They return how many. By a worker that does
 * not search.
 */
uint32_t pin_poll_deque_series(struct pin_worker *worker, uint32_t limit);
uint32_t pin_poll_ready_series(struct pin_worker *worker, uint32_t limit);

/* All of the normal lane that can be had without searching. */
static PIN_INLINE bool pin_poll_near(struct pin_worker *worker)
{
	PIN_DCHECK(pin_worker_serves(worker, PINION_LANE_NORMAL));
	worker->polls_since_look++;
	if (PIN_UNLIKELY(pin_poll_is_look_due(worker)) && pin_poll_injector(worker)) {
		return true;
	}
	return pin_poll_lifo(worker) || pin_poll_own(worker) || pin_poll_inbox(worker) ||
		pin_poll_injector(worker);
}

/* ---- lanes ---- */

/*
 * The next task where not all work is in the normal lane: first of lanes that
 * were passed by for too long, then in the order in which the worker serves
 * them, at last what it may assist with.
 */

/* As those of next_task.h. */
bool pin_poll_lanes(struct pin_worker *worker);

/* ---- expiry ---- */

/*
 * What time makes ready: timers, and the deadlines of waits and requests.
 *
 * Looked at on the worker, once in a batch. Expired timers become tasks like
 * any other; starts and cancels of timers are taken in before. Then the
 * `cancel` of those that were cancelled is called.
 */

/*
 * All messages of timers at once, since none may wait here for a task: onto the
 * wheel, or to the cancelled ones.
 */
void pin_due_take_all(struct pin_worker *worker);

/*
 * Expired timers become tasks like any other, for others to steal as well; and
 * cancelled ones end.
 */
void pin_due_expire_timers(struct pin_worker *worker);

/*
 * Calls the `cancel` of timers, of a turn's worth at most; the rest stays where
 * others find it. Whether there was any.
 */
bool pin_due_end_cancelled(struct pin_worker *worker);

/* Of requests that wait here; no other thread may end them. */
void pin_due_expire_deadlines(struct pin_worker *worker);

/* All of that, by the worker's `now_ns`. */
static PIN_INLINE void pin_due_look(struct pin_worker *worker)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	if (PIN_UNLIKELY(worker->shares_ring || pin_timers_count(&worker->deadlines) > 0)) {
		pin_due_expire_deadlines(worker);
	}
	if (PIN_UNLIKELY(!pin_inbox_is_empty(&worker->shared->timer_inbox) ||
		    !pin_inbox_is_empty(&worker->timer_cancels))) {
		pin_due_take_all(worker);
	}
	if (pin_timer_next_ns(worker) <= worker->now_ns ||
		(worker->has_timers && pin_shared_is_stopping(worker->shared))) {
		pin_due_expire_timers(worker);
	}
	/* They would be late if the next task should not end soon. */
	if (pin_timer_next_ns(worker) != PIN_NO_DEADLINE) {
		pin_watchdog_note_kept(worker);
	}
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Where a worker's next task comes from, besides the lanes that all share: one
 * function for each source, in the order that worker/thread.h tells.
 *
 * On the worker. Each runs one task or callback and returns true, or finds
 * none. What most polls pass through stands here, to be part of the loop.
 */
#ifndef PIN_WORKER_NEXT_TASK_H
#define PIN_WORKER_NEXT_TASK_H

#include "runtime/worker/run.h"
#include "runtime/worker/spawn.h"
#include "runtime/worker/state.h"
#include "runtime/worker/state_task.h"

enum {
	/*
	 * Batches in a row after which a worker submits at once, rather than
	 * look through the queues of others before.
	 */
	PIN_UNSEARCHED_BATCHES_MAX = 7,
};

/* What was taken from the inbox: tasks and messages. */
bool pin_poll_posted(struct pin_worker *worker);

/* Whichever of deque, ready list and posted ones has its turn. */
bool pin_poll_in_turns(struct pin_worker *worker);

/* From the queue that all share, in which something was seen. */
bool pin_poll_injected(struct pin_worker *worker);

/*
 * Begins what came from outside, before any task could hold it up; whether
 * there was something.
 */
bool pin_poll_offers(struct pin_worker *worker);

/* Other workers' queues, and what else they keep. */
bool pin_poll_others(struct pin_worker *worker);

/* What is for this worker alone. */
bool pin_poll_bound(struct pin_worker *worker);

/* Completions. What has begun is brought to its end, also in a stop. */
static PIN_INLINE bool pin_poll_ready(struct pin_worker *worker)
{
	struct pin_link *link = pin_list_pop(&worker->ready);

	if (link == NULL) {
		return false;
	}
	pin_run_task(worker, pin_task_of(link));
	return true;
}

static PIN_INLINE bool pin_poll_deque(struct pin_worker *worker)
{
	struct pin_link *link = pin_deque_pop(&worker->deque);

	if (link == NULL) {
		return false;
	}
	pin_run_queued(worker, link);
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
	if (row >= worker->shared->config.lifo_polls) {
		/* Two that spawn each other must not keep all others out. */
		pin_store_relaxed_u32(&worker->lifo_row, 0);
		pin_spawn_enqueue(worker, link);
		return false;
	}
	pin_store_relaxed_u32(&worker->lifo_row, row + 1);
	pin_meter_add(&worker->meter.lifo_polls, 1);
	pin_run_queued(worker, link);
	return true;
}

static inline bool pin_poll_is_look_due(const struct pin_worker *worker)
{
	return pin_tuner_is_due(
		&worker->tuner, worker->polls_since_look, worker->now_ns - worker->look_ns);
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
 * Whether nothing stands before the deque, or before what is ready, or calls
 * for another way. In one look: each of them is hardly ever the case.
 */
static PIN_INLINE bool pin_poll_is_deque_next(
	const struct pin_worker *worker, const struct pin_shared *shared)
{
	return (pin_lifo_bits(&worker->lifo) | pin_list_bits(&worker->ready) |
		       pin_list_bits(&worker->posted) | pin_shared_alerts(shared)) == 0;
}

static PIN_INLINE bool pin_poll_is_ready_next(
	const struct pin_worker *worker, const struct pin_shared *shared)
{
	return (pin_lifo_bits(&worker->lifo) | pin_deque_count_known(&worker->deque) |
		       pin_list_bits(&worker->posted) | pin_shared_alerts(shared)) == 0;
}

/*
 * Run tasks of the deque, in FIFO order, or of those that are ready, whichever
 * is next, one after the other as long as each is what pin_poll_near() would
 * find and no look is due: `limit` at most. They return how many. By a worker
 * that does not search.
 */
uint32_t pin_poll_deque_row(struct pin_worker *worker, uint32_t limit);
uint32_t pin_poll_ready_row(struct pin_worker *worker, uint32_t limit);

/* All of the normal lane that can be had without searching. */
static PIN_INLINE bool pin_poll_near(struct pin_worker *worker)
{
	worker->polls_since_look++;
	if (PIN_UNLIKELY(pin_poll_is_look_due(worker)) && pin_poll_injector(worker)) {
		return true;
	}
	return pin_poll_lifo(worker) || pin_poll_own(worker) || pin_poll_inbox(worker) ||
		pin_poll_injector(worker);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Where a worker's next task comes from, besides the lanes that all share: one
 * function for each source, in the order that core/worker.h tells.
 *
 * On the worker. Each runs one task or callback and returns true, or finds
 * none. What most polls pass through stands here, to be part of the loop.
 */
#ifndef PIN_CORE_POLL_H
#define PIN_CORE_POLL_H

#include "runtime/core/run.h"
#include "runtime/core/spawn.h"
#include "runtime/core/worker_state.h"

bool pin_poll_ready(struct pin_worker *worker);
bool pin_poll_deque(struct pin_worker *worker);

/* What was taken from the inbox: tasks and messages. */
bool pin_poll_posted(struct pin_worker *worker);

/* The queue that all share. */
bool pin_poll_injector(struct pin_worker *worker);

/*
 * Begins what came from outside, before any task could hold it up; whether
 * there was something.
 */
bool pin_poll_offers(struct pin_worker *worker);

/* Other workers' queues, and what else they keep. */
bool pin_poll_others(struct pin_worker *worker);

/* What is for this worker alone. */
bool pin_poll_bound(struct pin_worker *worker);

static PIN_INLINE bool pin_poll_lifo(struct pin_worker *worker)
{
	struct pin_link *link = pin_lifo_take(&worker->lifo);

	if (link == NULL) {
		if (PIN_UNLIKELY(!pin_lifo_is_empty(&worker->lifo))) {
			/* A thief is in it, and will be out in a moment. */
			worker->shared->host->yield();
		}
		worker->lifo_polls = 0;
		return false;
	}
	if (worker->lifo_polls >= worker->shared->config.lifo_polls) {
		/* Two that spawn each other must not keep all others out. */
		worker->lifo_polls = 0;
		pin_spawn_enqueue(worker, link);
		return false;
	}
	worker->lifo_polls++;
	pin_meter_add(&worker->meter.lifo_polls, 1);
	pin_run_or_cancel(worker, link);
	return true;
}

static inline bool pin_poll_is_look_due(const struct pin_worker *worker)
{
	return pin_tuner_is_due(
		&worker->tuner, worker->polls_since_look, worker->now_ns - worker->look_ns);
}

/* In turns, so that none of the own queues can starve the others. */
static PIN_INLINE bool pin_poll_own(struct pin_worker *worker)
{
	uint32_t turn = worker->turn;

	if (PIN_LIKELY(pin_list_is_empty(&worker->ready) && pin_list_is_empty(&worker->posted))) {
		return pin_poll_deque(worker);
	}
	worker->turn = turn == 2 ? 0 : turn + 1;
	switch (turn) {
	case 0:
		return pin_poll_deque(worker) || pin_poll_ready(worker) || pin_poll_posted(worker);
	case 1:
		return pin_poll_ready(worker) || pin_poll_posted(worker) || pin_poll_deque(worker);
	default:
		return pin_poll_posted(worker) || pin_poll_deque(worker) || pin_poll_ready(worker);
	}
}

static PIN_INLINE bool pin_poll_inbox(struct pin_worker *worker)
{
	pin_inbox_take(&worker->inbox, &worker->posted);
	return !pin_list_is_empty(&worker->posted) && pin_poll_posted(worker);
}

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

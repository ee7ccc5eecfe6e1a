/* SPDX-License-Identifier: MIT */
/*
 * What time makes ready: timers, and the deadlines of waits and requests.
 *
 * Looked at on the worker, once in a batch. What is due becomes a task like any
 * other; what starts and cancels timers is taken in before.
 */
#ifndef PIN_CORE_DUE_H
#define PIN_CORE_DUE_H

#include "runtime/core/sentry.h"
#include "runtime/core/timer.h"
#include "runtime/core/worker_state.h"

/* A timer's message: onto the wheel, or its `cancel` is called. */
void pin_due_take(struct pin_worker *worker, struct pinion_task *task);

/* All messages of timers at once, since none may wait here behind a task. */
void pin_due_take_all(struct pin_worker *worker);

/* What is due becomes a task like any other, for others to steal as well. */
void pin_due_expire_timers(struct pin_worker *worker);

/* Of what waits here; nobody else may end it. */
void pin_due_expire_deadlines(struct pin_worker *worker);

/* All of that, by the worker's `now_ns`. */
static PIN_INLINE void pin_due_look(struct pin_worker *worker)
{
	if (PIN_UNLIKELY(worker->shares_ring || pin_timers_count(&worker->deadlines) > 0)) {
		pin_due_expire_deadlines(worker);
	}
	if (PIN_UNLIKELY(!pin_inbox_is_empty(&worker->shared->timer_inbox) ||
		    !pin_list_is_empty(&worker->timer_messages))) {
		pin_due_take_all(worker);
	}
	if (pin_timer_next_ns(worker) <= worker->now_ns ||
		(worker->has_timers && pin_shared_is_stopping(worker->shared))) {
		pin_due_expire_timers(worker);
	}
	/* They would be late if the next task should not end soon. */
	if (pin_timer_next_ns(worker) != PIN_NO_DEADLINE) {
		pin_sentry_note_kept(worker);
	}
}

#endif

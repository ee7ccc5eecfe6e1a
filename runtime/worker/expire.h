/* SPDX-License-Identifier: MIT */
/*
 * What time makes ready: timers, and the deadlines of waits and requests.
 *
 * Looked at on the worker, once in a batch. What is due becomes a task like any
 * other; what starts and cancels timers is taken in before. Then the `cancel`
 * of those that were cancelled is called.
 */
#ifndef PIN_WORKER_EXPIRE_H
#define PIN_WORKER_EXPIRE_H

#include "runtime/worker/state.h"
#include "runtime/worker/timer.h"
#include "runtime/worker/watchdog.h"

/*
 * All messages of timers at once, since none may wait here behind a task: onto
 * the wheel, or to those that are cancelled.
 */
void pin_due_take_all(struct pin_worker *worker);

/*
 * What is due becomes a task like any other, for others to steal as well; and
 * what is cancelled ends.
 */
void pin_due_expire_timers(struct pin_worker *worker);

/*
 * Calls the `cancel` of timers, of a turn's worth at most; the rest stays where
 * others find it. Whether there was any.
 */
bool pin_due_end_cancelled(struct pin_worker *worker);

/* Of what waits here; nobody else may end it. */
void pin_due_expire_deadlines(struct pin_worker *worker);

/* All of that, by the worker's `now_ns`. */
static PIN_INLINE void pin_due_look(struct pin_worker *worker)
{
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
		pin_sentry_note_kept(worker);
	}
}

#endif

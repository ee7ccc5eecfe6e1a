/* SPDX-License-Identifier: MIT */
/*
 * Timers and deadlines, once in a batch.
 */
#include "runtime/core/due.h"
#include "runtime/core/flight_end.h"
#include "runtime/core/relief.h"
#include "runtime/core/run.h"
#include "runtime/core/sentry.h"
#include "runtime/core/spawn.h"
#include "runtime/core/task.h"
#include "runtime/core/timer.h"
#include "runtime/core/wait.h"
#include "runtime/core/wake.h"

void pin_due_take(struct pin_worker *worker, struct pinion_task *task)
{
	if (pin_timer_take(worker, pin_timer_of(task))) {
		return;
	}
	if (worker->is_searching) {
		pin_search_succeed(worker);
	}
	pin_run_cancel(worker, task);
}

void pin_due_take_all(struct pin_worker *worker)
{
	struct pin_inbox *inbox = &worker->shared->timer_inbox;
	struct pin_link *link;

	/* A look first: taking writes to a line that all share. */
	if (PIN_UNLIKELY(!pin_inbox_is_empty(inbox))) {
		pin_inbox_take(inbox, &worker->timer_messages);
	}
	while ((link = pin_list_pop(&worker->timer_messages)) != NULL) {
		pin_due_take(worker, pin_task_of(link));
	}
}

void pin_due_expire_timers(struct pin_worker *worker)
{
	struct pin_list due = {0};
	struct pin_link *link;

	pin_timer_expire(worker, pin_shared_is_stopping(worker->shared), &due);
	while ((link = pin_list_pop(&due)) != NULL) {
		pin_spawn_route(worker, link);
	}
}

/* The next wait that is over; requests that are end on the way. */
static struct pin_timer *pop_expired_wait(struct pin_worker *worker)
{
	struct pin_timer *timer;

	pin_relief_enter(worker);
	while ((timer = pin_timers_pop(&worker->deadlines)) != NULL &&
		timer->owner_kind != PIN_TASK_WAIT) {
		pin_flight_expire(worker, timer);
	}
	pin_relief_leave(worker);
	return timer;
}

static void expire_deadlines(struct pin_worker *worker)
{
	struct pin_timer *timer;

	pin_relief_enter(worker);
	pin_timers_advance(&worker->deadlines, worker->now_ns);
	pin_relief_leave(worker);
	while ((timer = pop_expired_wait(worker)) != NULL) {
		pin_wait_expire(worker, timer);
	}
}

/* Others may have to see to its ring, should the next task not end soon. */
static void tell_of_ring(struct pin_worker *worker)
{
	bool has_requests;

	pin_relief_enter(worker);
	has_requests = worker->ring.in_flight > 0;
	pin_relief_leave(worker);
	if (has_requests) {
		pin_sentry_note_kept(worker);
	}
}

void pin_due_expire_deadlines(struct pin_worker *worker)
{
	if (worker->shares_ring) {
		tell_of_ring(worker);
	}
	expire_deadlines(worker);
}

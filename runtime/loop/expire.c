/* SPDX-License-Identifier: MIT */
/*
 * Runs the timers, deadlines and ends of waits whose time has come, once in a
 * batch.
 *
 * The loop calls it at the start of a turn, with the time of the last clock
 * reading. Expired timers become tasks in the worker's queues, so other workers
 * may run them.
 *
 * Invariant: `cancel` functions and tasks run while no lock of a wheel is held,
 * so they may start and cancel timers.
 */
#include "runtime/base/check.h"
#include "runtime/loop/next_task.h"
#include "runtime/worker/request.h"
#include "runtime/worker/ring_lock.h"
#include "runtime/worker/spawn.h"
#include "runtime/worker/state.h"
#include "runtime/worker/timer.h"
#include "runtime/worker/wait.h"
#include "runtime/worker/wake.h"
#include "runtime/worker/watchdog.h"

void pin_due_take_all(struct pin_worker *worker)
{
	struct pin_list messages = {0};
	struct pin_link *link;

	if (!pin_inbox_is_empty(&worker->timer_cancels)) {
		pin_timer_drop_told(worker);
	}
	pin_inbox_take(&worker->shared->timer_inbox, &messages);
	while ((link = pin_list_pop(&messages)) != NULL) {
		PIN_DCHECK(pin_task_kind(pin_task_of(link)) == PIN_TASK_TIMER);
		pin_timer_take(worker, pin_timer_of(pin_task_of(link)));
	}
}

bool pin_due_end_cancelled(struct pin_worker *worker)
{
	const struct pinion_tuning *tuning = &worker->shared->tuning;
	struct pinion_task *task;
	uint32_t count = 0;

	/* The first may take long, and the others are to end elsewhere then. */
	pin_watchdog_note_kept(worker);
	while (count < tuning->budget_polls && (task = pin_timer_pop_cancelled(worker)) != NULL) {
		if (worker->is_searching) {
			pin_search_succeed(worker);
		}
		PIN_DCHECK(pin_task_kind(task) == PIN_TASK_PLAIN);
		pin_run_cancel(worker, task);
		count++;
	}
	return count > 0;
}

void pin_due_expire_timers(struct pin_worker *worker)
{
	bool is_stopping = pin_shared_is_stopping(worker->shared);
	struct pin_list due = {0};
	struct pin_link *link;
	uint32_t count = pin_timer_expire(worker, is_stopping, &due);

	PIN_DCHECK((count == 0) == pin_list_is_empty(&due));
	/*
	 * Before others may run them: a thread that sees one run sees it
	 * counted.
	 */
	if (count > 0 && !is_stopping) {
		pin_meter_add(&worker->meter.timers_processed, count);
	}
	while ((link = pin_list_pop(&due)) != NULL) {
		pin_spawn_route(worker, link);
	}
	(void)pin_due_end_cancelled(worker);
}

/* The next wait that is over; requests that are end on the way. */
static struct pin_timer *pop_expired_wait(struct pin_worker *worker)
{
	struct pin_timer *timer;

	pin_remote_reap_enter(worker);
	while ((timer = pin_timers_pop(&worker->deadlines)) != NULL &&
		timer->owner_kind != PIN_TASK_WAIT) {
		pin_requests_expire(worker, timer);
	}
	pin_remote_reap_leave(worker);
	PIN_DCHECK(timer == NULL || !pin_timer_is_armed(timer));
	return timer;
}

static void expire_deadlines(struct pin_worker *worker)
{
	struct pin_timer *timer;

	pin_remote_reap_enter(worker);
	pin_timers_advance(&worker->deadlines, worker->now_ns);
	pin_remote_reap_leave(worker);
	while ((timer = pop_expired_wait(worker)) != NULL) {
		pin_wait_expire(worker, timer);
	}
}

/* Others may have to see to its ring, should the next task not end soon. */
static void tell_of_ring(struct pin_worker *worker)
{
	bool has_requests;

	PIN_DCHECK(worker->shares_ring);
	pin_remote_reap_enter(worker);
	has_requests = worker->ring.in_flight > 0;
	pin_remote_reap_leave(worker);
	if (has_requests) {
		pin_watchdog_note_kept(worker);
	}
}

void pin_due_expire_deadlines(struct pin_worker *worker)
{
	if (worker->shares_ring) {
		tell_of_ring(worker);
	}
	expire_deadlines(worker);
}

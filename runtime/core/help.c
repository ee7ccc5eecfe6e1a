/* SPDX-License-Identifier: MIT */
/*
 * The loop above a task that waits.
 */
#include "runtime/core/help.h"
#include "runtime/base/check.h"
#include "runtime/core/assist.h"
#include "runtime/core/fault.h"
#include "runtime/core/step.h"
#include "runtime/core/wake.h"

#include <errno.h>

/* What is the waiting task's own, and the loop's below it. */
struct aside {
	struct pin_guard *guard;
	uint64_t running;
	uint32_t running_lane;
	enum pin_running running_kind;
	int panic_error;
	bool has_overflown;
	uint64_t turn_end_ns;
	uint64_t away_ns;
	uint64_t began_ns;
};

static struct aside put_aside(struct pin_worker *worker)
{
	struct aside aside = {
		.guard = worker->guard,
		.running = pin_load_relaxed_u64(&worker->running),
		.running_lane = pin_load_relaxed_u32(&worker->running_lane),
		.running_kind = worker->running_kind,
		.panic_error = worker->panic_error,
		.has_overflown = worker->has_overflown,
		.turn_end_ns = worker->turn_end_ns,
		.away_ns = worker->away_ns,
		.began_ns = worker->shared->host->now_ns(),
	};

	worker->running_kind = PIN_RUNNING_TASK;
	worker->panic_error = 0;
	worker->has_overflown = false;
	worker->help_depth++;
	return aside;
}

static void restore(struct pin_worker *worker, const struct aside *aside)
{
	uint64_t spent_ns = worker->shared->host->now_ns() - aside->began_ns;

	/* The loop may have gone on after the last task, to its next look. */
	if (worker->is_searching) {
		pin_search_succeed(worker);
	}
	pin_assist_leave(worker);
	worker->is_dry = false;
	worker->is_on_time = false;
	worker->help_depth--;
	worker->guard = aside->guard;
	pin_store_relaxed_u64(&worker->running, aside->running);
	pin_store_relaxed_u32(&worker->running_lane, aside->running_lane);
	worker->running_kind = aside->running_kind;
	worker->panic_error = aside->panic_error;
	worker->has_overflown = aside->has_overflown;
	/* 0: its turn is not timed. */
	worker->turn_end_ns = aside->turn_end_ns == 0 ? 0 : aside->turn_end_ns + spent_ns;
	worker->away_ns = aside->away_ns + spent_ns;
}

/* ---- helping ---- */

static int note_over(struct pinion_task *task)
{
	struct pinion_wait *wait = PIN_CONTAINER_OF(task, struct pinion_wait, task);
	struct pin_help *help = PIN_CONTAINER_OF(wait, struct pin_help, wait);

	help->is_over = true;
	/* The loop has no more to do than to end its turn. */
	help->blocked.worker->turn_end_ns = 1;
	return 0;
}

static int32_t take_value(void *target, const struct pin_waiters_value *value)
{
	struct pin_waiter *waiter = target;

	waiter->value = *value;
	return 0;
}

static void begin_helping(struct pin_help *help)
{
	struct pin_wait_aim aim = {
		.waiters = help->waiters,
		.demand = help->waiter->demand,
		.finish = take_value,
		.target = help->waiter,
		.is_firm = true,
	};
	int rc;

	help->wait = (struct pinion_wait){
		.task.run = note_over,
		.deadline_ns = help->deadline_ns,
	};
	rc = pin_wait_begin(help->blocked.worker, &help->wait, &aim);
	PIN_CHECK(rc == 0);
	help->blocked.waiter = pin_wait_waiter(&help->wait);
}

/* In the guard: what has landed there is accounted for. */
static void run_steps(void *arg)
{
	struct pin_help *help = arg;
	struct pin_worker *worker = help->blocked.worker;

	if (worker->landing != PIN_LANDING_RETURNED) {
		pin_fault_recover(worker);
		pin_worker_end_loop(worker);
	}
	while (!help->is_over) {
		enum pin_step step = pin_worker_step(worker);

		/* The task below is not over, nor is the runtime. */
		PIN_CHECK(step == PIN_STEP_RAN);
	}
}

static int help_out(struct pin_help *help)
{
	struct pin_worker *worker = help->blocked.worker;
	struct pin_guard guard = {.frame = NULL};
	struct aside aside = put_aside(worker);

	worker->guard = &guard;
	do {
		worker->landing = pin_guard_run(&guard, run_steps, help);
	} while (worker->landing != PIN_LANDING_RETURNED);
	restore(worker, &aside);
	return help->wait.result;
}

/* ---- waiting ---- */

static void begin(struct pin_help *help, const struct pin_shared *target,
	struct pin_waiters *waiters, struct pin_waiter *waiter)
{
	struct pin_worker *worker = pin_worker_of_thread();
	bool is_in_task = pin_worker_current() != NULL && worker->guard != NULL;

	help->blocked = (struct pin_blocked){
		.worker = worker,
		.target = target,
		.waiter = waiter,
		.is_in_task = is_in_task,
		.helps = is_in_task && worker->help_depth < worker->shared->config.help_depth,
	};
	help->waiters = waiters;
	help->waiter = waiter;
	help->is_over = false;
	if (help->blocked.helps) {
		begin_helping(help);
	} else {
		pin_waiters_enter(waiters, waiter);
	}
}

static int finish(struct pin_help *help)
{
	return help->blocked.helps
		? help_out(help)
		: pin_waiters_sleep(help->waiters, help->waiter, help->deadline_ns);
}

static int wait_for(const struct pin_shared *target, struct pin_waiters *waiters,
	struct pin_waiter *waiter, uint64_t deadline_ns, enum pin_blocked_end end)
{
	struct pin_help help = {.deadline_ns = deadline_ns};
	int rc;

	if (pin_worker_of_thread() == NULL) {
		return pin_waiters_wait(waiters, waiter, deadline_ns);
	}
	if (pin_waiters_try(waiters, waiter)) {
		return 0;
	}
	if (deadline_ns != PIN_NO_DEADLINE && deadline_ns <= waiters->host->now_ns()) {
		return -ETIME;
	}
	begin(&help, target, waiters, waiter);
	help.blocked.end = end;
	pin_knot_enter(&help.blocked);
	rc = finish(&help);
	pin_knot_leave(&help.blocked);
	return help.blocked.has_failed ? -EDEADLK : rc;
}

int pin_help_wait(const struct pin_shared *target, struct pin_waiters *waiters,
	struct pin_waiter *waiter, uint64_t deadline_ns)
{
	return wait_for(target, waiters, waiter, deadline_ns, PIN_BLOCKED_FIRST);
}

int pin_help_wait_firmly(const struct pin_shared *target, struct pin_waiters *waiters,
	struct pin_waiter *waiter, uint64_t deadline_ns)
{
	return wait_for(target, waiters, waiter, deadline_ns, PIN_BLOCKED_LAST);
}

int pin_help_begin_call(struct pin_help *help, const struct pin_shared *target,
	struct pin_waiters *waiters, struct pin_waiter *waiter)
{
	help->deadline_ns = PIN_NO_DEADLINE;
	begin(help, target, waiters, waiter);
	if (pin_knot_enter_call(&help->blocked)) {
		return 0;
	}
	/* Nobody knows of what it waits for, so it cannot have been served. */
	if (help->blocked.helps) {
		(void)pin_wait_cancel(&help->wait);
		(void)help_out(help);
	} else {
		(void)pin_waiter_withdraw(waiter);
	}
	return -EDEADLK;
}

void pin_help_finish_call(struct pin_help *help)
{
	int rc = finish(help);

	pin_knot_leave(&help->blocked);
	PIN_CHECK(rc == 0);
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: the table of a work item's steps is what the header says of its states,
 * and what wake, cancel and the return of a run do in each state (EX-57, EX-59,
 * EX-61), with each error code.
 * Method: the table against rules for each event; then one worker, held by a
 * task while a state is looked at from outside.
 */
#include "runtime/host/host.h"
#include "runtime/task/entry.h"
#include "runtime/task/internal.h"
#include "tests/support/runtimes.h"

#include <errno.h>

/* ---- the table ---- */

static bool is_running(enum pin_work_state state)
{
	return state == PIN_WORK_RUNNING || state == PIN_WORK_NOTIFIED ||
		state == PIN_WORK_RUNNING_CANCELLED;
}

static bool is_queued(enum pin_work_state state)
{
	return state == PIN_WORK_SCHEDULED || state == PIN_WORK_CANCELLED;
}

static bool is_over(enum pin_work_state state)
{
	return state == PIN_WORK_CANCELLED || state == PIN_WORK_RUNNING_CANCELLED ||
		state == PIN_WORK_ENDED;
}

static enum pin_work_state expected_step(enum pin_work_state state, enum pin_work_event event)
{
	if (event == PIN_WORK_WAKE) {
		if (state == PIN_WORK_IDLE) {
			return PIN_WORK_SCHEDULED;
		}
		return state == PIN_WORK_RUNNING ? PIN_WORK_NOTIFIED : state;
	}
	if (event == PIN_WORK_CANCEL) {
		if (is_running(state)) {
			return PIN_WORK_RUNNING_CANCELLED;
		}
		return is_queued(state) ? PIN_WORK_CANCELLED : PIN_WORK_ENDED;
	}
	if (event == PIN_WORK_ENTER || event == PIN_WORK_STOP) {
		if (!is_queued(state)) {
			return PIN_WORK_NONE;
		}
		return event == PIN_WORK_ENTER && !is_over(state) ? PIN_WORK_RUNNING
								  : PIN_WORK_ENDED;
	}
	if (!is_running(state)) {
		return PIN_WORK_NONE;
	}
	if (event == PIN_WORK_IS_DONE || is_over(state)) {
		return PIN_WORK_ENDED;
	}
	return event == PIN_WORK_IS_BUSY || state == PIN_WORK_NOTIFIED ? PIN_WORK_SCHEDULED
								       : PIN_WORK_IDLE;
}

static void check_table(void)
{
	char what[64];

	for (uint32_t state = PIN_WORK_IDLE; state < PIN_WORK_STATES; state++) {
		for (uint32_t event = 0; event < PIN_WORK_EVENTS; event++) {
			snprintf(what, sizeof(what), "step of state %u by event %u", state, event);
			expect_number(what,
				expected_step(
					(enum pin_work_state)state, (enum pin_work_event)event),
				pin_work_next(
					(enum pin_work_state)state, (enum pin_work_event)event));
		}
	}
	for (uint32_t event = 0; event < PIN_WORK_EVENTS; event++) {
		expect_number("no step of an uninitialised one", PIN_WORK_NONE,
			pin_work_next(PIN_WORK_NONE, (enum pin_work_event)event));
	}
}

/* ---- one item, one worker ---- */

struct item {
	struct pinion_work work;
	int (*body)(struct item *item);
	uint32_t run_count;
	uint32_t end_count;
	int result;
};

static struct pinion_runtime *runtime;
static struct item item;
static struct pin_atomic_u32 turn; /* the thread that a held worker waits for */

/* Lets the other side go on and waits for its answer. */
static void pass_turn(uint32_t to, uint32_t back)
{
	pin_store_release_u32(&turn, to);
	while (pin_load_acquire_u32(&turn) != back) {
		pin_host_linux.yield();
	}
}

static int hold(struct pinion_task *task)
{
	(void)task;
	pass_turn(1, 2);
	return 0;
}

static int run(struct pinion_work *work)
{
	item.run_count++;
	expect_true("same item", work == &item.work);
	expect_number("no run after the end", 0, item.end_count);
	return item.body(&item);
}

static void end(struct pinion_work *work, int result)
{
	expect_true("same item", work == &item.work);
	item.end_count++;
	item.result = result;
}

static void begin(int (*body)(struct item *item))
{
	item = (struct item){.body = body, .result = 1};
	pinion_work_init(&item.work, run, end);
	pin_store_release_u32(&turn, 0);
	runtime = runtimes_start(1, PINION_IO_FALLBACK);
}

static void await_turn(void)
{
	while (pin_load_acquire_u32(&turn) != 1) {
		pin_host_linux.yield();
	}
}

static void finish(uint32_t run_count, uint32_t end_count, int result)
{
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
	expect_number("runs", run_count, item.run_count);
	expect_number("ends", end_count, item.end_count);
	expect_number("result", result, item.result);
}

static void expect_wake(int expected)
{
	expect_number("wake", expected, pinion_work_wake(runtime, &item.work));
}

static void expect_cancel(int expected)
{
	expect_number("cancel", expected, pinion_work_cancel(&item.work));
}

static int wait_for_wake(struct item *self)
{
	(void)self;
	return PINION_WORK_WAIT;
}

static void check_idle(void)
{
	begin(wait_for_wake);
	expect_true("not cancelled", !pinion_work_is_cancelled(&item.work));
	expect_cancel(PINION_WORK_ENDED);
	expect_true("cancelled", pinion_work_is_cancelled(&item.work));
	expect_cancel(-EALREADY);
	expect_wake(-ECANCELED);
	finish(0, 0, 1);
}

static void check_scheduled(bool is_cancelled)
{
	struct pinion_task holder = {.run = hold};

	begin(wait_for_wake);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &holder));
	await_turn();
	expect_wake(0);
	expect_wake(0);
	if (is_cancelled) {
		expect_cancel(PINION_WORK_END_FOLLOWS);
		expect_cancel(-EALREADY);
		expect_wake(-ECANCELED);
	}
	pin_store_release_u32(&turn, 2);
	finish(is_cancelled ? 0 : 1, is_cancelled ? 1 : 0, is_cancelled ? -ECANCELED : 1);
}

/* ---- running ---- */

static int next_of_run; /* what the run below returns */

static int hold_first(struct item *self)
{
	if (self->run_count > 1) {
		return PINION_WORK_WAIT;
	}
	pass_turn(1, 2);
	return next_of_run;
}

static void check_running(int next, bool is_woken, bool is_cancelled)
{
	bool is_done = next < 0 || next == PINION_WORK_DONE;
	bool runs_again = !is_done && !is_cancelled && (is_woken || next == PINION_WORK_AGAIN);
	struct pinion_runtime_stats counters;
	int result = 1;

	if (is_done) {
		result = next < 0 ? next : 0;
	} else if (is_cancelled) {
		result = -ECANCELED;
	}
	next_of_run = next;
	begin(hold_first);
	expect_wake(0);
	await_turn();
	if (is_woken) {
		expect_wake(0);
		expect_wake(0);
	}
	if (is_cancelled) {
		expect_true("not cancelled", !pinion_work_is_cancelled(&item.work));
		expect_cancel(PINION_WORK_END_FOLLOWS);
		expect_true("cancelled", pinion_work_is_cancelled(&item.work));
		expect_cancel(-EALREADY);
		expect_wake(-ECANCELED);
	}
	expect_number("no end while it runs", 0, item.end_count);
	pin_store_release_u32(&turn, 2);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	counters = runtimes_counters(runtime);
	expect_number("failures", next < 0 ? 1 : 0, (long long)counters.tasks_failed);
	expect_number("tasks run", runs_again ? 2 : 1, (long long)counters.tasks_run);
	expect_number(
		"tasks spawned", (long long)counters.tasks_run, (long long)counters.tasks_spawned);
	finish(runs_again ? 2 : 1, result == 1 ? 0 : 1, result);
}

static void check_returns(void)
{
	static const int returns[] = {PINION_WORK_WAIT, PINION_WORK_AGAIN, PINION_WORK_DONE, -EIO};

	for (size_t i = 0; i < sizeof(returns) / sizeof(returns[0]); i++) {
		for (int flags = 0; flags < 4; flags++) {
			check_running(returns[i], (flags & 1) != 0, (flags & 2) != 0);
		}
	}
}

static int wake_itself(struct item *self)
{
	if (self->run_count < 5) {
		expect_wake(0);
	}
	return PINION_WORK_WAIT;
}

static int cancel_itself(struct item *self)
{
	(void)self;
	expect_wake(0);
	expect_cancel(PINION_WORK_END_FOLLOWS);
	expect_wake(-ECANCELED);
	return PINION_WORK_AGAIN;
}

static void check_itself(void)
{
	begin(wake_itself);
	expect_wake(0);
	finish(5, 0, 1);
	begin(cancel_itself);
	expect_wake(0);
	finish(1, 1, -ECANCELED);
}

/* ---- the runtime's end, and mistakes ---- */

static void check_drained(void)
{
	begin(wait_for_wake);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_wake(-ESHUTDOWN);
	expect_wake(-ESHUTDOWN);
	/* Nothing has changed. */
	expect_cancel(PINION_WORK_ENDED);
	finish(0, 0, 1);
}

static void *stop(void *arg)
{
	(void)arg;
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	return NULL;
}

/* On its worker: until the runtime is being stopped. */
static void await_stop(void)
{
	while (pin_runtime_reserve(runtime) == 0) {
		pin_runtime_undo(runtime);
		pin_host_linux.yield();
	}
}

static int hold_until_stop(struct pinion_task *task)
{
	(void)task;
	pin_store_release_u32(&turn, 1);
	await_stop();
	return 0;
}

static void stop_from_secondary(void)
{
	pthread_t thread;

	expect_ready("thread", pthread_create(&thread, NULL, stop, NULL) == 0);
	pthread_join(thread, NULL);
}

static void check_stopped_while_scheduled(bool is_cancelled)
{
	struct pinion_task holder = {.run = hold_until_stop};

	begin(wait_for_wake);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &holder));
	await_turn();
	expect_wake(0);
	if (is_cancelled) {
		expect_cancel(PINION_WORK_END_FOLLOWS);
	}
	stop_from_secondary();
	expect_number("tasks cancelled", 1, (long long)runtimes_counters(runtime).tasks_cancelled);
	expect_wake(-ECANCELED);
	expect_cancel(-EALREADY);
	finish(0, 1, -ECANCELED);
}

static bool wakes_itself;

static int run_until_stop(struct item *self)
{
	(void)self;
	pin_store_release_u32(&turn, 1);
	await_stop();
	if (wakes_itself) {
		expect_wake(0);
	}
	return next_of_run;
}

/* What it asked for is given to `end` instead. */
static void check_stopped_while_running(int next, bool is_woken)
{
	next_of_run = next;
	wakes_itself = is_woken;
	begin(run_until_stop);
	expect_wake(0);
	await_turn();
	stop_from_secondary();
	if (next == PINION_WORK_WAIT && !is_woken) {
		expect_wake(-ESHUTDOWN);
		expect_cancel(PINION_WORK_ENDED);
		finish(1, 0, 1);
	} else {
		finish(1, 1, next == PINION_WORK_DONE ? 0 : -ECANCELED);
	}
}

/* ---- a place in the runtime that is not used ---- */

static void *drain(void *arg)
{
	(void)arg;
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	return NULL;
}

/* A drain waits for it, and ends when it is given back. */
static void check_undone(void)
{
	pthread_t thread;

	begin(wait_for_wake);
	expect_number("reserve", 0, pin_runtime_reserve(runtime));
	expect_ready("thread", pthread_create(&thread, NULL, drain, NULL) == 0);
	while (pin_runtime_reserve(runtime) == 0) {
		pin_runtime_undo(runtime);
		pin_host_linux.yield();
	}
	expect_number("counted", 1, (long long)runtimes_counters(runtime).tasks_spawned);
	pin_runtime_undo(runtime);
	pthread_join(thread, NULL);
	expect_number("not counted", 0, (long long)runtimes_counters(runtime).tasks_spawned);
	finish(0, 0, 1);
}

static struct item other;

/* A worker is refused, too, once its runtime is being stopped. */
static int wake_other_when_stopped(struct item *self)
{
	(void)self;
	pin_store_release_u32(&turn, 1);
	await_stop();
	expect_number("wake of idle work", -ESHUTDOWN, pinion_work_wake(runtime, &other.work));
	return PINION_WORK_WAIT;
}

static void check_stopped_while_idle(void)
{
	pinion_work_init(&other.work, run, end);
	begin(wake_other_when_stopped);
	expect_wake(0);
	await_turn();
	stop_from_secondary();
	expect_number("cancel of idle work", PINION_WORK_ENDED, pinion_work_cancel(&other.work));
	finish(1, 0, 1);
}

static void check_without_callbacks(void)
{
	struct pinion_task holder = {.run = hold};

	begin(wait_for_wake);
	pinion_work_init(&item.work, NULL, end);
	expect_wake(-EINVAL);
	pinion_work_init(&item.work, run, NULL);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &holder));
	await_turn();
	expect_wake(0);
	expect_cancel(PINION_WORK_END_FOLLOWS);
	pin_store_release_u32(&turn, 2);
	finish(0, 0, 1);
}

int main(void)
{
	runtimes_watchdog(60);
	check_table();
	check_idle();
	check_scheduled(false);
	check_scheduled(true);
	check_returns();
	check_itself();
	check_drained();
	check_stopped_while_scheduled(false);
	check_stopped_while_scheduled(true);
	for (int is_woken = 0; is_woken <= 1; is_woken++) {
		check_stopped_while_running(PINION_WORK_WAIT, is_woken != 0);
		check_stopped_while_running(PINION_WORK_AGAIN, is_woken != 0);
		check_stopped_while_running(PINION_WORK_DONE, is_woken != 0);
	}
	check_undone();
	check_stopped_while_idle();
	check_without_callbacks();
	return expect_status();
}

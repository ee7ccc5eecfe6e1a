/* SPDX-License-Identifier: MIT */
/*
 * Goal: a function is called on the runtime asked for, and its caller goes on
 * with its result, a thread at its call, a task on its own worker; also when
 * that runtime is stopped first. Each error is seen. RP-2, RP-15 (waits of
 * tasks), WP-1, WP-18, G10.
 * Method: two runtimes that call each other; then tasks of one call into the
 * other again and again, and go on on the worker they began on.
 */
#include "runtime/base/base.h"
#include "runtime/worker/worker.h"
#include "tests/support/runtimes.h"
#include "tests/support/stops.h"
#include "tests/support/tasks.h"

#include <errno.h>

enum {
	TASKS = 20,
	ROUNDS = 200,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime; /* of the callers */
static struct pinion_runtime *other;
static struct pin_atomic_u32 step;
static struct pin_atomic_u32 bad_count;

/* Returns what `arg` says, plus one; on the other runtime only. */
static int call_other(void *arg)
{
	if (pinion_worker_index(other) < 0) {
		pin_fetch_add_acq_rel_u32(&bad_count, 1);
	}
	return *(int *)arg + 1;
}

static int call_back(void *arg)
{
	int result = 0;

	(void)arg;
	expect_number("call of its own runtime", -EDEADLK,
		pinion_call_run(other, call_other, &result, &result));
	return -EIO;
}

static void check_thread(void)
{
	int value = 41;
	int result = 0;

	expect_number("execute", 0, pinion_call_run(other, call_other, &value, &result));
	expect_number("result", 42, result);
	expect_number("execute", 0, pinion_call_run(other, call_back, NULL, &result));
	expect_number("failure", -EIO, result);
	expect_number("no function", -EINVAL, pinion_call_run(other, NULL, NULL, &result));
}

/* ---- a task that calls once, and makes mistakes ---- */

static struct pinion_call call_here;
static struct pinion_wait wait_here;
static int value_here;

static int run_over(struct pinion_task *task)
{
	(void)task;
	expect_number("wait", 0, wait_here.result);
	expect_number("result", 8, call_here.result);
	tasks_signal(&step);
	return 0;
}

static int run_mistakes(struct pinion_task *task)
{
	int result = 0;

	(void)task;
	value_here = 7;
	wait_here = (struct pinion_wait){.task.run = run_over, .deadline_ns = UINT64_MAX};
	call_here = (struct pinion_call){.run = call_other, .arg = &value_here, .reserved = 1};
	expect_number(
		"reserved", -EINVAL, pinion_call_run_async(other, &call_here, runtime, &wait_here));
	call_here.reserved = 0;
	call_here.task.flags = 8;
	expect_number("flags", -EINVAL, pinion_call_start(other, &call_here));
	call_here.task.flags = 0;
	expect_number("not its own", -EPERM,
		pinion_call_run_async(runtime, &call_here, other, &wait_here));
	expect_number(
		"blocking", -EDEADLK, pinion_call_run(other, call_other, &value_here, &result));
	expect_number("not called", 0, result);
	expect_number("await", 0, pinion_call_run_async(other, &call_here, runtime, &wait_here));
	return 0;
}

static void check_task(void)
{
	struct pinion_task task = {.run = run_mistakes};

	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	tasks_await(&step, 1);
}

/* ---- many ---- */

struct caller {
	struct pinion_call call;
	struct pinion_wait wait;
	struct pinion_task starter;
	struct pin_worker *worker;
	int value;
};

static struct caller callers[TASKS];

static int next_call(struct caller *caller)
{
	return pinion_call_run_async(other, &caller->call, runtime, &caller->wait);
}

static int run_next(struct pinion_task *task)
{
	struct caller *caller = PIN_CONTAINER_OF(task, struct caller, wait.task);

	if (caller->wait.result != 0 || caller->call.result != caller->value + 1 ||
		caller->worker != pin_worker_current()) {
		pin_fetch_add_acq_rel_u32(&bad_count, 1);
	}
	caller->value++;
	return caller->value < ROUNDS ? next_call(caller) : 0;
}

static int run_first(struct pinion_task *task)
{
	struct caller *caller = PIN_CONTAINER_OF(task, struct caller, starter);

	caller->worker = pin_worker_current();
	return next_call(caller);
}

static void check_many(void)
{
	for (uint32_t i = 0; i < TASKS; i++) {
		callers[i].call = (struct pinion_call){.run = call_other, .arg = &callers[i].value};
		callers[i].wait =
			(struct pinion_wait){.task.run = run_next, .deadline_ns = UINT64_MAX};
		callers[i].starter.run = run_first;
		expect_number("spawn", 0, pinion_task_spawn(runtime, &callers[i].starter));
	}
	expect_number("join", 0, pinion_runtime_join(runtime));
	for (uint32_t i = 0; i < TASKS; i++) {
		expect_number("calls", ROUNDS, callers[i].value);
	}
}

/* ---- the end of the other ---- */

static void check_stop(void)
{
	struct tasks_hold hold = {0};
	struct pinion_call call = {.run = call_other};
	pthread_t stopper;
	int result = 1;

	tasks_hold_begin(&hold, other, 0);
	expect_number("start", 0, pinion_call_start(other, &call));
	stopper = stops_begin(other);
	tasks_hold_end(&hold);
	expect_number("wait", 0, pinion_future_wait(&call.done, UINT64_MAX));
	expect_number("cancelled", -ECANCELED, call.result);
	stops_end(stopper);
	expect_number("failures", 1, (long long)runtimes_counters(other).tasks_failed);
	expect_number("too late", -ESHUTDOWN, pinion_call_run(other, call_other, NULL, &result));
	expect_number("untouched", 1, result);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	runtime = runtimes_start(2, PINION_IO_AUTO);
	other = runtimes_start(1, PINION_IO_AUTO);
	check_thread();
	check_task();
	check_many();
	check_stop();
	expect_number("on a wrong worker, or wrong", 0, pin_load_acquire_u32(&bad_count));
	pinion_runtime_destroy(runtime);
	pinion_runtime_destroy(other);
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: pinion_runtime_is_accepting() is true from creation until the runtime's
 * end begins, by a drain, a join, a stop or the first failure, and false from
 * then on: while the end is under way, and when all is over. Being full, or the
 * end of another runtime, changes nothing. EX-25, EX-26.
 * Method: a task that is held keeps the end under way; it asks as well, and
 * spawns another, which a drain allows. What the answer says is compared with
 * what a spawn from outside then gets. A state that never comes hangs the test
 * and trips its watchdog. The forked process is fork_leaves_parent_working's.
 */
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>

enum {
	WORKERS = 2,
	SMALL_QUEUE = 4,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static struct pin_atomic_u32 run_count;

static int count_run(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&run_count);
	return 0;
}

static void expect_open(const char *when)
{
	expect_true(when, pinion_runtime_is_accepting(runtime));
}

static void expect_closed(const char *when)
{
	struct pinion_task task = {.run = count_run};

	expect_true(when, !pinion_runtime_is_accepting(runtime));
	expect_number(when, -ESHUTDOWN, pinion_task_spawn(runtime, &task));
}

static void await_closed(void)
{
	while (pinion_runtime_is_accepting(runtime)) {
		sched_yield();
	}
}

/* ---- each way to end ---- */

static void *drain(void *arg)
{
	expect_number(arg, 0, pinion_runtime_drain(runtime));
	return NULL;
}

static void *join(void *arg)
{
	expect_number(arg, 0, pinion_runtime_join(runtime));
	return NULL;
}

static void *stop(void *arg)
{
	expect_number(arg, 0, pinion_runtime_stop(runtime));
	return NULL;
}

static struct pinion_task spawned;
static int spawn_result;

/* What a task sees of the end, and may do. */
static int ask_inside(struct pinion_task *task)
{
	tasks_hold_run(task);
	expect_true("seen by a task", !pinion_runtime_is_accepting(runtime));
	spawned = (struct pinion_task){.run = count_run};
	spawn_result = pinion_task_spawn(runtime, &spawned);
	return 0;
}

static void check_end(const char *what, void *(*end)(void *), int inside)
{
	struct tasks_hold hold = {.task.run = ask_inside};
	struct pinion_task task = {.run = count_run};
	pthread_t thread;

	runtime = runtimes_start(WORKERS, PINION_IO_FALLBACK);
	pin_store_release_u32(&run_count, 0);
	expect_open(what);
	expect_number(what, 0, pinion_task_spawn(runtime, &task));
	expect_number(what, 0, pinion_task_spawn_on(runtime, 1, &hold.task));
	tasks_await(&hold.has_begun, 1);
	tasks_await(&run_count, 1);
	expect_open(what);
	expect_ready("thread", pthread_create(&thread, NULL, end, (void *)(uintptr_t)what) == 0);
	await_closed();
	expect_closed(what);
	tasks_signal(&hold.may_end);
	pthread_join(thread, NULL);
	expect_number(what, inside, spawn_result);
	expect_number(what, inside == 0 ? 2 : 1, pin_load_acquire_u32(&run_count));
	expect_closed(what);
	pinion_runtime_destroy(runtime);
}

/* A stop that is late has begun all the same. */
static void check_late_stop(void)
{
	struct tasks_hold hold = {.prepare = NULL};

	runtime = runtimes_start(WORKERS, PINION_IO_FALLBACK);
	tasks_hold_begin(&hold, runtime, 0);
	expect_open("before the stop");
	expect_number("stop", -ETIME, pinion_runtime_stop_until(runtime, 0));
	expect_closed("late stop");
	tasks_hold_end(&hold);
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	expect_closed("after it");
	pinion_runtime_destroy(runtime);
}

static int fail(struct pinion_task *task)
{
	(void)task;
	return -EIO;
}

static void check_failure(uint32_t fault_policy)
{
	struct pinion_task task = {.run = fail};
	struct pinion_config config;

	runtimes_config(&config, WORKERS, PINION_IO_FALLBACK);
	runtimes_tuning.fault_policy = fault_policy;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	expect_open("before the failure");
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	if (fault_policy == PINION_FAULT_FAIL_FAST) {
		await_closed();
		expect_closed("by the failure");
	} else {
		while (runtimes_counters(runtime).tasks_failed == 0) {
			sched_yield();
		}
		expect_open("in spite of the failure");
	}
	expect_number("join", -EIO, pinion_runtime_join(runtime));
	expect_closed("after the join");
	pinion_runtime_destroy(runtime);
}

/* ---- what does not end it ---- */

static void check_full(void)
{
	struct tasks_hold hold = {.prepare = NULL};
	struct pinion_task tasks[SMALL_QUEUE + 1];
	struct pinion_config config;
	int rc = 0;

	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	runtimes_tuning.injector_tasks = SMALL_QUEUE;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	tasks_hold_begin(&hold, runtime, 0);
	for (uint32_t i = 0; i <= SMALL_QUEUE && rc == 0; i++) {
		tasks[i] = (struct pinion_task){.run = count_run};
		rc = pinion_task_spawn(runtime, &tasks[i]);
	}
	expect_number("full", -EAGAIN, rc);
	expect_open("though full");
	tasks_hold_end(&hold);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
}

static void check_another(void)
{
	struct pinion_runtime *other;

	runtime = runtimes_start(1, PINION_IO_FALLBACK);
	other = runtimes_start(1, PINION_IO_FALLBACK);
	expect_number("stop", 0, pinion_runtime_stop(other));
	expect_true("the other", !pinion_runtime_is_accepting(other));
	expect_open("this one");
	pinion_runtime_destroy(other);
	expect_open("nor by its destruction");
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_end("drain", drain, 0);
	check_end("join", join, 0);
	check_end("stop", stop, -ESHUTDOWN);
	check_late_stop();
	check_failure(PINION_FAULT_FAIL_FAST);
	check_failure(PINION_FAULT_ISOLATE);
	check_full();
	check_another();
	return expect_status();
}

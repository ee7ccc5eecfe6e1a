/* SPDX-License-Identifier: MIT */
/*
 * Goal: pinion_runtime_join() returns 0, or what the first task that failed had
 * returned; by fault policy the others run, or the gate is closed and they are
 * cancelled and counted; mandatory tasks run under stop and under fail_fast;
 * an unknown flag is -EINVAL. C14, C15, EX-22, EX-32, EX-48, EX-60, W17.
 * Method: one worker and a held queue of tasks, some of which fail.
 */
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>

enum {
	TASKS = 100,
	FIRST = 9, /* the first that fails */
	SECOND = 20,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static struct pinion_task tasks[TASKS];
static struct pin_atomic_u32 run_count;
static struct pin_atomic_u32 cancel_count;
static struct pin_atomic_u32 end_count;
static struct pin_atomic_u32 odd;
static bool has_failures;

static int run(struct pinion_task *task)
{
	size_t number = (size_t)(task - tasks);

	pin_fetch_add_acq_rel_u32(&run_count, 1);
	tasks_signal(&end_count);
	if (!has_failures) {
		return 1; /* anything that is not negative is fine */
	}
	return number == FIRST ? -EIO : number == SECOND ? -ENOSPC : 0;
}

static void cancel(struct pinion_task *task)
{
	if ((task->flags & PINION_TASK_MANDATORY) != 0) {
		pin_fetch_add_acq_rel_u32(&odd, 1);
	}
	pin_fetch_add_acq_rel_u32(&cancel_count, 1);
	tasks_signal(&end_count);
}

static void start(uint32_t fault_policy, uint32_t worker_count)
{
	struct pinion_config config;

	runtimes_config(&config, worker_count, PINION_IO_AUTO);
	runtimes_tuning.fault_policy = fault_policy;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	pin_store_release_u32(&run_count, 0);
	pin_store_release_u32(&cancel_count, 0);
	pin_store_release_u32(&end_count, 0);
}

/* On its worker, so in order. Every third is mandatory, if any are. */
static void spawn_all(bool has_mandatory)
{
	for (uint32_t i = 0; i < TASKS; i++) {
		bool is_mandatory = has_mandatory && i % 3 == 0;

		tasks[i] = (struct pinion_task){
			.run = run,
			.cancel = cancel,
			.flags = is_mandatory ? PINION_TASK_MANDATORY : 0,
		};
		expect_number("spawn", 0, pinion_task_spawn_on(runtime, 0, &tasks[i]));
	}
}

static void expect_ends(const char *what, uint32_t ran, uint32_t cancelled, uint32_t failed)
{
	struct pinion_runtime_stats counters = runtimes_counters(runtime);

	expect_number(what, ran, pin_load_acquire_u32(&run_count));
	expect_number(what, cancelled, pin_load_acquire_u32(&cancel_count));
	expect_number("tasks_cancelled", cancelled, (long long)counters.tasks_cancelled);
	expect_number("tasks_failed", failed, (long long)counters.tasks_failed);
	expect_number("balance", (long long)counters.tasks_spawned,
		(long long)(counters.tasks_run + counters.tasks_cancelled));
	expect_number("mandatory and cancelled", 0, pin_load_acquire_u32(&odd));
}

static void check_join(bool fails, int expected)
{
	start(PINION_FAULT_ISOLATE, 1);
	has_failures = fails;
	spawn_all(true);
	expect_number("join", expected, pinion_runtime_join(runtime));
	expect_number("join once more", expected, pinion_runtime_join(runtime));
	expect_number("drain keeps it to itself", 0, pinion_runtime_drain(runtime));
	expect_ends("isolate", TASKS, 0, fails ? 2 : 0);
	pinion_runtime_destroy(runtime);
}

static void check_fail_fast(bool has_mandatory)
{
	/* Of those after the failing one, 1 in 3 if they are mandatory. */
	uint32_t later = has_mandatory ? (TASKS - 1) / 3 - FIRST / 3 : 0;
	struct tasks_hold hold = {0};
	struct pinion_task late = {.run = run, .private_ = 7};
	struct pinion_task before = late;

	start(PINION_FAULT_FAIL_FAST, 1);
	has_failures = true;
	tasks_hold_begin(&hold, runtime, 0);
	spawn_all(has_mandatory);
	tasks_hold_end(&hold);
	tasks_await(&end_count, TASKS);
	/* Only the task has ended it. */
	expect_number("gate", -ESHUTDOWN, pinion_task_spawn(runtime, &late));
	expect_number("batch", -ESHUTDOWN,
		pinion_task_spawn_batch(runtime, &(struct pinion_task *){&late}, 1));
	expect_number("untouched", 0, memcmp(&before, &late, sizeof(late)));
	expect_number("join", -EIO, pinion_runtime_join(runtime));
	expect_ends("fail_fast", FIRST + 1 + later, TASKS - FIRST - 1 - later, 1);
	pinion_runtime_destroy(runtime);
}

static int stop_inside(struct pinion_task *task)
{
	(void)task;
	return pinion_runtime_join(runtime) == -EDEADLK ? 0 : -EIO;
}

static void await_stop(struct tasks_hold *hold)
{
	struct pinion_request bad = {.task.run = run};

	tasks_signal(&hold->has_begun);
	while (pinion_request_submit(runtime, &bad) != -ESHUTDOWN) {
		sched_yield();
	}
}

/* The tasks are queued after a task that goes on until it sees the stop. */
static void check_stop(void)
{
	struct tasks_hold hold = {.prepare = await_stop};

	start(PINION_FAULT_ISOLATE, 1);
	has_failures = false;
	pin_store_release_u32(&hold.is_spawned, 1);
	pin_store_release_u32(&hold.may_end, 1);
	hold.task = (struct pinion_task){.run = tasks_hold_run};
	expect_number("spawn", 0, pinion_task_spawn(runtime, &hold.task));
	tasks_await(&hold.has_begun, 1);
	spawn_all(true);
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	expect_ends("stop", (TASKS + 2) / 3, TASKS - (TASKS + 2) / 3, 0);
	expect_number("join after a stop", 0, pinion_runtime_join(runtime));
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	struct pinion_task inside = {.run = stop_inside};

	runtimes_watchdog(LIMIT_SECONDS);
	check_join(false, 0);
	check_join(true, -EIO);
	check_fail_fast(false);
	check_fail_fast(true);
	check_stop();

	/* A join without tasks, and from a task. */
	start(PINION_FAULT_FAIL_FAST, 4);
	expect_number("join without tasks", 0, pinion_runtime_join(runtime));
	pinion_runtime_destroy(runtime);
	start(PINION_FAULT_ISOLATE, 1);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &inside));
	expect_number("join from a task is refused", 0, pinion_runtime_join(runtime));
	pinion_runtime_destroy(runtime);

	start(PINION_FAULT_ISOLATE, 1);
	tasks[0] = (struct pinion_task){.run = run, .flags = 1u << 31};
	expect_number("spawn: unknown flag", -EINVAL, pinion_task_spawn(runtime, &tasks[0]));
	expect_number(
		"shared: unknown flag", -EINVAL, pinion_task_spawn_shared(runtime, &tasks[0]));
	pinion_runtime_destroy(runtime);
	return expect_status();
}

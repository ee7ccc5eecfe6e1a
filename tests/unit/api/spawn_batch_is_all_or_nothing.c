/* SPDX-License-Identifier: MIT */
/*
 * Goal: pinion_task_spawn_batch() takes all tasks, in order, or none: a bad one
 * at any place, or a runtime that has ended, leaves every task as it was. From
 * outside it wakes one worker at most. EX-20, EX-24, EX-26.
 * Method: batches from outside and from a task of a single worker, which note
 * the order they run in; each bad task at each place of a batch; this thread's
 * futex calls are counted.
 */
#include "tests/support/runtimes.h"
#include "tests/support/wakes.h"

#include <errno.h>

enum {
	COUNT = 1000,
	LONG_US = 1000000,
	SMALL = 5,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static struct pinion_task tasks[COUNT];
static struct pinion_task *pointers[COUNT];
static uint32_t order[COUNT]; /* by one worker; read after a drain */
static struct pin_atomic_u32 run_count;
static struct pin_atomic_u32 cancel_count;
static int inner_result = 1;

static int note(struct pinion_task *task)
{
	order[pin_fetch_add_acq_rel_u32(&run_count, 1)] = (uint32_t)(task - tasks);
	return 0;
}

static void note_cancel(struct pinion_task *task)
{
	(void)task;
	pin_fetch_add_acq_rel_u32(&cancel_count, 1);
}

static void prepare(uint32_t worker_count)
{
	struct pinion_config config;

	runtimes_config(&config, worker_count, PINION_IO_AUTO);
	/* A check of the shared queue in between would run those first. */
	runtimes_tuning.injector_target_us = LONG_US;
	runtimes_tuning.interval_min = 65535;
	runtimes_tuning.interval_max = 65535;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	pin_store_release_u32(&run_count, 0);
	for (uint32_t i = 0; i < COUNT; i++) {
		tasks[i] = (struct pinion_task){.run = note, .cancel = note_cancel, .private_ = i};
		pointers[i] = &tasks[i];
	}
}

static void expect_in_order(const char *what, uint32_t count)
{
	expect_number(what, count, pin_load_acquire_u32(&run_count));
	for (uint32_t i = 0; i < count && expect_failure_count == 0; i++) {
		expect_number(what, i, order[i]);
	}
}

static int spawn_inside(struct pinion_task *task)
{
	(void)task;
	inner_result = pinion_task_spawn_batch(runtime, pointers, SMALL);
	return 0;
}

/* More than the worker's own queue holds. */
static int spawn_many_inside(struct pinion_task *task)
{
	(void)task;
	inner_result = pinion_task_spawn_batch(runtime, pointers, COUNT);
	return 0;
}

/* By one worker. False: it took long enough for such a check to be due. */
static bool spawn_in_order(bool is_inside)
{
	struct pinion_task inside = {.run = spawn_inside};
	uint64_t begin_ns;
	bool is_short;

	prepare(1);
	inner_result = 1;
	begin_ns = pinion_clock_now_ns();
	if (is_inside) {
		expect_number("spawn", 0, pinion_task_spawn(runtime, &inside));
	} else {
		inner_result = pinion_task_spawn_batch(runtime, pointers, COUNT);
	}
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	is_short = pinion_clock_now_ns() - begin_ns < LONG_US * UINT64_C(1000);
	expect_number("batch", 0, inner_result);
	if (is_short) {
		expect_in_order(
			is_inside ? "from a task" : "from outside", is_inside ? SMALL : COUNT);
	}
	pinion_runtime_destroy(runtime);
	return is_short;
}

static void check_order(void)
{
	struct pinion_task inside = {.run = spawn_many_inside};

	while (!spawn_in_order(false) || !spawn_in_order(true)) {
	}

	prepare(2);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &inside));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("more than a queue", 0, inner_result);
	expect_number("more than a queue", COUNT, pin_load_acquire_u32(&run_count));
	pinion_runtime_destroy(runtime);
}

/* A copy of all tasks, to compare with. */
static void expect_refused(const char *what, int expected, uint32_t count)
{
	static struct pinion_task before[COUNT];

	memcpy(before, tasks, sizeof(tasks));
	expect_number(what, expected, pinion_task_spawn_batch(runtime, pointers, count));
	expect_number(what, 0, memcmp(before, tasks, sizeof(tasks)));
}

static void check_bad(void)
{
	static const uint32_t places[] = {0, SMALL / 2, SMALL - 1};

	prepare(2);
	for (size_t i = 0; i < PIN_ARRAY_COUNT(places); i++) {
		uint32_t place = places[i];

		tasks[place].run = NULL;
		expect_refused("no function", -EINVAL, SMALL);
		tasks[place].run = note;
		tasks[place].flags = PINION_TASK_MANDATORY | 8;
		expect_refused("unknown flag", -EINVAL, SMALL);
		tasks[place].flags = 0;
		pointers[place] = NULL;
		expect_refused("no task", -EINVAL, SMALL);
		pointers[place] = &tasks[place];
	}
	expect_number("none", 0, pinion_task_spawn_batch(runtime, NULL, 0));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("of the refused ones run", 0, pin_load_acquire_u32(&run_count));
	expect_number("tasks_spawned", 0, (long long)runtimes_counters(runtime).tasks_spawned);
	expect_refused("drained", -ESHUTDOWN, SMALL);
	pinion_runtime_destroy(runtime);
}

/* Held until the runtime stops, which shows when an invalid read is refused. */
static void await_stop(struct tasks_hold *hold)
{
	struct pinion_request bad = {.task.run = note};

	tasks_signal(&hold->has_begun);
	while (pinion_request_submit(runtime, &bad) != -ESHUTDOWN) {
		sched_yield();
	}
	inner_result = pinion_task_spawn_batch(runtime, pointers, SMALL);
}

static void check_stopped(void)
{
	struct tasks_hold hold = {.prepare = await_stop};
	static struct pinion_task before[COUNT];

	prepare(1);
	memcpy(before, tasks, sizeof(tasks));
	pin_store_release_u32(&hold.is_spawned, 1);
	pin_store_release_u32(&hold.may_end, 1);
	hold.task = (struct pinion_task){.run = tasks_hold_run};
	expect_number("spawn", 0, pinion_task_spawn(runtime, &hold.task));
	tasks_await(&hold.has_begun, 1);
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	expect_number("from a task under stop", -ESHUTDOWN, inner_result);
	expect_number("untouched", 0, memcmp(before, tasks, sizeof(tasks)));
	expect_refused("stopped", -ESHUTDOWN, SMALL);
	pinion_runtime_destroy(runtime);
}

static void check_wakes(void)
{
	prepare(8);
	wakes_watch(runtime);
	expect_number("batch", 0, pinion_task_spawn_batch(runtime, pointers, COUNT));
	expect_true("one wake at most for a batch", wakes_count <= 1);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	wakes_forget();
	expect_number("run", COUNT, pin_load_acquire_u32(&run_count));
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	wakes_begin();
	check_order();
	check_bad();
	check_stopped();
	check_wakes();
	return expect_status();
}

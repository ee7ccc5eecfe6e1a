/* SPDX-License-Identifier: MIT */
/*
 * Goal: a task that does not return leaves its worker as a returning task does:
 * its spawns are stolen or run, others are woken, a drain and a stop end, each
 * task is counted once. C14, W43, WP-36.
 * Method: a task spawns another, or is stolen, and panics, while the main
 * thread spawns from outside, drains or stops. The explorer's threads are
 * coroutines, which are unwound as threads are.
 */
#include "runtime/base/base.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"

#include <errno.h>
#include <pinion/fault.h>
#include <pinion/timer.h>

enum { TASKS = 3 };

static struct pinion_runtime *runtime;
static struct model_task tasks[TASKS];

static void begin(uint32_t worker_count, void (*body)(struct model_task *task))
{
	for (uint32_t i = 0; i < TASKS; i++) {
		model_task_init(&tasks[i], i == 0 ? body : NULL);
	}
	runtime = model_runtime_begin(worker_count, PIN_DOORBELL_MESSAGE, NULL);
}

static void finish(uint32_t spawned)
{
	struct pinion_runtime_stats counters;
	uint64_t entered = 0;

	pinion_runtime_get_stats(runtime, &counters, sizeof(counters));
	for (uint32_t i = 0; i < TASKS; i++) {
		entered += tasks[i].run_count + tasks[i].cancel_count;
	}
	MODEL_CHECK(entered == spawned);
	MODEL_CHECK(counters.tasks_run + counters.tasks_cancelled == spawned);
	MODEL_CHECK(counters.tasks_failed == tasks[0].run_count);
	MODEL_CHECK(counters.tasks_unwound == tasks[0].run_count);
	model_runtime_end(runtime);
}

static void panic(struct model_task *task)
{
	(void)task;
	pinion_task_panic(-EIO, NULL);
}

/* Another is left in its worker's queue, without a wake yet. */
static void spawn_and_panic(struct model_task *task)
{
	MODEL_CHECK(pinion_task_spawn(runtime, &tasks[1].request.task) == 0);
	panic(task);
}

/* The other arrives, wakes and is stolen around the panic. */
static void run_steal(void)
{
	begin(2, spawn_and_panic);
	MODEL_CHECK(pinion_task_spawn(runtime, &tasks[0].request.task) == 0);
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	finish(2);
}

static void run_wake(void)
{
	begin(1, panic);
	MODEL_CHECK(pinion_task_spawn(runtime, &tasks[0].request.task) == 0);
	MODEL_CHECK(pinion_task_spawn(runtime, &tasks[1].request.task) == 0);
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	MODEL_CHECK(tasks[1].run_count == 1);
	finish(2);
}

static void run_stop(void)
{
	begin(1, panic);
	MODEL_CHECK(pinion_task_spawn(runtime, &tasks[0].request.task) == 0);
	MODEL_CHECK(pinion_task_spawn(runtime, &tasks[1].request.task) == 0);
	MODEL_CHECK(pinion_runtime_stop(runtime) == 0);
	finish(2);
}

static bool has_read;

/* The read was queued in the ring and not yet submitted to the kernel. */
static void read_and_panic(struct model_task *task)
{
	int rc = pinion_request_submit(runtime, &tasks[1].request);

	MODEL_CHECK(rc == 0 || rc == -ESHUTDOWN);
	has_read = rc == 0;
	panic(task);
}

static void run_read(void)
{
	has_read = false;
	begin(1, read_and_panic);
	MODEL_CHECK(pinion_task_spawn(runtime, &tasks[0].request.task) == 0);
	model_await("the task", model_task_has_run, &tasks[0]);
	/* Nothing but this ends the read. */
	MODEL_CHECK(pinion_runtime_stop(runtime) == 0);
	finish(has_read ? 2 : 1);
}

static struct pinion_timer timers[2];
static uint32_t timer_cancels;

static int run_timer(struct pinion_task *task)
{
	(void)task;
	MODEL_CHECK(false);
	return 0;
}

static void cancel_and_panic(struct pinion_task *task)
{
	(void)task;
	timer_cancels++;
	pinion_task_panic(-EIO, NULL);
}

/* Both may be cancelled in one turn; the first one's end cuts that short. */
static void run_timers(void)
{
	struct pinion_runtime_stats counters;

	begin(1, NULL);
	timer_cancels = 0;
	for (int i = 0; i < 2; i++) {
		timers[i] = (struct pinion_timer){
			.task = {.run = run_timer, .cancel = cancel_and_panic}};
		MODEL_CHECK(pinion_timer_start(runtime, &timers[i], UINT64_MAX) == 0);
		MODEL_CHECK(pinion_timer_cancel(runtime, &timers[i]) == 0);
	}
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	MODEL_CHECK(timer_cancels == 2);
	pinion_runtime_get_stats(runtime, &counters, sizeof(counters));
	MODEL_CHECK(counters.tasks_cancelled == 2 && counters.tasks_unwound == 2);
	MODEL_CHECK(counters.tasks_run == 0 && counters.tasks_failed == 0);
	model_runtime_end(runtime);
}

static const struct model_mutant mutants[] = {
	{"the task is not counted", {MODEL_SKIP, "run_steps", "pin_fault_recover"}},
	{.name = NULL},
};

static const struct model_mutant timers_mutants[] = {
	{"the task is not counted", {MODEL_SKIP, "run_steps", "pin_fault_recover"}},
	{"what a frame held is lost", {MODEL_SKIP, "run_steps", "cancelled_timers"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"steal", run_steal, 1, 1, 0, mutants, NULL},
	{"wake", run_wake, 2, 1, 0, mutants, NULL},
	{"stop", run_stop, 2, 1, 0, mutants, NULL},
	{"read", run_read, 2, 1, 0, mutants, NULL},
	{"timers", run_timers, 2, 1, 0, timers_mutants, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("fault", cases, PIN_ARRAY_COUNT(cases));
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: work given to a runtime from outside is run, however the worker's way
 * to sleep and the spawner's way to wake it fall together: [PARK-1], [PARK-2],
 * [INJECT-1]. AS-22, AS-23, EX-7, EX-23, EX-59, W27.
 * Method: real workers and the real pinion_task_spawn(); the main thread waits
 * for its tasks without ever waking a worker again, so a lost wake-up is a
 * deadlock. Sleeps on the futex, and in the ring with a request that completes
 * at any moment or not before the end.
 */
#include "runtime/base/base.h"
#include "runtime/task/entry.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"

static struct pinion_runtime *runtime;
static struct model_task tasks[2];
static struct model_task reader;
static struct model_task read_done;

static void spawn(struct model_task *task)
{
	MODEL_CHECK(pinion_task_spawn(runtime, &task->request.task) == 0);
}

/* ---- futex ---- */

static void spawn_and_await(uint32_t worker_count, uint32_t task_count)
{
	for (uint32_t i = 0; i < task_count; i++) {
		model_task_init(&tasks[i], NULL);
	}
	runtime = model_runtime_begin(worker_count, PIN_DOORBELL_MESSAGE, NULL);
	for (uint32_t i = 0; i < task_count; i++) {
		spawn(&tasks[i]);
	}
	for (uint32_t i = 0; i < task_count; i++) {
		model_await("a task", model_task_has_run, &tasks[i]);
	}
	model_runtime_end(runtime);
}

static void run_one_worker(void)
{
	spawn_and_await(1, 1);
}

static void run_two_tasks(void)
{
	spawn_and_await(1, 2);
}

static void run_two_workers(void)
{
	spawn_and_await(2, 2);
}

/* ---- tasks that need each other ---- */

static void await_other(struct model_task *task)
{
	model_await(
		"the other task", model_task_has_run, task == &tasks[0] ? &tasks[1] : &tasks[0]);
}

static void run_tasks_together(void)
{
	model_task_init(&tasks[0], await_other);
	model_task_init(&tasks[1], await_other);
	runtime = model_runtime_begin(2, PIN_DOORBELL_MESSAGE, NULL);
	spawn(&tasks[0]);
	spawn(&tasks[1]);
	model_await("a task", model_task_has_run, &tasks[0]);
	model_await("a task", model_task_has_run, &tasks[1]);
	model_runtime_end(runtime);
}

/* ---- ring ---- */

static void submit_read(struct model_task *task)
{
	(void)task;
	MODEL_CHECK(pinion_request_submit(runtime, &read_done.request) == 0);
}

/* ---- a wake without work, where all have requests in flight ---- */

static struct model_task readers[2];
static struct model_task reads[2];

static void submit_own_read(struct model_task *task)
{
	MODEL_CHECK(pinion_request_submit(runtime, &reads[task - readers].request) == 0);
}

static bool do_all_sleep(const void *arg)
{
	const struct pin_worker *workers = runtime->shared.workers;

	(void)arg;
	return tasks[0].run_count > 0 && workers[0].parker.state.value == PIN_PARK_RING &&
		workers[1].parker.state.value == PIN_PARK_RING;
}

static uint64_t wakes(void)
{
	struct pinion_runtime_stats counters;

	pinion_runtime_get_stats(runtime, &counters, sizeof(counters));
	return counters.wakes_sent;
}

/* The task's worker finds nothing beyond it, so the other sleeps on. */
static void run_doorbells(void)
{
	uint64_t before;

	runtime = model_runtime_begin(2, PIN_DOORBELL_MESSAGE, NULL);
	model_quiet_begin();
	model_task_init(&tasks[0], NULL);
	model_device_hold();
	for (uint32_t i = 0; i < 2; i++) {
		model_task_init(&reads[i], NULL);
		model_task_init(&readers[i], submit_own_read);
		MODEL_CHECK(pinion_task_spawn_on(runtime, i, &readers[i].request.task) == 0);
		model_settle();
	}
	before = wakes();
	model_quiet_end();
	spawn(&tasks[0]);
	model_await("all to sleep", do_all_sleep, NULL);
	model_quiet_begin();
	MODEL_CHECK(wakes() == before);
	model_runtime_end(runtime);
}

static bool is_read_submitted(const void *arg)
{
	(void)arg;
	return reader.run_count > 0;
}

/*
 * A worker that has just submitted a read which the device does not complete
 * yet.
 */
static void begin_with_read(enum pin_doorbell_kind doorbell)
{
	model_task_init(&tasks[0], NULL);
	model_task_init(&reader, submit_read);
	model_task_init(&read_done, NULL);
	model_thread_start_daemon("device", model_device, NULL);
	runtime = model_runtime_begin(1, doorbell, NULL);
	model_device_hold();
	model_quiet_begin();
	spawn(&reader);
	model_await("the read", is_read_submitted, NULL);
	model_quiet_end();
}

static void run_ring_busy(void)
{
	begin_with_read(PIN_DOORBELL_MESSAGE);
	model_device_release();
	spawn(&tasks[0]);
	model_await("a task", model_task_has_run, &tasks[0]);
	model_await("the read", model_task_has_run, &read_done);
	model_runtime_end(runtime);
}

static void run_ring_silent(void)
{
	begin_with_read(PIN_DOORBELL_MESSAGE);
	spawn(&tasks[0]);
	model_await("a task", model_task_has_run, &tasks[0]);
	model_runtime_end(runtime);
}

static void run_ring_silent_eventfd(void)
{
	begin_with_read(PIN_DOORBELL_EVENTFD);
	spawn(&tasks[0]);
	model_await("a task", model_task_has_run, &tasks[0]);
	model_runtime_end(runtime);
}

static const struct model_mutant futex_mutants[] = {
	{"no fence before the re-check", {MODEL_DROP_FENCE, "pin_park", NULL}},
	{"no fence before the check for sleepers", {MODEL_DROP_FENCE, "pin_wake_one", NULL}},
	{"no re-check", {MODEL_SKIP, "pin_park_has_work", "pin_runnable_has_own_lanes"}},
	{"wake before push", {MODEL_EARLY, "push_normal", "pin_wake_one"}},
	{"sleep without compare", {MODEL_NO_COMPARE, "model_futex_wait", NULL}},
	{"no bit published", {MODEL_SKIP, "pin_park", "pin_idle_publish"}},
	{.name = NULL},
};

static const struct model_mutant ring_mutants[] = {
	{"no fence before the re-check", {MODEL_DROP_FENCE, "pin_park", NULL}},
	{"no fence before the check for sleepers", {MODEL_DROP_FENCE, "pin_wake_one", NULL}},
	{"no re-check", {MODEL_SKIP, "pin_park_has_work", "pin_runnable_has_own_lanes"}},
	{"no doorbell", {MODEL_SKIP, "notify", "pin_ring_doorbell"}},
	{.name = NULL},
};

static const struct model_mutant doorbells_mutants[] = {
	{"the last searcher wakes in vain", {MODEL_EARLY, "filled", "pin_runnable_has_lane"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"doorbells", run_doorbells, 2, 1, 0, doorbells_mutants, NULL},
	{"one_worker", run_one_worker, 3, 2, 1, futex_mutants, NULL},
	{"two_tasks", run_two_tasks, 3, 2, 0, NULL, NULL},
	{"two_workers", run_two_workers, 2, 1, 0, NULL, NULL},
	{"tasks_together", run_tasks_together, 1, 1, 0, NULL, NULL},
	{"ring_busy", run_ring_busy, 2, 1, 0, NULL, NULL},
	{"ring_silent", run_ring_silent, 3, 2, 0, ring_mutants, NULL},
	{"ring_silent_eventfd", run_ring_silent_eventfd, 3, 2, 0, ring_mutants, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("park_wake", cases, PIN_ARRAY_COUNT(cases));
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: the owner of a driven runtime runs what others spawn and what its
 * requests complete, however these meet its calls and the end of each:
 * [PARK-1], [PARK-2], [DRIVEN-1]. G11.
 * Method: real calls on the case's own thread; between them it sleeps until the
 * wake set is readable, or it waits within a call, so a lost wake is a
 * deadlock. A call that is not to find anything makes the set unreadable, or
 * the case would never end.
 */
#include "runtime/base/base.h"
#include "runtime/loop/loop.h"
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

static void begin(uint32_t task_count)
{
	for (uint32_t i = 0; i < task_count; i++) {
		model_task_init(&tasks[i], NULL);
	}
	model_is_driven = true;
	runtime = model_runtime_begin(1, PIN_DOORBELL_EVENTFD, NULL);
	model_is_driven = false;
}

static struct pin_worker *worker(void)
{
	return &runtime->shared.workers[0];
}

static int call(uint32_t max_tasks, uint64_t deadline_ns)
{
	int ran = pin_driven_poll(worker(), max_tasks, deadline_ns);

	MODEL_CHECK(ran >= 0 && (uint32_t)ran <= max_tasks);
	return ran;
}

/* As an embedder's loop: it sleeps, then it calls. */
static void run_by_loop(uint32_t task_count, uint32_t max_tasks)
{
	uint32_t ran = 0;

	while (ran < task_count) {
		model_await("a readable wake set", model_wake_set_is_readable, NULL);
		ran += (uint32_t)call(max_tasks, 0);
	}
	MODEL_CHECK(ran == task_count);
}

/* Nothing is left, and the loop would sleep. */
static void end(void)
{
	MODEL_CHECK(call(1, 0) == 0);
	if (model_wake_set_is_readable(NULL)) {
		/* For a completion that was taken in before the device rang. */
		MODEL_CHECK(call(1, 0) == 0);
	}
	MODEL_CHECK(!model_wake_set_is_readable(NULL));
	model_runtime_end(runtime);
}

static void spawn_one(void *arg)
{
	spawn(arg);
}

static void spawn_both(void *arg)
{
	(void)arg;
	spawn(&tasks[0]);
	spawn(&tasks[1]);
}

/* ---- from one thread, or two ---- */

static void run_loop(void)
{
	uint32_t thread;

	begin(1);
	thread = model_thread_start("spawner", spawn_one, &tasks[0]);
	run_by_loop(1, 1);
	model_thread_join(thread);
	end();
}

static void run_two(void)
{
	uint32_t thread;

	begin(2);
	thread = model_thread_start("spawner", spawn_both, NULL);
	run_by_loop(2, 8);
	model_thread_join(thread);
	end();
}

static void run_one_by_one(void)
{
	uint32_t thread;

	begin(2);
	thread = model_thread_start("spawner", spawn_both, NULL);
	run_by_loop(2, 1);
	model_thread_join(thread);
	end();
}

static void run_in_call(void)
{
	uint32_t thread;

	begin(1);
	thread = model_thread_start("spawner", spawn_one, &tasks[0]);
	MODEL_CHECK(call(1, PIN_NO_DEADLINE) == 1);
	model_thread_join(thread);
	end();
}

/* ---- completions ---- */

static void submit_read(struct model_task *task)
{
	(void)task;
	MODEL_CHECK(pinion_request_submit(runtime, &read_done.request) == 0);
}

static void run_completion(void)
{
	model_task_init(&reader, submit_read);
	model_task_init(&read_done, NULL);
	model_thread_start_daemon("device", model_device, NULL);
	begin(0);
	model_device_hold();
	model_quiet_begin();
	spawn(&reader);
	run_by_loop(1, 1);
	model_quiet_end();
	model_device_release();
	run_by_loop(1, 1);
	MODEL_CHECK(read_done.run_count == 1);
	end();
}

static void run_completion_and_spawn(void)
{
	uint32_t thread;

	model_task_init(&reader, submit_read);
	model_task_init(&read_done, NULL);
	model_thread_start_daemon("device", model_device, NULL);
	begin(1);
	model_device_hold();
	model_quiet_begin();
	spawn(&reader);
	run_by_loop(1, 1);
	model_quiet_end();
	model_device_release();
	thread = model_thread_start("spawner", spawn_one, &tasks[0]);
	run_by_loop(2, 8);
	model_thread_join(thread);
	end();
}

static const struct model_mutant loop_mutants[] = {
	{"no fence before the re-check", {MODEL_DROP_FENCE, "pin_park", NULL}},
	{"no fence before the check for sleepers", {MODEL_DROP_FENCE, "pin_wake_one", NULL}},
	{"no re-check", {MODEL_SKIP, "pin_park_has_work", "pin_runnable_has_own_lanes"}},
	{"no bit published", {MODEL_SKIP, "pin_park", "pin_idle_publish"}},
	{"no doorbell", {MODEL_SKIP, "notify", "pin_ring_doorbell"}},
	{.name = NULL},
};

static const struct model_mutant two_mutants[] = {
	{"the doorbell is never cleared",
		{MODEL_SKIP, "pin_park_get_up", "pin_ring_clear_doorbell"}},
	{.name = NULL},
};

static const struct model_mutant one_by_one_mutants[] = {
	{"a full call leaves the rest unseen",
		{MODEL_SKIP, "call_without_cancel", "pin_ring_doorbell"}},
	{.name = NULL},
};

static const struct model_mutant completion_mutants[] = {
	{"the doorbell is cleared after the looks",
		{MODEL_LATE, "pin_park_get_up", "pin_ring_clear_doorbell"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"loop", run_loop, 3, 2, 0, loop_mutants, NULL},
	{"two", run_two, 2, 1, 0, two_mutants, NULL},
	{"one_by_one", run_one_by_one, 2, 1, 0, one_by_one_mutants, NULL},
	{"in_call", run_in_call, 3, 2, 0, NULL, NULL},
	{"completion", run_completion, 3, 2, 0, completion_mutants, NULL},
	{"completion_and_spawn", run_completion_and_spawn, 2, 1, 0, completion_mutants, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("driven", cases, PIN_ARRAY_COUNT(cases));
}

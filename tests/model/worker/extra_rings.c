/* SPDX-License-Identifier: MIT */
/*
 * Goal: a transfer whose completion has to be polled for ends, whatever else
 * its worker has to do and whichever thread cancels it; while it polls the
 * worker runs tasks that come, and holds up no work that relied on its search:
 * [SEARCH-1]. G12.
 * Method: real workers and a device that completes when it likes, or is held.
 * Nothing but asking shows a completion to the worker, and a ring that is
 * polled takes no cancels and cannot be slept in: the double of it checks.
 */
#include "runtime/base/base.h"
#include "runtime/task/entry.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"

#include <errno.h>

enum {
	/* One less than a worker that polls lets go by without a search. */
	UNSEARCHED = 62,
};

static struct pinion_runtime *runtime;
static struct pinion_request request;
static struct pinion_file file;
static struct model_task tasks[2];
static struct model_task child;
static uint32_t run_count;

static int run(struct pinion_task *task)
{
	(void)task;
	run_count++;
	MODEL_CHECK(run_count == 1);
	return 0;
}

static bool has_ended(const void *arg)
{
	(void)arg;
	return run_count > 0;
}

static void begin(uint32_t worker_count, uint64_t deadline_ns)
{
	file = (struct pinion_file){.is_direct = 1};
	request = (struct pinion_request){
		.task.run = run, .file = &file, .length_bytes = 512, .deadline_ns = deadline_ns};
	run_count = 0;
	model_task_init(&tasks[0], NULL);
	model_task_init(&tasks[1], NULL);
	model_task_init(&child, NULL);
	model_polls = true;
	runtime = model_runtime_begin(worker_count, PIN_DOORBELL_MESSAGE, NULL);
	model_polls = false;
	model_thread_start_daemon("device", model_device, NULL);
}

static void submit(void)
{
	MODEL_CHECK(pinion_request_submit(runtime, &request) == 0);
}

static void finish(int32_t result)
{
	struct pinion_runtime_stats counters;

	model_await("the transfer", has_ended, NULL);
	MODEL_CHECK(request.result == result);
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	pinion_runtime_get_stats(runtime, &counters, sizeof(counters));
	MODEL_CHECK(counters.polled_transfers == 1 && counters.requests_completed == 1);
	model_runtime_end(runtime);
}

static void run_ends(void)
{
	begin(1, 0);
	submit();
	finish(0);
}

static bool is_polled(const void *arg)
{
	(void)arg;
	return runtime->shared.workers[0].polled.in_flight > 0;
}

/* The device takes no cancel; its outcome is the result. */
static void run_cancelled(void)
{
	int rc;

	begin(1, 0);
	model_device_hold();
	submit();
	model_await("its start", is_polled, NULL);
	MODEL_CHECK(pinion_task_spawn(runtime, &child.request.task) == 0);
	model_await("a task beside it", model_task_has_run, &child);
	rc = pinion_request_cancel(runtime, &request);
	MODEL_CHECK(rc == 0);
	model_device_release();
	finish(0);
}

static void run_stopped(void)
{
	begin(1, 0);
	submit();
	MODEL_CHECK(pinion_runtime_stop(runtime) == 0);
	/* Cancelled before it began, or never. */
	MODEL_CHECK(run_count == 1 && (request.result == 0 || request.result == -ECANCELED));
	model_runtime_end(runtime);
}

/* ---- work that relied on the search of a polling worker ---- */

static void poll_here(struct model_task *task)
{
	(void)task;
	submit();
	runtime->shared.workers[pinion_worker_index(runtime)].unsearched_batches = UNSEARCHED;
}

static void await_child(struct model_task *task)
{
	(void)task;
	model_await("the child", model_task_has_run, &child);
}

/*
 * Worker 1 polls, searches and ceases to; the child is spawned meanwhile. Then
 * it runs a task that waits for the child, which others have to run.
 */
static void run_relied_on(void)
{
	begin(2, 0);
	model_device_hold();
	tasks[0].body = poll_here;
	tasks[1].body = await_child;
	MODEL_CHECK(pinion_task_spawn_on(runtime, 1, &tasks[0].request.task) == 0);
	model_await("the transfer's start", model_task_has_run, &tasks[0]);
	model_yield();
	MODEL_CHECK(pinion_task_spawn(runtime, &child.request.task) == 0);
	MODEL_CHECK(pinion_task_spawn_on(runtime, 1, &tasks[1].request.task) == 0);
	model_await("the child", model_task_has_run, &child);
	model_await("its waiter", model_task_has_run, &tasks[1]);
	model_device_release();
	finish(0);
}

static const struct model_mutant ends_mutants[] = {
	{"sleeps instead of asking", {MODEL_SKIP, "pin_worker_step", "pin_polled_is_busy"}},
	{"does not ask", {MODEL_SKIP, "poll_secondary", "pin_polled_is_busy"}},
	{.name = NULL},
};

static const struct model_mutant relied_on_mutants[] = {
	{"a worker that saw work does not count as a searcher",
		{MODEL_SKIP, "pin_park_undo", "pin_search_resume"}},
	{"no fence before the re-check", {MODEL_DROP_FENCE, "pin_park_undo", NULL}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"ends", run_ends, 2, 1, 0, ends_mutants, NULL},
	{"cancelled", run_cancelled, 1, 1, 0, ends_mutants, NULL},
	{"stopped", run_stopped, 2, 1, 0, ends_mutants, NULL},
	{"relied_on", run_relied_on, 0, 1, 0, relied_on_mutants, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("polled", cases, PIN_ARRAY_COUNT(cases));
}

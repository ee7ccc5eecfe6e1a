/* SPDX-License-Identifier: MIT */
/*
 * Goal: a read by commands ends, whatever else its worker has to do, whichever
 * thread cancels it, and though the worker sleeps in another ring than the
 * request's. G12.
 * Method: real workers and a device that completes when it likes, or is held.
 * Only a watch that was armed for it signals the first ring, and that once; the
 * double of the rings checks that a secondary one takes no cancels and is not
 * slept in.
 */
#include "runtime/base/base.h"
#include "runtime/task/entry.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"

#include <errno.h>

static struct pinion_runtime *runtime;
static struct pinion_request requests[2];
static struct pinion_file file;
static struct model_task child;
static uint32_t run_count;

static int run(struct pinion_task *task)
{
	(void)task;
	run_count++;
	MODEL_CHECK(run_count <= 2);
	return 0;
}

static bool has_ended(const void *arg)
{
	const uint32_t *count = arg;

	return run_count >= *count;
}

static void await_ends(uint32_t count)
{
	model_await("the reads", has_ended, &count);
}

static void begin(void)
{
	file = (struct pinion_file){
		.is_direct = 1, .offset_align_bytes = 512, .flags = PIN_FILE_COMMANDS};
	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(requests); i++) {
		requests[i] = (struct pinion_request){
			.task.run = run, .file = &file, .length_bytes = 512};
	}
	run_count = 0;
	model_task_init(&child, NULL);
	model_takes_commands = true;
	runtime = model_runtime_begin(1, PIN_DOORBELL_MESSAGE, NULL);
	model_takes_commands = false;
	model_thread_start_daemon("device", model_device, NULL);
}

static void submit(uint32_t index)
{
	MODEL_CHECK(pinion_request_submit(runtime, &requests[index]) == 0);
}

static void finish(uint32_t commands)
{
	struct pinion_runtime_stats counters;

	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	pinion_runtime_get_stats(runtime, &counters, sizeof(counters));
	MODEL_CHECK(counters.ring_commands == commands);
	model_runtime_end(runtime);
}

static void run_ends(void)
{
	begin();
	submit(0);
	await_ends(1);
	MODEL_CHECK(requests[0].result == 0);
	finish(1);
}

/* The second comes while the worker may be asleep for the first. */
static void run_two(void)
{
	begin();
	submit(0);
	submit(1);
	await_ends(2);
	finish(2);
}

/* A request on each ring: a completion on either ends the same sleep. */
static void run_both_rings(void)
{
	static struct pinion_file plain;

	begin();
	plain = (struct pinion_file){.is_direct = 1};
	requests[1].file = &plain;
	submit(0);
	submit(1);
	await_ends(2);
	finish(1);
}

static bool is_on_sqe128_ring(const void *arg)
{
	(void)arg;
	return runtime->shared.workers[0].sqe128.in_flight > 0;
}

/* The device takes no cancel; its outcome is the result. */
static void run_cancelled(void)
{
	begin();
	model_device_hold();
	submit(0);
	model_await("its start", is_on_sqe128_ring, NULL);
	MODEL_CHECK(pinion_task_spawn(runtime, &child.request.task) == 0);
	model_await("a task beside it", model_task_has_run, &child);
	MODEL_CHECK(pinion_request_cancel(runtime, &requests[0]) == 0);
	model_device_release();
	await_ends(1);
	MODEL_CHECK(requests[0].result == 0);
	finish(1);
}

static void run_stopped(void)
{
	begin();
	submit(0);
	MODEL_CHECK(pinion_runtime_stop(runtime) == 0);
	/* Cancelled before it began, or never. */
	MODEL_CHECK(
		run_count == 1 && (requests[0].result == 0 || requests[0].result == -ECANCELED));
	model_runtime_end(runtime);
}

static const struct model_mutant mutants[] = {
	{"the command ring is not watched",
		{MODEL_SKIP, "pin_park_choose_mode", "pin_commands_watch"}},
	{"sleeps on its futex", {MODEL_SKIP, "pin_park_choose_mode", "pin_commands_is_busy"}},
	{"does not look there", {MODEL_SKIP, "poll_secondary", "pin_commands_has_work"}},
	{.name = NULL},
};

static const struct model_mutant watch_mutants[] = {
	{"the command ring is not watched",
		{MODEL_SKIP, "pin_park_choose_mode", "pin_commands_watch"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"ends", run_ends, 2, 1, 0, mutants, NULL},
	{"two", run_two, 1, 1, 0, watch_mutants, NULL},
	{"both_rings", run_both_rings, 1, 1, 0, watch_mutants, NULL},
	{"cancelled", run_cancelled, 1, 1, 0, mutants, NULL},
	{"stopped", run_stopped, 2, 1, 0, watch_mutants, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("commands", cases, PIN_ARRAY_COUNT(cases));
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: pinion_worker_should_yield() is true when the worker's turn is over and
 * when completions wait, which it collects, and false outside of tasks. AS-2,
 * C2, W38.
 * Method: with a budget of 1 us a task asks until it is true, and hangs if it
 * never is; with one of 1 s a task writes to a pipe that is being read and asks
 * until the read has been counted as complete.
 */
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>

enum {
	BUDGET_US_MAX = 1000000,
	TRIES = 100,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static struct pinion_file file;
static struct pinion_request request;
static struct pin_atomic_u32 done;
static struct pin_atomic_u32 read_done;
static uint8_t byte;
static int write_fd;
static bool was_false;
static bool was_true_with_completion;
static bool is_elsewhere;
static uint32_t tries;

static void start(uint32_t budget_us)
{
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_AUTO);
	runtimes_tuning.budget_us = budget_us;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
}

static void run_and_await(pinion_task_fn function)
{
	static struct pinion_task task;

	task = (struct pinion_task){.run = function};
	pin_store_release_u32(&done, 0);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	tasks_await(&done, 1);
}

static int ask_until_true(struct pinion_task *task)
{
	(void)task;
	while (!pinion_worker_should_yield(runtime)) {
	}
	tasks_signal(&done);
	return 0;
}

/* A turn of 1 s may be over only where this thread was kept from running. */
static int ask_until_false(struct pinion_task *task)
{
	was_false = !pinion_worker_should_yield(runtime);
	tries++;
	if (!was_false && tries < TRIES) {
		return pinion_task_respawn(runtime, task);
	}
	tasks_signal(&done);
	return 0;
}

static int ask_elsewhere(struct pinion_task *task)
{
	struct pinion_runtime *other = runtimes_start(1, PINION_IO_AUTO);

	(void)task;
	is_elsewhere = pinion_worker_should_yield(other);
	pinion_runtime_destroy(other);
	tasks_signal(&done);
	return 0;
}

static int end_read(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&read_done);
	return 0;
}

static int submit_read(struct pinion_task *task)
{
	int rc;

	(void)task;
	request = (struct pinion_request){
		.task.run = end_read,
		.file = &file,
		.bytes = &byte,
		.length_bytes = 1,
	};
	rc = pinion_request_submit(runtime, &request);
	tasks_signal(&done);
	return rc;
}

static int ask_until_completion(struct pinion_task *task)
{
	bool answer = false;

	(void)task;
	if (write(write_fd, "x", 1) != 1) {
		return -EIO;
	}
	while (runtimes_counters(runtime).requests_completed == 0) {
		answer = pinion_worker_should_yield(runtime);
	}
	was_true_with_completion = answer;
	tasks_signal(&done);
	return 0;
}

static void check_completion(void)
{
	struct pinion_runtime_info facts;
	int ends[2];

	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	if (facts.uses_ring == 0) {
		printf("no io_uring, so no read stays in flight: %s\n", facts.fallback_cause);
		return;
	}
	expect_ready("pipe", pipe(ends) == 0);
	file = runtimes_plain_file(ends[0]);
	write_fd = ends[1];
	run_and_await(submit_read);
	/* The kernel has it once the worker sleeps in its ring. */
	while (runtimes_counters(runtime).parks_ring == 0) {
		sched_yield();
	}
	run_and_await(ask_until_completion);
	expect_true("true as it collects a completion", was_true_with_completion);
	tasks_await(&read_done, 1);
	expect_number("result", 1, request.result);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	start(1);
	expect_true("false outside", !pinion_worker_should_yield(runtime));
	run_and_await(ask_until_true);
	run_and_await(ask_elsewhere);
	expect_true("false for another runtime", !is_elsewhere);
	expect_number("join", 0, pinion_runtime_join(runtime));
	pinion_runtime_destroy(runtime);

	start(BUDGET_US_MAX);
	run_and_await(ask_until_false);
	expect_true("false at the beginning of a turn", was_false);
	check_completion();
	expect_number("join", 0, pinion_runtime_join(runtime));
	pinion_runtime_destroy(runtime);
	return expect_status();
}

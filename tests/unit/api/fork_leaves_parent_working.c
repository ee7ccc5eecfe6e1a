/* SPDX-License-Identifier: MIT */
/*
 * Goal: a process may fork while it has runtimes, from any thread and from a
 * task: the parent's go on, in the child every call on them gives -ECHILD and
 * touches nothing that parent and child share, destroy returns, and the child
 * may have a runtime of its own. G8.
 * Method: forks of this thread and of a task, with a read in flight whose ring
 * the child could reach; the child tries every call and exits with what it
 * found, then the parent runs tasks and that read.
 */
#include "tests/support/child.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>

enum {
	TASKS = 1000,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static struct pinion_file file;
static struct pinion_request request;
static struct pinion_task tasks[TASKS];
static struct pin_atomic_u32 done;
static struct pin_atomic_u32 read_done;
static uint8_t byte;
static int child_status;
static int pipe_ends[2];

static int count_run(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&done);
	return 0;
}

static int end_read(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&read_done);
	return 0;
}

static int end_work(struct pinion_work *work)
{
	(void)work;
	return PINION_WORK_DONE;
}

/*
 * ThreadSanitizer allows a forked child no threads, and AddressSanitizer's
 * malloc may stay locked in it for ever: a thread that was just starting held
 * that lock when we forked. glibc's own is unlocked in a child.
 */
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
static void check_own_runtime(void)
{
	struct pinion_task task = {.run = count_run};
	struct pinion_runtime *own = runtimes_start(2, PINION_IO_AUTO);

	expect_number("spawn in the child's own", 0, pinion_task_spawn(own, &task));
	expect_number("join the child's own", 0, pinion_runtime_join(own));
	pinion_runtime_destroy(own);
}
#endif

static int run_group_task(struct pinion_group_task *task)
{
	(void)task;
	return 0;
}

static int call_nothing(void *arg)
{
	(void)arg;
	return 0;
}

/* The same, for calls built on waits. */
static void try_waits(struct pinion_wait *wait)
{
	const uint64_t one = 1;
	struct pinion_budget budget;
	struct pinion_channel channel;
	struct pinion_group group;
	struct pinion_group_task task = {.run = run_group_task};
	struct pinion_call call = {.run = call_nothing};
	uint32_t message = 0;
	int result;

	expect_number("budget_init", 0, pinion_budget_init(&budget, runtime, &one, 1));
	expect_number(
		"budget_await", -ECHILD, pinion_budget_acquire_async(runtime, &budget, &one, wait));
	expect_number("budget_wait", -ECHILD, pinion_budget_acquire_wait(&budget, &one, 0));
	expect_number("channel_init", 0,
		pinion_channel_init(&channel, runtime, &message, sizeof(message), 1));
	expect_number("send_await", -ECHILD,
		pinion_channel_send_async(runtime, &channel, &message, wait));
	expect_number("send_wait", -ECHILD, pinion_channel_send_wait(&channel, &message, 0));
	expect_number("receive_wait", -ECHILD, pinion_channel_receive_wait(&channel, &message, 0));
	expect_number("receive_await", -ECHILD,
		pinion_channel_receive_async(runtime, &channel, &message, wait));
	expect_number("group_init", 0, pinion_group_init(&group, runtime, 0));
	expect_number("group_wait", -ECHILD, pinion_group_wait(&group, 0));
	expect_number("group_await", -ECHILD, pinion_group_wait_async(runtime, &group, wait));
	expect_number("group_spawn", -ECHILD, pinion_group_spawn(&group, &task));
	expect_number("call_start", -ECHILD, pinion_call_start(runtime, &call));
	expect_number(
		"execute_await", -ECHILD, pinion_call_run_async(runtime, &call, runtime, wait));
	expect_number("execute", -ECHILD, pinion_call_run(runtime, call_nothing, NULL, &result));
}

/* In the child, on the thread that forked. */
static int try_all(void *arg)
{
	struct pinion_task task = {.run = count_run, .private_ = 7};
	struct pinion_task before = task;
	struct pinion_task *pointer = &task;
	struct pinion_request read = request;
	struct pinion_buffer buffer;
	struct pinion_work work;
	struct pinion_wait wait = {.task.run = count_run};
	struct pinion_future future;

	(void)arg;
	pinion_work_init(&work, end_work, NULL);
	expect_number("work_wake", -ECHILD, pinion_work_wake(runtime, &work));
	expect_number("spawn", -ECHILD, pinion_task_spawn(runtime, &task));
	expect_number("respawn", -ECHILD, pinion_task_respawn(runtime, &task));
	expect_number("spawn_shared", -ECHILD, pinion_task_spawn_shared(runtime, &task));
	expect_number("spawn_on", -ECHILD, pinion_task_spawn_on(runtime, 0, &task));
	expect_number("spawn_batch", -ECHILD, pinion_task_spawn_batch(runtime, &pointer, 1));
	expect_number("spawn_batch of none", -ECHILD, pinion_task_spawn_batch(runtime, NULL, 0));
	expect_number("request_submit", -ECHILD, pinion_request_submit(runtime, &read));
	expect_number("buffer_acquire", -ECHILD, pinion_buffer_acquire(runtime, 1, &buffer));
	pinion_future_init(&future, runtime);
	expect_number("future_await", -ECHILD, pinion_future_wait_async(runtime, &future, &wait));
	expect_number("future_wait", -ECHILD, pinion_future_wait(&future, UINT64_MAX));
	expect_number("wait_cancel", -ECHILD, pinion_wait_cancel(runtime, &wait));
	try_waits(&wait);
	expect_true("should_yield", !pinion_worker_should_yield(runtime));
	expect_number("worker_index", -ENOENT, pinion_worker_index(runtime));
	expect_true("is_accepting", !pinion_runtime_is_accepting(runtime));
	expect_number("drain", -ECHILD, pinion_runtime_drain(runtime));
	expect_number("join", -ECHILD, pinion_runtime_join(runtime));
	expect_number("stop", -ECHILD, pinion_runtime_stop(runtime));
	expect_number("task untouched", 0, memcmp(&before, &task, sizeof(task)));
	pinion_runtime_destroy(runtime);
	pinion_runtime_destroy(runtime);
	expect_number("run in the child", 0, pin_load_acquire_u32(&done));
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
	check_own_runtime();
#endif
	return expect_status();
}

static int fork_inside(struct pinion_task *task)
{
	(void)task;
	child_status = child_run(try_all, NULL, NULL, 0);
	tasks_signal(&done);
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

static void run_and_await(pinion_task_fn function)
{
	struct pinion_task task = {.run = function};

	pin_store_release_u32(&done, 0);
	expect_number("spawn_on", 0, pinion_task_spawn_on(runtime, 0, &task));
	tasks_await(&done, 1);
}

static void check_parent(void)
{
	pin_store_release_u32(&done, 0);
	for (uint32_t i = 0; i < TASKS; i++) {
		tasks[i] = (struct pinion_task){.run = count_run};
		expect_number("spawn", 0,
			i % 2 == 0 ? pinion_task_spawn(runtime, &tasks[i])
				   : pinion_task_spawn_on(runtime, i / 2 % 2, &tasks[i]));
	}
	tasks_await(&done, TASKS);
}

int main(void)
{
	struct pinion_runtime_info facts;
	bool has_read;

	runtimes_watchdog(LIMIT_SECONDS);
	expect_ready("pipe", pipe(pipe_ends) == 0);
	file = runtimes_plain_file(pipe_ends[0]);
	runtime = runtimes_start(2, PINION_IO_AUTO);
	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	has_read = facts.uses_ring != 0;
	if (has_read) {
		run_and_await(submit_read);
	}

	pin_store_release_u32(&done, 0);
	child_status = child_run(try_all, NULL, NULL, 0);
	expect_number("forked outside", 0, child_code(child_status));
	check_parent();
	pin_store_release_u32(&done, 0);
	run_and_await(fork_inside);
	expect_number("forked in a task", 0, child_code(child_status));
	check_parent();

	if (has_read) {
		expect_ready("write", write(pipe_ends[1], "x", 1) == 1);
		tasks_await(&read_done, 1);
		expect_number("result of the read", 1, request.result);
	}
	expect_number("join", 0, pinion_runtime_join(runtime));
	if (has_read) {
		expect_number(
			"requests", 1, (long long)runtimes_counters(runtime).requests_completed);
	}
	pinion_runtime_destroy(runtime);
	return expect_status();
}

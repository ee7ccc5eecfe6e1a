/* SPDX-License-Identifier: MIT */
/*
 * Goal: a group is joined when all its tasks are over, with the first failure;
 * a failure or a cancel sends tasks that have not begun to their `cancel`, and
 * running ones may ask. Each error of the calls is seen. WP-24, W47.
 * Method: a worker is held so that tasks queue up; then groups of random size,
 * some tasks of which fail or spawn others, joined by threads and tasks.
 */
#include "runtime/base/base.h"
#include "runtime/worker/worker.h"
#include "tests/support/random.h"
#include "tests/support/runtimes.h"
#include "tests/support/stops.h"
#include "tests/support/tasks.h"

#include <errno.h>

enum {
	TASKS = 64,
	ROUNDS = 300,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static struct pinion_group group;
static struct pinion_group_task tasks[TASKS];
static int results[TASKS];
static struct pin_atomic_u32 run_count;
static struct pin_atomic_u32 cancel_count;
static struct pin_atomic_u32 end_count;

static int run(struct pinion_group_task *task)
{
	pin_fetch_add_acq_rel_u32(&run_count, 1);
	return results[task - tasks];
}

static void cancel(struct pinion_group_task *task)
{
	(void)task;
	pin_fetch_add_acq_rel_u32(&cancel_count, 1);
}

static void begin(uint32_t flags)
{
	expect_number("init", 0, pinion_group_init(&group, runtime, flags));
	pin_store_release_u32(&run_count, 0);
	pin_store_release_u32(&cancel_count, 0);
	pin_store_release_u32(&end_count, 0);
	memset(results, 0, sizeof(results));
	for (uint32_t i = 0; i < TASKS; i++) {
		tasks[i] = (struct pinion_group_task){.run = run, .cancel = cancel};
	}
}

static void spawn(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		expect_number("spawn", 0, pinion_group_spawn(&group, &tasks[i]));
	}
}

static void expect_ends(const char *what, uint32_t runs, uint32_t cancels, int result)
{
	expect_number(what, 0, pinion_group_wait(&group, UINT64_MAX));
	expect_number(what, runs, pin_load_acquire_u32(&run_count));
	expect_number(what, cancels, pin_load_acquire_u32(&cancel_count));
	expect_number(what, result, pinion_group_result(&group));
}

/* ---- one worker, in an order that is known ---- */

static void check_results(void)
{
	struct tasks_hold hold = {0};

	begin(0);
	expect_ends("no tasks", 0, 0, 0);
	tasks_hold_begin(&hold, runtime, 0);
	spawn(3);
	expect_number("not now", -ETIME, pinion_group_wait(&group, 0));
	expect_number(
		"not soon", -ETIME, pinion_group_wait(&group, pinion_clock_now_ns() + 1000000));
	tasks_hold_end(&hold);
	expect_ends("all well", 3, 0, 0);
	spawn(1);
	expect_ends("used again", 4, 0, 0);

	begin(0);
	tasks_hold_begin(&hold, runtime, 0);
	results[1] = -EIO;
	results[3] = -ENOENT;
	tasks[4].task.flags = PINION_TASK_MANDATORY;
	spawn(5);
	tasks_hold_end(&hold);
	expect_ends("a failure", 3, 2, -EIO);
	expect_true("is cancelled", pinion_group_is_cancelled(&group));
	expect_number("cancelled", -ECANCELED, pinion_group_spawn(&group, &tasks[5]));

	begin(PINION_GROUP_RUN_ALL);
	tasks_hold_begin(&hold, runtime, 0);
	results[1] = -EIO;
	results[3] = -ENOENT;
	spawn(5);
	tasks_hold_end(&hold);
	expect_ends("failures, all run", 5, 0, -EIO);

	begin(0);
	tasks_hold_begin(&hold, runtime, 0);
	spawn(5);
	expect_number("no error", -EINVAL, pinion_group_cancel(&group, 0));
	expect_true("not cancelled", !pinion_group_is_cancelled(&group));
	expect_number("cancel", 0, pinion_group_cancel(&group, -EINTR));
	expect_number("cancel again", -EALREADY, pinion_group_cancel(&group, -EIO));
	tasks_hold_end(&hold);
	expect_ends("cancelled", 0, 5, -EINTR);
}

static int run_asking(struct pinion_group_task *task)
{
	(void)task;
	tasks_signal(&run_count);
	while (!pinion_group_is_cancelled(&group)) {
		pin_host_linux.yield();
	}
	return 0;
}

static void check_errors(void)
{
	begin(0);
	expect_number("flags", -EINVAL, pinion_group_init(&group, runtime, 2));
	expect_number("no runtime", -EINVAL, pinion_group_init(&group, NULL, 0));
	tasks[0].run = NULL;
	expect_number("no run", -EINVAL, pinion_group_spawn(&group, &tasks[0]));
	tasks[0].run = run;
	tasks[0].task.flags = 8;
	expect_number("task flags", -EINVAL, pinion_group_spawn(&group, &tasks[0]));
	expect_ends("nothing spawned", 0, 0, 0);
	tasks[1].run = run_asking;
	expect_number("spawn", 0, pinion_group_spawn(&group, &tasks[1]));
	tasks_await(&run_count, 1);
	expect_number("cancel", 0, pinion_group_cancel(&group, -EINTR));
	expect_ends("it asked", 1, 0, -EINTR);
}

/* ---- joined by a task, and many ---- */

static struct pinion_wait wait;
static struct pinion_task starter;

static int run_joined(struct pinion_task *task)
{
	(void)task;
	expect_number("result of the wait", 0, wait.result);
	tasks_signal(&end_count);
	return 0;
}

static int run_starter(struct pinion_task *task)
{
	(void)task;
	expect_number("would wait for itself", -EDEADLK, pinion_group_wait(&group, UINT64_MAX));
	return pinion_group_wait_async(runtime, &group, &wait);
}

static struct pin_atomic_u32 accepted[TASKS];
static struct pin_atomic_u32 ended[TASKS];

static int run_counted(struct pinion_group_task *task)
{
	pin_fetch_add_acq_rel_u32(&ended[task - tasks], 1);
	return results[task - tasks];
}

static void cancel_counted(struct pinion_group_task *task)
{
	pin_fetch_add_acq_rel_u32(&ended[task - tasks], 1);
}

static int spawn_counted(uint32_t index)
{
	int rc;

	/* First: it may end, and the group be joined, before this returns. */
	pin_store_release_u32(&accepted[index], 1);
	rc = pinion_group_spawn(&group, &tasks[index]);
	if (rc == -ECANCELED) {
		pin_store_release_u32(&accepted[index], 0);
		rc = 0;
	}
	return rc;
}

static int run_spawning(struct pinion_group_task *task)
{
	uint32_t index = (uint32_t)(task - tasks);

	pin_fetch_add_acq_rel_u32(&ended[index], 1);
	return spawn_counted(index + TASKS / 2);
}

static void check_many(struct random_source *source)
{
	uint32_t count = 1 + (uint32_t)random_below(source, TASKS / 2);
	bool has_failure = random_below(source, 2) == 0;

	begin(0);
	memset(accepted, 0, sizeof(accepted));
	memset(ended, 0, sizeof(ended));
	for (uint32_t i = 0; i < TASKS; i++) {
		tasks[i].run = i < TASKS / 2 ? run_spawning : run_counted;
		tasks[i].cancel = cancel_counted;
	}
	if (has_failure) {
		/* The only one, so nothing keeps it from being run. */
		results[TASKS / 2 + random_below(source, count)] = -EIO;
	}
	for (uint32_t i = 0; i < count; i++) {
		expect_number("spawn", 0, spawn_counted(i));
	}
	expect_number("wait", 0, pinion_group_wait(&group, UINT64_MAX));
	for (uint32_t i = 0; i < TASKS; i++) {
		expect_number("ends", pin_load_acquire_u32(&accepted[i]),
			pin_load_acquire_u32(&ended[i]));
	}
	expect_number("result", has_failure ? -EIO : 0, pinion_group_result(&group));
}

static void check_await(void)
{
	struct tasks_hold hold = {0};
	struct pinion_group_task *task = &tasks[0];

	begin(0);
	tasks_hold_begin(&hold, runtime, 0);
	wait = (struct pinion_wait){.task.run = run_joined, .deadline_ns = UINT64_MAX};
	starter = (struct pinion_task){.run = run_starter};
	expect_number("on no worker", -EPERM, pinion_group_wait_async(runtime, &group, &wait));
	task->run = run_asking;
	expect_number("spawn", 0, pinion_task_spawn(runtime, &starter));
	expect_number("spawn", 0, pinion_group_spawn(&group, task));
	tasks_hold_end(&hold);
	tasks_await(&run_count, 1);
	expect_number("not over", 0, pin_load_acquire_u32(&end_count));
	expect_number("cancel", 0, pinion_group_cancel(&group, -EINTR));
	tasks_await(&end_count, 1);
}

static void check_stop(void)
{
	struct tasks_hold hold = {0};
	pthread_t stopper;

	begin(0);
	tasks_hold_begin(&hold, runtime, 0);
	spawn(3);
	stopper = stops_begin(runtime);
	expect_number("stopped", -ESHUTDOWN, pinion_group_spawn(&group, &tasks[3]));
	tasks_hold_end(&hold);
	stops_end(stopper);
	expect_ends("stopped", 0, 3, -ECANCELED);
}

int main(void)
{
	struct random_source source;

	runtimes_watchdog(LIMIT_SECONDS);
	random_begin(&source);
	runtime = runtimes_start(1, PINION_IO_AUTO);
	check_results();
	check_errors();
	check_await();
	check_stop();
	pinion_runtime_destroy(runtime);
	runtime = runtimes_start(3, PINION_IO_AUTO);
	for (int i = 0; i < ROUNDS && expect_failure_count == 0; i++) {
		check_many(&source);
	}
	pinion_runtime_destroy(runtime);
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: each call that blocks answers -EDEADLK at once on a worker thread of
 * any runtime, in a task as in a hook, and changes nothing; so tasks of two
 * runtimes that call each other are over, and both runtimes end. C2, C14, C15,
 * WP-1, WP-36.
 * Method: all such calls from tasks of the runtime itself, of another one, of a
 * thread pool, and from a hook; then callers on both sides, many and nested.
 */
#include "runtime/base/atomic.h"
#include "runtime/base/base.h"
#include "tests/support/expect.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>
#include <string.h>

enum {
	LIMIT_SECONDS = 60,
	CALLERS = 34,
	NESTED = 2000,
	BUFFERS = 4096,
};

static const struct pinion_thread_pool_sizes one = {1, 1, 1};
static const struct pinion_thread_pool_sizes two = {1, 2, 2};

static struct pinion_runtime *runtime;
static struct pinion_runtime *thread_pool;

/*
 * Nothing of these is to be had at once; set up with the thread pool, or with
 * none.
 */
struct wanted {
	struct pinion_future future;
	struct pinion_group group;
	struct pinion_group_task member;
	struct pinion_channel full;
	struct pinion_channel empty;
	struct pinion_budget budget;
	struct pinion_admission admission;
	struct pinion_job held_job;
	struct pinion_job job;
	struct pinion_pool *pool;
	struct pinion_buffer buffers[BUFFERS];
	uint32_t buffer_count;
	uint64_t messages[2];
};

static struct wanted wanted;
static struct pin_atomic_u32 may_end;
static struct pin_atomic_u32 done_count;

static void wait_for_end(void)
{
	while (pin_load_acquire_u32(&may_end) == 0) {
		sched_yield();
	}
}

static int hold_member(struct pinion_group_task *task)
{
	(void)task;
	wait_for_end();
	return 0;
}

static int hold_job(struct pinion_job *job)
{
	(void)job;
	wait_for_end();
	return 0;
}

static int run_nothing(struct pinion_job *job)
{
	(void)job;
	return 0;
}

static void set_up(struct pinion_runtime *owner)
{
	struct pinion_admission_limits limits = {.max_tasks_total = 1};
	struct pinion_job *held = &wanted.held_job;
	struct pinion_pool_config config;
	uint64_t total = 1;
	uint64_t message = 7;

	memset(&wanted, 0, sizeof(wanted));
	pin_store_release_u32(&may_end, 0);
	pinion_future_init(&wanted.future, owner);
	expect_number("group", 0, pinion_group_init(&wanted.group, thread_pool, 0));
	wanted.member.run = hold_member;
	expect_number("member", 0, pinion_group_spawn(&wanted.group, &wanted.member));
	expect_number(
		"channel", 0, pinion_channel_init(&wanted.full, owner, &wanted.messages[0], 8, 1));
	expect_number(
		"channel", 0, pinion_channel_init(&wanted.empty, owner, &wanted.messages[1], 8, 1));
	expect_number("send", 0, pinion_channel_try_send(&wanted.full, &message));
	expect_number("budget", 0, pinion_budget_init(&wanted.budget, owner, &total, 1));
	expect_number("acquire", 0, pinion_budget_try_acquire(&wanted.budget, &total));
	expect_number(
		"admission", 0, pinion_admission_init(&wanted.admission, thread_pool, &limits));
	wanted.held_job.run = hold_job;
	wanted.job.run = run_nothing;
	expect_number("job", 0, pinion_admission_spawn(&wanted.admission, &held, 1, NULL));
	pinion_pool_config_init(&config);
	config.worker_count = 1;
	config.log = runtimes_note;
	expect_ready(runtimes_log, pinion_pool_create(NULL, &config, &wanted.pool) == 0);
	while (pinion_pool_try_acquire(wanted.pool, &wanted.buffers[wanted.buffer_count]) == 0) {
		wanted.buffer_count++;
	}
}

static void tear_down(void)
{
	pin_store_release_u32(&may_end, 1);
	expect_number("group", 0, pinion_group_wait(&wanted.group, UINT64_MAX));
	expect_number("jobs", 0, pinion_admission_drain(&wanted.admission, UINT64_MAX));
	for (uint32_t i = 0; i < wanted.buffer_count; i++) {
		pinion_pool_release(wanted.pool, &wanted.buffers[i]);
	}
	expect_number("pool", 0, pinion_pool_destroy(wanted.pool));
}

static int never_called(void *arg)
{
	(void)arg;
	expect_number("a refused call", 0, 1);
	return 0;
}

static void wait_for_objects(void)
{
	struct pinion_job *job = &wanted.job;
	struct pinion_buffer buffer;
	uint64_t message = 0;
	uint64_t amount = 1;

	expect_number("future", -EDEADLK, pinion_future_wait(&wanted.future, UINT64_MAX));
	expect_number("group", -EDEADLK, pinion_group_wait(&wanted.group, UINT64_MAX));
	expect_number(
		"send", -EDEADLK, pinion_channel_send_wait(&wanted.full, &message, UINT64_MAX));
	expect_number("receive", -EDEADLK,
		pinion_channel_receive_wait(&wanted.empty, &message, UINT64_MAX));
	expect_number("budget", -EDEADLK,
		pinion_budget_acquire_wait(&wanted.budget, &amount, UINT64_MAX));
	expect_number("admission", -EDEADLK,
		pinion_admission_spawn_wait(&wanted.admission, &job, 1, UINT64_MAX));
	expect_number("pool", -EDEADLK, pinion_pool_acquire_wait(wanted.pool, UINT64_MAX, &buffer));
}

static void wait_for_runtime(struct pinion_runtime *target)
{
	int result = 7;

	expect_number("execute", -EDEADLK, pinion_call_run(target, never_called, NULL, &result));
	expect_number("untouched", 7, result);
	expect_number("drain", -EDEADLK, pinion_runtime_drain(target));
	expect_number("join", -EDEADLK, pinion_runtime_join(target));
	expect_number("stop", -EDEADLK, pinion_runtime_stop(target));
	expect_number("stop until", -EDEADLK, pinion_runtime_stop_until(target, 0));
	expect_number("destroy", -EDEADLK, pinion_runtime_destroy(target));
	expect_true("it is open still", pinion_runtime_is_accepting(target));
}

static void wait_for_all(void)
{
	wait_for_objects();
	wait_for_runtime(runtime);
	wait_for_runtime(thread_pool);
	expect_number("resize", -EDEADLK, pinion_thread_pool_resize(thread_pool, &one));
}

static int wait_in_task(struct pinion_task *task)
{
	(void)task;
	wait_for_all();
	/* The drain of an admission closes it. */
	expect_number("drain", -EDEADLK, pinion_admission_drain(&wanted.admission, UINT64_MAX));
	tasks_signal(&done_count);
	return 0;
}

static void check_tasks(void)
{
	struct pinion_task tasks[2] = {{.run = wait_in_task}, {.run = wait_in_task}};
	struct pinion_thread_pool_sizes sizes;

	for (int i = 0; i < 2; i++) {
		set_up(i == 0 ? thread_pool : NULL);
		pin_store_release_u32(&done_count, 0);
		expect_number(
			"spawn", 0, pinion_task_spawn(i == 0 ? runtime : thread_pool, &tasks[i]));
		tasks_await(&done_count, 1);
		tear_down();
	}
	expect_number("sizes", 0, pinion_thread_pool_get_sizes(thread_pool, &sizes));
	expect_number("as before", two.low, sizes.low);
	expect_true("it is said",
		strstr(runtimes_log, "pinion_runtime_destroy() was called on a worker thread") !=
			NULL);
}

static void wait_in_hook(void *arg, uint32_t index, void *context)
{
	(void)arg;
	(void)index;
	(void)context;
	if (runtime != NULL && pin_load_acquire_u32(&done_count) == 0) {
		wait_for_all();
		tasks_signal(&done_count);
	}
}

static int do_nothing(struct pinion_task *task)
{
	(void)task;
	return 0;
}

static void check_hooks(void)
{
	struct pinion_task task = {.run = do_nothing};
	struct pinion_runtime *other = NULL;
	struct pinion_config config;

	set_up(thread_pool);
	pin_store_release_u32(&done_count, 1);
	runtimes_config(&config, 1, PINION_IO_AUTO);
	config.before_park = wait_in_hook;
	expect_ready(runtimes_log, pinion_runtime_create(&config, &other) == 0);
	pin_store_release_u32(&done_count, 0);
	expect_number("spawn", 0, pinion_task_spawn(other, &task));
	tasks_await(&done_count, 1);
	expect_number("destroy", 0, pinion_runtime_destroy(other));
	tear_down();
}

/* ---- tasks of two runtimes that call each other ---- */

static struct pinion_task callers[CALLERS];
static struct pin_atomic_u32 refused_count;

static int call_other(struct pinion_task *task)
{
	struct pinion_runtime *target = (task - callers) % 2 == 0 ? thread_pool : runtime;
	int result = 0;

	if (pinion_call_run(target, never_called, NULL, &result) == -EDEADLK) {
		pin_fetch_add_acq_rel_u32(&refused_count, 1);
	}
	tasks_signal(&done_count);
	return 0;
}

static void check_each_other(void)
{
	pin_store_release_u32(&done_count, 0);
	for (int i = 0; i < CALLERS; i++) {
		callers[i] = (struct pinion_task){.run = call_other};
		expect_number("spawn", 0,
			pinion_task_spawn(i % 2 == 0 ? runtime : thread_pool, &callers[i]));
	}
	tasks_await(&done_count, CALLERS);
	expect_number("refused", CALLERS, pin_load_acquire_u32(&refused_count));
}

/* A thread calls A, which calls B, which calls A. */
static int call_back(void *arg)
{
	int result = 0;

	(void)arg;
	return pinion_call_run(runtime, never_called, NULL, &result);
}

static void check_nested(struct pinion_runtime *other)
{
	int result = 0;

	for (int i = 0; i < NESTED; i++) {
		int rc = pinion_call_run(other, call_back, NULL, &result);

		if (rc != 0 || result != -EDEADLK) {
			expect_number("nested", 0, rc);
			expect_number("answer", -EDEADLK, result);
			return;
		}
	}
}

int main(void)
{
	struct pinion_config config;

	runtimes_watchdog(LIMIT_SECONDS);
	runtime = runtimes_start(2, PINION_IO_AUTO);
	pinion_thread_pool_config_init(&config);
	config.tuning = runtimes_thread_pool_tuning();
	config.log = runtimes_note;
	expect_ready(runtimes_log, pinion_thread_pool_create(&config, &two, &thread_pool) == 0);
	check_tasks();
	check_hooks();
	check_each_other();
	check_nested(thread_pool);
	expect_number("stop", 0, pinion_runtime_stop_until(runtime, UINT64_MAX));
	expect_number("destroy", 0, pinion_runtime_destroy(runtime));
	expect_number("destroy", 0, pinion_runtime_destroy(thread_pool));
	expect_number("nothing", 0, pinion_runtime_destroy(NULL));
	return expect_status();
}

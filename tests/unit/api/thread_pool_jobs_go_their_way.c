/* SPDX-License-Identifier: MIT */
/*
 * Goal: the life of a thread pool, step by step. Its creation has begun all
 * workers, those that serve a class share the jobs in it, and a class above
 * keeps its own (WP-14). A worker of one class sleeps until a job comes, runs
 * it, says how it ended, sleeps again, and goes when the thread pool is drained
 * (WP-15); while a drain waits for another's job it uses no CPU (W45). What a
 * job leaves in its worker's queue is stolen by others (WP-10).
 * Method: jobs that hold their workers, hooks that count. CPU is compared with
 * what this thread has used meanwhile, which a slow machine slows down too.
 */
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>
#include <pinion/call.h>
#include <pinion/thread_pool.h>
#include <time.h>

enum {
	WORKERS_MAX = 4,
	SHARERS = 3, /* workers of a default thread pool that serve medium */
	SPAWNED = 100,
	LOOKER = 0, /* of two: the one for high jobs alone */
	OTHER = 1,
	BURNT_NS = 200 * 1000 * 1000,
	IDLE_NS_MAX = BURNT_NS / 4,
	LIMIT_SECONDS = 60,
};

static const struct pinion_thread_pool_sizes one_of_each = {.high = 1, .low = 1};
static struct pinion_runtime *thread_pool;
static struct pin_atomic_u32 start_count;
static struct pin_atomic_u32 stop_count;
static struct pin_atomic_u32 park_counts[WORKERS_MAX];
static clockid_t cpu_clocks[WORKERS_MAX];

static int after_start(void *arg, uint32_t worker_index, void **out_context)
{
	(void)arg;
	(void)out_context;
	expect_number("clock", 0, pthread_getcpuclockid(pthread_self(), &cpu_clocks[worker_index]));
	tasks_signal(&start_count);
	return 0;
}

static void before_park(void *arg, uint32_t worker_index, void *context)
{
	(void)arg;
	(void)context;
	tasks_signal(&park_counts[worker_index]);
}

static void before_stop(void *arg, uint32_t worker_index, void *context)
{
	(void)arg;
	(void)worker_index;
	(void)context;
	tasks_signal(&stop_count);
}

static void start(const struct pinion_thread_pool_sizes *sizes)
{
	struct pinion_config config;

	pin_store_release_u32(&start_count, 0);
	pin_store_release_u32(&stop_count, 0);
	runtimes_log[0] = '\0';
	pinion_thread_pool_config_init(&config);
	config.tuning = runtimes_thread_pool_tuning();
	config.log = runtimes_note;
	runtimes_tuning.job_log = 1;
	config.after_start = after_start;
	config.before_park = before_park;
	config.before_stop = before_stop;
	expect_ready("create", pinion_thread_pool_create(&config, sizes, &thread_pool) == 0);
}

/* ---- its workers and queues ---- */

static struct tasks_hold holds[SHARERS + 1];

static void spawn_hold(struct tasks_hold *hold)
{
	hold->task = (struct pinion_task){.run = tasks_hold_run};
	expect_number("spawn", 0, pinion_task_spawn(thread_pool, &hold->task));
}

static int answer(void *arg)
{
	return *(const int *)arg;
}

static int call(uint32_t flags, int value)
{
	struct pinion_call job = {.run = answer, .arg = &value, .task.flags = flags};

	expect_number("call", 0, pinion_call_start(thread_pool, &job));
	expect_number("wait", 0, pinion_future_wait(&job.done, UINT64_MAX));
	return job.result;
}

static void check_classes(void)
{
	start(NULL);
	expect_number("begun when it is created", WORKERS_MAX, pin_load_acquire_u32(&start_count));
	/* As many at the same time as serve the class. */
	for (int i = 0; i < SHARERS; i++) {
		spawn_hold(&holds[i]);
	}
	for (int i = 0; i < SHARERS; i++) {
		tasks_await(&holds[i].has_begun, 1);
	}
	spawn_hold(&holds[SHARERS]);
	expect_number("high, while all others are held", 7, call(PINION_TASK_HIGH, 7));
	expect_number(
		"medium on the one for high", 0, pin_load_acquire_u32(&holds[SHARERS].has_begun));
	tasks_signal(&holds[1].may_end);
	tasks_await(&holds[SHARERS].has_begun, 1);
	for (int i = 0; i <= SHARERS; i++) {
		tasks_signal(&holds[i].may_end);
	}
	expect_number("drain", 0, pinion_runtime_drain(thread_pool));
	expect_number(
		"ended at the end of the drain", WORKERS_MAX, pin_load_acquire_u32(&stop_count));
	pinion_runtime_destroy(thread_pool);
}

/* ---- one worker's loop ---- */

static void *drain(void *arg)
{
	(void)arg;
	expect_number("drain", 0, pinion_runtime_drain(thread_pool));
	return NULL;
}

static uint64_t used_ns(clockid_t clock)
{
	struct timespec used;

	expect_number("clock", 0, clock_gettime(clock, &used));
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

static void burn(void)
{
	uint64_t end_ns = used_ns(CLOCK_THREAD_CPUTIME_ID) + BURNT_NS;

	while (used_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns) {
	}
}

/* Returns when the drain has closed the thread pool. */
static void await_refusal(void)
{
	int value = 0;
	int rc = 0;

	while (rc == 0) {
		struct pinion_call job = {
			.run = answer, .arg = &value, .task.flags = PINION_TASK_HIGH};

		rc = pinion_call_start(thread_pool, &job);
		if (rc == 0) {
			expect_number("wait", 0, pinion_future_wait(&job.done, UINT64_MAX));
		}
	}
	expect_number("refused", -ESHUTDOWN, rc);
}

static void check_drain_is_idle(struct tasks_hold *other)
{
	pthread_t thread;
	uint64_t before_ns;

	expect_ready("thread", pthread_create(&thread, NULL, drain, NULL) == 0);
	await_refusal();
	before_ns = used_ns(cpu_clocks[LOOKER]);
	burn();
	expect_true("next to no CPU is used while a drain waits",
		used_ns(cpu_clocks[LOOKER]) - before_ns < IDLE_NS_MAX);
	expect_number("ended before the last job", 0, pin_load_acquire_u32(&stop_count));
	tasks_hold_end(other);
	pthread_join(thread, NULL);
}

static void check_loop(void)
{
	struct tasks_hold other = {0};
	uint32_t parks;

	start(&one_of_each);
	tasks_hold_begin(&other, thread_pool, OTHER);
	for (int i = 0; i < 3; i++) {
		/* It sleeps, a job wakes it, it sleeps once more. */
		tasks_await(&park_counts[LOOKER], 1);
		parks = pin_load_acquire_u32(&park_counts[LOOKER]);
		expect_number(
			"result", i == 1 ? -EIO : i, call(PINION_TASK_HIGH, i == 1 ? -EIO : i));
		tasks_await(&park_counts[LOOKER], parks + 1);
	}
	expect_true("success is logged", strstr(runtimes_log, "Job completed in ") != NULL);
	expect_true("failure is logged", strstr(runtimes_log, "Job failed in ") != NULL);
	check_drain_is_idle(&other);
	expect_number("both have ended", 2, pin_load_acquire_u32(&stop_count));
	pinion_runtime_destroy(thread_pool);
}

/* ---- stealing ---- */

static struct pinion_task spawned[SPAWNED];
static struct pin_atomic_u32 run_count;
static struct pin_atomic_u32 run_at_home;

static int run_spawned(struct pinion_task *task)
{
	(void)task;
	if (pinion_worker_index(thread_pool) == 0) {
		tasks_signal(&run_at_home);
	}
	tasks_signal(&run_count);
	return 0;
}

/* Leaves tasks in its worker's queue, and stays until others have run them. */
static int leave(struct pinion_task *task)
{
	(void)task;
	for (int i = 0; i < SPAWNED; i++) {
		spawned[i] = (struct pinion_task){.run = run_spawned};
		expect_number("spawn", 0, pinion_task_spawn(thread_pool, &spawned[i]));
	}
	tasks_await(&run_count, SPAWNED);
	return 0;
}

static void check_stealing(void)
{
	struct pinion_thread_pool_sizes sizes = {.low = 3};
	struct pinion_task task = {.run = leave};
	struct pinion_runtime_stats counters;

	start(&sizes);
	expect_number("spawn_on", 0, pinion_task_spawn_on(thread_pool, 0, &task));
	tasks_await(&run_count, SPAWNED);
	expect_number("drain", 0, pinion_runtime_drain(thread_pool));
	counters = runtimes_counters(thread_pool);
	expect_number("run by the worker that was held", 0, pin_load_acquire_u32(&run_at_home));
	expect_true("they were stolen", counters.steals > 0);
	expect_true("all, or came by the shared queue",
		counters.tasks_stolen + counters.tasks_shared >= SPAWNED);
	pinion_runtime_destroy(thread_pool);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_classes();
	check_loop();
	check_stealing();
	return expect_status();
}

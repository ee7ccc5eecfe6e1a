/* SPDX-License-Identifier: MIT */
/*
 * Goal: a thread pool becomes larger and smaller as asked: it has that number
 * of threads, and runs that number of jobs at once in each lane; tasks bound to
 * a worker that leaves end; tasks for a worker that has left are refused; each
 * error is the expected one, and changes nothing, and an error during a drain
 * does not wait for its end. With rings, too, where a read keeps a worker until
 * it has ended, and a ring that cannot be made leaves the thread pool as it
 * was. W49, W52, WP-35, WP-37.
 * Method: jobs that hold their workers, counted; threads counted in /proc; a
 * resize that has to wait while others are tried; a pipe that is read; a child
 * without descriptors.
 */
#include "tests/support/child.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include "runtime/task/entry.h"
#include "runtime/worker/timer.h"
#include "runtime/worker/wake.h"

#include <errno.h>
#include <pinion/call.h>
#include <pinion/thread_pool.h>

enum {
	MAX = 4,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *thread_pool;

static void start(const struct pinion_thread_pool_sizes *sizes)
{
	struct pinion_config config;

	pinion_thread_pool_config_init(&config);
	config.tuning = runtimes_thread_pool_tuning();
	config.log = runtimes_note;
	runtimes_tuning.thread_pool_max = MAX;
	runtimes_log[0] = '\0';
	expect_ready("create", pinion_thread_pool_create(&config, sizes, &thread_pool) == 0);
}

static void expect_sizes(const char *what, uint32_t high, uint32_t medium, uint32_t low)
{
	struct pinion_thread_pool_sizes now = {9, 9, 9};
	char expected[64];
	char got[64];

	expect_number(what, 0, pinion_thread_pool_get_sizes(thread_pool, &now));
	snprintf(expected, sizeof(expected), "%u %u %u", high, medium, low);
	snprintf(got, sizeof(got), "%u %u %u", now.high, now.medium, now.low);
	expect_text(what, expected, got);
}

static void resize(uint32_t high, uint32_t medium, uint32_t low)
{
	struct pinion_thread_pool_sizes sizes = {high, medium, low};

	expect_number("resize", 0, pinion_thread_pool_resize(thread_pool, &sizes));
	expect_sizes("after it", high, medium, low);
}

static void expect_refusal(const char *what, int expected, struct pinion_thread_pool_sizes sizes)
{
	expect_number(what, expected, pinion_thread_pool_resize(thread_pool, &sizes));
}

/* ---- as many at once as there are workers ---- */

static struct tasks_hold holds[3 * MAX];

/* All have begun only when each has a worker to itself. */
static void hold_all(uint32_t count, uint32_t flags)
{
	for (uint32_t i = 0; i < count; i++) {
		holds[i] = (struct tasks_hold){.task = {.run = tasks_hold_run, .flags = flags}};
		expect_number("spawn", 0, pinion_task_spawn(thread_pool, &holds[i].task));
	}
	for (uint32_t i = 0; i < count; i++) {
		tasks_await(&holds[i].has_begun, 1);
	}
	for (uint32_t i = 0; i < count; i++) {
		tasks_hold_end(&holds[i]);
	}
}

static void check_sizes(void)
{
	struct pinion_thread_pool_sizes small = {0, 1, 1};
	size_t threads;

	start(&small);
	expect_sizes("at first", 0, 1, 1);
	hold_all(2, 0);
	/* With the watchdog, which stays. */
	threads = runtimes_count_threads();
	resize(MAX, MAX, MAX);
	expect_number(
		"threads", (long long)threads + 3 * MAX - 2, (long long)runtimes_count_threads());
	hold_all(3 * MAX, PINION_TASK_HIGH);
	hold_all(2 * MAX, 0);
	hold_all(MAX, PINION_TASK_LOW);
	resize(1, 0, 2);
	runtimes_expect_threads(threads + 1);
	hold_all(3, PINION_TASK_HIGH);
	hold_all(2, PINION_TASK_LOW);
	resize(0, 0, 1);
	runtimes_expect_threads(threads - 1);
	hold_all(1, PINION_TASK_HIGH);
	resize(0, 1, 1);
	hold_all(2, 0);
	expect_number("all there may be", 3 * MAX, pinion_runtime_worker_count(thread_pool));
	expect_number("end", 0, pinion_runtime_join(thread_pool));
	pinion_runtime_destroy(thread_pool);
}

/* ---- workers that are bound to CPUs ---- */

static uint32_t count_bound(void)
{
	struct pinion_runtime_info facts;

	pinion_runtime_get_info(thread_pool, &facts, sizeof(facts));
	return facts.workers_bound;
}

/* A worker that has left is bound to no CPU. */
static void check_bound_to_cpus(void)
{
	struct pinion_thread_pool_sizes sizes = {0, 1, 1};
	struct pinion_config config;

	pinion_thread_pool_config_init(&config);
	config.tuning = runtimes_thread_pool_tuning();
	config.bind_workers = PINION_BIND_NODE;
	expect_ready("create", pinion_thread_pool_create(&config, &sizes, &thread_pool) == 0);
	if (count_bound() == 2) {
		resize(0, 0, 1);
		expect_number("bound of one", 1, count_bound());
		resize(0, 1, 1);
		expect_number("bound of two", 2, count_bound());
	} else {
		printf("workers are not bound here: %u of 2\n", count_bound());
	}
	pinion_runtime_destroy(thread_pool);
}

/* ---- tasks bound to it ---- */

static struct pinion_future future;
static struct pinion_wait bound_wait;
static struct pin_atomic_u32 has_begun;
static struct pin_atomic_u32 is_served;

static int note_served(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&is_served);
	return 0;
}

static int begin_wait(struct pinion_task *task)
{
	(void)task;
	bound_wait = (struct pinion_wait){.task = {.run = note_served}, .deadline_ns = UINT64_MAX};
	expect_number("await", 0, pinion_future_wait_async(thread_pool, &future, &bound_wait));
	tasks_signal(&has_begun);
	return 0;
}

static void *resize_to_least(void *arg)
{
	struct pinion_thread_pool_sizes sizes = {0, 0, 1};
	int rc;

	(void)arg;
	do {
		rc = pinion_thread_pool_resize(thread_pool, &sizes);
	} while (rc == -EBUSY);
	expect_number("resize", 0, rc);
	expect_sizes("after it", 0, 0, 1);
	return NULL;
}

static int refuse_inside(void *arg)
{
	expect_refusal("from a job", -EDEADLK, (struct pinion_thread_pool_sizes){0, 0, 1});
	(void)arg;
	return 0;
}

/* It leaves only when the wait that its job began is over. */
static void check_bound(void)
{
	struct pinion_thread_pool_sizes sizes = {0, 0, 2};
	struct pinion_task task = {.run = begin_wait, .flags = PINION_TASK_LOW};
	struct tasks_hold hold = {.prepare = NULL};
	uint32_t last = 2 * MAX + 1; /* the second of low */
	pthread_t thread;
	int result;

	start(&sizes);
	pinion_future_init(&future, NULL);
	expect_number("spawn_on", 0, pinion_task_spawn_on(thread_pool, last, &task));
	tasks_await(&has_begun, 1);
	expect_ready("thread", pthread_create(&thread, NULL, resize_to_least, NULL) == 0);
	while (pinion_thread_pool_resize(thread_pool, &sizes) != -EBUSY) {
		/* The other has not begun. */
		sched_yield();
	}
	expect_number("meanwhile", 0, pinion_call_run(thread_pool, refuse_inside, NULL, &result));
	expect_number("not served", 0, pin_load_acquire_u32(&is_served));
	expect_number("set", 0, pinion_future_set(&future, NULL, 0));
	tasks_await(&is_served, 1);
	pthread_join(thread, NULL);
	/* For a worker that has left, or was never there. */
	tasks_hold_begin(&hold, thread_pool, last);
	tasks_hold_end(&hold);
	tasks_hold_begin(&hold, thread_pool, 0);
	tasks_hold_end(&hold);
	pinion_runtime_destroy(thread_pool);
}

/* ---- a timer's cancel that comes as its worker has left ---- */

static struct pinion_timer timer;
static struct pin_atomic_u32 has_cancelled;

static int refuse_timer(struct pinion_task *task)
{
	(void)task;
	expect_true("cancelled, not due", false);
	return 0;
}

static void note_cancelled(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&has_cancelled);
}

static int start_timer(struct pinion_task *task)
{
	(void)task;
	expect_number("timer", 0, pinion_timer_start(thread_pool, &timer, UINT64_MAX - 1));
	tasks_signal(&has_begun);
	return 0;
}

/*
 * The canceller pauses between its two steps, the change of the timer's state
 * and the message, while the worker leaves. A long task on the fallback worker
 * delays no other worker.
 */
static void check_late_cancel(void)
{
	struct pinion_thread_pool_sizes sizes = {0, 0, 3};
	struct pinion_task task = {.run = start_timer, .flags = PINION_TASK_LOW};
	struct pin_worker *fallback;
	struct tasks_hold hold = {.prepare = NULL};
	bool must_post;
	uint32_t index;

	start(&sizes);
	fallback = thread_pool->shared.fallback;
	timer = (struct pinion_timer){.task = {.run = refuse_timer, .cancel = note_cancelled}};
	pin_store_release_u32(&has_begun, 0);
	expect_number("spawn_on", 0, pinion_task_spawn_on(thread_pool, fallback->index + 2, &task));
	tasks_await(&has_begun, 1);
	expect_true("cancel", pin_timer_cancel(&timer, &must_post, &index) && must_post);
	expect_number("of", fallback->index + 2, index);
	resize(0, 0, 2);
	tasks_hold_begin(&hold, thread_pool, fallback->index);
	while (!pin_parker_is_parked(&fallback[1].parker)) {
		sched_yield();
	}
	pin_inbox_push(&fallback[2].timer_cancels, pin_task_link(&timer.task));
	pin_wake_worker(&fallback[2], NULL);
	tasks_await(&has_cancelled, 1);
	tasks_hold_end(&hold);
	pinion_runtime_destroy(thread_pool);
}

/* ---- errors ---- */

static void check_errors(void)
{
	struct pinion_thread_pool_sizes sizes = {1, 2, 1};
	struct pinion_thread_pool_sizes now;
	struct pinion_runtime *own = thread_pool;

	start(&sizes);
	expect_refusal("no worker for low", -EINVAL, (struct pinion_thread_pool_sizes){1, 2, 0});
	expect_refusal("out of range", -EINVAL, (struct pinion_thread_pool_sizes){1025, 2, 1});
	expect_number("no sizes", -EINVAL, pinion_thread_pool_resize(thread_pool, NULL));
	expect_refusal(
		"more than it may", -ERANGE, (struct pinion_thread_pool_sizes){MAX + 1, 2, 1});
	expect_sizes("unchanged", 1, 2, 1);
	expect_number("drain", 0, pinion_runtime_drain(thread_pool));
	expect_refusal("drained", -ESHUTDOWN, (struct pinion_thread_pool_sizes){1, 1, 1});
	pinion_runtime_destroy(thread_pool);

	thread_pool = NULL;
	expect_ready("create", pinion_thread_pool_create(NULL, &sizes, &thread_pool) == 0);
	expect_refusal(
		"no room was asked for", -ERANGE, (struct pinion_thread_pool_sizes){1, 3, 1});
	expect_refusal("fewer is fine", 0, (struct pinion_thread_pool_sizes){0, 1, 1});
	expect_refusal("and as many again", 0, sizes);
	pinion_runtime_destroy(thread_pool);

	thread_pool = runtimes_start(2, PINION_IO_FALLBACK);
	expect_refusal("no thread pool", -EOPNOTSUPP, sizes);
	expect_number(
		"no thread pool", -EOPNOTSUPP, pinion_thread_pool_get_sizes(thread_pool, &now));
	pinion_runtime_destroy(thread_pool);
	thread_pool = own;
}

static void *drain(void *arg)
{
	(void)arg;
	expect_number("drain", 0, pinion_runtime_drain(thread_pool));
	return NULL;
}

/* The job that holds it up does not end before the refusals. */
static void check_refusal_while_draining(void)
{
	struct pinion_thread_pool_sizes sizes = {0, 0, 2};
	struct tasks_hold hold = {.prepare = NULL};
	pthread_t thread;
	int rc;

	start(&sizes);
	tasks_hold_begin(&hold, thread_pool, 2 * MAX);
	expect_ready("thread", pthread_create(&thread, NULL, drain, NULL) == 0);
	do {
		rc = pinion_thread_pool_resize(thread_pool, &sizes);
		sched_yield();
	} while (rc == 0);
	expect_number("as it is closed", -ESHUTDOWN, rc);
	/* A worker that drains it has its lock by now, or takes it. */
	for (int i = 0; i < 1000; i++) {
		expect_refusal(
			"while it drains", -ESHUTDOWN, (struct pinion_thread_pool_sizes){0, 0, 1});
	}
	expect_number("still held", 0, pin_load_acquire_u32(&hold.has_ended));
	tasks_hold_end(&hold);
	pthread_join(thread, NULL);
	pinion_runtime_destroy(thread_pool);
}

/* ---- a worker that cannot start ---- */

static struct pin_atomic_u32 starts;
static struct pin_atomic_u32 stops;

static int fail_third(void *arg, uint32_t worker_index, void **out_context)
{
	(void)arg;
	(void)worker_index;
	*out_context = &starts;
	return pin_fetch_add_seq_cst_u32(&starts, 1) == 2 ? -EIO : 0;
}

static void note_stop(void *arg, uint32_t worker_index, void *context)
{
	(void)arg;
	(void)worker_index;
	expect_true("its context", context == &starts);
	pin_fetch_add_seq_cst_u32(&stops, 1);
}

/* Of two that come, the second fails: the first goes again. */
static void check_failed_start(void)
{
	struct pinion_thread_pool_sizes sizes = {0, 0, 1};
	struct pinion_config config;
	size_t threads;

	pinion_thread_pool_config_init(&config);
	config.tuning = runtimes_thread_pool_tuning();
	runtimes_tuning.thread_pool_max = MAX;
	config.after_start = fail_third;
	config.before_stop = note_stop;
	expect_ready("create", pinion_thread_pool_create(&config, &sizes, &thread_pool) == 0);
	threads = runtimes_count_threads();
	expect_refusal("it fails", -EIO, (struct pinion_thread_pool_sizes){0, 1, 2});
	expect_sizes("unchanged", 0, 0, 1);
	runtimes_expect_threads(threads);
	expect_number("the newcomer has left", 1, pin_load_acquire_u32(&stops));
	resize(0, 1, 2);
	hold_all(3, 0);
	pinion_runtime_destroy(thread_pool);
	expect_number("all have stopped", 4, pin_load_acquire_u32(&stops));
}

/* ---- with rings ---- */

static struct pinion_request request;
static struct pinion_file file;
static uint8_t byte;

/* False: there is no io_uring here. */
static bool start_rings(const struct pinion_thread_pool_sizes *sizes, uint32_t io_without)
{
	struct pinion_runtime_info facts;
	struct pinion_config config;

	pinion_thread_pool_config_init(&config);
	config.tuning = runtimes_thread_pool_tuning();
	config.log = runtimes_note;
	runtimes_tuning.thread_pool_max = MAX;
	config.io_level = PINION_IO_AUTO;
	runtimes_tuning.io_without = io_without;
	runtimes_log[0] = '\0';
	expect_ready("create", pinion_thread_pool_create(&config, sizes, &thread_pool) == 0);
	pinion_runtime_get_info(thread_pool, &facts, sizeof(facts));
	if (facts.uses_ring == 0) {
		pinion_runtime_destroy(thread_pool);
		printf("no io_uring here: thread pools with rings are not tried\n");
	}
	return facts.uses_ring != 0;
}

static int note_read(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&is_served);
	return 0;
}

/* Of a pipe: it ends when there is something in it. */
static int begin_read(struct pinion_task *task)
{
	(void)task;
	request = (struct pinion_request){
		.task.run = note_read, .file = &file, .bytes = &byte, .length_bytes = 1};
	expect_number("submit", 0, pinion_request_submit(thread_pool, &request));
	tasks_signal(&has_begun);
	return 0;
}

/* As many rings as workers, and one more for each worker that comes. */
static uint32_t count_rings(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < thread_pool->shared.worker_count; i++) {
		count += thread_pool->shared.workers[i].ring.is_initialised ? 1 : 0;
	}
	return count;
}

/* It sleeps in its ring, wakes for its inbox, and leaves when the read ends. */
static void check_rings(uint32_t io_without)
{
	struct pinion_thread_pool_sizes sizes = {0, 0, 2};
	struct pinion_task task = {.run = begin_read, .flags = PINION_TASK_LOW};
	struct tasks_hold hold = {.prepare = NULL};
	uint32_t last = 2 * MAX + 1;
	pthread_t thread;
	int ends[2];

	if (!start_rings(&sizes, io_without)) {
		return;
	}
	expect_ready("pipe", pipe(ends) == 0);
	file = runtimes_plain_file(ends[0]);
	pin_store_release_u32(&has_begun, 0);
	pin_store_release_u32(&is_served, 0);
	expect_number("spawn_on", 0, pinion_task_spawn_on(thread_pool, last, &task));
	tasks_await(&has_begun, 1);
	expect_ready("thread", pthread_create(&thread, NULL, resize_to_least, NULL) == 0);
	while (pinion_thread_pool_resize(thread_pool, &sizes) != -EBUSY) {
		/* The other has not begun. */
		sched_yield();
	}
	while (pin_parker_place(&thread_pool->shared.workers[last].parker) != PIN_PARK_RING) {
		sched_yield();
	}
	tasks_hold_begin(&hold, thread_pool, last);
	tasks_hold_end(&hold);
	expect_number("not read", 0, pin_load_acquire_u32(&is_served));
	expect_ready("write", write(ends[1], "x", 1) == 1);
	tasks_await(&is_served, 1);
	pthread_join(thread, NULL);
	expect_number("what it read", 'x', byte);
	expect_number("in all", 1, (long long)request.result);
	expect_number("one ring", 1, count_rings());
	resize(MAX, MAX, MAX);
	expect_number("one each", 3 * MAX, count_rings());
	hold_all(3 * MAX, PINION_TASK_HIGH);
	/* On a worker that has come. */
	pin_store_release_u32(&is_served, 0);
	task = (struct pinion_task){.run = begin_read};
	expect_number("spawn_on", 0, pinion_task_spawn_on(thread_pool, 0, &task));
	expect_ready("write", write(ends[1], "y", 1) == 1);
	tasks_await(&is_served, 1);
	expect_number("what that read", 'y', byte);
	resize(1, 0, 2);
	expect_number("three are left", 3, count_rings());
	pinion_runtime_destroy(thread_pool);
	close(ends[0]);
	close(ends[1]);
}

/* No descriptor for the second of two rings: the first goes again. */
static int grow_without_descriptors(void *arg)
{
	struct pinion_thread_pool_sizes sizes = {0, 0, 1};
	struct rlimit limit;
	int next;

	(void)arg;
	if (!start_rings(&sizes, 0)) {
		return EXPECT_SKIPPED;
	}
	expect_ready("limit", getrlimit(RLIMIT_NOFILE, &limit) == 0);
	next = dup(0);
	expect_ready("dup", next >= 0);
	close(next);
	limit.rlim_cur = (rlim_t)next;
	expect_ready("limit", setrlimit(RLIMIT_NOFILE, &limit) == 0);
	expect_refusal("no ring", -EMFILE, (struct pinion_thread_pool_sizes){0, 1, 2});
	expect_sizes("unchanged", 0, 0, 1);
	expect_number("one ring", 1, count_rings());
	expect_true("it is notified", strstr(runtimes_log, "has no io_uring") != NULL);
	limit.rlim_cur = limit.rlim_max;
	expect_ready("limit", setrlimit(RLIMIT_NOFILE, &limit) == 0);
	resize(0, 1, 2);
	expect_number("now there are", 3, count_rings());
	hold_all(3, 0);
	pinion_runtime_destroy(thread_pool);
	return expect_status();
}

static void check_ring_that_fails(void)
{
	int code = child_code(child_run(grow_without_descriptors, NULL, NULL, 0));

	if (code != EXPECT_SKIPPED) {
		expect_number("a ring that cannot be made", 0, code);
	}
}

static void check_shared_rings(void)
{
	struct pinion_thread_pool_sizes sizes = {0, 0, 2};
	struct pinion_config config;

	pinion_thread_pool_config_init(&config);
	config.tuning = runtimes_thread_pool_tuning();
	config.io_level = PINION_IO_AUTO;
	runtimes_tuning.ring_sharing = PINION_RING_SHARED;
	expect_ready("create", pinion_thread_pool_create(&config, &sizes, &thread_pool) == 0);
	expect_refusal("rings are shared", -EOPNOTSUPP, (struct pinion_thread_pool_sizes){0, 0, 1});
	pinion_runtime_destroy(thread_pool);
}

int main(void)
{
	/* While there is one thread. */
	check_ring_that_fails();
	runtimes_watchdog(LIMIT_SECONDS);
	check_sizes();
	check_bound_to_cpus();
	check_bound();
	check_late_cancel();
	check_errors();
	check_refusal_while_draining();
	check_failed_start();
	check_rings(0);
	check_rings(PINION_IO_SEND_MSG_RING | PINION_IO_CLONE_BUFFERS);
	check_shared_rings();
	return expect_status();
}

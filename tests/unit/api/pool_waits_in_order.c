/* SPDX-License-Identifier: MIT */
/*
 * Goal: waiters for a buffer, threads and tasks of any runtime, are served in
 * the order of coming, with the buffer just given back; other callers get none
 * meanwhile. A wait ends by its deadline, by a close, by a cancel, or by the
 * end of its runtime or the pool's, and no buffer is lost; each error of the
 * calls is seen. BP-28, BP-29, BP-39, W6.
 * Method: a pool of one buffer, or two, all out; each waiter comes only when
 * the last one is in the queue, the next buffer only when the last was used.
 * The queue's count says whether any wait.
 */
#include "runtime/api/internal.h"
#include "runtime/task/entry.h"
#include "tests/support/stops.h"
#include "tests/support/users.h"

enum {
	WAITERS = 12,
	NOT_OVER = 77,
	LIMIT_SECONDS = 100,
};

static struct pinion_runtime *runtime; /* the pool's */
static struct pinion_runtime *other;
static struct pinion_pool *pool;
static struct pin_atomic_u32 begun_count; /* ends that have a place in `ended` */
static struct pin_atomic_u32 end_count;
static uint32_t ended[2 * WAITERS]; /* by number, in order */

struct waiter {
	uint32_t number;
	uint64_t deadline_ns;
	int result;
	struct pinion_buffer buffer;
	pthread_t thread;
	struct pinion_pool_wait wait;
	struct pinion_runtime *runtime;
	int begun;
};

static struct waiter waiters[2 * WAITERS];

static uint32_t queue_length(void)
{
	return pin_load_relaxed_u32(&pool->waiters.count);
}

static void await_queue_length(uint32_t wanted)
{
	while (queue_length() != wanted) {
		sched_yield();
	}
}

static void note_end(struct waiter *waiter, int result)
{
	waiter->result = result;
	ended[pin_fetch_add_relaxed_u32(&begun_count, 1)] = waiter->number;
	tasks_signal(&end_count);
}

static void *wait_as_thread(void *arg)
{
	struct waiter *waiter = arg;

	note_end(waiter, pinion_pool_acquire_wait(pool, waiter->deadline_ns, &waiter->buffer));
	return NULL;
}

static int run_over(struct pinion_task *task)
{
	struct waiter *waiter = PIN_CONTAINER_OF(task, struct waiter, wait.wait.task);

	waiter->buffer = waiter->wait.buffer;
	note_end(waiter, waiter->wait.wait.result);
	return 0;
}

static void begin_as_task(void *arg)
{
	struct waiter *waiter = arg;

	waiter->begun = pinion_pool_acquire_async(waiter->runtime, pool, &waiter->wait);
}

static struct waiter *reset(uint32_t number, uint64_t deadline_ns)
{
	struct waiter *waiter = &waiters[number];

	*waiter = (struct waiter){
		.number = number,
		.deadline_ns = deadline_ns,
		.result = NOT_OVER,
		.wait = {.wait = {.task = {.run = run_over}, .deadline_ns = deadline_ns}},
	};
	return waiter;
}

static struct waiter *start_thread(uint32_t number, uint64_t deadline_ns)
{
	struct waiter *waiter = reset(number, deadline_ns);

	expect_ready("thread", pthread_create(&waiter->thread, NULL, wait_as_thread, waiter) == 0);
	return waiter;
}

static struct waiter *start_task(uint32_t number, struct pinion_runtime *its, uint64_t deadline_ns)
{
	struct waiter *waiter = reset(number, deadline_ns);

	waiter->runtime = its;
	users_on(its, number % pinion_runtime_worker_count(its), begin_as_task, waiter);
	expect_number("await", 0, waiter->begun);
	return waiter;
}

static void begin_on(struct pinion_runtime *owner, uint32_t buffer_count)
{
	runtime = owner;
	other = users_runtime(1, 0);
	pool = users_pool(runtime, 0, 2, buffer_count);
	pin_store_release_u32(&begun_count, 0);
	pin_store_release_u32(&end_count, 0);
}

static void begin(uint32_t buffer_count)
{
	begin_on(users_runtime(2, 1 << 20), buffer_count);
}

static void finish(void)
{
	expect_number("no waiter", 0, queue_length());
	users_end(pool);
	pinion_runtime_destroy(other);
	pinion_runtime_destroy(runtime);
}

/* ---- in order ---- */

static void start_any(uint32_t number)
{
	switch (number % 3) {
	case 0:
		start_thread(number, UINT64_MAX);
		break;
	case 1:
		start_task(number, runtime, UINT64_MAX);
		break;
	default:
		start_task(number, other, UINT64_MAX);
		break;
	}
	await_queue_length(number + 1);
}

static void give_on_worker(void *arg)
{
	users_give(pool, arg);
}

/* By this thread, a worker of the pool's, one of the other's: in turns. */
static void give(uint32_t turn, struct pinion_buffer *buffer)
{
	switch (turn % 3) {
	case 0:
		users_give(pool, buffer);
		break;
	case 1:
		users_on(runtime, 1, give_on_worker, buffer);
		break;
	default:
		users_on(other, 0, give_on_worker, buffer);
		break;
	}
}

static void check_order(void)
{
	static struct pinion_histogram waits;
	struct pinion_buffer buffers[2];
	struct pinion_buffer *given = &buffers[0];
	struct pinion_buffer none;

	begin(2);
	/* At once: that is no wait. */
	(void)start_task(0, runtime, UINT64_MAX);
	tasks_await(&end_count, 1);
	users_give(pool, &waiters[0].buffer);
	pinion_pool_get_waits(pool, &waits);
	expect_number("no wait", 0, (long long)waits.count);
	pin_store_release_u32(&begun_count, 0);
	pin_store_release_u32(&end_count, 0);
	buffers[0] = users_take(pool);
	buffers[1] = users_take(pool);
	for (uint32_t i = 0; i < WAITERS; i++) {
		start_any(i);
	}
	for (uint32_t i = 0; i < WAITERS; i++) {
		uint8_t *bytes = given->bytes;

		give(i / 3, given);
		tasks_await(&end_count, i + 1);
		expect_number("the oldest is served", i, ended[i]);
		expect_number("with success", 0, waiters[i].result);
		expect_true("with the buffer given back", waiters[i].buffer.bytes == bytes);
		expect_number("no overtaking", -EAGAIN, pinion_pool_try_acquire(pool, &none));
		expect_number("now", -ETIME, pinion_pool_acquire_wait(pool, 0, &none));
		expect_number("the others wait", WAITERS - 1 - i, queue_length());
		if (i % 3 == 0) {
			pthread_join(waiters[i].thread, NULL);
		}
		given = &waiters[i].buffer;
	}
	/* Those of threads and tasks, and one in vain for each. */
	pinion_pool_get_waits(pool, &waits);
	expect_number("waits", 2 * WAITERS, (long long)waits.count);
	users_give(pool, given);
	users_give(pool, &buffers[1]);
	finish();
}

/* ---- deadlines ---- */

static void check_deadlines(void)
{
	struct pinion_buffer buffer;
	struct waiter *first;
	struct waiter *second;
	struct pinion_buffer late = {NULL, 0, 0};

	begin(2);
	buffer = users_take(pool);
	expect_number("one is free", 0, pinion_pool_acquire_wait(pool, 0, &late));
	expect_number("none now", -ETIME, pinion_pool_acquire_wait(pool, 0, &late));
	expect_number("in the past", -ETIME, pinion_pool_acquire_wait(pool, 1, &late));
	expect_number("soon", -ETIME,
		pinion_pool_acquire_wait(pool, pinion_clock_now_ns() + 100000, &late));
	start_task(0, runtime, 0);
	start_task(1, other, 1);
	start_task(2, runtime, pinion_clock_now_ns() + 100000);
	tasks_await(&end_count, 3);
	for (int i = 0; i < 3; i++) {
		expect_number("a task's", -ETIME, waiters[i].result);
	}
	expect_number("all have left", 0, queue_length());
	/* The oldest leaves, and the next one is served as before. */
	first = start_thread(3, pinion_clock_now_ns() + 1000000);
	second = start_task(4, runtime, UINT64_MAX);
	tasks_await(&end_count, 4);
	pthread_join(first->thread, NULL);
	expect_number("the first left", -ETIME, first->result);
	await_queue_length(1);
	users_give(pool, &late);
	tasks_await(&end_count, 5);
	expect_number("the second is served", 0, second->result);
	users_give(pool, &second->buffer);
	users_give(pool, &buffer);
	finish();
}

/* ---- ends that others make ---- */

static void check_close(void)
{
	struct pinion_buffer buffer;
	struct pinion_buffer again;

	begin(2);
	buffer = users_take(pool);
	again = users_take(pool);
	for (uint32_t i = 0; i < WAITERS; i++) {
		start_any(i);
	}
	expect_number("they wait", -EBUSY, pinion_pool_destroy(pool));
	users_expect_said("a thread or task waits for a buffer; pinion_pool_close() ends that");
	users_give(pool, &again);
	tasks_await(&end_count, 1);
	pinion_pool_close(pool);
	tasks_await(&end_count, WAITERS);
	for (uint32_t i = 0; i < WAITERS; i++) {
		expect_number("ended", i == 0 ? 0 : -ESHUTDOWN, waiters[i].result);
		expect_true("a buffer or none", (waiters[i].buffer.bytes != NULL) == (i == 0));
		if (i % 3 == 0) {
			pthread_join(waiters[i].thread, NULL);
		}
	}
	expect_number("no waiting any more", -ESHUTDOWN,
		pinion_pool_acquire_wait(pool, UINT64_MAX, &again));
	start_task(WAITERS, runtime, UINT64_MAX);
	start_task(WAITERS + 1, other, 0);
	tasks_await(&end_count, WAITERS + 2);
	expect_number("nor for a task", -ESHUTDOWN, waiters[WAITERS].result);
	expect_number("at all", -ESHUTDOWN, waiters[WAITERS + 1].result);
	users_give(pool, &waiters[0].buffer);
	again = users_take(pool);
	users_give(pool, &again);
	users_give(pool, &buffer);
	pinion_pool_close(pool);
	finish();
}

static void check_cancel(void)
{
	struct pinion_buffer buffer;
	struct waiter *first;
	struct waiter *second;

	begin(2);
	buffer = users_take(pool);
	waiters[2].buffer = users_take(pool);
	first = start_task(0, other, UINT64_MAX);
	second = start_task(1, runtime, UINT64_MAX);
	expect_number("cancel", 0, pinion_wait_cancel(other, &first->wait.wait));
	tasks_await(&end_count, 1);
	expect_number("its end", -ECANCELED, first->result);
	expect_true("has none", first->wait.buffer.bytes == NULL);
	users_give(pool, &buffer);
	tasks_await(&end_count, 2);
	expect_number("the next is served", 0, second->result);
	expect_number("too late", -EALREADY, pinion_wait_cancel(runtime, &second->wait.wait));
	users_give(pool, &second->buffer);
	users_give(pool, &waiters[2].buffer);
	finish();
}

/*
 * Of two tasks that wait one is served while its worker is held; then their
 * runtime is stopped. The first has its buffer, the other none.
 */
static void check_stop(void)
{
	struct tasks_hold hold = {.prepare = NULL};
	struct pinion_buffer buffers[2];
	struct waiter *after;
	pthread_t stopper;

	begin(2);
	buffers[0] = users_take(pool);
	buffers[1] = users_take(pool);
	start_task(0, other, UINT64_MAX);
	start_task(1, other, UINT64_MAX);
	after = start_task(2, runtime, UINT64_MAX);
	tasks_hold_begin(&hold, other, 0);
	users_give(pool, &buffers[0]);
	await_queue_length(2);
	stopper = stops_begin(other);
	tasks_hold_end(&hold);
	stops_end(stopper);
	expect_number("both are over", 2, pin_load_acquire_u32(&end_count));
	expect_number("served is served", 0, waiters[0].result);
	expect_number("the other is not", -ECANCELED, waiters[1].result);
	expect_number("a waiter elsewhere goes on waiting", NOT_OVER, after->result);
	users_give(pool, &waiters[0].buffer);
	tasks_await(&end_count, 3);
	expect_number("and is served", 0, after->result);
	users_give(pool, &after->buffer);
	users_give(pool, &buffers[1]);
	finish();
}

/*
 * The pool's runtime is stopped, by a call or by a task's failure, and no
 * buffer comes back: no thread and no task of another runtime waits on, nor
 * begins to.
 */
static int fail(struct pinion_task *task)
{
	(void)task;
	return -EIO;
}

static void check_stop_of_owner(bool is_failure, bool has_own)
{
	struct pinion_task failing = {.run = fail};
	struct pinion_buffer buffers[2];
	struct pinion_buffer none = {NULL, 0, 0};
	struct pinion_runtime *owner = NULL;
	struct pinion_config config;

	runtimes_config(&config, 2, PINION_IO_AUTO);
	config.pool_bytes = 1 << 20;
	runtimes_tuning.fault_policy =
		is_failure ? PINION_FAULT_FAIL_FAST : runtimes_tuning.fault_policy;
	expect_number("create", 0, pinion_runtime_create(&config, &owner));
	begin_on(owner, 2);
	buffers[0] = users_take(pool);
	buffers[1] = users_take(pool);
	start_thread(0, UINT64_MAX);
	await_queue_length(1);
	start_task(1, other, UINT64_MAX);
	/* Its end would serve the others, too. */
	if (has_own) {
		start_task(2, runtime, UINT64_MAX);
	} else {
		start_task(2, other, UINT64_MAX);
	}
	await_queue_length(3);
	if (is_failure) {
		expect_number("spawn", 0, pinion_task_spawn(runtime, &failing));
	} else {
		expect_number("stop", 0, pinion_runtime_stop(runtime));
	}
	pthread_join(waiters[0].thread, NULL);
	tasks_await(&end_count, 3);
	expect_number("a thread", -ESHUTDOWN, waiters[0].result);
	expect_number("another's task", -ESHUTDOWN, waiters[1].result);
	expect_true("its own, or not",
		waiters[2].result == -ESHUTDOWN || (has_own && waiters[2].result == -ECANCELED));
	for (uint32_t i = 0; i < 3; i++) {
		expect_true("without a buffer", waiters[i].buffer.bytes == NULL);
	}
	expect_number("too late", -ESHUTDOWN, pinion_pool_acquire_wait(pool, UINT64_MAX, &none));
	start_task(3, other, UINT64_MAX);
	tasks_await(&end_count, 4);
	expect_number("for a task as well", -ESHUTDOWN, waiters[3].result);
	users_give(pool, &buffers[0]);
	expect_number("the free ones", 0, pinion_pool_acquire_wait(pool, 0, &buffers[0]));
	users_give(pool, &buffers[0]);
	users_give(pool, &buffers[1]);
	finish();
}

/* ---- mistakes ---- */

struct attempt {
	int acquired;
	int acquired_elsewhere;
	int awaited;
	int awaited_again;
	int without_run;
	struct pinion_buffer buffer;
};

static void try_on_worker(void *arg)
{
	struct attempt *attempt = arg;
	struct waiter *waiter = reset(0, UINT64_MAX);
	struct pinion_pool_wait bare = {.wait = {.deadline_ns = UINT64_MAX}};

	attempt->acquired = pinion_pool_acquire_wait(pool, UINT64_MAX, &attempt->buffer);
	attempt->awaited = pinion_pool_acquire_async(runtime, pool, &waiter->wait);
	attempt->awaited_again = pinion_pool_acquire_async(runtime, pool, &waiter->wait);
	attempt->without_run = pinion_pool_acquire_async(runtime, pool, &bare);
}

static void acquire_elsewhere(void *arg)
{
	struct attempt *attempt = arg;

	attempt->acquired_elsewhere = pinion_pool_acquire_wait(pool, UINT64_MAX, &attempt->buffer);
}

static struct pin_atomic_u32 has_begun;

static int await_late(struct pinion_task *task)
{
	struct waiter *waiter = reset(5, UINT64_MAX);

	(void)task;
	tasks_signal(&has_begun);
	while (!pin_shared_is_stopping(&other->shared)) {
		sched_yield();
	}
	waiter->begun = pinion_pool_acquire_async(other, pool, &waiter->wait);
	return 0;
}

static void check_mistakes(void)
{
	struct pinion_task late = {.run = await_late};
	struct pinion_pool_wait wait = {.wait = {.task = {.run = run_over}}};
	struct attempt attempt;
	struct pinion_buffer buffers[2];

	begin(2);
	expect_number("not on a worker", -EPERM, pinion_pool_acquire_async(runtime, pool, &wait));
	users_on(other, 0, acquire_elsewhere, &attempt);
	expect_number("on another's worker", 0, attempt.acquired_elsewhere);
	buffers[0] = attempt.buffer;
	buffers[1] = users_take(pool);
	users_on(runtime, 0, try_on_worker, &attempt);
	expect_number("blocks a worker", -EDEADLK, attempt.acquired);
	expect_number("await", 0, attempt.awaited);
	expect_number("waits already", -EBUSY, attempt.awaited_again);
	expect_number("without `run`", -EINVAL, attempt.without_run);
	users_give(pool, &buffers[0]);
	tasks_await(&end_count, 1);
	users_give(pool, &waiters[0].buffer);
	users_give(pool, &buffers[1]);
	expect_number("spawn", 0, pinion_task_spawn(other, &late));
	tasks_await(&has_begun, 1);
	expect_number("stop", 0, pinion_runtime_stop(other));
	expect_number("being stopped", -ESHUTDOWN, waiters[5].begun);
	finish();
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_order();
	check_deadlines();
	check_close();
	check_cancel();
	check_stop();
	check_stop_of_owner(false, false);
	check_stop_of_owner(true, false);
	check_stop_of_owner(false, true);
	check_mistakes();
	return expect_status();
}

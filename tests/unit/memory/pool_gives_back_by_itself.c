/* SPDX-License-Identifier: MIT */
/*
 * Goal: on every way out a buffer is back once: of a scope, by return, break,
 * goto or failure; of a task that owns one, when it has run, failed, or was
 * cancelled; and it stays out when its handle was cleared to keep it. BP-6,
 * BP-22, BP-39.
 * Method: each way, and the number available afterwards; then a runtime that is
 * stopped with 64 such tasks in its queues.
 */
#include "runtime/task/entry.h"
#include "tests/support/stops.h"
#include "tests/support/users.h"

enum {
	QUEUED = 64,
	LIMIT_SECONDS = 60,
};

static struct pinion_pool *pool;

/* ---- scopes ---- */

static int use_and_return(int way, struct pinion_buffer *out_kept)
{
	PINION_AUTO_BUFFER(buffer, pool);

	if (way == 0) {
		return 0; /* before it has any */
	}
	expect_number("try_acquire", 0, pinion_pool_try_acquire(pool, buffer));
	buffer->bytes[0] = 1;
	if (way == 1) {
		return -EIO;
	}
	if (way == 2) {
		users_give(pool, buffer); /* early */
		return 0;
	}
	if (way == 3) {
		*out_kept = *buffer;
		*buffer = (struct pinion_buffer){NULL, 0, 0};
		return 0;
	}
	for (int i = 0; i < 3; i++) {
		PINION_AUTO_BUFFER(inner, pool);

		expect_number("one more", 0, pinion_pool_try_acquire(pool, inner));
		expect_number("two are out", 2, users_free(pool));
		if (i == 0) {
			continue;
		}
		if (way == 4) {
			break;
		}
		goto out;
	}
out:
	expect_number("one is out", 3, users_free(pool));
	return 0;
}

static void check_scopes(void)
{
	struct pinion_buffer kept = {NULL, 0, 0};

	pool = users_pool(NULL, 1, 2, 4);
	for (int way = 0; way <= 5; way++) {
		expect_number("result", way == 1 ? -EIO : 0, use_and_return(way, &kept));
		expect_number("back", way == 3 ? 3 : 4, users_free(pool));
		if (way == 3) {
			users_give(pool, &kept);
		}
	}
	users_end(pool);
}

/* ---- tasks ---- */

static struct pinion_buffer_task tasks[QUEUED];
static struct pinion_buffer kept_buffer;
static struct pin_atomic_u32 run_count;
static struct pin_atomic_u32 cancel_count;
static int task_result;
static bool is_keeping;

static int run_task(struct pinion_buffer_task *task, struct pinion_buffer *buffer)
{
	/* The struct is ours again, and of no more use to the runtime. */
	memset(task, 0xff, sizeof(*task));
	expect_number("bytes written", 7, buffer->bytes[0]);
	if (is_keeping) {
		kept_buffer = *buffer;
		*buffer = (struct pinion_buffer){NULL, 0, 0};
	}
	pin_fetch_add_acq_rel_u32(&run_count, 1);
	return task_result;
}

static void cancel_task(struct pinion_buffer_task *task)
{
	expect_true("it has none any more", task->buffer.bytes == NULL);
	pin_fetch_add_acq_rel_u32(&cancel_count, 1);
}

static void make_task(struct pinion_buffer_task *task)
{
	struct pinion_buffer buffer = users_take(pool);

	buffer.bytes[0] = 7;
	pinion_buffer_task_init(task, pool, &buffer, run_task, cancel_task);
	expect_true("the task took it over",
		buffer.bytes == NULL && pinion_pool_bytes(pool, &task->buffer) != NULL);
}

static void begin(struct pinion_runtime **out_runtime)
{
	*out_runtime = users_runtime(2, 4 << 20);
	pool = users_pool(*out_runtime, 0, 4, QUEUED);
	pin_store_release_u32(&run_count, 0);
	pin_store_release_u32(&cancel_count, 0);
}

static void check_task(int result, bool keeps)
{
	struct pinion_runtime *runtime;

	begin(&runtime);
	task_result = result;
	is_keeping = keeps;
	make_task(&tasks[0]);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &tasks[0].task));
	expect_number("its result", result, pinion_runtime_join(runtime));
	expect_number("has run", 1, pin_load_acquire_u32(&run_count));
	expect_number("is back", QUEUED - (keeps ? 1 : 0), users_free(pool));
	if (keeps) {
		expect_number("bytes written", 7, kept_buffer.bytes[0]);
		users_give(pool, &kept_buffer);
	}
	users_end(pool);
	pinion_runtime_destroy(runtime);
}

/* Refused: the buffer is still in the task. */
static void check_refused(void)
{
	struct pinion_runtime *runtime;

	begin(&runtime);
	make_task(&tasks[0]);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("spawn", -ESHUTDOWN, pinion_task_spawn(runtime, &tasks[0].task));
	expect_number("out", QUEUED - 1, users_free(pool));
	users_give(pool, &tasks[0].buffer);
	users_end(pool);
	pinion_runtime_destroy(runtime);
}

/* A worker's mistake: it gave the buffer back and left the handle as it was. */
static int run_and_give(struct pinion_buffer_task *task, struct pinion_buffer *buffer)
{
	struct pinion_buffer copy = *buffer;

	(void)task;
	expect_number("release", 0, pinion_pool_release(pool, &copy));
	return 0;
}

static void check_mistake(void)
{
	struct pinion_runtime *runtime;
	struct pinion_buffer buffer;
	struct pinion_pool_stats counters;

	begin(&runtime);
	buffer = users_take(pool);
	pinion_buffer_task_init(&tasks[0], pool, &buffer, run_and_give, NULL);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &tasks[0].task));
	expect_number("the task has failed", -EALREADY, pinion_runtime_join(runtime));
	pinion_pool_get_stats(pool, &counters, sizeof(counters));
	expect_number("counted", 1, (long long)counters.misuses);
	expect_number("once back", QUEUED, users_free(pool));
	expect_number("destroy", 0, pinion_pool_destroy(pool));
	pinion_runtime_destroy(runtime);
}

static void check_stop(void)
{
	struct tasks_hold holds[2] = {{.prepare = NULL}, {.prepare = NULL}};
	struct pinion_runtime *runtime;
	pthread_t stopper;

	begin(&runtime);
	task_result = 0;
	is_keeping = false;
	for (uint32_t i = 0; i < 2; i++) {
		tasks_hold_begin(&holds[i], runtime, i);
	}
	for (uint32_t i = 0; i < QUEUED; i++) {
		make_task(&tasks[i]);
		if (i % 8 == 0) {
			tasks[i].cancel = NULL;
		}
		expect_number("spawn", 0,
			i % 2 == 0 ? pinion_task_spawn(runtime, &tasks[i].task)
				   : pinion_task_spawn_on(runtime, i / 2 % 2, &tasks[i].task));
	}
	expect_number("all are out", 0, users_free(pool));
	stopper = stops_begin(runtime);
	for (uint32_t i = 0; i < 2; i++) {
		tasks_hold_end(&holds[i]);
	}
	stops_end(stopper);
	expect_number("has run", 0, pin_load_acquire_u32(&run_count));
	expect_number("told", QUEUED - QUEUED / 8, pin_load_acquire_u32(&cancel_count));
	expect_number("cancelled", QUEUED, (long long)runtimes_counters(runtime).tasks_cancelled);
	users_end(pool);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_scopes();
	check_task(0, false);
	check_task(-EIO, false);
	check_task(0, true);
	check_refused();
	check_mistake();
	check_stop();
	return expect_status();
}

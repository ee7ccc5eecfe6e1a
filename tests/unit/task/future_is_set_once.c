/* SPDX-License-Identifier: MIT */
/*
 * Goal: a future keeps the first result it gets, whole, and delivers it to
 * tasks, threads and callbacks alike; each of its errors is seen. WP-11, WP-18,
 * C16.
 * Method: one future of each kind by itself; then many, each set by two tasks
 * of one runtime, of which one is refused, and awaited by tasks of another.
 */
#include "runtime/base/base.h"
#include "runtime/host/host.h"
#include "tests/support/random.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>

enum {
	MANY = 500,
	SETTERS = 2,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static struct pinion_runtime *other;
static struct pinion_future future;
static struct pin_atomic_u32 end_count;

static void check_results(void)
{
	uint8_t value[PINION_FUTURE_BYTES];
	uint8_t wide[PINION_FUTURE_BYTES + 8];
	uint8_t zeros[8] = {0};

	for (uint32_t i = 0; i < sizeof(value); i++) {
		value[i] = (uint8_t)(i + 1);
	}
	pinion_future_init(&future, NULL);
	expect_number("not done", -EAGAIN, pinion_future_get(&future, wide, sizeof(wide)));
	expect_number("not now", -ETIME, pinion_future_wait(&future, 0));
	expect_number(
		"not soon", -ETIME, pinion_future_wait(&future, pinion_clock_now_ns() + 1000000));
	expect_number("too long", -EINVAL, pinion_future_set(&future, wide, sizeof(wide)));
	expect_number("no value", -EINVAL, pinion_future_set(&future, NULL, 1));
	expect_number("no failure", -EINVAL, pinion_future_fail(&future, 1));
	expect_number("set", 0, pinion_future_set(&future, value, sizeof(value)));
	expect_number("set again", -EALREADY, pinion_future_set(&future, wide, 1));
	expect_number("fail late", -EALREADY, pinion_future_fail(&future, -EIO));
	expect_number("done", 0, pinion_future_wait(&future, 0));
	memset(wide, 0xff, sizeof(wide));
	expect_number("get", 0, pinion_future_get(&future, wide, sizeof(wide)));
	expect_number("value", 0, memcmp(value, wide, sizeof(value)));
	expect_number("rest", 0, memcmp(zeros, wide + sizeof(value), sizeof(zeros)));
	pinion_future_init(&future, NULL);
	expect_number("fail", 0, pinion_future_fail(&future, -EIO));
	expect_number("done", 0, pinion_future_wait(&future, UINT64_MAX));
	expect_number("get", -EIO, pinion_future_get(&future, wide, sizeof(wide)));
}

/* ---- callback and detach ---- */

static uint32_t call_count;

static void done(struct pinion_future_callback *callback)
{
	call_count += callback->future == &future ? 1 : 100;
}

static void release(struct pinion_future *released)
{
	call_count += released == &future ? 1 : 100;
}

static void check_callbacks(void)
{
	struct pinion_future_callback callback = {.future = &future};

	pinion_future_init(&future, NULL);
	expect_number("no function", -EINVAL, pinion_future_call(&callback));
	callback = (struct pinion_future_callback){.done = done};
	expect_number("no future", -EINVAL, pinion_future_call(&callback));
	callback.future = &future;
	call_count = 0;
	expect_number("call", 0, pinion_future_call(&callback));
	expect_number("early", 0, call_count);
	expect_number("a waiter", -EBUSY, pinion_future_detach(&future, release));
	expect_number("set", 0, pinion_future_set(&future, NULL, 0));
	expect_number("called", 1, call_count);
	expect_number("call", 0, pinion_future_call(&callback));
	expect_number("called at once", 2, call_count);
	expect_number("no release", -EINVAL, pinion_future_detach(&future, NULL));
	expect_number("detach", 0, pinion_future_detach(&future, release));
	expect_number("released at once", 3, call_count);
	pinion_future_init(&future, NULL);
	expect_number("detach", 0, pinion_future_detach(&future, release));
	expect_number("detach again", -EALREADY, pinion_future_detach(&future, release));
	expect_number("set", 0, pinion_future_set(&future, NULL, 0));
	expect_number("released", 4, call_count);
}

/* ---- on a worker ---- */

static int run_await_end(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&end_count);
	return 0;
}

static int run_on_worker(struct pinion_task *task)
{
	static struct pinion_wait wait;

	(void)task;
	wait = (struct pinion_wait){.task.run = run_await_end};
	expect_number("it would never come", -EDEADLK, pinion_future_wait(&future, UINT64_MAX));
	expect_number("not this runtime", -EPERM, pinion_future_wait_async(other, &future, &wait));
	expect_number("await", 0, pinion_future_wait_async(runtime, &future, &wait));
	expect_number("set", 0, pinion_future_set(&future, NULL, 0));
	expect_number("it is there", 0, pinion_future_wait(&future, UINT64_MAX));
	return 0;
}

static int run_on_other(struct pinion_task *task)
{
	(void)task;
	expect_number(
		"nor is it waited for there", -EDEADLK, pinion_future_wait(&future, UINT64_MAX));
	tasks_signal(&end_count);
	return 0;
}

static void check_workers(void)
{
	struct pinion_task task = {.run = run_on_worker};
	struct pinion_task elsewhere = {.run = run_on_other};
	struct pinion_wait wait = {.task.run = run_await_end};

	pin_store_release_u32(&end_count, 0);
	pinion_future_init(&future, runtime);
	expect_number("on no worker", -EPERM, pinion_future_wait_async(runtime, &future, &wait));
	expect_number("spawn", 0, pinion_task_spawn(other, &elsewhere));
	tasks_await(&end_count, 1);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	tasks_await(&end_count, 2);
}

/* ---- many ---- */

struct entry {
	struct pinion_future future;
	struct pinion_task starter;
	struct pinion_wait wait;
	struct pinion_task setters[SETTERS];
	uint64_t value[3];
};

static struct entry entries[MANY];
static struct pin_atomic_u32 set_count;
static struct pin_atomic_u32 bad_count;

static int run_setter(struct pinion_task *task)
{
	struct entry *entry =
		entries + ((uintptr_t)task - (uintptr_t)entries) / sizeof(struct entry);
	uint64_t value[3];
	int rc;

	value[0] = (uint64_t)(task - entry->setters) + 1;
	value[1] = value[0];
	value[2] = (uint64_t)(entry - entries);
	rc = pinion_future_set(&entry->future, value, sizeof(value));
	if (rc == 0) {
		pin_fetch_add_acq_rel_u32(&set_count, 1);
	} else if (rc != -EALREADY) {
		pin_fetch_add_acq_rel_u32(&bad_count, 1);
	}
	return 0;
}

static int run_wait(struct pinion_task *task)
{
	struct entry *entry = PIN_CONTAINER_OF(task, struct entry, wait.task);
	const uint64_t *value = entry->value;

	if (pinion_future_get(&entry->future, entry->value, sizeof(entry->value)) != 0 ||
		value[0] == 0 || value[0] != value[1] || value[2] != (uint64_t)(entry - entries)) {
		pin_fetch_add_acq_rel_u32(&bad_count, 1);
	}
	tasks_signal(&end_count);
	return 0;
}

static int run_starter(struct pinion_task *task)
{
	struct entry *entry = PIN_CONTAINER_OF(task, struct entry, starter);

	return pinion_future_wait_async(runtime, &entry->future, &entry->wait);
}

static void check_many(void)
{
	pin_store_release_u32(&end_count, 0);
	for (uint32_t i = 0; i < MANY; i++) {
		struct entry *entry = &entries[i];

		pinion_future_init(&entry->future, other);
		entry->starter = (struct pinion_task){.run = run_starter};
		entry->wait = (struct pinion_wait){.task.run = run_wait, .deadline_ns = UINT64_MAX};
		expect_number("spawn", 0, pinion_task_spawn(runtime, &entry->starter));
		for (uint32_t j = 0; j < SETTERS; j++) {
			entry->setters[j] = (struct pinion_task){.run = run_setter};
			expect_number("spawn", 0, pinion_task_spawn(other, &entry->setters[j]));
		}
	}
	tasks_await(&end_count, MANY);
	expect_number("join", 0, pinion_runtime_join(runtime));
	expect_number("join", 0, pinion_runtime_join(other));
	expect_number("set", MANY, pin_load_acquire_u32(&set_count));
	expect_number("wrong", 0, pin_load_acquire_u32(&bad_count));
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_results();
	check_callbacks();
	runtime = runtimes_start(2, PINION_IO_AUTO);
	other = runtimes_start(2, PINION_IO_AUTO);
	check_workers();
	check_many();
	pinion_runtime_destroy(runtime);
	pinion_runtime_destroy(other);
	return expect_status();
}

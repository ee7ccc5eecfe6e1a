/* SPDX-License-Identifier: MIT */
/*
 * Goal: a wait that a task begins ends once, on the worker that began it:
 * served by a worker of its own runtime, of another, or by a thread of none,
 * timed out, cancelled, or as its runtime is stopped; a drain waits for it.
 * Every error of the calls is seen. BP-28, W6, W47.
 * Method: waits for units of a counter; first one of each kind, then many with
 * random deadlines, given for by the tasks of another runtime while a thread
 * cancels some. At the end units and ends must agree.
 */
#include "runtime/base/base.h"
#include "runtime/worker/wait.h"
#include "tests/support/random.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"
#include "tests/support/units.h"

#include <errno.h>

enum {
	MANY = 300,
	WORKERS = 2,
	ROUNDS = 20,
	LIMIT_SECONDS = 100,
	NOT_OVER = 77,
};

struct entry {
	struct pinion_task starter;
	struct pinion_wait wait;
	struct pinion_task giver;
	int rc;
	struct pin_atomic_u32 end_count;
	struct pin_worker *begun_on;
};

static struct pinion_runtime *runtime;
static struct pin_waiters waiters;
static struct pin_atomic_u32 begun_count;
static struct pin_atomic_u32 end_count;
static struct pin_atomic_u32 stray_count;
static struct entry entries[MANY];

static int32_t finish(void *target, const struct pin_waiters_value *value)
{
	(void)target;
	return (int32_t)value->words[0];
}

static void give(void)
{
	pin_fetch_add_acq_rel_u32(&units, 1);
	if (pin_waiters_any(&waiters)) {
		pin_waiters_serve(&waiters);
	}
}

static int run_giver(struct pinion_task *task)
{
	(void)task;
	give();
	return 0;
}

static int run_wait(struct pinion_task *task)
{
	struct entry *entry = PIN_CONTAINER_OF(task, struct entry, wait.task);

	if (pin_worker_current() != entry->begun_on) {
		pin_fetch_add_acq_rel_u32(&stray_count, 1);
	}
	pin_fetch_add_acq_rel_u32(&entry->end_count, 1);
	tasks_signal(&end_count);
	return 0;
}

static int run_starter(struct pinion_task *task)
{
	struct entry *entry = PIN_CONTAINER_OF(task, struct entry, starter);
	struct pin_wait_aim aim = {.waiters = &waiters, .demand = 1, .finish = finish};

	entry->begun_on = pin_worker_current();
	entry->rc = pin_wait_begin(entry->begun_on, &entry->wait, &aim);
	tasks_signal(&begun_count);
	return 0;
}

static void begin(uint32_t worker_count)
{
	pin_store_release_u32(&units, 0);
	pin_store_release_u32(&begun_count, 0);
	pin_store_release_u32(&end_count, 0);
	memset(entries, 0, sizeof(entries));
	pin_waiters_init(&waiters, &pin_host_linux, units_take, NULL, PIN_WAITERS_RELEASE_LIGHT);
	runtime = runtimes_start(worker_count, PINION_IO_AUTO);
}

static void start(struct entry *entry, uint64_t deadline_ns)
{
	entry->starter = (struct pinion_task){.run = run_starter};
	entry->wait.task.run = run_wait;
	entry->wait.deadline_ns = deadline_ns;
	entry->giver = (struct pinion_task){.run = run_giver};
	expect_number("spawn", 0, pinion_task_spawn(runtime, &entry->starter));
}

/* Returns when it has begun. */
static struct entry *start_next(uint64_t deadline_ns)
{
	uint32_t index = pin_load_acquire_u32(&begun_count);

	entries[index].wait.result = NOT_OVER;
	start(&entries[index], deadline_ns);
	tasks_await(&begun_count, index + 1);
	expect_number("begin", 0, entries[index].rc);
	return &entries[index];
}

static void await_end(const char *what, struct entry *entry, int result)
{
	while (pin_load_acquire_u32(&entry->end_count) == 0) {
		pin_host_linux.yield();
	}
	expect_number(what, result, entry->wait.result);
}

static void check_each_end(void)
{
	struct pinion_runtime *other = runtimes_start(1, PINION_IO_AUTO);
	struct entry *entry;

	begin(WORKERS);
	give();
	await_end("at once", start_next(0), 1);
	await_end("deadline 0", start_next(0), -ETIME);
	await_end("in the past", start_next(1), -ETIME);
	await_end("later", start_next(pinion_clock_now_ns() + 1000000), -ETIME);
	entry = start_next(UINT64_MAX);
	give();
	await_end("by a thread", entry, 1);
	entry = start_next(UINT64_MAX);
	expect_number("spawn", 0, pinion_task_spawn(other, &entry->giver));
	await_end("by another runtime", entry, 1);
	entry = start_next(pinion_clock_now_ns() + UINT64_C(3600000000000));
	expect_number("spawn", 0, pinion_task_spawn(runtime, &entry->giver));
	await_end("by its own runtime", entry, 1);
	expect_number("cancel late", -EALREADY, pinion_wait_cancel(runtime, &entry->wait));
	entry = start_next(UINT64_MAX);
	expect_number("cancel", 0, pinion_wait_cancel(runtime, &entry->wait));
	await_end("cancelled", entry, -ECANCELED);
	expect_number("cancel again", -EALREADY, pinion_wait_cancel(runtime, &entry->wait));
	expect_number("never begun", -EALREADY, pinion_wait_cancel(runtime, &entries[99].wait));
	entry = start_next(UINT64_MAX);
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	await_end("stopped", entry, -ECANCELED);
	pinion_runtime_destroy(runtime);
	pinion_runtime_destroy(other);
}

/* ---- refusals ---- */

static int run_refused(struct pinion_task *task)
{
	struct pin_wait_aim aim = {.waiters = &waiters, .demand = 1};
	struct pin_worker *worker = pin_worker_current();
	struct pinion_wait wait = {.deadline_ns = UINT64_MAX};

	(void)task;
	expect_number("no run", -EINVAL, pin_wait_begin(worker, &wait, &aim));
	wait.task.run = run_wait;
	wait.reserved = 1;
	expect_number("reserved", -EINVAL, pin_wait_begin(worker, &wait, &aim));
	entries[0].wait.task.run = run_wait;
	entries[0].wait.deadline_ns = UINT64_MAX;
	entries[0].begun_on = worker;
	expect_number("begin", 0, pin_wait_begin(worker, &entries[0].wait, &aim));
	expect_number("begun twice", -EBUSY, pin_wait_begin(worker, &entries[0].wait, &aim));
	tasks_signal(&begun_count);
	while (!pin_shared_is_stopping(worker->shared)) {
		pin_host_linux.yield();
	}
	wait.reserved = 0;
	expect_number("stopped", -ESHUTDOWN, pin_wait_begin(worker, &wait, &aim));
	return 0;
}

static void check_refusals(void)
{
	static struct pinion_task task = {.run = run_refused};

	begin(1);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	tasks_await(&begun_count, 1);
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	expect_number("ended", 1, pin_load_acquire_u32(&entries[0].end_count));
	expect_number("result", -ECANCELED, entries[0].wait.result);
	pinion_runtime_destroy(runtime);
}

/* ---- many ---- */

static void check_many(struct random_source *source, bool is_stopped)
{
	struct pinion_runtime *other = runtimes_start(1, PINION_IO_AUTO);
	uint32_t served_count = 0;

	begin(WORKERS);
	for (uint32_t i = 0; i < MANY; i++) {
		uint64_t deadline_ns = random_below(source, 2) == 0
			? UINT64_MAX
			: pinion_clock_now_ns() + random_below(source, 2000000);

		start(&entries[i], deadline_ns);
		expect_number("spawn", 0,
			pinion_task_spawn(
				random_below(source, 2) == 0 ? other : runtime, &entries[i].giver));
		if (random_below(source, 4) == 0) {
			tasks_await(&begun_count, i + 1);
			pinion_wait_cancel(runtime, &entries[i].wait);
		}
	}
	expect_number("end", 0,
		is_stopped ? pinion_runtime_stop(runtime) : pinion_runtime_drain(runtime));
	expect_number("end", 0, pinion_runtime_drain(other));
	for (uint32_t i = 0; i < MANY; i++) {
		const struct entry *entry = &entries[i];
		uint32_t ends = entry->begun_on != NULL && entry->rc == 0 ? 1 : 0;

		expect_number("ends", ends, pin_load_acquire_u32(&entry->end_count));
		served_count += ends == 1 && entry->wait.result == 1 ? 1 : 0;
	}
	expect_true("no waiter", !pin_waiters_any(&waiters));
	if (!is_stopped) {
		expect_number("units", MANY, served_count + pin_load_acquire_u32(&units));
	}
	pinion_runtime_destroy(runtime);
	pinion_runtime_destroy(other);
}

int main(void)
{
	struct random_source source;

	runtimes_watchdog(LIMIT_SECONDS);
	random_begin(&source);
	check_each_end();
	check_refusals();
	for (int i = 0; i < ROUNDS && expect_failure_count == 0; i++) {
		check_many(&source, i % 4 == 3);
	}
	expect_number("on another worker", 0, pin_load_acquire_u32(&stray_count));
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: a worker that spawns for its own queue wakes a sleeper with every
 * `wake_batch_spawns`-th task, 32 unless told otherwise, and with none before;
 * the count then begins anew, and a wake for another reason begins it anew as
 * well. Tasks that it gives to the queue that all share, as its own is full,
 * wake a sleeper as well, and so do those left when its turn ends, however few.
 * EX-31, AS-23, AS-33, C7, W37. Method: a task on one of two workers spawns
 * while the other sleeps, and looks at its worker's wakes and count after each.
 * Waiting tasks are never worth a wake by their length: each counts as 50 us,
 * against a limit of a second. Then a queue of four, and turns of one task, of
 * which the first spawns the next.
 */
#include "tests/support/runtimes.h"
#include "tests/support/sleepers.h"
#include "tests/support/tasks.h"

enum {
	SPAWNS_MAX = 128,
	OVERFLOWING = 5,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static struct pinion_task tasks[SPAWNS_MAX];
static struct pin_atomic_u32 done;
static uint32_t wake_batch_spawns;

static int answer(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&done);
	return 0;
}

/* Spawned since a wake: all but the task that checks next and those before. */
static uint32_t batched(const struct pin_worker *worker)
{
	return pin_wake_batch_count(&worker->wake_batch) - 1 - pin_deque_until_mark(&worker->deque);
}

static int wake_batch(struct pinion_task *task)
{
	struct pin_worker *worker = pin_worker_current();
	uint64_t before = pin_meter_read(&worker->meter.wakes_sent);

	(void)task;
	sleepers_await(worker->worker_class, 1);
	expect_number("nothing spawned yet", 0, batched(worker));
	for (uint32_t i = 1; i < wake_batch_spawns; i++) {
		expect_number("spawn", 0, pinion_task_spawn(runtime, &tasks[i]));
		expect_number("counted", i, batched(worker));
	}
	expect_number("no wake before", 0,
		(long long)(pin_meter_read(&worker->meter.wakes_sent) - before));
	expect_number("spawn", 0, pinion_task_spawn(runtime, &tasks[0]));
	expect_number("a wake with the last", 1,
		(long long)(pin_meter_read(&worker->meter.wakes_sent) - before));
	expect_number("begins anew", 0, batched(worker));
	return 0;
}

static void check(uint32_t given)
{
	struct pinion_task first = {.run = wake_batch};
	struct pinion_config config;

	runtimes_config(&config, 2, PINION_IO_AUTO);
	if (given != 0) {
		runtimes_tuning.wake_batch_spawns = given;
	}
	wake_batch_spawns = runtimes_tuning.wake_batch_spawns;
	/* All go to the queue, none to the slot. */
	runtimes_tuning.lifo_polls = 0;
	runtimes_tuning.wake_worth_us = 1000000;
	runtimes_tuning.spawn_wake_us = 0;
	runtimes_tuning.task_ns = 50000;
	runtimes_tuning.watchdog_us = 0;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	for (uint32_t i = 0; i < wake_batch_spawns; i++) {
		tasks[i] = (struct pinion_task){.run = answer};
	}
	pin_store_release_u32(&done, 0);
	expect_number("first", 0, pinion_task_spawn_on(runtime, 0, &first));
	tasks_await(&done, wake_batch_spawns);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
}

/* ---- one more than the own queue holds ---- */

static bool is_batch;

static int overflow(struct pinion_task *task)
{
	struct pin_worker *worker = pin_worker_current();
	uint64_t before = pin_meter_read(&worker->meter.wakes_sent);
	struct pinion_task *pointers[OVERFLOWING];

	(void)task;
	sleepers_await(worker->worker_class, 1);
	for (uint32_t i = 0; i < OVERFLOWING; i++) {
		pointers[i] = &tasks[i];
		expect_number("no wake before", (long long)before,
			(long long)pin_meter_read(&worker->meter.wakes_sent));
		if (!is_batch) {
			expect_number("spawn", 0, pinion_task_spawn(runtime, &tasks[i]));
		}
	}
	if (is_batch) {
		expect_number("batch", 0, pinion_task_spawn_batch(runtime, pointers, OVERFLOWING));
	}
	expect_number("a wake for shared tasks", (long long)before + 1,
		(long long)pin_meter_read(&worker->meter.wakes_sent));
	return 0;
}

static void check_overflow(bool spawns_batch)
{
	struct pinion_task first = {.run = overflow};
	struct pinion_config config;

	is_batch = spawns_batch;
	runtimes_config(&config, 2, PINION_IO_AUTO);
	runtimes_tuning.queue_tasks = OVERFLOWING - 1;
	runtimes_tuning.wake_batch_spawns = 65535;
	runtimes_tuning.lifo_polls = 0;
	runtimes_tuning.wake_worth_us = 1000000;
	runtimes_tuning.spawn_wake_us = 0;
	runtimes_tuning.watchdog_us = 0;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	for (uint32_t i = 0; i < OVERFLOWING; i++) {
		tasks[i] = (struct pinion_task){.run = answer};
	}
	pin_store_release_u32(&done, 0);
	expect_number("first", 0, pinion_task_spawn_on(runtime, 0, &first));
	tasks_await(&done, OVERFLOWING);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
}

/* ---- at the end of a turn ---- */

static uint64_t wakes_before;

static int leave_one(struct pinion_task *task)
{
	const struct pin_worker *worker = pin_worker_current();

	(void)task;
	sleepers_await(worker->worker_class, 1);
	wakes_before = pin_meter_read(&worker->meter.wakes_sent);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &tasks[0]));
	expect_number("no wake yet", (long long)wakes_before,
		(long long)pin_meter_read(&worker->meter.wakes_sent));
	return 0;
}

static void check_end_of_turn(void)
{
	struct pinion_task first = {.run = leave_one};
	struct pinion_config config;

	runtimes_config(&config, 2, PINION_IO_AUTO);
	runtimes_tuning.lifo_polls = 0;
	runtimes_tuning.wake_worth_us = 1000000;
	runtimes_tuning.spawn_wake_us = 0;
	runtimes_tuning.budget_polls = 1;
	runtimes_tuning.watchdog_us = 0;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	tasks[0] = (struct pinion_task){.run = answer};
	pin_store_release_u32(&done, 0);
	expect_number("first", 0, pinion_task_spawn_on(runtime, 0, &first));
	tasks_await(&done, 1);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_true("a wake at the end of the turn",
		runtimes_counters(runtime).wakes_sent > wakes_before);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	struct pinion_tuning defaults;

	runtimes_watchdog(LIMIT_SECONDS);
	pinion_tuning_init(&defaults);
	expect_number("the default", 32, defaults.wake_batch_spawns);
	check(0);
	check(1);
	check(8);
	check(128);
	check_overflow(false);
	check_overflow(true);
	check_end_of_turn();
	return expect_status();
}

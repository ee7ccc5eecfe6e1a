/* SPDX-License-Identifier: MIT */
/*
 * Goal: a worker takes from the shared queue as many tasks at once as
 * injector_batch_min and injector_batch_max say: its share of the queue, kept
 * within both. AS-34.
 * Method: workers are held while tasks are queued from outside, then one is let
 * go until it has run them all; the takes are counted.
 */
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

enum { WORKERS = 2, COUNT = 64, LIMIT_SECONDS = 60 };

static struct pinion_task tasks[COUNT];
static struct pinion_task *pointers[COUNT];
static struct pin_atomic_u32 done;

static int answer(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&done);
	return 0;
}

static void check(uint32_t worker_count, uint32_t min, uint32_t max, uint64_t expected)
{
	struct pinion_runtime_stats before;
	struct pinion_runtime *runtime = NULL;
	struct tasks_hold holds[WORKERS] = {0};
	struct pinion_config config;
	char what[64];

	runtimes_config(&config, worker_count, PINION_IO_AUTO);
	runtimes_tuning.injector_batch_min = min;
	runtimes_tuning.injector_batch_max = max;
	/* No check there while there is something in its own queue. */
	runtimes_tuning.injector_target_us = 1000000;
	runtimes_tuning.interval_min = 65535;
	runtimes_tuning.interval_max = 65535;
	/* No worker comes to help the held one. */
	runtimes_tuning.watchdog_us = 0;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	for (uint32_t i = 0; i < worker_count; i++) {
		tasks_hold_begin(&holds[i], runtime, i);
	}
	pin_store_release_u32(&done, 0);
	for (uint32_t i = 0; i < COUNT; i++) {
		tasks[i] = (struct pinion_task){.run = answer};
		pointers[i] = &tasks[i];
	}
	expect_number("spawn", 0, pinion_task_spawn_batch(runtime, pointers, COUNT));
	before = runtimes_counters(runtime);
	tasks_hold_end(&holds[0]);
	tasks_await(&done, COUNT);
	snprintf(what, sizeof(what), "takes of %u workers, %u ... %u", worker_count, min, max);
	expect_number(what, (long long)expected,
		(long long)(runtimes_counters(runtime).injector_takes - before.injector_takes));
	for (uint32_t i = 1; i < worker_count; i++) {
		tasks_hold_end(&holds[i]);
	}
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	/* One worker's share is all there is. */
	check(1, 1, 1, COUNT);
	check(1, 4, 8, COUNT / 8);
	check(1, 4, 64, 1);
	/* Half: 32, 16, 8, then 4 at a time, as long as there are any. */
	check(2, 4, 64, 5);
	check(2, 16, 64, 3);
	check(2, 64, 64, 1);
	check(2, 1, 16, 8);
	return expect_status();
}

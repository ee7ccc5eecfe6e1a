/* SPDX-License-Identifier: MIT */
/*
 * Goal: a task that a worker begins after a sleep is shown as old as it is, not
 * as if it had lasted since the worker fell asleep: the page's time of the
 * worker's clock is that of the task's begin. WP-33.
 * Method: a worker sleeps; then a task on it reads the page of its own process.
 */
#include "runtime/api/internal.h"
#include "tests/support/metrics.h"
#include "tests/support/runtimes.h"
#include "tests/support/sleepers.h"
#include "tests/support/tasks.h"

#include <pinion/timer.h>

static struct pinion_runtime *runtime;
static struct pinion_metrics *metrics;
static struct pin_atomic_u32 ended;
static uint64_t spawned_ns;

static int look(struct pinion_task *task)
{
	(void)task;
	take_snapshot(metrics);
	expect_number("place", PINION_WORKER_RUNNING, (long long)worker_value(metrics, "place", 0));
	expect_true("its clock", worker_value(metrics, "clock_ns", 0) >= spawned_ns);
	tasks_signal(&ended);
	return 0;
}

int main(void)
{
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_AUTO);
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	metrics = open_own(0);
	for (uint32_t i = 1; i <= 3; i++) {
		struct pinion_task task = {.run = look};

		sleepers_await(&runtime->shared.classes[0], 1);
		spawned_ns = pinion_clock_now_ns();
		expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
		tasks_await(&ended, i);
	}
	pinion_metrics_close(metrics);
	pinion_runtime_destroy(runtime);
	return expect_status();
}

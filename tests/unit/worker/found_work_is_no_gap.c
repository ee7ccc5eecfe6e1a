/* SPDX-License-Identifier: MIT */
/*
 * Goal: a sleep that the watchdog ended, since work was there that no spawn had
 * woken the worker for, teaches the spin no long gap; a sleep that a spawn
 * ended does.
 * Method: one worker sleeps, and its average of gaps is set to 0; another
 * spawns a child and waits for it, first with a wake, then in the pause after
 * it, in which only the watchdog comes. A worker that looks once more before
 * it sleeps finds the child itself: such a round tells nothing, and the next
 * one is asked.
 */
#include "runtime/api/internal.h"
#include "tests/support/runtimes.h"
#include "tests/support/sleepers.h"
#include "tests/support/tasks.h"

enum {
	/* A gap moves the average by an eighth. */
	LONG_GAP_NS = PIN_SPIN_GAP_NS_MAX / 8,
	PAUSE_US = 1000000,
	ROUNDS_MAX = 100,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static struct pinion_task child;
static struct pin_atomic_u32 run_count;
static struct pin_atomic_u32 has_ended;
static uint32_t spawn_count;

static int run_child(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&run_count);
	return 0;
}

static uint64_t wakes_sent(void)
{
	return pin_meter_read(&pin_worker_current()->meter.wakes_sent);
}

static uint64_t found_by_watchdog(void)
{
	return runtimes_counters(runtime).watchdog_found_work;
}

/*
 * Spawns children until one's start has moved the count. Returns the sleeper's
 * average after that start, from a sleep that began long ago.
 */
static uint64_t gap_after_start(uint64_t (*count)(void))
{
	struct pin_worker *sleeper = &runtime->shared.workers[1];

	for (int i = 0; i < ROUNDS_MAX; i++) {
		const uint64_t before = count();

		sleepers_await(sleeper->worker_class, 1);
		sleeper->spin.gap_ns = 0;
		sleeper->dry_since_ns = 0;
		child = (struct pinion_task){.run = run_child};
		expect_number("spawn", 0, pinion_task_spawn(runtime, &child));
		tasks_await(&run_count, ++spawn_count);
		sleepers_await(sleeper->worker_class, 1);
		if (count() != before) {
			expect_number("counted once", 1, (long long)(count() - before));
			return sleeper->spin.gap_ns;
		}
	}
	expect_ready("a start that is counted", 0);
	return 0;
}

static int spawn_twice(struct pinion_task *task)
{
	(void)task;
	expect_number("a long gap", LONG_GAP_NS, (long long)gap_after_start(wakes_sent));
	expect_number("no gap", 0, (long long)gap_after_start(found_by_watchdog));
	tasks_signal(&has_ended);
	return 0;
}

int main(void)
{
	struct pinion_task first = {.run = spawn_twice};
	struct pinion_config config;

	runtimes_watchdog(LIMIT_SECONDS);
	if (!pin_host_linux.fence_all()) {
		printf("skipped: no membarrier(2)\n");
		return EXPECT_SKIPPED;
	}
	runtimes_config(&config, 2, PINION_IO_FALLBACK);
	runtimes_tuning.spawn_wake_us = PAUSE_US;
	runtimes_tuning.wake_worth_us = 1000000; /* a preempted task is no long one */
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	expect_number("first", 0, pinion_task_spawn_on(runtime, 0, &first));
	tasks_await(&has_ended, 1);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
	return expect_status();
}

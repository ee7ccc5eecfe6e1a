/* SPDX-License-Identifier: MIT */
/*
 * Goal: a worker that finds nothing to steal has gone past all others as often
 * as `steal_tries` says, each time that it searched; 4 times by default. EX-11,
 * EX-38.
 * Method: workers whose tasks are all bound to one of them, so that there is
 * never anything to steal. Then each search is a whole one, however many there
 * were and by whichever worker: the counters count both. What a search does
 * that finds something is in work_is_found_in_order.
 */
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

enum {
	WORKERS = 3,
	TURNS = 200,
	DEFAULT_TRIES = 4,
	LIMIT_SECONDS = 60,
};

static struct pin_atomic_u32 run_count;

static int count_run(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&run_count);
	return 0;
}

static void check(const struct pinion_config *config, uint32_t tries)
{
	struct pinion_task task = {.run = count_run};
	struct pinion_runtime_stats counters;
	struct pinion_runtime *runtime;

	expect_ready("create", pinion_runtime_create(config, &runtime) == 0);
	pin_store_release_u32(&run_count, 0);
	/* Each goes to sleep anew in between, and searches before. */
	for (uint32_t i = 0; i < TURNS; i++) {
		expect_number("spawn_on", 0, pinion_task_spawn_on(runtime, i % WORKERS, &task));
		tasks_await(&run_count, i + 1);
	}
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	counters = runtimes_counters(runtime);
	expect_number("steals", 0, (long long)counters.steals);
	expect_true("workers searched", counters.searches > 0);
	expect_number(
		"rounds", (long long)(tries * counters.searches), (long long)counters.steal_rounds);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	static const uint32_t tries[] = {1, 2, DEFAULT_TRIES, 7, 1024};
	struct pinion_config config;

	runtimes_watchdog(LIMIT_SECONDS);
	runtimes_config(&config, WORKERS, PINION_IO_AUTO);
	check(&config, DEFAULT_TRIES);
	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(tries); i++) {
		runtimes_tuning.steal_tries = tries[i];
		check(&config, tries[i]);
	}
	return expect_status();
}

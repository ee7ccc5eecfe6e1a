/* SPDX-License-Identifier: MIT */
/*
 * Goal: at light load a task costs the wake of one worker and disturbs no
 * other; at heavy load a worker neither sleeps nor searches nor checks its ring
 * more than once in a batch; and it distinguishes the two by itself. AS-1,
 * AS-39.
 * Method: counts, no times. One task at a time on a runtime of four workers;
 * then tasks on one worker that queue themselves again, and nothing else.
 */
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

enum {
	WORKERS = 4,
	ROUNDS = 2000,
	TASKS = 50,
	TURNS = 2000,
	BATCH = 128,
	/*
	 * At the start, at the end, and where a batch is cut short by time, or
	 * a wake comes so late that its worker sleeps again.
	 */
	SLACK = 16,
	LIMIT_SECONDS = 120,
};

static struct pinion_runtime *runtime;
static struct pin_atomic_u32 done;

static int answer(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&done);
	return 0;
}

static void check_light(void)
{
	struct pinion_runtime_stats counters;
	struct pinion_task task;

	runtime = runtimes_start(WORKERS, PINION_IO_AUTO);
	pin_store_release_u32(&done, 0);
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		task = (struct pinion_task){.run = answer};
		expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
		tasks_await(&done, i);
	}
	counters = runtimes_counters(runtime);
	expect_number("workers woken by workers", 0, (long long)counters.wakes_sent);
	expect_number("stolen", 0, (long long)counters.tasks_stolen);
	/* Each sleeps at first, and a woken one sleeps again. */
	expect_true("one worker for each task",
		counters.parks_futex + counters.parks_ring <= ROUNDS + WORKERS + SLACK);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("run", ROUNDS, (long long)runtimes_counters(runtime).tasks_run);
	pinion_runtime_destroy(runtime);
}

static uint32_t turns[TASKS];
static struct pinion_task tasks[TASKS];

static int go_on(struct pinion_task *task)
{
	return ++turns[task - tasks] < TURNS ? pinion_task_respawn(runtime, task) : 0;
}

static int begin_all(struct pinion_task *task)
{
	(void)task;
	for (uint32_t i = 0; i < TASKS; i++) {
		tasks[i] = (struct pinion_task){.run = go_on};
		expect_number("spawn", 0, pinion_task_spawn(runtime, &tasks[i]));
	}
	return 0;
}

static void check_heavy(void)
{
	struct pinion_task first = {.run = begin_all};
	struct pinion_runtime_stats counters;
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_AUTO);
	/* However slow the machine is, a batch ends by polls. */
	runtimes_tuning.budget_us = 1000000;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &first));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	counters = runtimes_counters(runtime);
	expect_number("run", TASKS * TURNS + 1, (long long)counters.tasks_run);
	expect_true("never asleep in between", counters.parks_futex + counters.parks_ring <= SLACK);
	expect_true("nothing searched for", counters.searches <= SLACK);
	expect_true("ring enters", counters.ring_enters <= TASKS * TURNS / BATCH + SLACK);
	expect_true("nothing taken from where nothing is", counters.injector_takes <= SLACK);
	expect_number("wakes", 0, (long long)counters.wakes_sent);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_light();
	check_heavy();
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: a worker takes its own work first, the slot before the deque, then
 * tasks in the queue all share, then those of others: oldest first, half at
 * once or one by one as `queue_order` says, their slot last, when `steal_tries`
 * rounds have found nothing. The counters count each of these, and no steal
 * without a search. AS-7, AS-32, AS-35, AS-37, EX-11, EX-28, EX-29, EX-35,
 * EX-38, W19, W20.
 * Method: one of two workers is held with tasks in its queues. A task gives the
 * other one some of its own and a shared one; all note their number.
 */
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

enum {
	OWN = 3,
	SHARED = 1,
	OTHERS = 6,
	COUNT = OWN + SHARED + OTHERS,
	TRIES = 3,
	LONG_US = 1000000,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static struct pinion_task tasks[COUNT];
static uint32_t order[COUNT]; /* by one worker; read after it has signalled */
static uint32_t order_count;
static struct pin_atomic_u32 done;

static int note(struct pinion_task *task)
{
	order[order_count++] = (uint32_t)(task - tasks);
	tasks_signal(&done);
	return 0;
}

static void spawn(uint32_t first, uint32_t count)
{
	for (uint32_t i = first; i < first + count; i++) {
		expect_number("spawn", 0, pinion_task_spawn(runtime, &tasks[i]));
	}
}

static void fill_others(struct tasks_hold *hold)
{
	(void)hold;
	spawn(OWN + SHARED, OTHERS);
}

static int begin(struct pinion_task *task)
{
	(void)task;
	expect_number("spawn_shared", 0, pinion_task_spawn_shared(runtime, &tasks[OWN]));
	spawn(0, OWN);
	return 0;
}

/* Each steal but that from the slot is one of the first round of its search. */
static void expect_counters(uint64_t lifo_polls, uint64_t steals, uint64_t slot_steals)
{
	struct pinion_runtime_stats counters = runtimes_counters(runtime);

	/* Two hold, one begins. */
	expect_number("tasks_run", COUNT + 3, (long long)counters.tasks_run);
	expect_number("lifo_polls", (long long)lifo_polls, (long long)counters.lifo_polls);
	expect_number("injector_takes", 1, (long long)counters.injector_takes);
	expect_number("tasks_stolen", OTHERS, (long long)counters.tasks_stolen);
	expect_number("steals", (long long)steals, (long long)counters.steals);
	expect_true("no steal without a search", counters.steals <= counters.searches);
	expect_number("steal_rounds",
		(long long)(steals - slot_steals +
			TRIES * (counters.searches - steals + slot_steals)),
		(long long)counters.steal_rounds);
}

/* False: it took so long that the shared queue came before its turn. */
static bool play(
	uint32_t queue_order, const uint32_t *expected, uint64_t steals, uint64_t slot_steals)
{
	uint64_t begin_ns;
	bool is_short;
	struct pinion_task first = {.run = begin};
	struct tasks_hold own = {0};
	struct tasks_hold other = {.prepare = fill_others};
	struct pinion_config config;

	runtimes_config(&config, 2, PINION_IO_AUTO);
	runtimes_tuning.queue_order = queue_order;
	runtimes_tuning.steal_tries = TRIES;
	/* No check of the shared queue while there is something in its own. */
	runtimes_tuning.injector_target_us = LONG_US;
	runtimes_tuning.interval_min = 65535;
	runtimes_tuning.interval_max = 65535;
	runtimes_tuning.watchdog_us = 0;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	for (uint32_t i = 0; i < COUNT; i++) {
		tasks[i] = (struct pinion_task){.run = note};
	}
	order_count = 0;
	pin_store_release_u32(&done, 0);
	tasks_hold_begin(&own, runtime, 0);
	tasks_hold_begin(&other, runtime, 1);
	begin_ns = pinion_clock_now_ns();
	expect_number("spawn_on", 0, pinion_task_spawn_on(runtime, 0, &first));
	tasks_hold_end(&own);
	tasks_await(&done, COUNT);
	is_short = pinion_clock_now_ns() - begin_ns < LONG_US * UINT64_C(1000);
	for (uint32_t i = 0; i < COUNT && is_short; i++) {
		expect_number(
			queue_order == PINION_QUEUE_LIFO ? "lifo" : "fifo", expected[i], order[i]);
	}
	tasks_hold_end(&other);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	/* A worker with a slot has run the task it spawned last from there. */
	if (is_short) {
		expect_counters(slot_steals, steals, slot_steals);
	}
	pinion_runtime_destroy(runtime);
	return is_short;
}

static void check(
	uint32_t queue_order, const uint32_t *expected, uint64_t steals, uint64_t slot_steals)
{
	while (!play(queue_order, expected, steals, slot_steals)) {
	}
}

int main(void)
{
	/* 0 to 2 are its own, 3 is shared, 4 to 9 are the other one's. */
	static const uint32_t fifo[COUNT] = {2, 0, 1, 3, 4, 5, 6, 7, 8, 9};
	static const uint32_t lifo[COUNT] = {2, 1, 0, 3, 4, 5, 6, 7, 8, 9};

	runtimes_watchdog(LIMIT_SECONDS);
	/* Of five in the deque three, one, one; then the task in the slot. */
	check(PINION_QUEUE_FIFO, fifo, 4, 1);
	check(PINION_QUEUE_LIFO, lifo, OTHERS, 0);
	return expect_status();
}

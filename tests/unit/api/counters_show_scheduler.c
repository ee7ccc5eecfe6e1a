/* SPDX-License-Identifier: MIT */
/*
 * Goal: pinion_runtime_get_stats() shows the state of the scheduler at that
 * moment: the interval of checks of the shared queue, the searchers, and the
 * sleepers, where, by number, and until when; how much of its budget a turn
 * took, and how many tasks in a row came from the slot. It counts the timers
 * that were due, and none that was cancelled or ended by a stop. AS-37, AS-38.
 * Method: workers that have run nothing, and a worker that has run a task of 20
 * ms; tasks that respawn themselves for as long as turns have not been full,
 * and some that spawn each other, each of which checks how many came before it;
 * some held, some asleep on their futex or beside a read that does not end; a
 * worker that counts itself among the searchers while all others sleep; more
 * workers than the set has bits; a caller that does not know these fields. A
 * state that never comes hangs the test and trips its watchdog.
 */
#include "runtime/worker/state.h"
#include "runtime/worker/wake.h"
#include "tests/support/pending.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

enum {
	WORKERS = 4,
	MANY_WORKERS = 66,
	LONG_NS = 20 * 1000 * 1000,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;

/* It comes about by itself, and then stays. */
static void await_parked(uint64_t set, uint64_t on_futex, uint64_t in_ring)
{
	for (;;) {
		struct pinion_runtime_stats now = runtimes_counters(runtime);

		if (now.parked_set == set && now.parked_futex == on_futex &&
			now.parked_ring == in_ring && now.searching == 0) {
			return;
		}
		sched_yield();
	}
}

static void end(void)
{
	struct pinion_runtime_stats counters;

	expect_number("stop", 0, pinion_runtime_stop(runtime));
	counters = runtimes_counters(runtime);
	expect_number("asleep at the end", 0, (long long)counters.parked_set);
	expect_number("on a futex", 0, (long long)counters.parked_futex);
	expect_number("in a ring", 0, (long long)counters.parked_ring);
	expect_true("until then", counters.park_until_ns == UINT64_MAX);
	pinion_runtime_destroy(runtime);
}

/* ---- the interval ---- */

static void expect_intervals(const char *what, uint64_t least, uint64_t most)
{
	struct pinion_runtime_stats counters = runtimes_counters(runtime);

	expect_number(what, (long long)least, (long long)counters.look_interval_min);
	expect_number(what, (long long)most, (long long)counters.look_interval_max);
}

static int run_long(struct pinion_task *task)
{
	uint64_t begin_ns = pinion_clock_now_ns();

	(void)task;
	while (pinion_clock_now_ns() - begin_ns < LONG_NS) {
	}
	return 0;
}

static void check_interval(void)
{
	struct pinion_task task = {.run = run_long};
	struct pinion_config config;

	runtimes_config(&config, WORKERS, PINION_IO_AUTO);
	runtimes_tuning.interval_min = 33;
	runtimes_tuning.interval_max = 33;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	expect_intervals("as configured", 33, 33);
	end();

	runtimes_config(&config, WORKERS, PINION_IO_AUTO);
	runtimes_tuning.task_ns = 10000;
	runtimes_tuning.injector_target_us = 500;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	expect_intervals("500 us in tasks of 10 us", 50, 50);
	end();

	/* 1 ms in tasks of 50 us; then, of that worker, of 2 ms on average. */
	runtime = runtimes_start(WORKERS, PINION_IO_AUTO);
	expect_intervals("before the first task", 20, 20);
	expect_number("spawn", 0, pinion_task_spawn_on(runtime, WORKERS - 1, &task));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_intervals("after a long task", 8, 20);
	end();
}

/* ---- a turn, and tasks in a row ---- */

static struct pin_atomic_u32 may_stop;

static int go_on(struct pinion_task *task)
{
	return pin_load_acquire_u32(&may_stop) != 0 ? 0 : pinion_task_respawn(runtime, task);
}

static void check_turn(uint32_t budget_polls)
{
	struct pinion_task task = {.run = go_on};
	struct pinion_config config;
	uint64_t polls;

	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	if (budget_polls != 0) {
		runtimes_tuning.budget_polls = budget_polls;
	}
	/* However slow the machine is, some turn ends by polls. */
	runtimes_tuning.budget_us = 1000000;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	expect_number("no turn yet", 0, (long long)runtimes_counters(runtime).turn_polls_max);
	pin_store_release_u32(&may_stop, 0);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	do {
		polls = runtimes_counters(runtime).turn_polls_max;
		expect_true("within the budget", polls <= runtimes_tuning.budget_polls);
	} while (polls != runtimes_tuning.budget_polls);
	pin_store_release_u32(&may_stop, 1);
	end();
}

enum { ROW_TASKS = 10 };

static struct pinion_task row_tasks[ROW_TASKS];
static uint64_t rows[ROW_TASKS];

static int note_series(struct pinion_task *task)
{
	size_t number = (size_t)(task - row_tasks);

	rows[number] = runtimes_counters(runtime).lifo_row_max;
	if (number + 1 == ROW_TASKS) {
		return 0;
	}
	row_tasks[number + 1] = (struct pinion_task){.run = note_series};
	return pinion_task_spawn(runtime, &row_tasks[number + 1]);
}

static void check_row(void)
{
	/* The first is from outside; after three in a row one waits. */
	static const uint64_t expected[ROW_TASKS] = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1};

	runtime = runtimes_start(1, PINION_IO_FALLBACK);
	row_tasks[0] = (struct pinion_task){.run = note_series};
	expect_number("spawn", 0, pinion_task_spawn(runtime, &row_tasks[0]));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	for (uint32_t i = 0; i < ROW_TASKS; i++) {
		expect_number("in a row", (long long)expected[i], (long long)rows[i]);
	}
	end();
}

/* ---- until when they sleep ---- */

static void check_until(uint32_t timeout_us)
{
	uint64_t begin_ns = pinion_clock_now_ns();
	uint64_t timeout_ns = (uint64_t)timeout_us * 1000;
	struct pinion_config config;
	uint64_t until_ns;

	runtimes_config(&config, WORKERS, PINION_IO_AUTO);
	runtimes_tuning.park_timeout_us = timeout_us;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	if (timeout_us == 0) {
		/* For ever; a sleep that is to publish figures ends sooner. */
		do {
			await_parked(0xf, 4, 0);
			until_ns = runtimes_counters(runtime).park_until_ns;
		} while (until_ns != UINT64_MAX);
	} else {
		do {
			until_ns = runtimes_counters(runtime).park_until_ns;
		} while (until_ns == UINT64_MAX || until_ns < begin_ns + timeout_ns);
		expect_true("nor later", until_ns <= pinion_clock_now_ns() + timeout_ns);
	}
	end();
}

/* ---- who sleeps ---- */

static void check_ring(void)
{
	struct pinion_runtime_info facts;
	struct pending_read read;
	struct pinion_file file;
	int ends[2];

	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	if (facts.uses_ring == 0) {
		printf("no io_uring, so no worker sleeps in a ring: %s\n", facts.fallback_cause);
		return;
	}
	expect_ready("pipe", pipe(ends) == 0);
	file = runtimes_plain_file(ends[0]);
	pending_begin(&read, runtime, 2, &file);
	await_parked(0xf, 3, 1);
	expect_ready("write", write(ends[1], "x", 1) == 1);
	await_parked(0xf, 4, 0);
	close(ends[0]);
	close(ends[1]);
}

static void check_parked(void)
{
	struct tasks_hold holds[2] = {0};

	runtime = runtimes_start(WORKERS, PINION_IO_AUTO);
	await_parked(0xf, 4, 0);
	tasks_hold_begin(&holds[0], runtime, 1);
	tasks_hold_begin(&holds[1], runtime, 3);
	await_parked(0x5, 2, 0);
	tasks_hold_end(&holds[0]);
	await_parked(0x7, 3, 0);
	tasks_hold_end(&holds[1]);
	await_parked(0xf, 4, 0);
	check_ring();
	end();

	runtime = runtimes_start(MANY_WORKERS, PINION_IO_FALLBACK);
	await_parked(UINT64_MAX, MANY_WORKERS, 0);
	end();
}

/* ---- who searches ---- */

/*
 * A worker woken for no reason searches for work, too, before it sleeps again.
 */
static void await_searching(uint64_t count)
{
	while (runtimes_counters(runtime).searching != count) {
		sched_yield();
	}
}

static void search(struct tasks_hold *hold)
{
	struct pin_worker *worker = pin_worker_current();

	(void)hold;
	await_parked(0xe, 3, 0);
	expect_true("may search", pin_search_begin(worker));
	await_searching(1);
	pin_search_give_up(worker);
	await_searching(0);
}

static void check_searching(void)
{
	struct tasks_hold hold = {.prepare = search};

	runtime = runtimes_start(WORKERS, PINION_IO_AUTO);
	tasks_hold_begin(&hold, runtime, 0);
	tasks_hold_end(&hold);
	end();
}

/* ---- timers ---- */

enum { TIMERS = 10, ON_WORKER = 4 };

static struct pinion_timer timers[TIMERS];
static struct pin_atomic_u32 expired;

static int expire(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&expired);
	return 0;
}

static void start_timers(uint32_t first, uint32_t count, uint64_t deadline_ns)
{
	for (uint32_t i = first; i < first + count; i++) {
		timers[i] = (struct pinion_timer){.task.run = expire};
		expect_number("timer", 0, pinion_timer_start(runtime, &timers[i], deadline_ns));
	}
}

static void start_on_worker(struct tasks_hold *hold)
{
	(void)hold;
	start_timers(0, ON_WORKER, pinion_clock_now_ns() + 1000 * 1000);
}

static void expect_timers(const char *what, uint64_t count)
{
	expect_number(
		what, (long long)count, (long long)runtimes_counters(runtime).timers_processed);
}

static void check_timers(void)
{
	struct tasks_hold hold = {.prepare = start_on_worker};

	runtime = runtimes_start(WORKERS, PINION_IO_FALLBACK);
	expect_timers("none yet", 0);
	start_timers(TIMERS - 2, 2, UINT64_MAX);
	expect_number("cancel", 0, pinion_timer_cancel(runtime, &timers[TIMERS - 1]));
	tasks_hold_begin(&hold, runtime, 1);
	tasks_hold_end(&hold);
	start_timers(ON_WORKER, TIMERS - 2 - ON_WORKER, 0);
	tasks_await(&expired, TIMERS - 2);
	expect_timers("those that were due", TIMERS - 2);
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	expect_timers("but not the last", TIMERS - 2);
	pinion_runtime_destroy(runtime);
}

/* ---- a caller from before these fields ---- */

static void check_shorter(void)
{
	size_t known = offsetof(struct pinion_runtime_stats, look_interval_min);
	struct pinion_runtime_stats counters;

	runtime = runtimes_start(1, PINION_IO_FALLBACK);
	memset(&counters, 0x5a, sizeof(counters));
	pinion_runtime_get_stats(runtime, &counters, known);
	expect_number("the known fields", 0, (long long)counters.direct_refusals);
	for (size_t i = known; i < sizeof(counters); i++) {
		expect_number("the unknown ones", 0x5a, ((const uint8_t *)&counters)[i]);
	}
	end();
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_interval();
	check_turn(0);
	check_turn(16);
	check_row();
	check_until(0);
	check_until(LIMIT_SECONDS * 1000000);
	check_parked();
	check_searching();
	check_timers();
	check_shorter();
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: what a worker learns as the time of tasks is that of tasks alone: not
 * what its tick takes. W34, AS-17.
 * Method: ticks that are long beside tasks that are short. Busy time, and that
 * in ticks, are parts of the worker's life, so together they are no longer than
 * that, and nor is a task on average, whenever one looks. So are runs of that
 * length in the histogram of runs.
 */
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include "runtime/task/entry.h"

#include <pinion/pinion.h>

enum {
	TICK_NS = 5 * 1000 * 1000,
	TICKS = 20,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static uint64_t apart_ns; /* in ticks, of the one worker */
static struct pin_atomic_u32 tick_count;
static uint32_t wanted_ticks;
static uint64_t average_ns_max;
static struct pin_atomic_u32 is_over;

static void spend(uint64_t ns)
{
	uint64_t begin_ns = pinion_clock_now_ns();

	while (pinion_clock_now_ns() - begin_ns < ns) {
	}
}

static uint64_t busy_ns(void)
{
	return pin_meter_read(&runtime->shared.workers[0].meter.busy_ns);
}

/* By a task. */
static void look_at_average(void)
{
	uint64_t average_ns =
		pin_queue_interval_average_ns(&runtime->shared.workers[0].queue_interval);

	average_ns_max = average_ns > average_ns_max ? average_ns : average_ns_max;
}

/* All of it is part of the worker's life. */
static void expect_part(const char *what, uint64_t life_ns)
{
	printf("%s: %llu and %llu of %llu us, a task %llu at most\n", what,
		(unsigned long long)busy_ns() / 1000, (unsigned long long)apart_ns / 1000,
		(unsigned long long)life_ns / 1000, (unsigned long long)average_ns_max / 1000);
	expect_true(what, busy_ns() + apart_ns <= life_ns);
	expect_true(what, average_ns_max <= life_ns);
}

/* Of the runs that seem to have been as long as a tick, each recorded once. */
static uint64_t long_runs_ns(void)
{
	static struct pinion_histogram runs;
	uint64_t sum_ns = 0;

	expect_number("runs", 0,
		pinion_runtime_get_histogram(
			runtime, PINION_TIMING_RUN, PINION_LANE_NORMAL, &runs));
	expect_true("some", runs.count > 0);
	for (uint32_t i = 0; i < PINION_HISTOGRAM_BUCKETS; i++) {
		if (pinion_histogram_lowest_ns(i) >= TICK_NS) {
			sum_ns += runs.buckets[i] * pinion_histogram_lowest_ns(i);
		}
	}
	printf("long runs: %llu us\n", (unsigned long long)sum_ns / 1000);
	return sum_ns;
}

static void run(uint32_t budget_polls, void (*on_tick)(void *, uint32_t, void *),
	int (*task)(struct pinion_task *), const char *what)
{
	struct pinion_task first = {.run = task};
	uint64_t begin_ns = pinion_clock_now_ns();
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	runtimes_tuning.budget_polls = budget_polls;
	runtimes_tuning.tick_interval_ms = 1;
	config.on_tick = on_tick;
	config.bind_workers = 0;
	/* It counts as a short one from the first run on. */
	runtimes_tuning.task_ns = 1;
	apart_ns = 0;
	average_ns_max = 0;
	pin_store_release_u32(&tick_count, 0);
	pin_store_release_u32(&is_over, 0);
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &first));
	tasks_await(&is_over, 1);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_part(what, pinion_clock_now_ns() - begin_ns);
	expect_true("long runs, and in ticks",
		long_runs_ns() + apart_ns <= pinion_clock_now_ns() - begin_ns);
	pinion_runtime_destroy(runtime);
}

/* ---- ticks ---- */

static void tick(void *arg, uint32_t worker_index, void *context)
{
	uint64_t begin_ns = pinion_clock_now_ns();

	(void)arg;
	(void)worker_index;
	(void)context;
	spend(TICK_NS);
	apart_ns += pinion_clock_now_ns() - begin_ns;
	tasks_signal(&tick_count);
}

static int go_on(struct pinion_task *task)
{
	look_at_average();
	if (pin_load_acquire_u32(&tick_count) < wanted_ticks) {
		return pinion_task_respawn(runtime, task);
	}
	tasks_signal(&is_over);
	return 0;
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	wanted_ticks = TICKS;
	run(128, tick, go_on, "busy, and in ticks");
	return expect_status();
}

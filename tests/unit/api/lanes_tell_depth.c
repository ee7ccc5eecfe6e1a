/* SPDX-License-Identifier: MIT */
/*
 * Goal: the depths of lanes, completed and failed jobs and the time spent are
 * reported correctly, and the log warns of a deep lane once each time it gets
 * deep, which it can again once it was at half the limit. WP-33, WP-34, WP-26,
 * W44, C17.
 * Method: one worker is held while tasks are queued; the rest is counting.
 */
#include "runtime/base/base.h"
#include "runtime/queue/lane_queue.h"
#include "runtime/task/entry.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>

enum {
	HIGH = 150,
	NORMAL = 30,
	LOW = 7,
	FAILING_EVERY = 10,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static struct pinion_task tasks[HIGH + NORMAL + LOW];
static struct tasks_hold hold;

static int succeed(struct pinion_task *task)
{
	(void)task;
	return 0;
}

static int fail(struct pinion_task *task)
{
	(void)task;
	return -EIO;
}

static struct pinion_lane_stats metrics_now(void)
{
	struct pinion_lane_stats metrics;

	expect_number(
		"metrics", 0, pinion_runtime_get_lane_stats(runtime, &metrics, sizeof(metrics)));
	return metrics;
}

static void expect_depths(uint64_t high, uint64_t normal, uint64_t low)
{
	struct pinion_lane_stats metrics = metrics_now();

	expect_number("high", (long long)high, (long long)metrics.high_queue_depth);
	expect_number("medium", (long long)normal, (long long)metrics.medium_queue_depth);
	expect_number("low", (long long)low, (long long)metrics.low_queue_depth);
}

static void spawn_all(void)
{
	for (uint32_t i = 0; i < HIGH + NORMAL + LOW; i++) {
		enum pinion_lane lane = i < HIGH ? PINION_LANE_HIGH
			: i < HIGH + NORMAL	 ? PINION_LANE_NORMAL
						 : PINION_LANE_LOW;

		tasks[i] = (struct pinion_task){
			.run = i % FAILING_EVERY == 0 ? fail : succeed,
			.flags = pinion_lane_flags(lane),
		};
		expect_number("spawn", 0, pinion_task_spawn(runtime, &tasks[i]));
	}
}

static uint32_t count_lines(const char *part)
{
	uint32_t count = 0;

	for (const char *at = runtimes_log; (at = strstr(at, part)) != NULL; at++) {
		count++;
	}
	return count;
}

/* From the limit on, and again after the depth was half of it or less. */
static void check_warnings(void)
{
	static const struct {
		uint64_t depth;
		bool warns;
	} steps[] = {{9, false}, {10, true}, {11, false}, {6, false}, {10, false}, {5, false},
		{10, true}, {0, false}, {9, false}, {12, true}};
	struct pin_atomic_u32 has_warned = {0};

	for (size_t i = 0; i < PIN_ARRAY_COUNT(steps); i++) {
		char what[32];

		snprintf(what, sizeof(what), "step %zu, depth %llu", i,
			(unsigned long long)steps[i].depth);
		expect_number(what, steps[i].warns,
			pin_lane_queue_must_warn(&has_warned, steps[i].depth, 10));
	}
	expect_number("no limit", false, pin_lane_queue_must_warn(&has_warned, 1000, 0));
}

int main(void)
{
	struct pinion_runtime_stats counters;
	struct pinion_lane_stats metrics;
	struct pinion_config config;
	uint64_t failed = (HIGH + NORMAL + LOW + FAILING_EVERY - 1) / FAILING_EVERY;

	runtimes_watchdog(LIMIT_SECONDS);
	check_warnings();
	runtimes_config(&config, 1, PINION_IO_AUTO);
	runtimes_tuning.low_warn_depth = LOW;
	runtimes_tuning.normal_warn_depth = 20;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	expect_depths(0, 0, 0);
	for (uint32_t round = 1; round <= 3; round++) {
		tasks_hold_begin(&hold, runtime, 0);
		spawn_all();
		expect_depths(HIGH, NORMAL, LOW);
		tasks_hold_end(&hold);
		do {
			metrics = metrics_now();
		} while (metrics.jobs_completed + metrics.jobs_failed <
			round * (HIGH + NORMAL + LOW + 1ull));
		expect_depths(0, 0, 0);
		expect_number("completed", (long long)(round * (HIGH + NORMAL + LOW + 1 - failed)),
			(long long)metrics.jobs_completed);
		expect_number(
			"failed", (long long)(round * failed), (long long)metrics.jobs_failed);
		expect_number(
			"high run", (long long)(round * HIGH), (long long)metrics.high_jobs_run);
		expect_number("low run", (long long)(round * LOW), (long long)metrics.low_jobs_run);
		expect_number("warnings of high", round,
			count_lines("High priority queue depth: 100 jobs"));
		expect_number(
			"warnings of low", round, count_lines("Low priority queue depth: 7 jobs"));
		expect_number("of medium", round, count_lines("Medium priority queue depth: "));
	}
	expect_number("and no others", 9, count_lines(" queue depth: "));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	counters = runtimes_counters(runtime);
	metrics = metrics_now();
	expect_number("all run", (long long)counters.tasks_run,
		(long long)(metrics.jobs_completed + metrics.jobs_failed));
	/* Its nanoseconds are counted in turns_keep_their_order. */
	pin_meter_set(&runtime->shared.workers[0].meter.busy_ns, 7654321999);
	expect_number("microseconds", 7654321, (long long)metrics_now().total_execution_time);
	/* A caller who knows less of the struct gets no more. */
	memset(&metrics, 0x5a, sizeof(metrics));
	expect_number("metrics", 0, pinion_runtime_get_lane_stats(runtime, &metrics, 8));
	expect_number("first", 0, (long long)metrics.high_queue_depth);
	expect_true("second untouched", metrics.medium_queue_depth == 0x5a5a5a5a5a5a5a5aull);
	pinion_runtime_destroy(runtime);
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: how long a task has waited in a worker's queue is known from readings
 * of the clock at the end of series: from the first reading at which the task
 * was there, half of the series where it came and went within it; more readings
 * than there is room for are thinned out. Gathered times move once. C17.
 * Method: series with made-up queues and times.
 */
#include "runtime/observe/timings.h"
#include "tests/support/expect.h"

#include <stdlib.h>

static struct pin_timings timings;
static struct pin_observed observed = {.timings = &timings};
static struct pin_atomic_u64 words[PIN_TIMINGS * PIN_TIMING_WORDS];

/* The worker has taken all before `first`; there are tasks until `tail`. */
static void note(uint64_t now_ns, uint32_t first, uint32_t tail)
{
	struct pin_series series = {.elapsed_ns = 100,
		.now_ns = now_ns,
		.runs = first,
		.tasks = 1,
		.lane = PINION_LANE_NORMAL,
		.first = first,
		.tail = tail,
		.is_in_order = true};

	pin_timings_note_series(&observed, &series);
}

/* What was recorded since the last call: so many waits, with this sum. */
static void expect_waits(const char *what, uint64_t count, uint64_t sum_ns)
{
	uint32_t index = pin_timing_of(PINION_TIMING_QUEUED, PINION_LANE_NORMAL);
	const struct pin_atomic_u64 *queued = words + (size_t)index * PIN_TIMING_WORDS;
	static uint64_t seen_count;
	static uint64_t seen_sum_ns;
	uint64_t buckets = 0;

	pin_timings_move(&timings, words);
	expect_number(what, (long long)count,
		(long long)(pin_load_relaxed_u64(&queued[PIN_TIMING_COUNT]) - seen_count));
	expect_number(what, (long long)sum_ns,
		(long long)(pin_load_relaxed_u64(&queued[PIN_TIMING_SUM]) - seen_sum_ns));
	seen_count = pin_load_relaxed_u64(&queued[PIN_TIMING_COUNT]);
	seen_sum_ns = pin_load_relaxed_u64(&queued[PIN_TIMING_SUM]);
	for (uint32_t i = 0; i < PINION_HISTOGRAM_BUCKETS; i++) {
		buckets += pin_load_relaxed_u64(&queued[PIN_TIMING_BUCKETS + i]);
	}
	expect_number("buckets", (long long)seen_count, (long long)buckets);
}

static void check_marks(void)
{
	note(1000, 0, 10); /* ten tasks, seen at 1000 */
	expect_waits("none was taken", 0, 0);
	note(1100, 5, 10);
	expect_waits("five, there at 1000", 5, 5 * 100);
	note(1200, 10, 12); /* two more, seen at 1200 */
	expect_waits("the last that was there at 1000", 5, 5 * 200);
	note(1350, 11, 12);
	expect_waits("one that was there at 1200", 1, 150);
	note(1500, 14, 14);
	expect_waits("three, the last came and went", 3, 3 * 50);
	note(1600, 15, 15);
	expect_waits("the queue has been empty", 1, 50);
}

/* One task stays, and one more comes in each series. */
static void check_room(void)
{
	uint32_t count = PIN_TIMINGS_MARKS + 1;

	for (uint32_t i = 0; i < count; i++) {
		note(10000 + 100 * i, 15, 16 + i);
	}
	expect_waits("none was taken", 0, 0);
	/* Of 16 readings the even ones are left out. */
	expect_number("marks", PIN_TIMINGS_MARKS / 2 + 1, timings.mark_count);
	expect_number("the second", 10100, (long long)timings.marks[0].time_ns);
	expect_number("the last", 10000 + 100 * (count - 1),
		(long long)timings.marks[timings.mark_count - 1].time_ns);
	note(20000, 16, 15 + count);
	expect_waits("at 10000, which is left out", 1, 20000 - 10100);
	note(21000, 17, 15 + count);
	expect_waits("there at 10100", 1, 21000 - 10100);
	note(22000, 18, 15 + count);
	expect_waits("there at 10300", 1, 22000 - 10300);
}

/* Newest first: marks say nothing. */
static void check_order(void)
{
	struct pin_series series = {.elapsed_ns = 100,
		.now_ns = 30000,
		.runs = 19,
		.tasks = 1,
		.lane = PINION_LANE_NORMAL,
		.first = 19,
		.tail = 40};

	pin_timings_note_series(&observed, &series);
	expect_number("forgotten", 0, timings.mark_count);
	expect_waits("none", 0, 0);
}

int main(void)
{
	check_marks();
	check_room();
	check_order();
	return expect_status();
}

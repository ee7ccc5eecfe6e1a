/* SPDX-License-Identifier: MIT */
/*
 * Goal: the interval between checks of the shared queue is that of the average
 * task time (AS-12, AS-13, AS-14, AS-15, AS-16, AS-20), the average follows as
 * alpha says, a batch weighs as much as its tasks (AS-17, AS-18, C4, W34), and
 * an overdue check is due (AS-19, W29).
 * Method: the table of the checklist; a step, an outlier, and batches against
 * the same tasks one by one; a worker's time counted in polls.
 */
#include "runtime/base/base.h"
#include "runtime/policy/queue_interval.h"
#include "tests/support/expect.h"

enum {
	US = 1000,
	MS = 1000 * US,
};

static struct pin_queue_interval begin(void)
{
	/* What runtimes have by default. */
	const struct pin_queue_interval_options options = {
		.alpha_permille = 100,
		.target_ns = MS,
		.interval_min = 8,
		.interval_max = 255,
		.default_task_ns = 50 * US,
	};
	struct pin_queue_interval queue_interval;

	pin_queue_interval_init(&queue_interval, &options);
	return queue_interval;
}

/* A queue-check interval that has seen nothing but tasks of this length. */
static struct pin_queue_interval settle(uint64_t task_ns)
{
	struct pin_queue_interval queue_interval = begin();

	for (uint32_t i = 0; i < 10; i++) {
		pin_queue_interval_record(&queue_interval, 128 * task_ns, 128);
	}
	return queue_interval;
}

static void expect_interval(
	const char *what, uint32_t expected, const struct pin_queue_interval *queue_interval)
{
	expect_number(what, expected, pin_queue_interval_interval(queue_interval));
}

/* ---- from task time to interval ---- */

static void check_table(void)
{
	static const struct {
		uint64_t task_ns;
		uint32_t interval;
	} rows[] = {
		{0, 255},
		{1, 255},
		{1 * US, 255},
		{3921, 255},
		{4 * US, 250},
		{10 * US, 100},
		{50 * US, 20},
		{100 * US, 10},
		{111 * US, 9},
		{125 * US, 8},
		{126 * US, 8},
		{1 * MS, 8},
		{1000 * MS, 8},
		{UINT64_MAX / 128, 8},
	};
	char what[64];

	for (size_t i = 0; i < PIN_ARRAY_COUNT(rows); i++) {
		struct pin_queue_interval queue_interval = settle(rows[i].task_ns);

		snprintf(what, sizeof(what), "interval for tasks of %llu ns",
			(unsigned long long)rows[i].task_ns);
		expect_interval(what, rows[i].interval, &queue_interval);
	}
}

static void check_beginning(void)
{
	struct pin_queue_interval queue_interval = begin();

	expect_interval("interval before the first batch", 20, &queue_interval);
	expect_number("average before the first batch", 50 * US,
		(long long)pin_queue_interval_average_ns(&queue_interval));
	pin_queue_interval_record(&queue_interval, 77 * MS, 0);
	expect_number("average after a batch without tasks", 50 * US,
		(long long)pin_queue_interval_average_ns(&queue_interval));
}

static void check_options(void)
{
	struct pin_queue_interval_options options = {
		.alpha_permille = 500,
		.target_ns = 200 * US,
		.interval_min = 2,
		.interval_max = 127,
		.default_task_ns = 10 * US,
	};
	struct pin_queue_interval queue_interval;

	pin_queue_interval_init(&queue_interval, &options);
	expect_interval("interval by other options", 20, &queue_interval);
	pin_queue_interval_record(&queue_interval, 30 * US, 1);
	expect_number("average by other options", 20 * US,
		(long long)pin_queue_interval_average_ns(&queue_interval));
	expect_interval("interval after a sample", 10, &queue_interval);
	pin_queue_interval_record(&queue_interval, 1000 * MS, 1000);
	expect_interval("least interval by other options", 2, &queue_interval);
	pin_queue_interval_record(&queue_interval, 0, 1000);
	expect_interval("greatest interval by other options", 127, &queue_interval);
	expect_number(
		"least average", 1, (long long)pin_queue_interval_average_ns(&queue_interval));
}

/* ---- how fast ---- */

/* Of a step from 50 us to 150 us, or back down, in per mille. */
static uint32_t share_after(uint32_t samples, bool is_up)
{
	struct pin_queue_interval queue_interval = settle(is_up ? 50 * US : 150 * US);
	uint64_t average;

	for (uint32_t i = 0; i < samples; i++) {
		pin_queue_interval_record(&queue_interval, is_up ? 150 * US : 50 * US, 1);
	}
	average = pin_queue_interval_average_ns(&queue_interval);
	return (uint32_t)((is_up ? average - 50 * US : 150 * US - average) / 100);
}

static void check_step(void)
{
	for (int is_up = 0; is_up <= 1; is_up++) {
		expect_number("per mille of a step after 1 sample", 100, share_after(1, is_up));
		expect_number("per mille of a step after 10 samples", 651, share_after(10, is_up));
		expect_number("per mille of a step after 20 samples", 878, share_after(20, is_up));
		expect_number("per mille of a step after 400", 1000, share_after(400, is_up));
	}
}

static void check_outlier(void)
{
	struct pin_queue_interval queue_interval = settle(50 * US);

	/* A task ten times as long: 0.9 * 50 + 0.1 * 500 = 95 us. */
	pin_queue_interval_record(&queue_interval, 500 * US, 1);
	expect_interval("interval after an outlier", 10, &queue_interval);
	for (uint32_t i = 0; i < 30; i++) {
		pin_queue_interval_record(&queue_interval, 50 * US, 1);
	}
	expect_interval("interval 30 tasks later", 19, &queue_interval);
	/* As one of a batch of 128 it hardly shows: the mean is 53.5 us. */
	queue_interval = settle(50 * US);
	pin_queue_interval_record(&queue_interval, 127 * 50 * US + 500 * US, 128);
	expect_interval("interval after a batch with an outlier", 18, &queue_interval);
}

/* ---- weights ---- */

/* Within 2 ns of what real numbers give. */
static void expect_average(const char *how, uint32_t task_count, double exact,
	const struct pin_queue_interval *queue_interval)
{
	double error = (double)pin_queue_interval_average_ns(queue_interval) - exact;
	char what[64];

	snprintf(what, sizeof(what), "average after %u tasks %s is exact", task_count, how);
	expect_true(what, error < 2 && error > -2);
}

static void check_batch(uint32_t task_count)
{
	struct pin_queue_interval together = begin();
	struct pin_queue_interval singly = begin();
	double exact = 50e3;

	pin_queue_interval_record(&together, (uint64_t)task_count * 80 * US, task_count);
	for (uint32_t i = 0; i < task_count; i++) {
		pin_queue_interval_record(&singly, 80 * US, 1);
		exact = 0.1 * 80e3 + 0.9 * exact;
	}
	expect_average("together", task_count, exact, &together);
	expect_average("singly", task_count, exact, &singly);
}

static void check_weights(void)
{
	struct pin_queue_interval queue_interval = begin();

	for (uint32_t task_count = 1; task_count <= 300; task_count++) {
		check_batch(task_count);
	}
	check_batch(65535);
	check_batch(65536);
	/* Parts of a nanosecond are not lost: 128 tasks of 1.5 ns each. */
	for (uint32_t i = 0; i < 100; i++) {
		pin_queue_interval_record(&queue_interval, 192, 128);
	}
	expect_number("average of 1.5 ns, in 1/256 ns", 384, (long long)queue_interval.average);
}

static void check_extremes(void)
{
	static const uint64_t longest_ns[] = {UINT64_MAX, UINT64_C(1) << 56, UINT64_C(1) << 32};
	struct pin_queue_interval queue_interval;

	for (size_t i = 0; i < PIN_ARRAY_COUNT(longest_ns); i++) {
		queue_interval = begin();
		pin_queue_interval_record(&queue_interval, longest_ns[i], 1);
		/* 0.9 * 50 us + 0.1 * (2^32 - 1) ns, and an error of 2^-24. */
		expect_number("average after a task of years, us", 429541,
			(long long)pin_queue_interval_average_ns(&queue_interval) / US);
	}
	pin_queue_interval_record(&queue_interval, UINT64_MAX, UINT32_MAX);
	expect_interval("interval after the longest batch of the most tasks", 8, &queue_interval);
	pin_queue_interval_record(&queue_interval, UINT64_MAX, 1);
	expect_interval("interval after the longest task", 8, &queue_interval);
	pin_queue_interval_record(&queue_interval, 0, UINT32_MAX);
	expect_interval("interval after no time at all", 255, &queue_interval);
	pin_queue_interval_record(&queue_interval, UINT64_MAX, 1);
	expect_interval("interval after the longest task again", 8, &queue_interval);
	for (uint32_t i = 0; i < 500; i++) {
		pin_queue_interval_record(&queue_interval, 0, 1);
	}
	expect_interval("interval after 500 tasks of 0 ns", 255, &queue_interval);
	expect_number(
		"average after them", 1, (long long)pin_queue_interval_average_ns(&queue_interval));
}

/* ---- when a check is due ---- */

static void check_due(void)
{
	struct pin_queue_interval queue_interval = begin();

	expect_true("not due at once", !pin_queue_interval_is_due(&queue_interval, 0, 0));
	expect_true("not due one poll early", !pin_queue_interval_is_due(&queue_interval, 19, 0));
	expect_true("due by polls", pin_queue_interval_is_due(&queue_interval, 20, 0));
	expect_true("due by more polls", pin_queue_interval_is_due(&queue_interval, UINT64_MAX, 0));
	expect_true(
		"not due at the target", !pin_queue_interval_is_due(&queue_interval, 0, 1 * MS));
	expect_true("due by time", pin_queue_interval_is_due(&queue_interval, 0, 1 * MS + 1));
	expect_true("due by more time", pin_queue_interval_is_due(&queue_interval, 0, UINT64_MAX));
}

/*
 * Between tasks the worker asks; work that came just after a check waits until
 * the next. Longer tasks than 125 us are those the interval alone fails.
 */
static uint64_t longest_wait_ns(uint64_t task_ns)
{
	struct pin_queue_interval queue_interval = settle(task_ns);
	uint64_t polls = 0;

	while (!pin_queue_interval_is_due(&queue_interval, polls, polls * task_ns)) {
		polls++;
	}
	return polls * task_ns;
}

static void check_waits(void)
{
	char what[64];

	for (uint64_t task_ns = 1; task_ns < 20 * MS; task_ns += task_ns / 7 + 1) {
		uint64_t wait_ns = longest_wait_ns(task_ns);

		snprintf(what, sizeof(what), "wait for tasks of %llu ns, %llu ns, is short",
			(unsigned long long)task_ns, (unsigned long long)wait_ns);
		expect_true(what, wait_ns <= 1 * MS + (task_ns > 125 * US ? task_ns : 0));
		/* Nor more often than need be: half the target, or the bound.
		 */
		snprintf(what, sizeof(what), "wait for tasks of %llu ns, %llu ns, is long",
			(unsigned long long)task_ns, (unsigned long long)wait_ns);
		expect_true(what, wait_ns >= MS / 2 || wait_ns == 255 * task_ns);
	}
}

/* After these tasks nothing is left of the average before. */
static void check_forgetting(void)
{
	struct pin_queue_interval queue_interval = settle(4000 * (uint64_t)MS);

	pin_queue_interval_record(&queue_interval, 65536 * (uint64_t)US, 65536);
	expect_number(
		"of 65536 tasks", US, (long long)pin_queue_interval_average_ns(&queue_interval));
	expect_number("exactly", US << PIN_QUEUE_INTERVAL_AVERAGE_SHIFT,
		(long long)queue_interval.average);
}

int main(void)
{
	check_forgetting();
	check_table();
	check_beginning();
	check_options();
	check_step();
	check_outlier();
	check_weights();
	check_extremes();
	check_due();
	check_waits();
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: the wait of tasks in a lane's queue is that between their push and
 * their pop; of tasks between two marks it is between theirs, each counts
 * once, and time in which the queue is empty counts for none; also where only
 * those who pop set marks. C17.
 * Method: a queue on a clock that is set by hand; then a runtime, whose page
 * has the waits of all lanes.
 */
#include "runtime/observe/lane_wait.h"
#include "tests/support/metrics.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

enum { US = 1000, BURST = 80, TASKS = 50, SHARED = 1000, BATCH = 64 };

/* ---- by hand ---- */

static struct pin_host host;
static uint64_t clock_ns;
static struct pin_lane_queue queue;
static struct pin_lane_wait wait_of;
static struct pin_timings timings;
static struct pin_link items[BURST];
static uint32_t next_item;
static const uint32_t number = PINION_LANE_HIGH;

static uint64_t now_ns(void)
{
	return clock_ns;
}

static void push(uint32_t count)
{
	struct pin_list list = {0};

	for (uint32_t i = 0; i < count; i++) {
		pin_list_push(&list, &items[next_item++ % BURST]);
	}
	pin_lane_wait_note_push(&wait_of, &queue, count);
	pin_lane_queue_push(&queue, &list, count);
}

static void pop(uint64_t later_ns)
{
	bool has_more;

	clock_ns += later_ns;
	expect_true("a task", pin_lane_queue_pop(&queue, &has_more) != NULL);
	pin_lane_wait_note_pop(&wait_of, &queue, &timings, number);
}

/* All since the last: how many, and the sum of their times. */
static void expect_waits(const char *what, uint64_t tasks, uint64_t sum_ns)
{
	struct pin_gathered *gathered = &timings.gathered[number];
	uint64_t count = 0;

	for (uint32_t i = 0; i < PINION_HISTOGRAM_BUCKETS; i++) {
		count += gathered->buckets[i];
	}
	expect_number(what, (long long)tasks, (long long)count);
	expect_number(what, (long long)sum_ns, (long long)gathered->sum_ns);
	*gathered = (struct pin_gathered){0};
}

static void check_marks(void)
{
	host = pin_host_linux;
	host.now_ns = now_ns;
	clock_ns = US;
	pin_lane_queue_init(&queue, &host);
	push(1);
	pop(7 * US);
	expect_waits("one", 1, 7 * US);
	clock_ns += 1000 * US;
	push(1);
	pop(5 * US);
	expect_waits("not the time between them", 1, 5 * US);
	/* The first is that of the burst's begin, at the end of all of it. */
	push(BURST);
	for (uint32_t i = 0; i < BURST; i++) {
		pop(US);
	}
	/* From 5 us to 80 us in eight steps of ten tasks each. */
	expect_waits("a burst", BURST, 10 * (8 * 5 * US + 75 * US * 36 / 8));
	expect_number("no mark is left", 0, (long long)pin_load_relaxed_u64(&wait_of.end));
	/* The second push finds a mark: the pop that takes it sets the next. */
	push(1);
	push(3);
	pop(5 * US);
	expect_waits("the first", 1, 5 * US);
	expect_number(
		"to the end", 1 + 1 + BURST + 4, (long long)pin_load_relaxed_u64(&wait_of.end));
	pop(2 * US);
	pop(US);
	expect_waits("not yet", 0, 0);
	pop(2 * US);
	expect_waits("the others", 3, 3 * 5 * US);
	expect_number("no mark is left", 0, (long long)pin_load_relaxed_u64(&wait_of.end));
	/* A claim that is given back goes past the mark. */
	push(1);
	pin_fetch_add_relaxed_u64(&queue.pushed, 1);
	pop(US);
	expect_waits("the one", 1, US);
	pin_lane_queue_undo(&queue, 1);
	clock_ns += 1000 * US;
	push(1);
	pop(US);
	expect_waits("a claim waits for nothing", 2, 2 * US);
}

/* ---- by batches ---- */

static void take_batch(uint64_t later_ns, uint64_t popped, uint64_t pushed)
{
	struct pin_lane_wait_batch batch = {.popped = popped, .pushed = pushed};

	clock_ns += later_ns;
	if (pin_lane_wait_is_batch_due(&wait_of, popped, pushed > popped)) {
		pin_lane_wait_take_batch(&wait_of, &host, &batch, &timings, number);
	}
}

static void check_batches(void)
{
	wait_of = (struct pin_lane_wait){.last_end = 1, .last_ns = 5};
	take_batch(US, 10, 0);
	take_batch(US, 20, 0);
	expect_waits("an empty queue", 0, 0);
	/* A burst of 80 tasks is seen beyond the first batch. */
	take_batch(1000 * US, 64, 144);
	take_batch(4 * US, 128, 150);
	expect_waits("not all of them", 0, 0);
	take_batch(6 * US, 144, 200);
	/* In eight steps of ten tasks each. */
	expect_waits("from none to all of its time", 80, 10 * (10 * US * 36 / 8));
	take_batch(5 * US, 199, 200);
	take_batch(US, 200, 0);
	/* From 10 us to 6 us, in steps of seven tasks. */
	expect_waits("from the time of the last", 56, 7 * (8 * 10 * US - 4 * US * 36 / 8));
	take_batch(1000 * US, 210, 0);
	expect_waits("not while it was empty", 0, 0);
	/* Of those that were expected some did not come. */
	take_batch(US, 220, 230);
	take_batch(2 * US, 228, 0);
	/* In the fourth step and the last there are two. */
	expect_waits("all there were", 10, 2 * US * (36 + 4 + 8) / 8);
}

/* ---- of a runtime ---- */

static struct pinion_runtime *runtime;
static struct pinion_task tasks[2 * TASKS];
static struct pinion_task shared_tasks[SHARED];

static int nothing(struct pinion_task *task)
{
	(void)task;
	return 0;
}

static void check_runtime(void)
{
	static struct pinion_histogram histogram;

	runtime = runtimes_start(2, PINION_IO_FALLBACK);
	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(tasks); i++) {
		tasks[i] = (struct pinion_task){
			.run = nothing, .flags = i % 2 == 0 ? PINION_TASK_HIGH : PINION_TASK_LOW};
		expect_number("spawn", 0, pinion_task_spawn(runtime, &tasks[i]));
	}
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	for (uint32_t lane = PINION_LANE_HIGH; lane <= PINION_LANE_LOW; lane += 2) {
		expect_number("read", 0,
			pinion_runtime_get_histogram(
				runtime, PINION_TIMING_QUEUED, lane, &histogram));
		/* The last ones may have no mark of their own. */
		expect_true("most tasks", histogram.count > 0 && histogram.count <= TASKS);
	}
	pinion_runtime_destroy(runtime);
}

/* From outside, while the only worker is in a task. */
static void check_shared(void)
{
	static struct pinion_histogram histogram;
	struct tasks_hold hold = {.prepare = NULL};

	runtime = runtimes_start(1, PINION_IO_FALLBACK);
	tasks_hold_begin(&hold, runtime, 0);
	for (uint32_t i = 0; i < SHARED; i++) {
		shared_tasks[i] = (struct pinion_task){.run = nothing};
		expect_number("spawn", 0, pinion_task_spawn(runtime, &shared_tasks[i]));
	}
	tasks_hold_end(&hold);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("read", 0,
		pinion_runtime_get_histogram(
			runtime, PINION_TIMING_SHARED, PINION_LANE_NORMAL, &histogram));
	/* All but those of the first batch. */
	expect_true("each once", histogram.count >= SHARED - BATCH && histogram.count < SHARED);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	check_marks();
	check_batches();
	check_runtime();
	check_shared();
	return expect_status();
}

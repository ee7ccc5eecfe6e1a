/* SPDX-License-Identifier: MIT */
/*
 * Goal: a job given to a thread pool is the caller's own struct, with its
 * function and a place for its result and a future: it is started, run, awaited
 * and started again without an allocation, in each lane; each caller gets what
 * its own function returned. WP-13, W48, RP-11.
 * Method: malloc and its kin count; many calls in flight at the same time,
 * waited for in another order than they were started in.
 */
#include "tests/support/allocations.h"
#include "tests/support/runtimes.h"

#include <pinion/call.h>
#include <pinion/thread_pool.h>

enum {
	CALLS = 900,
	ROUNDS = 5,
	LIMIT_SECONDS = 60,
};

struct order {
	struct pinion_call call;
	int number;
};

static struct order orders[CALLS];
static const uint32_t lane_flags[] = {PINION_TASK_HIGH, 0, PINION_TASK_LOW};

/* Some fail, with an error of their own. */
static int wanted(int number)
{
	return number % 5 == 4 ? -1 - number % 100 : number;
}

static int work(void *arg)
{
	const struct order *order = arg;

	return wanted(order->number);
}

static void start_all(struct pinion_runtime *thread_pool, int round)
{
	for (int i = 0; i < CALLS; i++) {
		orders[i] = (struct order){
			.call = {.run = work, .arg = &orders[i], .task.flags = lane_flags[i % 3]},
			.number = i + round * CALLS,
		};
		expect_number("start", 0, pinion_call_start(thread_pool, &orders[i].call));
	}
}

static void await_all(void)
{
	for (int i = CALLS - 1; i >= 0; i--) {
		expect_number("wait", 0, pinion_future_wait(&orders[i].call.done, UINT64_MAX));
		expect_number("result", wanted(orders[i].number), orders[i].call.result);
	}
}

int main(void)
{
	struct pinion_runtime *thread_pool = NULL;
	struct pinion_lane_stats metrics = {0};

	runtimes_watchdog(LIMIT_SECONDS);
	allocations_check_counting();
	expect_ready("create", pinion_thread_pool_create(NULL, NULL, &thread_pool) == 0);
	allocations_begin();
	for (int round = 0; round < ROUNDS; round++) {
		start_all(thread_pool, round);
		await_all();
	}
	allocations_expect_none();
	expect_number("drain", 0, pinion_runtime_drain(thread_pool));
	expect_number("metrics", 0,
		pinion_runtime_get_lane_stats(thread_pool, &metrics, sizeof(metrics)));
	expect_number("completed", CALLS * ROUNDS / 5 * 4, (long long)metrics.jobs_completed);
	expect_number("failed", CALLS * ROUNDS / 5, (long long)metrics.jobs_failed);
	pinion_runtime_destroy(thread_pool);
	return expect_status();
}

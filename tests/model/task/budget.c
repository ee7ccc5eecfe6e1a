/* SPDX-License-Identifier: MIT */
/*
 * Goal: a unit is had by one at a time, none is lost, no waiter waits while its
 * amounts are available, also after a larger request that gave up, and a thread
 * that has acquired everything may free the budget. C13.
 * Method: threads take units of two kinds and give them back, fewer of them
 * than the threads would like; a forgotten waiter is a deadlock. The last
 * acquires all and frees it, so that a later touch fails.
 */
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/task/entry.h"
#include "runtime/task/internal.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"
#include "tests/model/heap.h"

#include <errno.h>
#include <string.h>

/*
 * SKIP: serves no waiter. LATE: reads it once more when all have been served.
 */
static uint32_t serve_unlock(struct pin_waiters *waiters, const char *site)
{
	uint32_t count;

	if (model_is_spoilt(MODEL_SKIP, site, "pin_waiters_serve_unlock")) {
		pin_waiters_unlock(waiters);
		return 0;
	}
	count = pin_waiters_serve_unlock(waiters);
	if (model_is_spoilt(MODEL_LATE, site, "pin_waiters_serve_unlock")) {
		pin_waiters_any(waiters);
	}
	return count;
}
#define pin_waiters_serve_unlock(waiters) serve_unlock(waiters, __func__)
#include "runtime/task/budget.c"

enum { KINDS = 2, THREADS_MAX = 3 };

static const uint64_t totals[KINDS] = {1, 3};
static const uint64_t both[KINDS] = {1, 2};
static const uint64_t second[KINDS] = {0, 2};

static struct pinion_budget *budget;
static uint32_t held_count;
static int late_rc;

static void begin(void)
{
	budget = model_aligned_alloc(PIN_CACHE_LINE, sizeof(*budget));
	held_count = 0;
	late_rc = 0;
	MODEL_CHECK(pinion_budget_init(budget, NULL, totals, KINDS) == 0);
}

static void hold(void *arg)
{
	const uint64_t *amounts = arg;

	MODEL_CHECK(pinion_budget_acquire_wait(budget, amounts, PIN_NO_DEADLINE) == 0);
	held_count++;
	/* Of the second kind there is enough for one of them only. */
	MODEL_CHECK(held_count == 1);
	model_point();
	held_count--;
	pinion_budget_release(budget, amounts);
}

static void hold_in_time(void *arg)
{
	const uint64_t *amounts = arg;

	late_rc = pinion_budget_acquire_wait(budget, amounts, 1);
	MODEL_CHECK(late_rc == 0 || late_rc == -ETIME);
	if (late_rc == 0) {
		pinion_budget_release(budget, amounts);
	}
}

/* The way to end: no other thread has any, nor is going to ask. */
static void acquire_all_and_free(void)
{
	MODEL_CHECK(pinion_budget_acquire_wait(budget, totals, PIN_NO_DEADLINE) == 0);
	model_free(budget);
}

static void run_shared(uint32_t thread_count)
{
	uint32_t threads[THREADS_MAX];

	begin();
	for (uint32_t i = 0; i < thread_count; i++) {
		threads[i] = model_thread_start(
			"holder", hold, (void *)(uintptr_t)(i % 2 == 0 ? both : second));
	}
	for (uint32_t i = 0; i < thread_count; i++) {
		model_thread_join(threads[i]);
	}
	acquire_all_and_free();
}

static void run_two(void)
{
	run_shared(2);
}

static void run_three(void)
{
	run_shared(3);
}

static void release_both(void *arg)
{
	pinion_budget_release(arg, both);
}

/* Freed while the release that made that possible is under way. */
static void run_freed_early(void)
{
	uint32_t releaser;

	begin();
	MODEL_CHECK(pinion_budget_try_acquire(budget, both) == 0);
	releaser = model_thread_start("releaser", release_both, budget);
	acquire_all_and_free();
	model_thread_join(releaser);
}

/* The oldest wants all, and may give up; the next wants little. */
static void run_given_up(void)
{
	uint32_t threads[2];

	begin();
	MODEL_CHECK(pinion_budget_try_acquire(budget, second) == 0);
	threads[0] = model_thread_start("wants all", hold_in_time, (void *)(uintptr_t)totals);
	threads[1] = model_thread_start("wants some", hold, (void *)(uintptr_t)second);
	pinion_budget_release(budget, second);
	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(threads); i++) {
		model_thread_join(threads[i]);
	}
	acquire_all_and_free();
}

static const struct model_mutant shared_mutants[] = {
	{"given back, but no waiter is notified",
		{MODEL_SKIP, "pinion_budget_release", "pin_waiters_serve_unlock"}},
	{"sleep without compare", {MODEL_NO_COMPARE, "model_futex_wait", NULL}},
	{"two have the lock", {MODEL_TORN, "pin_lock_acquire", NULL}},
	{.name = NULL},
};

static const struct model_mutant freed_mutants[] = {
	{"touched when all are notified",
		{MODEL_LATE, "pinion_budget_release", "pin_waiters_serve_unlock"}},
	{.name = NULL},
};

static const struct model_mutant given_up_mutants[] = {
	{"given back, but no waiter is notified",
		{MODEL_SKIP, "pinion_budget_release", "pin_waiters_serve_unlock"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"two", run_two, 3, 2, 1, shared_mutants, NULL},
	{"three", run_three, 2, 1, 0, shared_mutants, NULL},
	{"freed_early", run_freed_early, 3, 2, 0, freed_mutants, NULL},
	{"given_up", run_given_up, 2, 1, 0, given_up_mutants, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("budget", cases, PIN_ARRAY_COUNT(cases));
}

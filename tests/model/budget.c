/* SPDX-License-Identifier: MIT */
/*
 * Goal: a unit is had by one at a time, none is lost, and nobody waits while
 * there is one: [BUDGET-1].
 * Method: waiters begin with nothing there and releasers give; a waiter that
 * missed its unit is a deadlock. Or threads pass fewer units round than they
 * are.
 */
#include "runtime/core/budget.h"
#include "runtime/base/base.h"
#include "tests/model/explorer.h"

enum { THREADS_MAX = 3 };

static struct pin_budget budget;
static uint32_t held_count;
static uint32_t unit_count;

static void acquire(void *arg)
{
	(void)arg;
	pin_budget_acquire(&budget);
}

static void release(void *arg)
{
	(void)arg;
	pin_budget_release(&budget);
}

static void run_pairs(uint32_t pair_count)
{
	uint32_t threads[2 * THREADS_MAX];

	pin_budget_init(&budget, &pin_host_linux, 0);
	for (uint32_t i = 0; i < pair_count; i++) {
		threads[2 * i] = model_thread_start("waiter", acquire, NULL);
		threads[2 * i + 1] = model_thread_start("releaser", release, NULL);
	}
	for (uint32_t i = 0; i < 2 * pair_count; i++) {
		model_thread_join(threads[i]);
	}
	MODEL_CHECK(budget.available.value == 0 && budget.waiters.value == 0);
}

static void run_one_pair(void)
{
	run_pairs(1);
}

static void run_two_pairs(void)
{
	run_pairs(2);
}

/* ---- fewer units than threads ---- */

static void hold(void *arg)
{
	(void)arg;
	pin_budget_acquire(&budget);
	held_count++;
	MODEL_CHECK(held_count <= unit_count);
	model_point();
	held_count--;
	pin_budget_release(&budget);
}

static void run_shared(void)
{
	uint32_t threads[THREADS_MAX];

	unit_count = 1;
	held_count = 0;
	pin_budget_init(&budget, &pin_host_linux, unit_count);
	for (uint32_t i = 0; i < THREADS_MAX; i++) {
		threads[i] = model_thread_start("holder", hold, NULL);
	}
	for (uint32_t i = 0; i < THREADS_MAX; i++) {
		model_thread_join(threads[i]);
	}
	MODEL_CHECK(budget.available.value == unit_count && budget.waiters.value == 0);
}

static const struct model_twin pair_twins[] = {
	{"no fence before the look for waiters", {MODEL_DROP_FENCE, "pin_budget_release", NULL}},
	{"sleep without compare", {MODEL_NO_COMPARE, "model_futex_wait", NULL}},
	{.name = NULL},
};

static const struct model_twin two_pair_twins[] = {
	{"giving back is no single step", {MODEL_TORN, "pin_budget_release", NULL}},
	{"announcing is no single step", {MODEL_TORN, "pin_budget_acquire", NULL}},
	{.name = NULL},
};

static const struct model_twin shared_twins[] = {
	{"taking is no single step", {MODEL_TORN, "pin_budget_try_acquire", NULL}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"one_pair", run_one_pair, 3, 2, 1, pair_twins, NULL},
	{"two_pairs", run_two_pairs, 2, 1, 0, two_pair_twins, NULL},
	{"shared", run_shared, 2, 1, 0, shared_twins, NULL},
};

int main(void)
{
	return model_main("budget", cases, PIN_ARRAY_COUNT(cases));
}

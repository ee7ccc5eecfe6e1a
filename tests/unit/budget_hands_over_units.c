/* SPDX-License-Identifier: MIT */
/*
 * Goal: never more units out than there are, none lost, and whoever waits for
 * one gets it when it is given back.
 * Method: threads acquire and release around a counter of holders; then two
 * threads hand one unit to and fro through two budgets, so that a lost wake
 * hangs and trips the watchdog.
 */
#include "runtime/core/budget.h"
#include "tests/support/expect.h"
#include "tests/support/runtimes.h"

enum {
	UNITS = 2,
	THREADS = 5,
	ROUNDS = 10000,
	LIMIT_SECONDS = 60,
};

static struct pin_budget budget;
static struct pin_budget other;
static struct pin_atomic_u32 holders;
static struct pin_atomic_u32 excess;

static void *hold_rounds(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		pin_budget_acquire(&budget);
		if (pin_fetch_add_acq_rel_u32(&holders, 1) >= UNITS) {
			pin_fetch_add_acq_rel_u32(&excess, 1);
		}
		if (i % 16 == 0) {
			pin_host_linux.yield();
		}
		pin_fetch_sub_acq_rel_u32(&holders, 1);
		pin_budget_release(&budget);
	}
	return NULL;
}

static void *pass_back(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		pin_budget_acquire(&budget);
		pin_budget_release(&other);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	runtimes_watchdog(LIMIT_SECONDS);
	pin_budget_init(&budget, &pin_host_linux, UNITS);
	for (int i = 0; i < THREADS; i++) {
		expect_ready("thread", pthread_create(&threads[i], NULL, hold_rounds, NULL) == 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
	}
	expect_number("times more held a unit than there are", 0, pin_load_acquire_u32(&excess));
	for (int i = 0; i < UNITS; i++) {
		expect_true("each unit is back", pin_budget_try_acquire(&budget));
	}
	expect_true("and no more", !pin_budget_try_acquire(&budget));
	expect_number("waiters left", 0, pin_load_acquire_u32(&budget.waiters));

	pin_budget_init(&other, &pin_host_linux, 0);
	expect_ready("thread", pthread_create(&threads[0], NULL, pass_back, NULL) == 0);
	for (int i = 0; i < ROUNDS; i++) {
		pin_budget_release(&budget);
		pin_budget_acquire(&other);
	}
	pthread_join(threads[0], NULL);
	return expect_status();
}

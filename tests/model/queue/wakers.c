/* SPDX-License-Identifier: MIT */
/*
 * Goal: a bit of the parked set is claimed by one waker, once; two wakers wake
 * two sleepers; a sleeper that withdraws leaves a claim valid or prevents it.
 * Method: the real set and the real parker, with the wakers' and the sleepers'
 * steps as parker.h lists them, and nothing of a worker around them.
 */
#include "runtime/base/base.h"
#include "runtime/queue/idle_set.h"
#include "runtime/queue/parker.h"
#include "tests/model/explorer.h"
#include "tests/support/idle.h"

#include <string.h>

enum { WAKERS = 2, SLEEPERS = 2 };

static struct pin_idle idle;
static struct pin_parker parkers[SLEEPERS];
static uint32_t claim_counts[SLEEPERS];
static uint32_t claim_total;

static void begin(void)
{
	memset(claim_counts, 0, sizeof(claim_counts));
	claim_total = 0;
	model_quiet_begin();
	pin_idle_init(&idle, SLEEPERS);
	for (uint32_t i = 0; i < SLEEPERS; i++) {
		pin_parker_init(&parkers[i]);
	}
}

static void claim(void *arg)
{
	uint32_t index = pin_idle_claim(&idle);

	(void)arg;
	if (index != PIN_IDLE_NONE) {
		claim_counts[index]++;
		claim_total++;
	}
}

static void run_wakers(uint32_t sleeper_count)
{
	uint32_t wakers[WAKERS];

	for (uint32_t i = 0; i < sleeper_count; i++) {
		(void)pin_idle_publish(&idle, i);
	}
	model_quiet_end();
	for (uint32_t i = 0; i < WAKERS; i++) {
		wakers[i] = model_thread_start("waker", claim, NULL);
	}
	for (uint32_t i = 0; i < WAKERS; i++) {
		model_thread_join(wakers[i]);
	}
	MODEL_CHECK(idle_count(&idle) == 0);
}

static void run_one_sleeper(void)
{
	begin();
	run_wakers(1);
	MODEL_CHECK(claim_counts[0] == 1 && claim_total == 1);
}

static void run_two_sleepers(void)
{
	begin();
	run_wakers(2);
	MODEL_CHECK(claim_counts[0] == 1 && claim_counts[1] == 1);
}

/* ---- a sleeper that stays, another that comes and goes, a waker ---- */

static void publish(void *arg)
{
	(void)arg;
	(void)pin_idle_publish(&idle, 0);
}

static void publish_and_withdraw(void *arg)
{
	(void)arg;
	(void)pin_idle_publish(&idle, 1);
	pin_idle_withdraw(&idle, 1);
}

static void run_withdrawal(void)
{
	uint32_t threads[3];

	begin();
	model_quiet_end();
	threads[0] = model_thread_start("sleeper", publish, NULL);
	threads[1] = model_thread_start("passer-by", publish_and_withdraw, NULL);
	threads[2] = model_thread_start("waker", claim, NULL);
	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(threads); i++) {
		model_thread_join(threads[i]);
	}
	/* The first is either claimed or still there, the second gone. */
	MODEL_CHECK(claim_counts[0] + idle_count(&idle) == 1);
	MODEL_CHECK(claim_total <= 1);
}

/* ---- as many wakes as sleepers ---- */

static void sleep_once(void *arg)
{
	uint32_t index = (uint32_t)(uintptr_t)arg;

	if (pin_parker_prepare(&parkers[index], PIN_PARK_FUTEX)) {
		(void)pin_idle_publish(&idle, index);
		while (pin_load_acquire_u32(&parkers[index].state) == PIN_PARK_FUTEX) {
			pin_parker_sleep(&parkers[index], &pin_host_linux, PIN_NO_DEADLINE);
		}
		pin_parker_finish(&parkers[index]);
	}
}

static bool has_sleeper(const void *arg)
{
	(void)arg;
	return idle.top.value != 0;
}

static void wake_once(void *arg)
{
	uint32_t index;

	(void)arg;
	do {
		model_await("a sleeper", has_sleeper, NULL);
		pin_fence_seq_cst();
		index = pin_idle_claim(&idle);
	} while (index == PIN_IDLE_NONE);
	MODEL_CHECK(!pin_parker_notify(&parkers[index], &pin_host_linux));
}

static void run_pairs(void)
{
	begin();
	model_quiet_end();
	for (uint32_t i = 0; i < SLEEPERS; i++) {
		model_thread_start("sleeper", sleep_once, (void *)(uintptr_t)i);
	}
	for (uint32_t i = 0; i < WAKERS; i++) {
		model_thread_start("waker", wake_once, NULL);
	}
}

/* A plain look at the bitmap decides who got the worker. */
static const struct model_mutant claim_mutants[] = {
	{"the check decides, not the claim", {MODEL_TORN, "take", NULL}},
	{.name = NULL},
};

static const struct model_mutant publish_mutants[] = {
	{"publishing is no single step", {MODEL_TORN, "pin_idle_publish", NULL}},
	{"withdrawing is no single step", {MODEL_TORN, "pin_idle_withdraw", NULL}},
	{.name = NULL},
};

static const struct model_mutant pair_mutants[] = {
	{"publishing is no single step", {MODEL_TORN, "pin_idle_publish", NULL}},
	{"sleep without compare", {MODEL_NO_COMPARE, "model_futex_wait", NULL}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"one_sleeper", run_one_sleeper, 3, 2, 0, claim_mutants, NULL},
	{"two_sleepers", run_two_sleepers, 3, 2, 0, claim_mutants, NULL},
	{"withdrawal", run_withdrawal, 3, 2, 0, publish_mutants, NULL},
	{"pairs", run_pairs, 2, 1, 0, pair_mutants, NULL},
};

int main(void)
{
	return model_main("wakers", cases, PIN_ARRAY_COUNT(cases));
}

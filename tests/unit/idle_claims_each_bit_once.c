/* SPDX-License-Identifier: MIT */
/*
 * Goal: each published bit is claimed at most once, whoever competes for it,
 * and none gets lost; the lowest is taken first.
 * Method: with one thread over all sizes of the set; then owners that publish,
 * wait until claimed or withdraw, against threads that claim. An owner knows
 * from its own counter how often it was claimed.
 */
#include "runtime/sched/idle.h"
#include "tests/support/expect.h"

#include <pthread.h>
#include <sched.h>

enum {
	OWNERS = 3,
	CLAIMERS = 2,
	ROUNDS = 20000,
	STRIDE = 63, /* owners lie in different words */
};

static struct pin_idle idle;
static struct pin_atomic_u32 claims[OWNERS];
static struct pin_atomic_u32 owners_left;
static struct pin_atomic_u32 stray_count;

static void *claim_until_done(void *arg)
{
	(void)arg;
	while (pin_load_acquire_u32(&owners_left) > 0) {
		uint32_t index = pin_idle_claim(&idle);

		if (index == PIN_IDLE_NONE) {
			sched_yield();
		} else if (index % STRIDE != 0 || index / STRIDE >= OWNERS) {
			pin_fetch_add_acq_rel_u32(&stray_count, 1);
		} else {
			pin_fetch_add_acq_rel_u32(&claims[index / STRIDE], 1);
		}
	}
	return NULL;
}

/*
 * Odd rounds wait for the claim, which shows that none is lost. Even ones
 * withdraw at once; then a claim may or may not have come before.
 */
static void *publish_rounds(void *arg)
{
	uint32_t owner = *(uint32_t *)arg;
	uint32_t published = 0;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint32_t before = pin_load_acquire_u32(&claims[owner]);

		pin_idle_publish(&idle, owner * STRIDE);
		published++;
		while (i % 2 == 1 && pin_load_acquire_u32(&claims[owner]) == before) {
			sched_yield();
		}
		pin_idle_withdraw(&idle, owner * STRIDE);
	}
	/*
	 * Claims of withdrawn rounds may still be on their way to the counter.
	 */
	if (pin_load_acquire_u32(&claims[owner]) > published) {
		pin_fetch_add_acq_rel_u32(&stray_count, 1);
	}
	pin_fetch_add_acq_rel_u32(&owners_left, UINT32_MAX);
	return NULL;
}

static void check_alone(uint32_t worker_count)
{
	pin_idle_init(&idle, worker_count);
	expect_number("claim of an empty set", PIN_IDLE_NONE, pin_idle_claim(&idle));
	for (uint32_t i = worker_count; i > 0; i--) {
		pin_idle_publish(&idle, i - 1);
	}
	expect_number("count", worker_count, pin_idle_count(&idle));
	pin_idle_withdraw(&idle, worker_count / 2);
	pin_idle_withdraw(&idle, worker_count / 2);
	for (uint32_t i = 0; i < worker_count; i++) {
		if (i != worker_count / 2 && !expect_number("lowest", i, pin_idle_claim(&idle))) {
			return;
		}
	}
	expect_number("count when all are claimed", 0, pin_idle_count(&idle));
}

int main(void)
{
	pthread_t threads[OWNERS + CLAIMERS];
	uint32_t numbers[OWNERS];

	check_alone(1);
	check_alone(63);
	check_alone(64);
	check_alone(65);
	check_alone(PIN_IDLE_WORKERS_MAX);
	pin_idle_init(&idle, OWNERS * STRIDE);
	pin_store_release_u32(&owners_left, OWNERS);
	for (uint32_t i = 0; i < OWNERS + CLAIMERS; i++) {
		if (i < OWNERS) {
			numbers[i] = i;
		}
		expect_ready("thread",
			pthread_create(&threads[i], NULL,
				i < OWNERS ? publish_rounds : claim_until_done,
				i < OWNERS ? &numbers[i] : NULL) == 0);
	}
	for (uint32_t i = 0; i < OWNERS + CLAIMERS; i++) {
		pthread_join(threads[i], NULL);
	}
	expect_number("claims of nobody's bit or beyond those published", 0,
		pin_load_acquire_u32(&stray_count));
	for (uint32_t i = 0; i < OWNERS; i++) {
		uint32_t count = pin_load_acquire_u32(&claims[i]);

		expect_true("claims are at most those published", count <= ROUNDS);
		expect_true("claims are at least those waited for", count >= ROUNDS / 2);
	}
	expect_number("bits left", 0, pin_idle_count(&idle));
	return expect_status();
}

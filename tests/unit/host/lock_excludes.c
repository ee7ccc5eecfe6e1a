/* SPDX-License-Identifier: MIT */
/*
 * Goal: one holder at a time, whose writes the next one sees; a sleeper is
 * woken.
 * Method: threads change two plain variables together under the lock, some
 * yielding inside it so that others must sleep; the sums must come out.
 */
#include "runtime/host/host.h"
#include "tests/support/expect.h"
#include "tests/support/rounds.h"
#include "tests/support/runtimes.h"

enum {
	THREADS = 4,
	ROUNDS = 50000,
	ROUNDS_LEAST = 1000,
	ROUNDS_SECONDS = 8,
	LIMIT_SECONDS = 60,
};

static struct pin_lock lock;
static uint64_t first;
static uint64_t second;
static uint64_t torn_count;
static struct rounds rounds;

static void *add_rounds(void *arg)
{
	uint32_t *made = arg;

	for (uint32_t i = 0; rounds_go_on(&rounds, i); i++) {
		pin_lock_acquire(&lock, &pin_host_linux);
		torn_count += first == second ? 0 : 1;
		first++;
		if (i % 64 == 0) {
			pin_host_linux.yield();
		}
		second++;
		pin_lock_release(&lock, &pin_host_linux);
		(*made)++;
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	uint32_t made[THREADS] = {0};
	uint64_t sum = 0;

	runtimes_watchdog(LIMIT_SECONDS);
	rounds = rounds_begin(ROUNDS, ROUNDS_LEAST, ROUNDS_SECONDS);
	for (int i = 0; i < THREADS; i++) {
		expect_ready(
			"thread", pthread_create(&threads[i], NULL, add_rounds, &made[i]) == 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		sum += made[i];
	}
	expect_number("first", (long long)sum, (long long)first);
	expect_number("second", (long long)sum, (long long)second);
	expect_number("times a holder saw another's half", 0, (long long)torn_count);
	expect_number("the word when free", 0, pin_load_acquire_u32(&lock.word));
	return expect_status();
}

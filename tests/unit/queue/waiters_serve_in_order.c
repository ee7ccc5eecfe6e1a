/* SPDX-License-Identifier: MIT */
/*
 * Goal: waiters are served in the order in which they queued, whatever they
 * want, the oldest holds up the others, a waiter that leaves strands none; a
 * thread waits until its deadline at most; and nothing is lost among many
 * threads with variable amounts. BP-28, W6. Hazard that others met: a waiter
 * that has left is served all the same, and later ones are not.
 * Method: waiters that are no threads note the order in which they are served;
 * then threads take and give random amounts with short deadlines, and at the
 * end all units must be back.
 */
#include "runtime/base/base.h"
#include "runtime/queue/wait_queue.h"
#include "tests/support/expect.h"
#include "tests/support/random.h"
#include "tests/support/rounds.h"
#include "tests/support/runtimes.h"
#include "tests/support/units.h"

#include <errno.h>

enum {
	QUEUE = 4,
	THREADS = 4,
	ROUNDS = 5000,
	ROUNDS_LEAST = 100,
	ROUNDS_SECONDS = 10,
	UNITS = 6,
	LIMIT_SECONDS = 60,
};

static struct pin_waiters waiters;
static struct pin_waiter queue[QUEUE];
static uint32_t told[QUEUE];
static uint32_t told_count;

static void give(uint32_t amount)
{
	pin_fetch_add_acq_rel_u32(&units, amount);
	if (pin_waiters_any(&waiters)) {
		pin_waiters_serve(&waiters);
	}
}

static void over(struct pin_waiter *waiter)
{
	told[told_count] = (uint32_t)(waiter - queue);
	told_count++;
	/* Its owner may use it for something else at once. */
	waiter->next = NULL;
}

static void enter(uint32_t index, uint64_t demand)
{
	pin_waiter_init(&queue[index], demand, over);
	expect_true("had at once", !pin_waiters_try(&waiters, &queue[index]));
	pin_waiters_enter(&waiters, &queue[index]);
}

static void expect_told(const char *what, uint32_t count, uint32_t newest)
{
	if (expect_number(what, count, told_count) && count > 0) {
		expect_number(what, newest, told[count - 1]);
	}
}

static void check_order(enum pin_waiters_fences fences)
{
	struct pin_waiter late;

	told_count = 0;
	pin_store_release_u32(&units, 0);
	pin_waiters_init(&waiters, &pin_host_linux, units_take, NULL, fences);
	expect_true("nobody yet", !pin_waiters_any(&waiters));
	enter(0, 3);
	enter(1, 1);
	enter(2, 1);
	enter(3, 2);
	give(2);
	expect_told("the oldest wants more", 0, 0);
	pin_waiter_init(&late, 1, NULL);
	expect_true("nor does who comes later get it", !pin_waiters_try(&waiters, &late));
	expect_number("or by waiting", -ETIME, pin_waiters_wait(&waiters, &late, 0));
	expect_number("it is left", 2, pin_load_acquire_u32(&units));
	give(2);
	expect_told("the oldest and the next", 2, 1);
	give(1);
	expect_told("the one after", 3, 2);
	expect_number("what was taken", 1, (long long)queue[2].value.words[0]);
	expect_true("served, too late to leave", !pin_waiter_withdraw(&queue[2]));
	enter(0, 1);
	give(1);
	expect_told("held up by an older one", 3, 2);
	expect_true("leaves", pin_waiter_withdraw(&queue[3]));
	expect_told("no more held up", 4, 0);
	expect_true("left already", !pin_waiter_withdraw(&queue[3]));
	expect_true("no waiter left", !pin_waiters_any(&waiters));
	expect_number("units left", 0, pin_load_acquire_u32(&units));
}

static void check_deadlines(void)
{
	struct pin_waiter waiter;
	uint64_t deadline_ns = pin_host_linux.now_ns() + 2000000;

	pin_waiter_init(&waiter, 1, NULL);
	expect_number("0", -ETIME, pin_waiters_wait(&waiters, &waiter, 0));
	expect_number("soon", -ETIME, pin_waiters_wait(&waiters, &waiter, deadline_ns));
	expect_true("not before", pin_host_linux.now_ns() >= deadline_ns);
	give(1);
	expect_number("0, but it is there", 0, pin_waiters_wait(&waiters, &waiter, 0));
}

/* ---- many threads ---- */

static uint64_t seed;
static struct rounds rounds;
static struct pin_atomic_u32 bad_count;

static void *run_thread(void *arg)
{
	struct random_source source = {.state = seed + (uintptr_t)arg};

	for (uint32_t i = 0; rounds_go_on(&rounds, i); i++) {
		uint32_t demand = 1 + (uint32_t)random_below(&source, UNITS);
		uint64_t deadline_ns = random_below(&source, 2) == 0
			? PIN_NO_DEADLINE
			: pin_host_linux.now_ns() + random_below(&source, 50000);
		struct pin_waiter waiter;

		pin_waiter_init(&waiter, demand, NULL);
		if (pin_waiters_wait(&waiters, &waiter, deadline_ns) != 0) {
			continue;
		}
		if (waiter.value.words[0] != demand) {
			pin_fetch_add_acq_rel_u32(&bad_count, 1);
		}
		if (i % 16 == 0) {
			pin_host_linux.yield();
		}
		give(demand);
	}
	return NULL;
}

static void check_many(enum pin_waiters_fences fences)
{
	pthread_t threads[THREADS];

	rounds = rounds_begin(ROUNDS, ROUNDS_LEAST, ROUNDS_SECONDS);
	pin_store_release_u32(&units, UNITS);
	pin_waiters_init(&waiters, &pin_host_linux, units_take, NULL, fences);
	for (uintptr_t i = 0; i < THREADS; i++) {
		expect_ready(
			"thread", pthread_create(&threads[i], NULL, run_thread, (void *)i) == 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
	}
	expect_number("wrong values", 0, pin_load_acquire_u32(&bad_count));
	expect_number("units", UNITS, pin_load_acquire_u32(&units));
	expect_true("no waiter", !pin_waiters_any(&waiters));
}

int main(void)
{
	struct random_source source;

	runtimes_watchdog(LIMIT_SECONDS);
	seed = random_begin(&source);
	check_order(PIN_WAITERS_EVEN);
	check_order(PIN_WAITERS_RELEASE_LIGHT);
	check_deadlines();
	check_many(PIN_WAITERS_EVEN);
	check_many(PIN_WAITERS_RELEASE_LIGHT);
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: waiters are served in the order in which they queued, whatever they
 * want, the oldest holds up the others, a waiter that leaves strands none; a
 * thread waits until its deadline at most; and nothing is lost among many
 * threads with variable amounts. Waiters whose wish ends leave the queue from
 * wherever they are; two queues may share a lock. BP-28, W6. Hazard that others
 * met: a waiter that has left is served all the same, and later ones are not.
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

/* ---- in steps, under one lock ---- */

/* Ends those that want at least as much. */
static bool ends_large(void *arg, uint64_t demand, struct pin_waiters_value *out_value)
{
	expect_true("its argument", arg == &units);
	out_value->words[1] = 70 + demand;
	return demand >= 3;
}

static void expect_served(
	const char *what, const struct pin_waiters_served *served, const uint32_t *order)
{
	const struct pin_waiter *waiter = served->first;
	const struct pin_waiter *last = NULL;

	for (; *order < QUEUE; order++) {
		if (!expect_true(what, waiter == &queue[*order])) {
			return;
		}
		last = waiter;
		waiter = waiter->next;
	}
	expect_true(what, waiter == NULL && served->last == last);
}

/* Those that end are taken out wherever they are; others stay in order. */
static void check_ended(void)
{
	struct pin_waiters_served served = {0};
	struct pin_waiters_served none = {0};

	told_count = 0;
	pin_store_release_u32(&units, 0);
	pin_waiters_init(&waiters, &pin_host_linux, units_take, &units, PIN_WAITERS_LOCKED);
	enter(0, 3);
	enter(1, 1);
	enter(2, 4);
	enter(3, 2);
	pin_waiters_lock(&waiters);
	expect_true("too little", !pin_waiters_pop_served(&waiters, &none));
	pin_waiters_pop_ended(&waiters, ends_large, &served);
	expect_served("ended", &served, (const uint32_t[]){0, 2, QUEUE});
	expect_number("its value", 73, (long long)queue[0].value.words[1]);
	expect_true("one left first", waiters.oldest == &queue[1]);
	expect_true("one left last", waiters.newest == &queue[3]);
	expect_number("left", 2, pin_load_relaxed_u32(&waiters.count));
	pin_waiters_pop_ended(&waiters, ends_large, &none);
	expect_served("once", &none, (const uint32_t[]){QUEUE});
	expect_number("not told yet", 0, told_count);
	pin_waiters_unlock(&waiters);
	expect_number("told", 2, pin_waiters_tell(&pin_host_linux, &served));
	expect_told("in order", 2, 2);
	give(1);
	expect_told("the next", 3, 1);
	give(2);
	expect_told("the last", 4, 3);
}

/* The two ends of one thing: those of both are served in one step. */
static void check_shared_lock(void)
{
	struct pin_waiters other;
	struct pin_waiters_served served = {0};

	told_count = 0;
	pin_store_release_u32(&units, 0);
	pin_waiters_init(&waiters, &pin_host_linux, units_take, &units, PIN_WAITERS_LOCKED);
	pin_waiters_init(&other, &pin_host_linux, units_take, &units, PIN_WAITERS_LOCKED);
	expect_true("its own lock", other.lock == &other.own_lock);
	pin_waiters_share_lock(&other, &waiters);
	expect_true("the other's lock", other.lock == &waiters.own_lock);
	enter(0, 1);
	enter(1, 2);
	pin_waiter_init(&queue[2], 1, over);
	pin_waiters_enter(&other, &queue[2]);
	expect_number("in the other", 1, pin_load_relaxed_u32(&other.count));
	pin_waiters_lock(&other);
	pin_store_release_u32(&units, 2);
	expect_true("some", pin_waiters_pop_served(&waiters, &served));
	expect_true("of the other too", pin_waiters_pop_served(&other, &served));
	pin_waiters_unlock(&other);
	expect_served("of both", &served, (const uint32_t[]){0, 2, QUEUE});
	expect_number("told", 2, pin_waiters_tell(&pin_host_linux, &served));
	expect_told("of both", 2, 2);
	pin_store_release_u32(&units, 2);
	expect_number("served", 1, pin_waiters_serve(&waiters));
	expect_number("none of the other", 0, pin_waiters_serve(&other));
	expect_true("never entered", !pin_waiter_withdraw_from(&waiters, &queue[3]));
}

static bool fence_fails(void)
{
	return false;
}

/* Without a fence for all threads those who give back have their own. */
static void check_fences(void)
{
	struct pin_host host = pin_host_linux;

	host.fence_all = fence_fails;
	pin_waiters_init(&waiters, &host, units_take, NULL, PIN_WAITERS_RELEASE_LIGHT);
	expect_number("no light ones", PIN_WAITERS_EVEN, waiters.fences);
	pin_waiters_init(&waiters, &host, units_take, NULL, PIN_WAITERS_LOCKED);
	expect_number("as asked", PIN_WAITERS_LOCKED, waiters.fences);
	if (pin_host_linux.fence_all()) {
		pin_waiters_init(
			&waiters, &pin_host_linux, units_take, NULL, PIN_WAITERS_RELEASE_LIGHT);
		expect_number("light", PIN_WAITERS_RELEASE_LIGHT, waiters.fences);
	}
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
	check_ended();
	check_shared_lock();
	check_fences();
	check_many(PIN_WAITERS_EVEN);
	check_many(PIN_WAITERS_RELEASE_LIGHT);
	return expect_status();
}

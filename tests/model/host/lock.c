/* SPDX-License-Identifier: MIT */
/*
 * Goal: one holder at a time, who sees what the last one wrote, and no waiter
 * sleeps on a free lock: [LOCK-1].
 * Method: threads count up in plain loads and stores under the lock; a lost
 * count or two threads inside fail, a lost wake is a deadlock.
 */
#include "runtime/base/base.h"
#include "runtime/host/host.h"
#include "tests/model/explorer.h"

enum { THREADS_MAX = 3 };

static struct pin_lock lock;
static struct pin_atomic_u32 count;
static uint32_t inside_count;

static void count_up(void *arg)
{
	const uint32_t *rounds = arg;

	for (uint32_t i = 0; i < *rounds; i++) {
		pin_lock_acquire(&lock, &pin_host_linux);
		inside_count++;
		MODEL_CHECK(inside_count == 1);
		/* Relaxed: only the lock can make the other's store seen. */
		pin_store_relaxed_u32(&count, pin_load_relaxed_u32(&count) + 1);
		inside_count--;
		pin_lock_release(&lock, &pin_host_linux);
	}
}

static void run(uint32_t thread_count, uint32_t rounds)
{
	uint32_t threads[THREADS_MAX];

	lock = (struct pin_lock){0};
	count = (struct pin_atomic_u32){0};
	inside_count = 0;
	for (uint32_t i = 0; i < thread_count; i++) {
		threads[i] = model_thread_start("counter", count_up, &rounds);
	}
	for (uint32_t i = 0; i < thread_count; i++) {
		model_thread_join(threads[i]);
	}
	MODEL_CHECK(pin_load_relaxed_u32(&count) == thread_count * rounds);
	MODEL_CHECK(lock.word.value == 0);
}

static void run_two(void)
{
	run(2, 2);
}

static void run_three(void)
{
	run(3, 1);
}

static const struct model_mutant mutants[] = {
	{"taking it is no single step", {MODEL_TORN, "pin_lock_acquire", NULL}},
	{"releasing it releases nothing", {MODEL_RELAXED, "pin_lock_release", NULL}},
	{"taking it acquires nothing", {MODEL_RELAXED, "pin_lock_acquire", NULL}},
	{"a waiter's mark is overwritten", {MODEL_TORN, "pin_lock_release", NULL}},
	{"sleep without compare", {MODEL_NO_COMPARE, "model_futex_wait", NULL}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"two", run_two, 3, 2, 1, mutants, NULL},
	{"three", run_three, 3, 2, 1, mutants, NULL},
};

int main(void)
{
	return model_main("lock", cases, PIN_ARRAY_COUNT(cases));
}

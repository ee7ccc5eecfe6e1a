/* SPDX-License-Identifier: MIT */
/*
 * Goal: while an owner reserves the head of its queue, or is about to, thieves
 * get what they ask for, and each element is taken once: [DEQUE-4] [DEQUE-5].
 * Method: an owner fills its queue and empties it, and rests in some
 * reservations with some left; two thieves come after a random pause, long
 * enough for a reservation to have begun in many cases, and look until they get
 * something. Each element is checked off when it is taken.
 */
#include "runtime/base/base.h"
#include "runtime/queue/deque.h"
#include "tests/support/expect.h"
#include "tests/support/random.h"
#include "tests/support/tasks.h"

#include <pthread.h>
#include <sched.h>

enum {
	SLOTS = 256,
	THIEVES = 2,
	ELEMENTS = SLOTS,
	BATCHES = 200000, /* by default */
	PAUSE_MAX = 1000,
	REST_EVERY = 1000,
};

struct element {
	struct pin_link link;
	uint32_t taken_count;	       /* by its taker, unlocked: [DEQUE-1] */
	struct pin_atomic_u32 is_back; /* its owner may push it anew */
};

static struct pin_deque owned;
static struct pin_deque stolen[THIEVES];
static struct pin_atomic_u64 slots[1 + THIEVES][SLOTS];
static struct element elements[ELEMENTS];
static struct pin_atomic_u32 is_over;
static struct pin_atomic_u32 theft_count;
static uint64_t seed;
/* The owner's. */
static uint32_t reserved_rests;
static uint32_t pushed_count;

static void take(struct pin_link *link)
{
	struct element *element = PIN_CONTAINER_OF(link, struct element, link);

	element->taken_count++;
	pin_store_release_u32(&element->is_back, 1);
}

static void steal_once(struct pin_deque *own)
{
	struct pin_link *link;
	uint32_t count = pin_deque_steal(&owned, own, &link);

	if (count > 0) {
		pin_fetch_add_acq_rel_u32(&theft_count, 1);
		take(link);
	}
	while ((link = pin_deque_pop(own)) != NULL) {
		take(link);
	}
}

static void *steal_all(void *arg)
{
	struct pin_deque *own = arg;
	struct random_source source = {.state = seed + (uint64_t)(own - stolen)};

	while (pin_load_acquire_u32(&is_over) == 0) {
		uint64_t pause = random_below(&source, PAUSE_MAX);

		for (uint64_t i = 0; i < pause; i++) {
			pin_cpu_relax();
		}
		steal_once(own);
		sched_yield();
	}
	return NULL;
}

/* Until a thief has revoked the reservation while its owner does nothing. */
static void await_theft(void)
{
	uint32_t before = pin_load_acquire_u32(&theft_count);

	reserved_rests++;
	while (pin_load_acquire_u32(&theft_count) == before && pin_deque_count(&owned) > 0) {
		sched_yield();
	}
}

/* As many as there is room for: a slow thief keeps the slots it has claimed. */
static uint32_t push_free(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < ELEMENTS; i++) {
		if (pin_load_acquire_u32(&elements[i].is_back) == 0) {
			continue;
		}
		pin_store_relaxed_u32(&elements[i].is_back, 0);
		if (!pin_deque_push(&owned, &elements[i].link)) {
			pin_store_relaxed_u32(&elements[i].is_back, 1);
			break;
		}
		count++;
	}
	return count;
}

static void run_owner(uint32_t batches)
{
	struct pin_link *link;
	uint32_t busy_count = 0; /* batches since the last rest */

	for (uint32_t i = 0; i < batches; i++) {
		uint32_t count = push_free();

		pushed_count += count;
		busy_count++;
		if (busy_count >= REST_EVERY && count > 0 && owned.is_reserved) {
			await_theft();
			busy_count = 0;
		}
		while ((link = pin_deque_pop(&owned)) != NULL) {
			take(link);
		}
	}
}

static void check_all(void)
{
	uint32_t taken_count = 0;

	for (uint32_t i = 0; i < ELEMENTS; i++) {
		expect_number("back", 1, pin_load_acquire_u32(&elements[i].is_back));
		taken_count += elements[i].taken_count;
	}
	expect_number("taken", pushed_count, taken_count);
	expect_true("it has rested in a reservation", reserved_rests > 0);
	printf("%u thefts, %u rests in a reservation\n", pin_load_acquire_u32(&theft_count),
		reserved_rests);
}

int main(void)
{
	pthread_t threads[THIEVES];
	struct random_source source;

	if (!pin_host_linux.fence_all()) {
		puts("membarrier(2) cannot be had, so nothing is ever reserved");
		return 77;
	}
	seed = random_begin(&source);
	pin_deque_init(&owned, slots[0], SLOTS, PIN_DEQUE_FIFO);
	pin_deque_allow_reservation(&owned, &pin_host_linux);
	for (uint32_t i = 0; i < ELEMENTS; i++) {
		pin_store_relaxed_u32(&elements[i].is_back, 1);
	}
	for (uint32_t i = 0; i < THIEVES; i++) {
		pin_deque_init(&stolen[i], slots[1 + i], SLOTS, PIN_DEQUE_FIFO);
		expect_ready(
			"thread", pthread_create(&threads[i], NULL, steal_all, &stolen[i]) == 0);
	}
	run_owner(tasks_iterations(BATCHES));
	pin_store_release_u32(&is_over, 1);
	for (uint32_t i = 0; i < THIEVES; i++) {
		pthread_join(threads[i], NULL);
	}
	check_all();
	return expect_status();
}

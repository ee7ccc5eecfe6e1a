/* SPDX-License-Identifier: MIT */
/*
 * Goal: an element pushed to a worker's queue is taken exactly once, by owner
 * or thief, whatever they are doing to each other, and the taker sees all
 * writes before the push: [DEQUE-1] [DEQUE-2] [DEQUE-3] [DEQUE-4] [DEQUE-5]
 * [DEQUE-6]. AS-33, C3, EX-3. Hazards that others met: half stolen while the
 * owner pops, and a slot that is overwritten while it is read.
 * Method: an owner pushes and pops across the ring's end, thieves steal into
 * queues of their own; each element is checked off when it is taken, and all of
 * them have to be at the end. Both orders, and FIFO with a head that the owner
 * has reserved, or reserves again whenever it may, also depth first. The ring
 * has four slots, so that it wraps, fills and overflows.
 */
#include "tests/model/explorer.h"
#include "tests/model/queue/deque_model.h"

#include <string.h>

enum { ELEMENTS = 6, SLOTS = 4, THIEVES_MAX = 2 };

/* Written before the push by a plain store: the explorer's own memory. */
struct element {
	struct pin_link link;
	struct pin_atomic_u32 is_written;
	uint32_t take_count;
};

static struct pin_deque owned;
static struct pin_deque stolen[THIEVES_MAX];
static struct pin_atomic_u64 slots[1 + THIEVES_MAX][SLOTS];
static struct element elements[ELEMENTS];
static uint32_t pushed_count;

static void take(struct pin_link *link)
{
	struct element *element = PIN_CONTAINER_OF(link, struct element, link);

	element->take_count++;
	MODEL_CHECK(element->take_count == 1);
	MODEL_CHECK(pin_load_relaxed_u32(&element->is_written) == 1);
}

static void push(void)
{
	struct element *element = &elements[pushed_count];

	pin_store_relaxed_u32(&element->is_written, 1);
	/* By either way: every second is at the mark. */
	pin_deque_set_mark(&owned, pushed_count % 2);
	if (pin_deque_push_known(&owned, &element->link) ||
		pin_deque_push(&owned, &element->link)) {
		pushed_count++;
	}
}

static void pop(void)
{
	struct pin_link *link;

	/* Where reservations are allowed each claim is followed by one. */
	owned.calm_count = PIN_DEQUE_CALM_POPS;
	link = pin_deque_pop(&owned);

	if (link != NULL) {
		take(link);
	}
}

static void pop_half(void)
{
	struct pin_list half = {0};
	uint32_t count = pin_deque_pop_half(&owned, &half);
	struct pin_link *link;

	for (link = pin_list_pop(&half); link != NULL; link = pin_list_pop(&half)) {
		take(link);
		count--;
	}
	MODEL_CHECK(count == 0);
}

static struct pin_atomic_u64 *slots_of(uint32_t queue)
{
	memset(slots[queue], 0, sizeof(slots[queue]));
	return slots[queue];
}

static void begin(enum pin_deque_order order, uint32_t thief_count)
{
	memset(elements, 0, sizeof(elements));
	pushed_count = 0;
	pin_deque_init(&owned, slots_of(0), SLOTS, order);
	for (uint32_t i = 0; i < thief_count; i++) {
		pin_deque_init(&stolen[i], slots_of(1 + i), SLOTS, order);
	}
}

static void steal(void *arg)
{
	struct pin_deque *own = arg;
	struct pin_link *link;

	/* The mutant: several at once, whatever the order. */
	if (model_is_spoilt(MODEL_SKIP, __func__, "pin_deque_steal")
			? model_deque_steal_half(&owned, own, &link) > 0
			: pin_deque_steal(&owned, own, &link) > 0) {
		take(link);
	}
}

static void steal_twice(void *arg)
{
	struct pin_deque *own = arg;
	struct pin_link *link;

	steal(own);
	/* As a worker does: first what it has. */
	for (link = pin_deque_pop(own); link != NULL; link = pin_deque_pop(own)) {
		take(link);
	}
	steal(own);
}

static void end(const uint32_t *threads, uint32_t thief_count)
{
	struct pin_link *link;
	uint32_t taken = 0;

	for (uint32_t i = 0; i < thief_count; i++) {
		model_thread_join(threads[i]);
		for (link = pin_deque_pop(&stolen[i]); link != NULL;
			link = pin_deque_pop(&stolen[i])) {
			take(link);
		}
	}
	for (link = pin_deque_pop(&owned); link != NULL; link = pin_deque_pop(&owned)) {
		take(link);
	}
	for (uint32_t i = 0; i < ELEMENTS; i++) {
		taken += elements[i].take_count;
	}
	MODEL_CHECK(taken == pushed_count);
	MODEL_CHECK(pin_deque_count(&owned) == 0);
	/* A claim that was not released would take some of it for good. */
	MODEL_CHECK(pin_deque_room(&owned) == SLOTS);
}

/* The owner against its thieves, for the elements in the queue. */
static void race(uint32_t thief_count, void (*owner)(void))
{
	uint32_t threads[THIEVES_MAX];

	for (uint32_t i = 0; i < thief_count; i++) {
		threads[i] = model_thread_start(
			"thief", thief_count == 1 ? steal_twice : steal, &stolen[i]);
	}
	owner();
	end(threads, thief_count);
}

static void run(enum pin_deque_order order, uint32_t thief_count, void (*owner)(void))
{
	begin(order, thief_count);
	push();
	push();
	push();
	race(thief_count, owner);
}

/* Pushes into slots that a thief may still be reading. */
static void pop_and_wrap(void)
{
	pop();
	push();
	push();
	pop();
}

static void fill_and_overflow(void)
{
	push();
	pop_half();
	push();
}

static void pop_all(void)
{
	pop();
	pop();
	pop();
}

static void run_fifo(void)
{
	run(PIN_DEQUE_FIFO, 1, pop_and_wrap);
}

static void run_fifo_two(void)
{
	run(PIN_DEQUE_FIFO, 2, pop_and_wrap);
}

static void run_fifo_overflow(void)
{
	run(PIN_DEQUE_FIFO, 1, fill_and_overflow);
}

/* The reservation begins before there is a thief. */
static void run_held(uint32_t thief_count, void (*owner)(void))
{
	begin(PIN_DEQUE_FIFO, thief_count);
	pin_deque_allow_reservation(&owned, &pin_host_linux);
	push();
	pop();
	MODEL_CHECK(owned.is_reserved);
	push();
	push();
	race(thief_count, owner);
}

static void run_reservation(void)
{
	run_held(1, pop_and_wrap);
}

static void run_reservation_two(void)
{
	run_held(2, pop_and_wrap);
}

static void run_reservation_overflow(void)
{
	run_held(1, fill_and_overflow);
}

/*
 * The queue was full, so the owner takes from both ends. The mutant: the
 * reservation begins when the oldest has been taken, rather than in that step.
 */
static void pop_deep(void)
{
	if (model_is_spoilt(MODEL_SKIP, __func__, "begin_deep_reservation") && !owned.is_reserved) {
		owned.takes_newest = false;
		pop();
		owned.takes_newest = true;
		if (owned.is_reserved) {
			pin_store_relaxed_u32(&owned.is_asked, PIN_DEQUE_DEEP);
		}
	} else {
		pop();
	}
}

/* The oldest has its turn after another. */
static void pop_from_both_ends(void)
{
	pop();
	owned.newest_count = PIN_DEQUE_NEWEST_MAX;
	pop();
	push();
	pop();
}

static void pop_deep_and_wrap(void)
{
	pop_deep();
	pop_deep();
	push();
	pop_deep();
}

static void run_deep_by(uint32_t thief_count, void (*owner)(void))
{
	begin(PIN_DEQUE_FIFO, thief_count);
	pin_deque_allow_reservation(&owned, &pin_host_linux);
	for (uint32_t i = 0; i < SLOTS; i++) {
		push();
	}
	pin_deque_go_deep(&owned);
	MODEL_CHECK(owned.takes_newest);
	race(thief_count, owner);
}

static void run_deep(void)
{
	run_deep_by(1, pop_from_both_ends);
}

static void run_deep_two(void)
{
	run_deep_by(2, pop_deep_and_wrap);
}

static void run_deep_overflow(void)
{
	run_deep_by(1, fill_and_overflow);
}

static void run_lifo(void)
{
	run(PIN_DEQUE_LIFO, 1, pop_all);
}

static void run_lifo_two(void)
{
	run(PIN_DEQUE_LIFO, 2, pop_all);
}

static void run_lifo_overflow(void)
{
	run(PIN_DEQUE_LIFO, 1, fill_and_overflow);
}

static const struct model_mutant fifo_mutants[] = {
	{"the owner's claim is no single step", {MODEL_TORN, "claim_own", NULL}},
	{"the thief's claim is no single step", {MODEL_TORN, "steal_half", NULL}},
	{"the claim of a single one is no single step", {MODEL_TORN, "claim_single", NULL}},
	{"slots are not released with the tail", {MODEL_RELAXED, "pin_deque_put", NULL}},
	{"the release of a claim is no single step", {MODEL_TORN, "release_claim", NULL}},
	{"the release of a claim is tried once",
		{MODEL_SKIP, "release_claim", "pin_cas_seq_cst_u64"}},
	{.name = NULL},
};

static const struct model_mutant reservation_mutants[] = {
	{"no fence between the two looks", {MODEL_DROP_FENCE, "model_fence_all", NULL}},
	{"a reserved pop ends without a release", {MODEL_RELAXED, "pin_deque_pop_fifo", NULL}},
	{"the thief's end of a reservation is no single step",
		{MODEL_TORN, "end_reservation", NULL}},
	{"the owner's end of a reservation is no single step",
		{MODEL_TORN, "leave_reservation", NULL}},
	{"the begin of a reservation is no single step", {MODEL_TORN, "begin_reservation", NULL}},
	{.name = NULL},
};

static const struct model_mutant deep_mutants[] = {
	{"no fence between the two looks", {MODEL_DROP_FENCE, "model_fence_all", NULL}},
	{"a deep pop ends without a release", {MODEL_RELAXED, "pop_deep", NULL}},
	{"the begin of a deep reservation is no single step",
		{MODEL_TORN, "begin_deep_reservation", NULL}},
	{"the thief's claim is no single step", {MODEL_TORN, "steal_half", NULL}},
	{.name = NULL},
};

static const struct model_mutant deep_two_mutants[] = {
	{"the reservation begins after the oldest",
		{MODEL_SKIP, "pop_deep", "begin_deep_reservation"}},
	{.name = NULL},
};

static const struct model_mutant lifo_mutants[] = {
	{"no fence in the owner's pop", {MODEL_DROP_FENCE, "pin_deque_pop_newest", NULL}},
	{"no fence in the thief's", {MODEL_DROP_FENCE, "take_oldest", NULL}},
	{"the thief's claim is no single step", {MODEL_TORN, "take_oldest", NULL}},
	{"the owner's last one is no single step", {MODEL_TORN, "pin_deque_pop_newest", NULL}},
	{"half is stolen in one step", {MODEL_SKIP, "steal", "pin_deque_steal"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"fifo", run_fifo, 3, 1, 0, fifo_mutants, NULL},
	{"fifo_two_thieves", run_fifo_two, 2, 1, 0, NULL, NULL},
	{"fifo_overflow", run_fifo_overflow, 3, 1, 0, NULL, NULL},
	{"reservation", run_reservation, 3, 1, 0, reservation_mutants, NULL},
	{"reservation_two_thieves", run_reservation_two, 2, 1, 0, NULL, NULL},
	{"reservation_overflow", run_reservation_overflow, 3, 1, 0, NULL, NULL},
	{"deep", run_deep, 3, 1, 0, deep_mutants, NULL},
	{"deep_two_thieves", run_deep_two, 2, 1, 0, deep_two_mutants, NULL},
	{"deep_overflow", run_deep_overflow, 3, 1, 0, NULL, NULL},
	{"lifo", run_lifo, 3, 1, 0, lifo_mutants, NULL},
	{"lifo_two_thieves", run_lifo_two, 2, 1, 0, NULL, NULL},
	{"lifo_overflow", run_lifo_overflow, 3, 1, 0, NULL, NULL},
};

int main(void)
{
	return model_main("deque", cases, PIN_ARRAY_COUNT(cases));
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: as tests/model/queue/deque.c, with plain memory: tasks pushed to a
 * worker's queue are taken once, and the taker has each for itself. AS-33, C3.
 * Hazard that others met: Chase-Lev's orders on weak memory.
 * Method: an owner pushes and pops across the end of four slots while thieves
 * steal into queues of their own. Each element's number is written by a plain
 * store before the push and once more by its taker.
 */
#include "tests/model/relacy/atomics.h"

#include "runtime/queue/deque.c"

#include "tests/model/relacy/engine.h"

enum { ELEMENTS = 5, SLOTS = 4 };

struct element {
	struct pin_link link;
	model_plain<uint32_t> take_count;
};

struct queue {
	struct pin_deque deque;
	struct pin_atomic_u64 slots[SLOTS];

	explicit queue(enum pin_deque_order order)
	{
		pin_deque_init(&deque, slots, SLOTS, order);
	}
};

/* `may_reserve`: the owner reserves the head again whenever it may. */
template <enum pin_deque_order order, unsigned thieves, bool may_reserve = false> struct scene {
	queue owned = queue(order);
	queue stolen[2] = {queue(order), queue(order)};
	struct element elements[ELEMENTS];
	uint32_t pushed_count = 0;
	uint32_t taken_count = 0;

	void take(struct pin_link *link)
	{
		struct element *element = PIN_CONTAINER_OF(link, struct element, link);

		element->take_count = element->take_count + 1;
		MODEL_CHECK(element->take_count == 1);
		taken_count++;
	}

	void push()
	{
		struct element *element = &elements[pushed_count];

		element->take_count = 0;
		if (pin_deque_push(&owned.deque, &element->link)) {
			pushed_count++;
		}
	}

	scene()
	{
		if (may_reserve) {
			pin_deque_allow_reservation(&owned.deque, &relacy_host);
		}
	}

	bool pop(struct pin_deque *deque)
	{
		struct pin_link *link;

		deque->calm_count = PIN_DEQUE_CALM_POPS;
		link = pin_deque_pop(deque);

		if (link != NULL) {
			take(link);
		}
		return link != NULL;
	}

	/* As a worker does: first what it has. */
	void steal(struct pin_deque *own)
	{
		struct pin_link *link;

		while (pop(own)) {
		}
		if (pin_deque_steal(&owned.deque, own, &link) > 0) {
			take(link);
		}
	}

	void overflow()
	{
		struct pin_list half = {};
		uint32_t count = pin_deque_pop_half(&owned.deque, &half);

		for (; count > 0; count--) {
			take(pin_list_pop(&half));
		}
	}

	void thread(unsigned index)
	{
		if (index > 0) {
			steal(&stolen[index - 1].deque);
			steal(&stolen[index - 1].deque);
			return;
		}
		push();
		push();
		push();
		pop(&owned.deque);
		pop(&owned.deque);
		push();
		push();
		pop(&owned.deque);
		overflow();
		while (pop(&owned.deque)) {
		}
	}

	void finish()
	{
		while (pop(&owned.deque)) {
		}
		for (unsigned i = 0; i < thieves; i++) {
			while (pop(&stolen[i].deque)) {
			}
		}
		MODEL_CHECK(taken_count == pushed_count);
		MODEL_CHECK(pin_deque_count(&owned.deque) == 0);
	}
};

static const struct model_mutant fifo_mutants[] = {
	{"the owner's claim is no single step", {MODEL_TORN, "claim_own", NULL}},
	{"the thief's claim is no single step", {MODEL_TORN, "steal_half", NULL}},
	{"the claim of a single one is no single step", {MODEL_TORN, "claim_single", NULL}},
	{"slots are not released with the tail", {MODEL_RELAXED, "pin_deque_put", NULL}},
	{"the release of a claim is no single step", {MODEL_TORN, "release_claim", NULL}},
	{NULL, {}},
};

static const struct model_mutant reservation_mutants[] = {
	{"no fence between the two looks", {MODEL_DROP_FENCE, "relacy_fence_all", NULL}},
	{"a reserved pop ends without a release", {MODEL_RELAXED, "pin_deque_pop_fifo", NULL}},
	{"the thief's end of a reservation is no single step", {MODEL_TORN, "end_reservation", NULL}},
	{"the owner's end of a reservation is no single step", {MODEL_TORN, "leave_reservation", NULL}},
	{"the begin of a reservation is no single step", {MODEL_TORN, "begin_reservation", NULL}},
	{NULL, {}},
};

/* The others need longer executions here, and are caught with one thief. */
static const struct model_mutant reservation_two_thieves_mutants[] = {
	{"no fence between the two looks", {MODEL_DROP_FENCE, "relacy_fence_all", NULL}},
	{"the begin of a reservation is no single step", {MODEL_TORN, "begin_reservation", NULL}},
	{NULL, {}},
};

static const struct model_mutant lifo_mutants[] = {
	{"no fence in the owner's pop", {MODEL_DROP_FENCE, "pin_deque_pop_newest", NULL}},
	{"no fence in the thief's", {MODEL_DROP_FENCE, "take_oldest", NULL}},
	{"the thief's claim is no single step", {MODEL_TORN, "take_oldest", NULL}},
	{"the owner's last one is no single step", {MODEL_TORN, "pin_deque_pop_newest", NULL}},
	{NULL, {}},
};

static const struct relacy_case cases[] = {
	{"fifo", relacy_simulate<scene<PIN_DEQUE_FIFO, 1>, 2>, 300000, 2, fifo_mutants},
	{"fifo_two_thieves", relacy_simulate<scene<PIN_DEQUE_FIFO, 2>, 3>, 300000, 1, fifo_mutants},
	{"reservation", relacy_simulate<scene<PIN_DEQUE_FIFO, 1, true>, 2>, 300000, 2, reservation_mutants},
	{"reservation_two_thieves", relacy_simulate<scene<PIN_DEQUE_FIFO, 2, true>, 3>, 300000, 1,
		reservation_two_thieves_mutants},
	{"lifo", relacy_simulate<scene<PIN_DEQUE_LIFO, 1>, 2>, 300000, 2, lifo_mutants},
	{"lifo_two_thieves", relacy_simulate<scene<PIN_DEQUE_LIFO, 2>, 3>, 300000, 1, lifo_mutants},
};

int main()
{
	return relacy_main("relacy/deque", cases, PIN_ARRAY_COUNT(cases));
}

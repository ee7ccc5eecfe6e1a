/* SPDX-License-Identifier: MIT */
/*
 * Goal: what is pushed is popped once, in order, the length says what is there,
 * and list and elements are touched by one thread at a time: [INJECT-1],
 * [LOCK-1].
 * Method: two threads push, two elements and one, while a third pops twice. The
 * lock sleeps on Relacy's futex, so that a wake-up that gets lost is a
 * deadlock.
 */
#include "tests/model/relacy/atomics.h"

#include "runtime/sched/injector.c"

#include "tests/model/relacy/engine.h"

enum { ELEMENTS = 3 };

struct element {
	struct pin_link link;
	model_plain<uint32_t> pop_count;
};

struct scene {
	struct pin_injector injector;
	struct element elements[ELEMENTS];
	uint32_t popped_count = 0;
	bool has_first = false;

	scene()
	{
		pin_injector_init(&injector, &relacy_host);
	}

	void push(uint32_t first, uint32_t count)
	{
		struct pin_list list = {};

		for (uint32_t i = first; i < first + count; i++) {
			elements[i].pop_count = 0;
			pin_list_push(&list, &elements[i].link);
		}
		pin_injector_push(&injector, &list, count);
	}

	bool pop()
	{
		struct pin_list list = {};
		struct element *element;
		uint64_t left;

		if (pin_injector_pop(&injector, 1, 1, &list, &left) == 0) {
			return false;
		}
		element = PIN_CONTAINER_OF(pin_list_pop(&list), struct element, link);
		element->pop_count = element->pop_count + 1;
		MODEL_CHECK(element->pop_count == 1);
		MODEL_CHECK(left < ELEMENTS);
		/* Of the two pushed together, the first comes first. */
		has_first |= element == &elements[0];
		MODEL_CHECK(has_first || element != &elements[1]);
		popped_count++;
		return true;
	}

	void thread(unsigned index)
	{
		if (index == 0) {
			push(0, 2);
		} else if (index == 1) {
			push(2, 1);
		} else {
			pop();
			pop();
		}
	}

	void finish()
	{
		while (pop()) {
		}
		MODEL_CHECK(popped_count == ELEMENTS);
		MODEL_CHECK(pin_injector_length(&injector) == 0);
	}
};

static const struct model_twin twins[] = {
	{"the lock does not exclude", {MODEL_TORN, "pin_lock_acquire", NULL}},
	{"the lock acquires nothing", {MODEL_RELAXED, "pin_lock_acquire", NULL}},
	{"the lock releases nothing", {MODEL_RELAXED, "pin_lock_release", NULL}},
	{"nobody is woken", {MODEL_SKIP, "relacy_futex_wake", NULL}},
	{NULL, {}},
};

static const struct relacy_case cases[] = {
	{"both_ends", relacy_simulate<scene, 3>, 400000, 2, twins},
};

int main()
{
	return relacy_main("relacy/injector", cases, PIN_ARRAY_COUNT(cases));
}

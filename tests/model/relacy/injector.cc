/* SPDX-License-Identifier: MIT */
/*
 * Goal: tasks are popped once, it shows when there is one, and list and
 * elements are touched by one thread at a time: [INJECT-1], [LOCK-1].
 * Method: two threads push, two elements and one, of whom one pops as well,
 * while a third pops twice. The lock sleeps on Relacy's futex, so that a
 * wake-up that gets lost is a deadlock.
 */
#include "tests/model/relacy/atomics.h"

#include "runtime/queue/injector.c"

#include "tests/model/relacy/engine.h"

enum { ELEMENTS = 3 };

struct element {
	struct pin_link link;
	model_plain<uint32_t> pop_count;
};

struct scene {
	struct pin_injector injector;
	struct element elements[ELEMENTS];

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
		pin_injector_push(&injector, &list);
	}

	bool pop()
	{
		struct pin_list list = {};
		struct element *element;
		bool has_more;

		if (pin_injector_pop(&injector, 1, 1, &list, &has_more) == 0) {
			return false;
		}
		element = PIN_CONTAINER_OF(pin_list_pop(&list), struct element, link);
		element->pop_count = element->pop_count + 1;
		MODEL_CHECK(element->pop_count == 1);
		return true;
	}

	void thread(unsigned index)
	{
		if (index == 0) {
			push(0, 2);
			pop();
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
		for (uint32_t i = 0; i < ELEMENTS; i++) {
			MODEL_CHECK(elements[i].pop_count == 1);
		}
		MODEL_CHECK(pin_injector_is_empty(&injector));
	}
};

static const struct model_mutant mutants[] = {
	{"pushing is no single step", {MODEL_TORN, "pin_injector_push", NULL}},
	{"pushing releases nothing", {MODEL_RELAXED, "pin_injector_push", NULL}},
	{"newcomers are not taken in one step", {MODEL_TORN, "admit_newcomers", NULL}},
	{"the lock does not exclude", {MODEL_TORN, "pin_lock_acquire", NULL}},
	{"the lock acquires nothing", {MODEL_RELAXED, "pin_lock_acquire", NULL}},
	{"the lock releases nothing", {MODEL_RELAXED, "pin_lock_release", NULL}},
	{"no worker is woken", {MODEL_SKIP, "relacy_futex_wake", NULL}},
	{NULL, {}},
};

static const struct relacy_case cases[] = {
	{"both_ends", relacy_simulate<scene, 3>, 400000, 2, mutants},
};

int main()
{
	return relacy_main("relacy/injector", cases, PIN_ARRAY_COUNT(cases));
}

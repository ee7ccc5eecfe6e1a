/* SPDX-License-Identifier: MIT */
/*
 * Goal: a buffer that is in a free list is taken by one, and what its last user
 * wrote comes with it: [FREE-1] [FREE-2]. BP-19, BP-21.
 * Method: threads pop and push, one at a time and two at a time, and touch
 * plain memory while they have a buffer; another looks at the count.
 */
#include "tests/model/relacy/atomics.h"

#include "runtime/memory/magazine.c"

#include "tests/model/relacy/engine.h"

enum { BUFFERS = 3 };

struct scene {
	struct pin_freelist list;
	struct pin_entry entries[BUFFERS];
	model_plain<uint32_t> uses[BUFFERS];

	scene()
	{
		uint32_t indices[BUFFERS] = {0, 1, 2};

		for (uint32_t i = 0; i < BUFFERS; i++) {
			uses[i] = 0;
		}
		pin_freelist_push(&list, entries, indices, BUFFERS);
	}

	uint32_t use(uint32_t max)
	{
		uint32_t indices[BUFFERS];
		uint32_t count = pin_freelist_pop(&list, entries, indices, max);

		for (uint32_t i = 0; i < count; i++) {
			uses[indices[i]] = uses[indices[i]] + 1;
		}
		if (count > 0) {
			use_again(pin_freelist_push(&list, entries, indices, count));
		}
		return count;
	}

	/* The first one still, for all the thread knows. */
	void use_again(uint64_t state)
	{
		uint32_t index = pin_freelist_first(state) - 1;

		if (pin_freelist_pop_own(&list, entries, state)) {
			uses[index] = uses[index] + 1;
			pin_freelist_push(&list, entries, &index, 1);
		}
	}

	void thread(unsigned index)
	{
		if (index == 2) {
			MODEL_CHECK(pin_freelist_count(&list, entries) <= BUFFERS);
			return;
		}
		use(index + 1);
		use(1);
	}

	void finish()
	{
		uint32_t indices[BUFFERS];
		uint32_t sum = 0;

		MODEL_CHECK(pin_freelist_count(&list, entries) == BUFFERS);
		MODEL_CHECK(pin_freelist_pop(&list, entries, indices, BUFFERS) == BUFFERS);
		MODEL_CHECK(pin_freelist_pop(&list, entries, indices, 1) == 0);
		for (uint32_t i = 0; i < BUFFERS; i++) {
			sum += uses[i];
		}
		MODEL_CHECK(sum >= 2);
	}
};

static const struct model_mutant mutants[] = {
	{"a pop is no single step", {MODEL_TORN, "pin_freelist_pop", NULL}},
	{"a push is no single step", {MODEL_TORN, "pin_freelist_push", NULL}},
	{"a pop of a pushed one is none", {MODEL_TORN, "pin_freelist_pop_own", NULL}},
	{"pushed without a release", {MODEL_RELAXED, "pin_freelist_push", NULL}},
	{"popped without an acquire", {MODEL_RELAXED, "pin_freelist_pop", NULL}},
	{NULL, {}},
};

static const struct model_mutant no_mutants[] = {
	{NULL, {}},
};

static const struct relacy_case cases[] = {
	{"two_users", relacy_simulate<scene, 2>, 200000, 3, mutants},
	{"counted", relacy_simulate<scene, 3>, 200000, 2, no_mutants},
};

int main()
{
	return relacy_main("relacy/freelist", cases, PIN_ARRAY_COUNT(cases));
}

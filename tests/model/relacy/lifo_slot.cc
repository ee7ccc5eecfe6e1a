/* SPDX-License-Identifier: MIT */
/*
 * Goal: a task put into the LIFO slot comes out once, by its owner or by one
 * thief, and its plain memory comes with it: [LIFO-1] [LIFO-2]. AS-10, W36.
 * Method: an owner puts in and takes out while thieves steal. The host's
 * fence_all is Relacy's system-wide fence: at one moment, all threads know
 * everything. That is more than the kernel's, which orders the thief and the
 * owner for each other, but not two bystanders.
 */
#include "tests/model/relacy/atomics.h"

#include "runtime/queue/lifo_slot.h"

#include "tests/model/relacy/engine.h"

enum { ELEMENTS = 3 };

struct element {
	struct pin_link link;
	model_plain<uint32_t> take_count;
};

struct scene {
	struct pin_lifo lifo;
	struct element elements[ELEMENTS];
	uint32_t taken_count = 0;

	void take(struct pin_link *link)
	{
		struct element *element = PIN_CONTAINER_OF(link, struct element, link);

		if (link == NULL) {
			return;
		}
		element->take_count = element->take_count + 1;
		MODEL_CHECK(element->take_count == 1);
		taken_count++;
	}

	void put(uint32_t index)
	{
		elements[index].take_count = 0;
		take(pin_lifo_replace(&lifo, &elements[index].link));
	}

	void thread(unsigned index)
	{
		if (index > 0) {
			take(pin_lifo_steal(&lifo, &relacy_host));
			return;
		}
		put(0);
		put(1);
		take(pin_lifo_take(&lifo));
		put(2);
		take(pin_lifo_take(&lifo));
	}

	void finish()
	{
		take(pin_lifo_take(&lifo));
		MODEL_CHECK(taken_count == ELEMENTS);
	}
};

static const struct model_mutant mutants[] = {
	{"no fence between the two looks", {MODEL_DROP_FENCE, "relacy_fence_all", NULL}},
	{"the owner leaves without a release", {MODEL_RELAXED, "pin_lifo_exchange", NULL}},
	{"the thief leaves without a release", {MODEL_RELAXED, "pin_lifo_steal", NULL}},
	{NULL, {}},
};

static const struct model_mutant thief_mutants[] = {
	{"two thieves at once", {MODEL_TORN, "pin_lifo_steal", NULL}},
	{NULL, {}},
};

static const struct relacy_case cases[] = {
	{"one_thief", relacy_simulate<scene, 2>, 400000, 4, mutants},
	{"two_thieves", relacy_simulate<scene, 3>, 400000, 3, thief_mutants},
};

int main()
{
	return relacy_main("relacy/lifo", cases, PIN_ARRAY_COUNT(cases));
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: messages pushed into an inbox are taken once, in the order in which
 * each thread pushed them, and their plain memory comes with them: [INBOX-1].
 * Method: two threads push two elements each while the worker takes twice.
 */
#include "tests/model/relacy/atomics.h"

#include "runtime/queue/inbox.h"

#include "tests/model/relacy/engine.h"

enum { PUSHERS = 2, EACH = 2 };

struct element {
	struct pin_link link;
	model_plain<uint32_t> pusher;
	model_plain<uint32_t> number;
};

struct scene {
	struct pin_inbox inbox;
	struct element elements[PUSHERS][EACH];
	uint32_t next_numbers[PUSHERS] = {};

	void take()
	{
		struct pin_list list = {};
		struct pin_link *link;

		pin_inbox_take(&inbox, &list);
		for (link = pin_list_pop(&list); link != NULL; link = pin_list_pop(&list)) {
			struct element *element = PIN_CONTAINER_OF(link, struct element, link);
			uint32_t pusher = element->pusher;

			MODEL_CHECK(element->number == next_numbers[pusher]);
			next_numbers[pusher]++;
		}
	}

	void push(uint32_t pusher)
	{
		for (uint32_t i = 0; i < EACH; i++) {
			elements[pusher][i].pusher = pusher;
			elements[pusher][i].number = i;
			pin_inbox_push(&inbox, &elements[pusher][i].link);
		}
	}

	void thread(unsigned index)
	{
		if (index < PUSHERS) {
			push(index);
			return;
		}
		take();
		take();
	}

	void finish()
	{
		take();
		for (uint32_t i = 0; i < PUSHERS; i++) {
			MODEL_CHECK(next_numbers[i] == EACH);
		}
	}
};

static const struct model_mutant mutants[] = {
	{"pushing is no single step", {MODEL_TORN, "pin_inbox_push", NULL}},
	{"taking is no single step", {MODEL_TORN, "pin_inbox_take", NULL}},
	{"pushing releases nothing", {MODEL_RELAXED, "pin_inbox_push", NULL}},
	{"taking acquires nothing", {MODEL_RELAXED, "pin_inbox_take", NULL}},
	{NULL, {}},
};

static const struct relacy_case cases[] = {
	{"two_pushers", relacy_simulate<scene, PUSHERS + 1>, 400000, 3, mutants},
};

int main()
{
	return relacy_main("relacy/inbox", cases, PIN_ARRAY_COUNT(cases));
}

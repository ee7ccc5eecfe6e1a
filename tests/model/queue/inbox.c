/* SPDX-License-Identifier: MIT */
/*
 * Goal: messages pushed into an inbox are taken once, in the order in which
 * each thread pushed them, and the taker sees the pusher's earlier writes:
 * [INBOX-1].
 * Method: two threads push two elements each while the worker takes.
 */
#include "runtime/queue/inbox.h"
#include "runtime/base/base.h"
#include "tests/model/explorer.h"

#include <string.h>

enum { PUSHERS = 2, EACH = 2 };

struct element {
	struct pin_link link;
	struct pin_atomic_u32 is_written;
	uint32_t pusher;
	uint32_t number;
};

static struct pin_inbox inbox;
static struct element elements[PUSHERS][EACH];
static uint32_t next_numbers[PUSHERS];

static void push_all(void *arg)
{
	struct element *own = arg;

	for (uint32_t i = 0; i < EACH; i++) {
		pin_store_relaxed_u32(&own[i].is_written, 1);
		pin_inbox_push(&inbox, &own[i].link);
	}
}

static void take_all(void)
{
	struct pin_list list = {0};
	struct pin_link *link;

	pin_inbox_take(&inbox, &list);
	for (link = pin_list_pop(&list); link != NULL; link = pin_list_pop(&list)) {
		struct element *element = PIN_CONTAINER_OF(link, struct element, link);

		MODEL_CHECK(pin_load_relaxed_u32(&element->is_written) == 1);
		MODEL_CHECK(element->number == next_numbers[element->pusher]);
		next_numbers[element->pusher]++;
	}
}

static void run(void)
{
	uint32_t threads[PUSHERS];

	memset(&inbox, 0, sizeof(inbox));
	memset(next_numbers, 0, sizeof(next_numbers));
	for (uint32_t i = 0; i < PUSHERS; i++) {
		for (uint32_t j = 0; j < EACH; j++) {
			elements[i][j] = (struct element){.pusher = i, .number = j};
		}
	}
	for (uint32_t i = 0; i < PUSHERS; i++) {
		threads[i] = model_thread_start("pusher", push_all, elements[i]);
	}
	take_all();
	take_all();
	for (uint32_t i = 0; i < PUSHERS; i++) {
		model_thread_join(threads[i]);
	}
	take_all();
	MODEL_CHECK(next_numbers[0] == EACH && next_numbers[1] == EACH);
}

static const struct model_mutant mutants[] = {
	{"pushing is no single step", {MODEL_TORN, "pin_inbox_push", NULL}},
	{"taking is no single step", {MODEL_TORN, "pin_inbox_take", NULL}},
	{"pushing releases nothing", {MODEL_RELAXED, "pin_inbox_push", NULL}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"two_pushers", run, 3, 1, 0, mutants, NULL},
};

int main(void)
{
	return model_main("inbox", cases, PIN_ARRAY_COUNT(cases));
}

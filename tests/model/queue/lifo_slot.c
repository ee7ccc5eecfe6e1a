/* SPDX-License-Identifier: MIT */
/*
 * Goal: a task put into the LIFO slot comes out once, by its owner or by one
 * thief: [LIFO-1] [LIFO-2]. AS-10, W36.
 * Method: an owner puts in and takes out, thieves steal; every element is
 * checked off, the rest is taken at the end.
 */
#include "runtime/queue/lifo_slot.h"
#include "tests/model/explorer.h"

#include <string.h>

enum { ELEMENTS = 3 };

static struct pin_lifo lifo;
static struct pin_link elements[ELEMENTS];
static uint32_t take_counts[ELEMENTS];

static void take(const struct pin_link *link)
{
	if (link != NULL) {
		take_counts[link - elements]++;
		MODEL_CHECK(take_counts[link - elements] == 1);
	}
}

static void steal(void *arg)
{
	(void)arg;
	take(pin_lifo_steal(&lifo, &pin_host_linux));
}

static void run(uint32_t thief_count)
{
	uint32_t threads[2];

	memset(&lifo, 0, sizeof(lifo));
	memset(take_counts, 0, sizeof(take_counts));
	take(pin_lifo_replace(&lifo, &elements[0]));
	for (uint32_t i = 0; i < thief_count; i++) {
		threads[i] = model_thread_start("thief", steal, NULL);
	}
	take(pin_lifo_replace(&lifo, &elements[1]));
	take(pin_lifo_take(&lifo));
	take(pin_lifo_replace(&lifo, &elements[2]));
	take(pin_lifo_take(&lifo));
	for (uint32_t i = 0; i < thief_count; i++) {
		model_thread_join(threads[i]);
	}
	take(pin_lifo_take(&lifo));
	for (uint32_t i = 0; i < ELEMENTS; i++) {
		MODEL_CHECK(take_counts[i] == 1);
	}
}

static void run_one_thief(void)
{
	run(1);
}

static void run_two_thieves(void)
{
	run(2);
}

static const struct model_mutant mutants[] = {
	{"no fence between the two looks", {MODEL_DROP_FENCE, "model_fence_all", NULL}},
	{"the owner leaves without a release", {MODEL_RELAXED, "pin_lifo_exchange", NULL}},
	{"the thief leaves without a release", {MODEL_RELAXED, "pin_lifo_steal", NULL}},
	{.name = NULL},
};

static const struct model_mutant thief_mutants[] = {
	{"two thieves at once", {MODEL_TORN, "pin_lifo_steal", NULL}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"one_thief", run_one_thief, 3, 2, 0, mutants, NULL},
	{"two_thieves", run_two_thieves, 3, 1, 0, thief_mutants, NULL},
};

int main(void)
{
	return model_main("lifo", cases, PIN_ARRAY_COUNT(cases));
}

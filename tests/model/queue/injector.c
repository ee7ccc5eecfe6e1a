/* SPDX-License-Identifier: MIT */
/*
 * Goal: tasks are popped once, in the order of their push, and it shows when
 * there is one: [INJECT-1], [INJECT-2]. EX-4.
 * Method: two threads push, two pop; each popped element is checked off, the
 * rest is popped at the end. Finding it empty is right only when it can be.
 */
#include "runtime/queue/injector.h"
#include "runtime/base/base.h"
#include "tests/model/explorer.h"

#include <string.h>

enum { ELEMENTS = 3 };

static struct pin_injector injector;
static struct pin_link elements[ELEMENTS];
static uint32_t pop_counts[ELEMENTS];
static struct pin_atomic_u32 has_pushed;

static void begin(void)
{
	memset(pop_counts, 0, sizeof(pop_counts));
	has_pushed = (struct pin_atomic_u32){0};
	pin_injector_init(&injector, &pin_host_linux);
}

static void push(uint32_t first, uint32_t count)
{
	struct pin_list list = {0};

	for (uint32_t i = 0; i < count; i++) {
		pin_list_push(&list, &elements[first + i]);
	}
	pin_injector_push(&injector, &list);
	MODEL_CHECK(pin_list_is_empty(&list));
}

static bool pop(void)
{
	struct pin_list list = {0};
	struct pin_link *link;
	bool has_more;

	if (pin_injector_pop(&injector, 1, 1, &list, &has_more) == 0) {
		return false;
	}
	link = pin_list_pop(&list);
	pop_counts[link - elements]++;
	MODEL_CHECK(pop_counts[link - elements] == 1);
	/* Of the two pushed together, the first comes first. */
	MODEL_CHECK(pop_counts[1] <= pop_counts[0]);
	return true;
}

static void push_two(void *arg)
{
	(void)arg;
	push(0, 2);
}

static void push_third(void *arg)
{
	(void)arg;
	push(2, 1);
}

static void pop_twice(void *arg)
{
	(void)arg;
	pop();
	pop();
}

static void run_both_ends(void)
{
	uint32_t threads[3];
	uint32_t popped = 0;

	begin();
	threads[0] = model_thread_start("pusher", push_two, NULL);
	threads[1] = model_thread_start("pusher", push_third, NULL);
	threads[2] = model_thread_start("popper", pop_twice, NULL);
	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(threads); i++) {
		model_thread_join(threads[i]);
	}
	while (pop()) {
	}
	for (uint32_t i = 0; i < ELEMENTS; i++) {
		popped += pop_counts[i];
	}
	MODEL_CHECK(popped == ELEMENTS && pin_injector_is_empty(&injector));
}

/* ---- two who pop ---- */

/* Two poppers check off in any order. */
static void pop_any(void *arg)
{
	struct pin_list list = {0};
	struct pin_link *link;
	bool has_more;

	(void)arg;
	if (pin_injector_pop(&injector, 1, 1, &list, &has_more) > 0) {
		link = pin_list_pop(&list);
		pop_counts[link - elements]++;
		MODEL_CHECK(pop_counts[link - elements] == 1);
	}
}

static void run_two_poppers(void)
{
	uint32_t threads[2];

	begin();
	push(0, 2);
	threads[0] = model_thread_start("popper", pop_any, NULL);
	threads[1] = model_thread_start("popper", pop_any, NULL);
	push(2, 1);
	pop_any(NULL);
	model_thread_join(threads[0]);
	model_thread_join(threads[1]);
	while (!pin_injector_is_empty(&injector)) {
		pop_any(NULL);
	}
	for (uint32_t i = 0; i < ELEMENTS; i++) {
		MODEL_CHECK(pop_counts[i] == 1);
	}
}

/* Empty means that all is in the hands of those who popped it. */
static void run_emptied(void)
{
	begin();
	push(0, 2);
	model_thread_start("popper", pop_any, NULL);
	while (!pin_injector_is_empty(&injector)) {
		pop_any(NULL);
	}
	MODEL_CHECK(pin_injector_count(&injector) == 0);
}

/* A pop that is too late leaves no sign of it: for each there is a wake. */

static void pop_only(void *arg)
{
	struct pin_list list = {0};
	bool has_more;

	(void)arg;
	(void)pin_injector_pop(&injector, 1, 1, &list, &has_more);
	MODEL_CHECK(!has_more);
}

static void run_too_late(void)
{
	begin();
	push(0, 1);
	model_thread_start("popper", pop_only, NULL);
	pop_only(NULL);
}

/* ---- who knows of a push finds it ---- */

static void push_and_tell(void *arg)
{
	(void)arg;
	push(0, 1);
	pin_store_release_u32(&has_pushed, 1);
}

static void pop_when_told(void *arg)
{
	(void)arg;
	if (pin_load_acquire_u32(&has_pushed) != 0) {
		MODEL_CHECK(pop());
	}
}

static void run_told(void)
{
	begin();
	model_thread_start("pusher", push_and_tell, NULL);
	model_thread_start("popper", pop_when_told, NULL);
}

static const struct model_mutant mutants[] = {
	{"pushing is no single step", {MODEL_TORN, "pin_injector_push", NULL}},
	{"newcomers are not taken in one step", {MODEL_TORN, "admit_newcomers", NULL}},
	{.name = NULL},
};

static const struct model_mutant popper_mutants[] = {
	{"the lock does not exclude", {MODEL_TORN, "pin_lock_acquire", NULL}},
	{"the lock releases nothing", {MODEL_RELAXED, "pin_lock_release", NULL}},
	{.name = NULL},
};

static const struct model_mutant emptied_mutants[] = {
	{"a turned-round list shows late", {MODEL_RELAXED, "admit_newcomers", NULL}},
	{.name = NULL},
};

static const struct model_mutant late_mutants[] = {
	{"the lock does not exclude", {MODEL_TORN, "pin_lock_acquire", NULL}},
	{.name = NULL},
};

static const struct model_mutant told_mutants[] = {
	{"the notification releases nothing", {MODEL_RELAXED, "push_and_tell", NULL}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"both_ends", run_both_ends, 3, 1, 0, mutants, NULL},
	{"two_poppers", run_two_poppers, 2, 1, 0, popper_mutants, NULL},
	{"emptied", run_emptied, 2, 1, 0, emptied_mutants, NULL},
	{"too_late", run_too_late, 2, 1, 0, late_mutants, NULL},
	{"told", run_told, 3, 2, 0, told_mutants, NULL},
};

int main(void)
{
	return model_main("injector", cases, PIN_ARRAY_COUNT(cases));
}

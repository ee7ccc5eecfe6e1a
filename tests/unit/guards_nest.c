/* SPDX-License-Identifier: MIT */
/*
 * Goal: what does not return in a guard within another's call leads back to the
 * inner one, by an unwind and by pthread_exit(), with the frames between
 * unwound; then what ends in the outer one leads back to that. WP-36, C14.
 * Method: each way in each of the two, in turn, on a thread of its own.
 */
#include "runtime/host/guard.h"
#include "tests/support/expect.h"

#include <pthread.h>

static struct pin_guard outer;
static struct pin_guard inner;
static enum pin_landing inner_way;
static enum pin_landing outer_way;
static enum pin_landing inner_landing;
static enum pin_landing outer_landing;
static int cleanups;
static int has_gone_on;

static void note_cleanup(const int *unused)
{
	(void)unused;
	cleanups++;
}

static void leave(enum pin_landing way, struct pin_guard *guard)
{
	if (way == PIN_LANDING_UNWOUND) {
		pin_guard_unwind(guard);
	}
	if (way == PIN_LANDING_EXIT) {
		pthread_exit(NULL);
	}
}

static void run_inner(void *arg)
{
	__attribute__((cleanup(note_cleanup))) int frame = 0;

	(void)arg;
	leave(inner_way, &inner);
	(void)frame;
}

static void run_outer(void *arg)
{
	__attribute__((cleanup(note_cleanup))) int frame = 0;

	inner_landing = pin_guard_run(&inner, run_inner, arg);
	has_gone_on++;
	leave(outer_way, &outer);
	(void)frame;
}

static void *run(void *arg)
{
	outer_landing = pin_guard_run(&outer, run_outer, arg);
	return &outer;
}

static void try(enum pin_landing in_inner, enum pin_landing in_outer)
{
	pthread_t thread;
	void *result = NULL;

	inner_way = in_inner;
	outer_way = in_outer;
	cleanups = 0;
	has_gone_on = 0;
	expect_number("thread", 0, pthread_create(&thread, NULL, run, NULL));
	expect_number("join", 0, pthread_join(thread, &result));
	expect_number("the thread has returned", 1, result == &outer);
	expect_number("inner landing", in_inner, inner_landing);
	expect_number("outer landing", in_outer, outer_landing);
	expect_number("the outer call went on", 1, has_gone_on);
	expect_number("frames that were left", 2, cleanups);
	expect_number("inner one runs", 0, pin_guard_is_running(&inner));
	expect_number("outer one runs", 0, pin_guard_is_running(&outer));
}

int main(void)
{
	static const enum pin_landing ways[] = {
		PIN_LANDING_RETURNED, PIN_LANDING_UNWOUND, PIN_LANDING_EXIT};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		for (size_t j = 0; j < sizeof(ways) / sizeof(ways[0]); j++) {
			try(ways[i], ways[j]);
		}
	}
	return expect_status();
}

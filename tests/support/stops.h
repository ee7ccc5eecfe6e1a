/* SPDX-License-Identifier: MIT */
/*
 * A stop that is under way while a test goes on: from its beginning, when the
 * runtime takes no more work, to its end, which the tasks of that test hold up.
 */
#ifndef PIN_TESTS_SUPPORT_STOPS_H
#define PIN_TESTS_SUPPORT_STOPS_H

#include "tests/support/expect.h"

#include "runtime/task/entry.h"

#include <pthread.h>
#include <sched.h>

static inline void *stops_run(void *runtime)
{
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	return NULL;
}

/* Returns when the runtime refuses; the thread is for stops_end(). */
static inline pthread_t stops_begin(struct pinion_runtime *runtime)
{
	pthread_t thread;

	expect_ready("thread", pthread_create(&thread, NULL, stops_run, runtime) == 0);
	/* The gate is closed after the stop is published to workers. */
	while (pin_gate_is_open(&runtime->shared.gate)) {
		sched_yield();
	}
	return thread;
}

static inline void stops_end(pthread_t thread)
{
	pthread_join(thread, NULL);
}

#endif

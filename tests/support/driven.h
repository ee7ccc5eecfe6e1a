/* SPDX-License-Identifier: MIT */
/*
 * Driven runtimes for tests: the test's thread runs their tasks.
 */
#ifndef PIN_TESTS_SUPPORT_DRIVEN_H
#define PIN_TESTS_SUPPORT_DRIVEN_H

#include "tests/support/runtimes.h"

#include <poll.h>

enum {
	DRIVEN_ALL = INT32_MAX,
};

static inline void driven_config(struct pinion_config *config, uint32_t io_level)
{
	runtimes_config(config, 0, io_level);
	config->is_driven = 1;
}

static inline struct pinion_runtime *driven_start(uint32_t io_level)
{
	struct pinion_runtime *runtime = NULL;
	struct pinion_config config;

	driven_config(&config, io_level);
	if (!expect_number("create", 0, pinion_runtime_create(&config, &runtime))) {
		printf("%s", runtimes_log);
		exit(1);
	}
	return runtime;
}

/* Whether its descriptor is readable now. */
static inline bool driven_is_readable(const struct pinion_runtime *runtime)
{
	struct pollfd descriptor = {.fd = pinion_runtime_fd(runtime), .events = POLLIN};

	return poll(&descriptor, 1, 0) == 1 && descriptor.revents == POLLIN;
}

/* As an embedder's loop does: returns when it is readable. */
static inline void driven_await(const struct pinion_runtime *runtime)
{
	struct pollfd descriptor = {.fd = pinion_runtime_fd(runtime), .events = POLLIN};

	while (poll(&descriptor, 1, -1) != 1) {
	}
}

/* Sleeps and runs, by the descriptor alone, until `count` tasks have run. */
static inline void driven_run(struct pinion_runtime *runtime, int count)
{
	while (count > 0) {
		int ran;

		driven_await(runtime);
		ran = pinion_runtime_poll(runtime, DRIVEN_ALL, 0);
		if (ran < 0 || ran > count) {
			expect_number("tasks", count, ran);
			return;
		}
		count -= ran;
	}
}

/*
 * Runs nothing, and finds nothing: the descriptor may be readable before, for
 * nothing, and is not afterwards; or once more, when figures are due.
 */
static inline void driven_expect_idle(const char *what, struct pinion_runtime *runtime)
{
	int turns = 0;

	do {
		expect_number(what, 0, pinion_runtime_poll(runtime, DRIVEN_ALL, 0));
		turns++;
	} while (turns < 10 && driven_is_readable(runtime));
	if (turns == 10) {
		printf("%s: the descriptor is readable\n", what);
		expect_failure_count++;
	}
}

#endif

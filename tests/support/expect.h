/* SPDX-License-Identifier: MIT */
/*
 * What unit tests say when they fail: one line with what, expected and got.
 * A test calls these and ends with `return expect_status();`.
 */
#ifndef PIN_TESTS_SUPPORT_EXPECT_H
#define PIN_TESTS_SUPPORT_EXPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	EXPECT_SKIPPED = 77,
};

static int expect_failure_count;

static inline bool expect_number(const char *what, long long expected, long long got)
{
	if (expected != got) {
		printf("%s: expected %lld, got %lld\n", what, expected, got);
		expect_failure_count++;
	}
	return expected == got;
}

static inline bool expect_text(const char *what, const char *expected, const char *got)
{
	bool is_equal = strcmp(expected, got) == 0;

	if (!is_equal) {
		printf("%s: expected \"%s\", got \"%s\"\n", what, expected, got);
		expect_failure_count++;
	}
	return is_equal;
}

static inline bool expect_true(const char *what, bool is_true)
{
	if (!is_true) {
		printf("%s: expected true, got false\n", what);
		expect_failure_count++;
	}
	return is_true;
}

/* For what a test needs in order to begin: reports errno and ends it. */
static inline void expect_ready(const char *what, bool is_ready)
{
	if (!is_ready) {
		perror(what);
		exit(1);
	}
}

static inline int expect_status(void)
{
	return expect_failure_count == 0 ? 0 : 1;
}

#endif

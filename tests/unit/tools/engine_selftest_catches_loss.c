/* SPDX-License-Identifier: MIT */
/*
 * Goal: the self-test passes a library that finds all it should and refuses a
 * library that loses or invents a single kind of match.
 *
 * Method: faults planted between the self-test and the library.
 */
#include "tools/scan/selftest.h"

#include <stdio.h>
#include <string.h>

static const struct selftest_ops *library;

static void *open_library(const char *const *patterns, size_t count)
{
	return library->open(patterns, count);
}

static void close_library(void *subject)
{
	library->close(subject);
}

static void clear_ends(struct selftest_ends *ends, size_t from, size_t to)
{
	for (size_t i = 0; i < SELFTEST_PATTERNS_MAX; i++) {
		memset(&ends[i].at[from], 0, to - from);
	}
}

/* The last match of a block is lost if it ends with the text. */
static bool lose_at_end(
	void *subject, const char *text, size_t length, size_t split, struct selftest_ends *ends)
{
	bool is_ok = library->search(subject, text, length, split, ends);

	if (split == 0) {
		clear_ends(ends, length, length + 1);
	}
	return is_ok;
}

/* Loses a match that ends right after the border of two parts. */
static bool lose_at_border(
	void *subject, const char *text, size_t length, size_t split, struct selftest_ends *ends)
{
	bool is_ok = library->search(subject, text, length, split, ends);

	if (split > 0) {
		clear_ends(ends, split + 1, split + 2);
	}
	return is_ok;
}

/* Only a match that ends at one place of all, deep in a text. */
static bool lose_rarely(
	void *subject, const char *text, size_t length, size_t split, struct selftest_ends *ends)
{
	bool is_ok = library->search(subject, text, length, split, ends);

	if (length > 100 && split == 64) {
		clear_ends(ends, 65, 75);
	}
	return is_ok;
}

static bool invent(
	void *subject, const char *text, size_t length, size_t split, struct selftest_ends *ends)
{
	bool is_ok = library->search(subject, text, length, split, ends);

	if (split == 33) {
		ends[0].at[1] = true;
	}
	return is_ok;
}

static bool fail_always(
	void *subject, const char *text, size_t length, size_t split, struct selftest_ends *ends)
{
	(void)subject;
	(void)text;
	(void)length;
	(void)split;
	(void)ends;
	return false;
}

static void *refuse_to_open(const char *const *patterns, size_t count)
{
	(void)patterns;
	(void)count;
	return NULL;
}

int main(void)
{
	const struct {
		const char *name;
		struct selftest_ops ops;
	} faults[] = {
		{"loses at the end", {open_library, close_library, lose_at_end}},
		{"loses at a border", {open_library, close_library, lose_at_border}},
		{"loses rarely", {open_library, close_library, lose_rarely}},
		{"invents", {open_library, close_library, invent}},
		{"fails", {open_library, close_library, fail_always}},
		{"compiles nothing", {refuse_to_open, close_library, fail_always}},
	};
	char reason[256];

	library = selftest_library_ops();
	if (library == NULL) {
		printf("built without Hyperscan\n");
		return 77;
	}
	if (selftest_run(library, reason, sizeof(reason)) != 0) {
		printf("the library itself: expected to pass, got: %s\n", reason);
		return 1;
	}
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		reason[0] = '\0';
		if (selftest_run(&faults[i].ops, reason, sizeof(reason)) == 0 ||
			reason[0] == '\0') {
			printf("a library that %s: expected to be refused, but passed\n",
				faults[i].name);
			return 1;
		}
	}
	return 0;
}

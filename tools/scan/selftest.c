/* SPDX-License-Identifier: MIT */
/*
 * The self-test. Its patterns have the shapes that made some builds lose
 * matches: two overlapping classes in a row, which are looked for two bytes at
 * a time; an open end; a literal across a border. The oracle knows sequences
 * of repeated classes only and walks them byte by byte.
 *
 * Source: issues 317 and 358 and pull request 402 of VectorCamp/vectorscan.
 */
#include "tools/scan/selftest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	ENDLESS = 255,
	PIECES_MAX = 6,
	TEXTS_PER_SET = 4,
};

/* One class, repeated. The first byte of `set` may be ^ for all others. */
struct piece {
	const char *set;
	uint8_t min;
	uint8_t max;
};

struct pattern {
	const char *expression;
	struct piece pieces[PIECES_MAX];
};

/* Where the plain string is. */
enum { PATTERN_STRING = 5 };

static const struct pattern patterns[] = {
	{"[0-9]{1,2}x[a-f]*", {{"0123456789", 1, 2}, {"x", 1, 1}, {"abcdef", 0, ENDLESS}}},
	{"[b-d]{1,3}[cd]+[0-9]*", {{"bcd", 1, 3}, {"cd", 1, ENDLESS}, {"0123456789", 0, ENDLESS}}},
	{"[a-c]{1,3}[ac][ab]*", {{"abc", 1, 3}, {"ac", 1, 1}, {"ab", 0, ENDLESS}}},
	{"[ac]{1,3}[cd]+", {{"ac", 1, 3}, {"cd", 1, ENDLESS}}},
	{"<%[^z]+%>", {{"<", 1, 1}, {"%", 1, 1}, {"^z", 1, ENDLESS}, {"%", 1, 1}, {">", 1, 1}}},
	[PATTERN_STRING] = {"needle",
		{{"n", 1, 1}, {"e", 2, 2}, {"d", 1, 1}, {"l", 1, 1}, {"e", 1, 1}}},
	{"key-[0-9a-f]{6,9}",
		{{"k", 1, 1}, {"e", 1, 1}, {"y", 1, 1}, {"-", 1, 1}, {"0123456789abcdef", 6, 9}}},
};

enum { PATTERN_COUNT = sizeof(patterns) / sizeof(patterns[0]) };

_Static_assert((int)PATTERN_COUNT <= (int)SELFTEST_PATTERNS_MAX, "a set holds all patterns");

static bool piece_takes(const struct piece *piece, char byte)
{
	bool is_inverted = piece->set[0] == '^';

	return (strchr(piece->set + is_inverted, byte) != NULL) != is_inverted;
}

/* From the places `here` to those the piece leads to. */
static void walk_piece(
	const struct piece *piece, const char *text, size_t length, bool *here, bool *out_there)
{
	memset(out_there, 0, length + 1);
	for (size_t start = 0; start <= length; start++) {
		size_t end = start;

		if (!here[start]) {
			continue;
		}
		for (unsigned count = 0; count <= piece->max || piece->max == ENDLESS; count++) {
			if (count >= piece->min) {
				out_there[end] = true;
			}
			if (end == length || !piece_takes(piece, text[end])) {
				break;
			}
			end++;
		}
	}
}

static void run_oracle(const struct pattern *pattern, const char *text, size_t length,
	struct selftest_ends *out_ends)
{
	struct selftest_ends here;

	memset(&here, true, sizeof(here));
	for (size_t i = 0; i < PIECES_MAX && pattern->pieces[i].set != NULL; i++) {
		walk_piece(&pattern->pieces[i], text, length, here.at, out_ends->at);
		here = *out_ends;
	}
}

/* A text of fragments that nearly match, so that every border is a risk. */
static size_t make_text(uint32_t *state, char *out_text)
{
	static const char *const fragments[] = {"a", "b", "c", "d", "ac", "cd", "1", "x", "7x",
		"12xab", "bcd4", "<%", "%>", "z", " ", "needle", "need", "key-", "key-0a1b2c3d",
		"      "};
	const uint32_t fragment_count = sizeof(fragments) / sizeof(fragments[0]);
	size_t length = 0;

	for (;;) {
		const char *fragment;
		size_t size;

		*state = *state * 1664525 + 1013904223;
		fragment = fragments[(*state >> 16) % fragment_count];
		size = strlen(fragment);
		if (length + size > SELFTEST_TEXT_BYTES) {
			return length;
		}
		memcpy(out_text + length, fragment, size);
		length += size;
	}
}

/* A set of patterns that are searched for together. */
struct test {
	const struct selftest_ops *ops;
	void *subject;
	size_t first;
	size_t count;
	char *reason;
	size_t reason_bytes;
};

static int check_search(const struct test *test, const char *text, size_t length, size_t split,
	const struct selftest_ends *expected)
{
	struct selftest_ends got[SELFTEST_PATTERNS_MAX] = {0};

	if (!test->ops->search(test->subject, text, length, split, got)) {
		snprintf(test->reason, test->reason_bytes, "a search failed");
		return -EINVAL;
	}
	for (size_t i = 0; i < test->count; i++) {
		if (memcmp(got[i].at, expected[i].at, length + 1) != 0) {
			snprintf(test->reason, test->reason_bytes,
				"%s matches elsewhere than it should when %zu bytes are taken %s",
				patterns[test->first + i].expression, length,
				split == 0 ? "in one block" : "in two parts");
			return -EINVAL;
		}
	}
	return 0;
}

static int check_text(const struct test *test, const char *text, size_t length)
{
	struct selftest_ends expected[SELFTEST_PATTERNS_MAX];
	int error = 0;

	for (size_t i = 0; i < test->count; i++) {
		run_oracle(&patterns[test->first + i], text, length, &expected[i]);
	}
	for (size_t split = 0; split < length && error == 0; split++) {
		error = check_search(test, text, length, split, expected);
	}
	return error;
}

/* Where the last match ends; 0: there is none. */
static size_t last_end(const struct pattern *pattern, const char *text, size_t length)
{
	struct selftest_ends ends;

	run_oracle(pattern, text, length, &ends);
	while (length > 0 && !ends.at[length]) {
		length--;
	}
	return length;
}

/* All patterns together, then each alone. */
size_t selftest_set(size_t index, const char *out_expressions[SELFTEST_PATTERNS_MAX])
{
	size_t first = index == 0 ? 0 : index - 1;
	size_t count = index == 0 ? PATTERN_COUNT : 1;

	if (index > PATTERN_COUNT) {
		return 0;
	}
	for (size_t i = 0; i < count; i++) {
		out_expressions[i] = patterns[first + i].expression;
	}
	return count;
}

static int check_set(
	const struct selftest_ops *ops, size_t index, char *reason, size_t reason_bytes)
{
	const char *expressions[SELFTEST_PATTERNS_MAX];
	size_t first = index == 0 ? 0 : index - 1;
	size_t count = selftest_set(index, expressions);
	struct test test = {
		.ops = ops,
		.first = first,
		.count = count,
		.reason = reason,
		.reason_bytes = reason_bytes,
	};
	uint32_t state = (uint32_t)(first + 1);
	int error = 0;

	test.subject = ops->open(expressions, count);
	if (test.subject == NULL) {
		snprintf(reason, reason_bytes, "%s cannot be compiled", expressions[0]);
		return -EINVAL;
	}
	for (size_t i = 0; i < TEXTS_PER_SET && error == 0; i++) {
		char text[SELFTEST_TEXT_BYTES];
		size_t length = make_text(&state, text);

		/* The end of a text is a border as well: it falls anywhere. */
		error = check_text(&test, text, length - (i * 7) % length);
		if (error == 0 && count == 1 && first == PATTERN_STRING) {
			/* By chance a string seldom ends where a text does. */
			error = check_text(&test, text, last_end(&patterns[first], text, length));
		}
	}
	ops->close(test.subject);
	return error;
}

int selftest_run(const struct selftest_ops *ops, char *reason, size_t reason_bytes)
{
	int error = 0;

	for (size_t i = 0; i <= PATTERN_COUNT && error == 0; i++) {
		error = check_set(ops, i, reason, reason_bytes);
	}
	return error;
}

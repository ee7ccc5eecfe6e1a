/* SPDX-License-Identifier: MIT */
/*
 * Goal: no pattern of an ignore file makes its comparison take longer than
 * pattern times path times names, so none that a hostile tree brings holds up
 * a walk. EX-53.
 * Method: the real source, compiled with -finstrument-functions, which calls us
 * at each entry of one of its functions; none of them does more than go once
 * through the rest of the pattern or of the path. Patterns made to be tried in
 * many ways, each in two sizes; then random ones. A matcher that tries all ways
 * is counted too: it has to break the limit.
 */
#include "runtime/base/base.h"
#include "runtime/scan/gitignore.c"
#include "tests/support/expect.h"
#include "tests/support/random.h"

#include <stdlib.h>

enum {
	STEPS_MAX = 4,	  /* entries for one byte of a pattern at one of a path */
	NAIVE_STARS = 10, /* enough, and it still ends */
	RANDOM_PAIRS = 20000,
	TEXT_BYTES = 16 << 10,
};

static uint64_t entries;

__attribute__((no_instrument_function)) void __cyg_profile_func_enter(void *function, void *caller);
__attribute__((no_instrument_function)) void __cyg_profile_func_exit(void *function, void *caller);

void __cyg_profile_func_enter(void *function, void *caller)
{
	(void)function;
	(void)caller;
	entries++;
}

void __cyg_profile_func_exit(void *function, void *caller)
{
	(void)function;
	(void)caller;
}

static uint64_t limit(const char *pattern, const char *path)
{
	uint64_t names = 1;

	for (const char *at = path; *at != '\0'; at++) {
		names += *at == '/';
	}
	return STEPS_MAX * (strlen(pattern) + 1) * (strlen(path) + 1) * names;
}

static uint64_t count(const char *pattern, const char *path)
{
	size_t pattern_bytes = strlen(pattern);
	size_t path_bytes = strlen(path);

	entries = 0;
	(void)pin_glob_matches(pattern, pattern_bytes, path, path_bytes);
	return entries;
}

/* ---- patterns that can be tried in many ways ---- */

static const struct {
	const char *unit;
	const char *end;
	const char *path_unit;
	const char *path_end;
} table[] = {
	{"*a", "b", "a", ""},
	{"*a", "b", "a", "b"},
	{"*", "", "a", ""},
	{"*", "b", "a", ""},
	{"**a", "b", "a", ""},
	{"a**", "b", "a", ""},
	{"*?", "b", "a", ""},
	{"*[a-b]", "c", "a", ""},
	{"*[[:alpha:]]", "1", "a", ""},
	{"*[", "c", "a", ""},
	{"*\\a", "b", "a", ""},
	{"**/a/", "b", "a/", "c"},
	{"**/a/", "b", "a/", "b"},
	{"**/*a*a/", "b", "aaaa/", "c"},
	{"**/a*/", "b", "ab/", "c"},
	{"a**/", "b", "a/", "c"},
	{"**\\/a/", "b", "a/", "c"},
	{"*/", "b", "a/", "c"},
};

static void repeat(char *text, const char *unit, size_t times, const char *end)
{
	size_t unit_bytes = strlen(unit);

	expect_ready("room", times * unit_bytes + strlen(end) < TEXT_BYTES);
	for (size_t i = 0; i < times; i++) {
		memcpy(text + i * unit_bytes, unit, unit_bytes);
	}
	strcpy(text + times * unit_bytes, end);
}

static uint64_t most_permille;

static void check_pair(const char *pattern, const char *path)
{
	uint64_t most = limit(pattern, path);
	uint64_t got = count(pattern, path);

	expect_ready("counted", got > 0);
	if (1000 * got / most > most_permille) {
		most_permille = 1000 * got / most;
		printf("%.40s over %.40s: %llu entries, %llu permille of the limit\n", pattern,
			path, (unsigned long long)got, (unsigned long long)most_permille);
	}
	if (got > most) {
		printf("%.40s over %.40s: expected %llu entries at most, got %llu\n", pattern, path,
			(unsigned long long)most, (unsigned long long)got);
		expect_true("bounded", false);
	}
}

static void check_table(void)
{
	static const size_t sizes[] = {60, 120};
	static char pattern[TEXT_BYTES];
	static char path[TEXT_BYTES];

	for (size_t i = 0; i < PIN_ARRAY_COUNT(table); i++) {
		for (size_t j = 0; j < PIN_ARRAY_COUNT(sizes); j++) {
			repeat(pattern, table[i].unit, sizes[j], table[i].end);
			repeat(path, table[i].path_unit, 2 * sizes[j], table[i].path_end);
			check_pair(pattern, path);
		}
	}
}

static void check_random(void)
{
	static const char *const pieces[] = {"*", "**", "**/", "/", "?", "a", "b", "[ab]", "[!a]",
		"\\a", "\\/", "[", "[[:alpha:]]", "a*", "*a"};
	struct random_source source;

	random_begin(&source);
	for (uint32_t i = 0; i < RANDOM_PAIRS; i++) {
		char pattern[512] = "";
		char path[64];
		size_t path_bytes = 1 + random_below(&source, sizeof(path) - 1);

		for (uint64_t left = 1 + random_below(&source, 30); left > 0; left--) {
			strcat(pattern, pieces[random_below(&source, PIN_ARRAY_COUNT(pieces))]);
		}
		for (size_t j = 0; j < path_bytes; j++) {
			path[j] = "aab/"[random_below(&source, j % 2 == 0 ? 3 : 4)];
		}
		path[path_bytes - 1] = '\0';
		check_pair(pattern, path);
	}
}

/* ---- a matcher that tries all ways ---- */

static bool naive_matches(const char *pattern, const char *path)
{
	if (*pattern == '\0') {
		return *path == '\0';
	}
	if (*pattern == '*') {
		return naive_matches(pattern + 1, path) ||
			(*path != '\0' && naive_matches(pattern, path + 1));
	}
	return *pattern == *path && naive_matches(pattern + 1, path + 1);
}

static void check_naive(void)
{
	char pattern[64];
	char path[64];

	repeat(pattern, "*a", NAIVE_STARS, "b");
	repeat(path, "a", (size_t)2 * NAIVE_STARS, "");
	entries = 0;
	expect_true("does not match", !naive_matches(pattern, path));
	expect_true("all ways are too many", entries > limit(pattern, path));
	expect_true("what we do is not", count(pattern, path) <= limit(pattern, path));
}

int main(void)
{
	check_table();
	check_random();
	check_naive();
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: options in every spelling, operands anywhere, sizes, counts and
 * periods with their limits, and a near miss is recognised.
 * Method: one table of options, argument vectors with the calls they should
 * answer, written as a string: letter, value in brackets, "!" for an error.
 */
#include "tests/support/expect.h"
#include "tools/options.h"
#include "tools/spelling.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct option_spec specs[] = {
	{'a', "algorithm", "NAME", "", NULL},
	{'r', "recursive", NULL, "", NULL},
	{'z', NULL, NULL, "", NULL},
	{0, "long", "VALUE", "", NULL},
};

static const struct command command = {
	.name = "test",
	.arguments = "",
	.brief = "",
	.options = specs,
	.option_count = 4,
};

static void append(char *text, size_t size, const char *more)
{
	size_t length = strlen(text);

	snprintf(text + length, size - length, "%s", more);
}

static void describe(struct option_parser *parser, char *text, size_t size)
{
	const char *value;
	int option;

	while ((option = options_next(parser, &value)) >= 0) {
		char letter[2] = {specs[option].letter != 0 ? specs[option].letter : 'L', '\0'};

		append(text, size, letter);
		if (value != NULL) {
			append(text, size, "[");
			append(text, size, value);
			append(text, size, "]");
		}
	}
	append(text, size, option == OPTIONS_END ? "" : "!");
	for (int i = 1; i <= parser->operand_count; i++) {
		append(text, size, " ");
		append(text, size, parser->argv[i]);
	}
}

/* `arguments` are separated by single spaces. */
static void check_arguments(const char *arguments, const char *expected)
{
	char words[128];
	char *argv[16] = {words};
	char text[256] = "";
	struct option_parser parser = {.command = &command, .argv = argv, .argc = 1};
	char *rest = words;

	snprintf(words, sizeof(words), "%s", arguments);
	for (char *word = strsep(&rest, " "); word != NULL; word = strsep(&rest, " ")) {
		argv[parser.argc++] = word;
	}
	describe(&parser, text, sizeof(text));
	expect_text(arguments, expected, text);
}

static void check_size(const char *text, bool is_valid, uint64_t expected)
{
	uint64_t bytes = 0;

	expect_number(text, is_valid, options_size("long", text, 1, UINT64_MAX, &bytes));
	expect_number(text, (long long)(is_valid ? expected : 0), (long long)bytes);
}

static void check_period(const char *text, bool is_valid, uint64_t expected)
{
	uint64_t ns = 0;

	expect_number(text, is_valid, options_period("long", text, &ns));
	expect_number(text, (long long)(is_valid ? expected : 0), (long long)ns);
}

static void check_count(const char *text, bool is_valid)
{
	uint64_t count = 0;

	expect_number(text, is_valid, options_count("long", text, 2, 20, &count));
}

static void check_distance(const char *left, const char *right, uint32_t expected)
{
	expect_number(right, expected, spelling_distance(left, right));
	expect_number(left, expected, spelling_distance(right, left));
}

int main(void)
{
	/* The messages are not under test here. */
	expect_ready("/dev/null", freopen("/dev/null", "w", stderr) != NULL);
	check_arguments("x", " x");
	check_arguments("-r x -z y", "rz x y");
	check_arguments("-rz", "rz");
	check_arguments("-raX", "ra[X]");
	check_arguments("-ra X y", "ra[X] y");
	check_arguments("-a -r", "a[-r]");
	check_arguments("--algorithm=X --algorithm Y", "a[X]a[Y]");
	check_arguments("--long= x", "L[] x");
	check_arguments("--long=a=b", "L[a=b]");
	check_arguments("- -r -", "r - -");
	check_arguments("-r -- -r --long", "r -r --long");
	check_arguments("-a", "!");
	check_arguments("--long", "!");
	check_arguments("--recursive=1", "!");
	check_arguments("-q", "!");
	check_arguments("--lon", "!");
	check_arguments("x -q y", "! x");

	check_period("0", true, 0);
	check_period("7", true, 7000000000);
	check_period("0.25s", true, 250000000);
	check_period("90m", true, 5400000000000);
	check_period("2h", true, 7200000000000);
	check_period("30d", true, 2592000000000000);
	check_period("1.5w", true, 907200000000000);
	check_period("36525d", true, 3155760000000000000);
	check_period("36526d", false, 0);
	check_period("99999999999999999999", false, 0);
	check_period("", false, 0);
	check_period("d", false, 0);
	check_period("-1d", false, 0);
	check_period("1 d", false, 0);
	check_period("1y", false, 0);
	check_period("1dd", false, 0);

	check_size("0", false, 0);
	check_size("1", true, 1);
	check_size("64K", true, 65536);
	check_size("64k", true, 65536);
	check_size("64KiB", true, 65536);
	check_size("64kB", true, 64000);
	check_size("3M", true, 3 << 20);
	check_size("2GB", true, 2000000000);
	check_size("1T", true, 1ULL << 40);
	check_size("18446744073709551615", true, UINT64_MAX);
	check_size("18446744073709551616", false, 0);
	check_size("99999999T", false, 0);
	check_size("", false, 0);
	check_size("K", false, 0);
	check_size("-1", false, 0);
	check_size("+1", false, 0);
	check_size(" 1", false, 0);
	check_size("1 K", false, 0);
	check_size("1X", false, 0);
	check_size("1KK", false, 0);
	check_size("0x10", false, 0);
	check_count("2", true);
	check_count("20", true);
	check_count("1", false);
	check_count("21", false);
	check_count("2K", false);
	check_count("", false);

	check_distance("scan", "scan", 0);
	check_distance("scna", "scan", 1);
	check_distance("scn", "scan", 1);
	check_distance("sum", "scan", 3);
	check_distance("", "scan", 4);
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: files that are no rules, or try the reader's depth, time or memory, are
 * refused with a remark each, and nothing that a file holds ends the program
 * (EX-56).
 *
 * Method: files made for one bound each; then a good TOML file with bytes
 * changed, removed and repeated at random, which only has to be survived: the
 * sanitizers see the rest.
 */
#include "tests/support/expect.h"
#include "tests/support/random.h"
#include "tests/support/scratch.h"
#include "tools/scan/rules_reader.h"
#include "tools/scan/rules_toml.h"

#include <errno.h>

static uint32_t remark_count;
static char last_remark[600];

static void collect(enum rules_remark remark, const char *file, uint32_t line, const char *reason)
{
	(void)remark;
	remark_count++;
	snprintf(last_remark, sizeof(last_remark), "%s:%u %s", file, line, reason);
}

static int read_rules(const char *file)
{
	struct rules rules = {.count_max = 100, .bytes_max = 1 << 20};
	struct rules_reader reader = {
		.rules = &rules, .remark = collect, .silence_ns_max = 10000000};
	int error;

	remark_count = 0;
	last_remark[0] = '\0';
	error = rules_reader_add(&reader, file);
	rules_free(&rules);
	return error;
}

static void write_bytes(const char *path, const char *bytes, size_t length)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);

	expect_ready(path, fd >= 0 && write(fd, bytes, length) == (ssize_t)length);
	close(fd);
}

/* One remark, with those words. */
static void refuse(const char *file, const char *words)
{
	expect_number(file, -EINVAL, read_rules(file));
	expect_number("remarks", 1, remark_count);
	if (strstr(last_remark, words) == NULL) {
		printf("%s: expected \"%s\", got \"%s\"\n", file, words, last_remark);
		expect_failure_count++;
	}
}

/* A file of `count` times the unit, after a beginning. */
static void refuse_many(const char *begin, const char *unit, size_t count, const char *words)
{
	size_t begin_bytes = strlen(begin);
	size_t unit_bytes = strlen(unit);
	char *text = malloc(begin_bytes + count * unit_bytes);

	expect_ready("malloc", text != NULL);
	memcpy(text, begin, begin_bytes);
	for (size_t i = 0; i < count; i++) {
		memcpy(text + begin_bytes + i * unit_bytes, unit, unit_bytes);
	}
	write_bytes("many", text, begin_bytes + count * unit_bytes);
	refuse("many", words);
	free(text);
}

static void check_files(void)
{
	char garbage[2048];
	struct random_source source = {.state = 1};
	int fd;

	refuse("/dev/zero", "is no text");
	for (size_t i = 0; i < sizeof(garbage); i++) {
		garbage[i] = (char)random_next(&source);
	}
	write_bytes("garbage.toml", garbage, sizeof(garbage));
	refuse("garbage.toml", "is no text");
	fd = open("large", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	expect_ready("large", fd >= 0 && ftruncate(fd, 100 << 20) == 0);
	close(fd);
	refuse("large", "the file is larger than 64 MiB");
	expect_ready("mkfifo", mkfifo("fifo", 0644) == 0);
	refuse("fifo", "no data for 0.01 s");
	expect_number("a folder", -EISDIR, read_rules("."));
	expect_number("none", -ENOENT, read_rules("none"));
}

static void check_bounds(void)
{
	if (!toml_is_known()) {
		return;
	}
	refuse_many("a = ", "[", 100000, "nested more than");
	refuse_many("a = ", "{a=", 100000, "nested more than");
	refuse_many("b = 1\na", ".a", 100000, "nested more than");
	refuse_many("[a", ".\"a\"", 100000, "nested more than");
	refuse_many("[[rules]]\n[, 1]", "", 0, "no TOML");
	refuse_many("a = [", "1,", 1000001, "more than 1000000 values");
	refuse_many("a = '''", "x", 100000, "no TOML");
	refuse_many("a = \"", "\\", 99999, "no TOML");
	refuse_many("a = \"\xff\"", "", 0, "no TOML");
	refuse_many("a = 1\n", "b = 2\n", 2, "no TOML");
	refuse_many("[[rules]]\nid = \"a\"\nregex = \"a\"\nfilter = '''", "(", 100000, "");
}

/* Quotes, brackets and dots in strings and comments bound nothing. */
static void check_strings(void)
{
	static const char text[] =
		"# [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\n"
		"title = \"\\\"[[[[[[[[[[[[[[[[[[[[[[[[[[[.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a\"\n"
		"description = '''\n''[[[[[[[[[[[[[[[[[[[[[[[[[[[[[['''''\n"
		"minVersion = \"\"\"\\\"\"\" [[[[[[[[[[[[[[[[[[[[[[[[[[[[[ \\\\\"\"\"\n"
		"[[rules]]\nid = \"a\"\nregex = '[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\'\n";

	write_bytes("strings", text, sizeof(text) - 1);
	expect_number("strings", 0, read_rules("strings"));
	expect_text("remarks", "", last_remark);
}

static void check_changes(void)
{
	static const char text[] =
		"title = 'x'\nfilter = '''matchesAny(finding[\"secret\"], [`a`])'''\n"
		"[[rules]]\nid = \"a\"\nregex = '''a(b)'''\nentropy = 1.5\nkeywords = [\"k\"]\n"
		"filter = '''\nlet a = finding[\"line\"][1:2];\nentropy(a) <= 2 || \"x\" in [\"y\"]"
		"'''\n[[rules.allowlists]]\nregexes = [\"\"\"x\"\"\", 'y']\ncommits = [\"1\"]\n"
		"[[rules.required]]\nid = \"b\"\nwithinLines = 2\n[[rules]]\nid = \"b\"\n"
		"regex = \"b\"\n[allowlist]\npaths = [\"p\"]\n";
	enum { ROUNDS = 500 };
	struct random_source source;
	char changed[2 * sizeof(text)];

	random_begin(&source);
	for (int round = 0; round < ROUNDS; round++) {
		size_t length = sizeof(text) - 1;
		size_t changes = 1 + random_below(&source, 4);

		memcpy(changed, text, length);
		for (size_t i = 0; i < changes; i++) {
			size_t at = random_below(&source, length);
			size_t bytes = random_below(&source, length - at > 20 ? 20 : length - at);

			switch (random_below(&source, 3)) {
			case 0:
				changed[at] = "[]{}\"'.,=#\\()\n`?"[random_below(&source, 16)];
				break;
			case 1:
				memmove(changed + at, changed + at + bytes, length - at - bytes);
				length -= bytes;
				break;
			default:
				memmove(changed + at + bytes, changed + at, length - at);
				length += bytes;
				break;
			}
		}
		write_bytes("changed.toml", changed, length);
		(void)read_rules("changed.toml");
	}
}

int main(void)
{
	scratch_enter("hostile_rules");
	check_files();
	check_bounds();
	if (toml_is_known()) {
		check_strings();
		check_changes();
	}
	scratch_leave();
	return expect_status();
}

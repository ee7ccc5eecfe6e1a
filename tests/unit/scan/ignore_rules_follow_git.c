/* SPDX-License-Identifier: MIT */
/*
 * Goal: a line of an ignore file means what gitignore(5) says it means (EX-53),
 * and no pattern makes a comparison take for ever.
 * Method: a table of lines, paths and verdicts; patterns that take a matcher
 * which tries everything longer than there is time; and where git is installed,
 * random trees with random ignore files, of which `git check-ignore` has to
 * hide the same paths as a walk does.
 */
#include "runtime/base/base.h"
#include "runtime/scan/ignore.h"
#include "tests/support/random.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <pinion/walk.h>

enum {
	LIMIT_SECONDS = 120,
	STARS = 120,
	NAME_BYTES = 255,
	DEPTH = 2000,
	ROUNDS = 12, /* of git */
};

/* ---- a table ---- */

static const struct {
	const char *rules;
	const char *path; /* a slash at its end: a directory */
	char verdict;	  /* h: hides, s: shows, -: silent */
} table[] = {
	/* names, at any depth */
	{"name", "name", 'h'},
	{"name", "a/b/name", 'h'},
	{"name", "names", '-'},
	{"name", "aname", '-'},
	{"name", "name/", 'h'},
	{"name/", "name/", 'h'},
	{"name/", "a/name/", 'h'},
	{"name/", "name", '-'},
	{"Name", "name", '-'},
	/* lines that say nothing */
	{"", "a", '-'},
	{"\n\n\n", "a", '-'},
	{"# name\n", "# name", '-'},
	{"\\# name", "# name", 'h'},
	{"!", "a", '-'},
	{"/", "a/", '-'},
	{"//", "a/", '-'},
	{"!/", "a/", '-'},
	{"   ", "   ", '-'},
	{"\r\n", "\r", '-'},
	/* what belongs to a line */
	{"name\r\n", "name", 'h'},
	{"name\r", "name", 'h'},
	{"a\rb", "a\rb", 'h'},
	{"name  ", "name", 'h'},
	{"name  ", "name  ", '-'},
	{"name\\ ", "name ", 'h'},
	{"name\\  ", "name ", 'h'},
	{"a b", "a b", 'h'},
	{"name\t", "name\t", 'h'},
	{" name", " name", 'h'},
	{" name", "name", '-'},
	{"\\!name", "!name", 'h'},
	{"\xef\xbb\xbfname", "name", 'h'},
	{"other\n\xef\xbb\xbfname", "name", '-'},
	{"n\xc3\xa4me", "n\xc3\xa4me", 'h'},
	{"n\xff\xfe", "n\xff\xfe", 'h'},
	/* a slash in front or within: from here */
	{"/name", "name", 'h'},
	{"/name", "a/name", '-'},
	{"a/name", "a/name", 'h'},
	{"a/name", "b/a/name", '-'},
	{"/a/name/", "a/name/", 'h'},
	{"/a/name/", "a/name", '-'},
	{"a//name", "a/name", '-'},
	{"a/name//", "a/name/", '-'},
	/* the last that matches */
	{"*.o\n!keep.o", "keep.o", 's'},
	{"!keep.o\n*.o", "keep.o", 'h'},
	{"*.o\n!keep.o\nkeep.*", "keep.o", 'h'},
	{"*\n!*/", "a/", 's'},
	{"*\n!*/", "a", 'h'},
	{"!name", "name", 's'},
	{"!/name/", "name/", 's'},
	/* stars and question marks do not go across a slash */
	{"*", "a", 'h'},
	{"*", "a/.b", 'h'},
	{"*.o", ".o", 'h'},
	{"*.o", "a.o.c", '-'},
	{"*.o", "a/b.o", 'h'},
	{"/*.o", "a/b.o", '-'},
	{"a*", "a", 'h'},
	{"a*c*e", "abcde", 'h'},
	{"a*c*e", "abcd", '-'},
	{"a*b", "aabab", 'h'},
	{"a/*", "a/b", 'h'},
	{"a/*", "a/b/c", '-'},
	{"a/*/c", "a/b/c", 'h'},
	{"a/*/c", "a/c", '-'},
	{"a/*/c", "a/b/b/c", '-'},
	{"a/b*/c", "a/b/c", 'h'},
	{"?", "a", 'h'},
	{"?", "ab", '-'},
	{"a?c", "abc", 'h'},
	{"a?c/d", "a/c/d", '-'},
	{"/a?b", "a/b", '-'},
	{"??", "\xc3\xa4", 'h'}, /* bytes, as to git */
	/* two stars */
	{"**/name", "name", 'h'},
	{"**/name", "a/b/name", 'h'},
	{"**/name", "a/names", '-'},
	{"**/a/b", "a/b", 'h'},
	{"**/a/b", "c/d/a/b", 'h'},
	{"**/a/b", "a/c/b", '-'},
	{"a/**", "a/b", 'h'},
	{"a/**", "a/b/c/d", 'h'},
	{"a/**", "a/", '-'},
	{"a/**", "b/a/c", '-'},
	{"a/**/b", "a/b", 'h'},
	{"a/**/b", "a/x/b", 'h'},
	{"a/**/b", "a/x/y/b", 'h'},
	{"a/**/b", "ab", '-'},
	{"a/**/b", "a/xb", '-'},
	{"a/**/b/**/c", "a/x/b/y/b/z/c", 'h'},
	{"a/**/b/**/c", "a/x/y/c", '-'},
	{"**/a/**/b", "x/a/y/a/z/b", 'h'},
	{"**/*.o", "a/b.o", 'h'},
	{"**/a*/c", "x/ab/d/ac/c", 'h'},
	{"a/**/", "a/b/", 'h'},
	{"a/**/", "a/b", '-'},
	{"**", "a/b", 'h'},
	{"/**", "a/b", 'h'},
	{"**/", "a/", 'h'},
	{"**/", "a", '-'},
	{"***/c", "a/b/c", 'h'},
	{"a/**b/c", "a/b/c", 'h'},
	{"a/**b/c", "a/x/b/c", '-'},
	{"a**/c", "ab/c", 'h'},
	/* as git does, if not as its page says */
	{"a**/c", "ab/b/c", 'h'},
	{"a**/c", "a/b/c", 'h'},
	{"a**/c", "ac", 'h'},
	{"a**/c", "abc", '-'},
	{"d/a**/c", "d/ac", 'h'},
	{"d/a**/c", "d/ab/b/c", 'h'},
	{"d/a**\\/c", "d/ab/b/c", 'h'},
	{"d/a**\\/c", "d/ac", '-'},
	{"/a**", "a/b", 'h'},
	{"a**c/d", "ab/c/d", '-'},
	{"?**/c", "ab/b/c", '-'},
	{"\\a**/c", "ab/b/c", '-'},
	{"[a]**/c", "ab/b/c", '-'},
	{"a*b**/c", "abb/b/c", '-'},
	{"a**/b**/c", "a/bb/d/c", '-'},
	{"a**/b**/c", "a/bb/c", 'h'},
	{"**\\/c", "a/b/c", 'h'},
	{"**\\/c", "c", '-'},
	/* backslashes */
	{"\\*", "*", 'h'},
	{"\\*", "a", '-'},
	{"a\\?", "a?", 'h'},
	{"a\\b", "ab", 'h'},
	{"a\\\\b", "a\\b", 'h'},
	{"a\\", "a\\", '-'},
	{"a\\", "a", '-'},
	{"a\\/b", "a/b", 'h'},
	/* brackets */
	{"[ab]", "b", 'h'},
	{"[ab]", "c", '-'},
	{"[!ab]", "c", 'h'},
	{"[^ab]", "a", '-'},
	{"[a-c]x", "bx", 'h'},
	{"[c-a]", "b", '-'},
	{"[a-]", "-", 'h'},
	{"[-a]", "-", 'h'},
	{"[a-c-e]", "-", 'h'},
	{"[a-c-e]", "d", '-'},
	{"[]a]", "]", 'h'},
	{"[!]a]", "]", '-'},
	{"[!]a]", "b", 'h'},
	{"[a\\]]", "]", 'h'},
	{"[\\a-c]", "b", 'h'},
	{"[a-\\c]", "b", 'h'},
	{"[\\!a]", "!", 'h'},
	{"[[:alpha:]]", "x", 'h'},
	{"[[:alpha:]]", "1", '-'},
	{"[![:digit:]]", "x", 'h'},
	{"[[:digit:]a-c]", "b", 'h'},
	{"[[:foo:]]", "f", '-'},
	{"[![:foo:]]", "f", '-'},
	{"[[::]]", ":", '-'},
	{"[[:]", "[", 'h'},
	{"[[:]", ":", 'h'},
	{"[[:alpha]", "h", 'h'},
	{"[", "[", '-'},
	{"[a", "[a", '-'},
	{"[!", "[!", '-'},
	{"[a\\", "a", '-'},
	{"[a-", "[a-", '-'},
	{"[[:alpha:", "a", '-'},
	{"/a[/]b", "a/b", '-'},
	{"/a[!x]b", "a/b", '-'},
	{"x[a/b]y", "xay", 'h'},
	{"[\xc3]", "\xc3", 'h'},
	{"[\x80-\xff]", "\xc3", 'h'},
};

static enum pin_ignore_verdict decide(struct pin_ignore_rules *rules, const char *path)
{
	size_t path_bytes = strlen(path);
	bool is_directory = path[path_bytes - 1] == '/';
	struct pin_ignore_path asked = {.bytes = path, .is_directory = is_directory};
	const char *name;

	asked.path_bytes = path_bytes - is_directory;
	name = memrchr(path, '/', asked.path_bytes);
	asked.name_bytes =
		name == NULL ? asked.path_bytes : asked.path_bytes - (size_t)(name + 1 - path);
	return pin_ignore_rules_decide(rules, &asked);
}

static int add(struct pin_ignore_rules *rules, const char *text, size_t bytes)
{
	char *room = pin_ignore_rules_reserve(rules, bytes);

	expect_ready("reserve", room != NULL);
	memcpy(room, text, bytes);
	return pin_ignore_rules_add(rules, bytes);
}

static void check_table(void)
{
	static const char verdicts[] = {
		[PIN_IGNORE_SILENT] = '-', [PIN_IGNORE_HIDES] = 'h', [PIN_IGNORE_SHOWS] = 's'};

	for (size_t i = 0; i < PIN_ARRAY_COUNT(table); i++) {
		struct pin_ignore_rules rules = {.host = &pin_host_linux};
		char what[200];

		snprintf(what, sizeof(what), "rules {%s}, path %s", table[i].rules, table[i].path);
		expect_number(what, 0, add(&rules, table[i].rules, strlen(table[i].rules)));
		pin_ignore_rules_trim(&rules);
		expect_number(what, table[i].verdict, verdicts[decide(&rules, table[i].path)]);
		pin_ignore_rules_fini(&rules);
	}
}

/* A refused line leaves the rules as they were, and the next one is taken. */
static void check_refusals(void)
{
	struct pin_ignore_rules rules = {.host = &pin_host_linux};
	static char line[PIN_IGNORE_LINE_BYTES_MAX + 2];

	expect_number("first", 0, add(&rules, "first\n", 6));
	expect_number("a NUL", -EILSEQ, add(&rules, "bad\n\0", 5));
	memset(line, 'x', sizeof(line));
	line[0] = '\n';
	expect_number("a long line", -EFBIG, add(&rules, line, sizeof(line)));
	expect_number("not as long", 0, add(&rules, line, sizeof(line) - 1));
	expect_number("last", 0, add(&rules, "last", 4));
	expect_number("first hides", PIN_IGNORE_HIDES, decide(&rules, "first"));
	expect_number("bad does not", PIN_IGNORE_SILENT, decide(&rules, "bad"));
	expect_number("last hides", PIN_IGNORE_HIDES, decide(&rules, "last"));
	pin_ignore_rules_fini(&rules);
}

/* ---- patterns that have no end ---- */

static bool matches(const char *pattern, const char *path)
{
	return pin_glob_matches(pattern, strlen(pattern), path, strlen(path));
}

/* As `unit`, `count` times, then the end. */
static char *repeat(const char *unit, size_t count, const char *end)
{
	size_t unit_bytes = strlen(unit);
	char *text = malloc(count * unit_bytes + strlen(end) + 1);

	expect_ready("malloc", text != NULL);
	for (size_t i = 0; i < count; i++) {
		memcpy(text + i * unit_bytes, unit, unit_bytes);
	}
	strcpy(text + count * unit_bytes, end);
	return text;
}

static void check_pair(const char *what, bool expected, char *pattern, char *path)
{
	expect_number(what, expected, matches(pattern, path));
	free(pattern);
	free(path);
}

/* A matcher that tries all ways does not return from any of these. */
static void check_endless(void)
{
	check_pair("stars in a name", false, repeat("*a", STARS, "b"), repeat("a", NAME_BYTES, ""));
	check_pair("and they match", true, repeat("*a", STARS, "b"), repeat("a", NAME_BYTES, "b"));
	check_pair("only stars", true, repeat("*", 4000, ""), repeat("a", NAME_BYTES, ""));
	check_pair("directories", false, repeat("**/a/", STARS, "b"), repeat("a/", DEPTH, "c"));
	check_pair("and they match", true, repeat("**/a/", STARS, "b"), repeat("a/", DEPTH, "b"));
	check_pair("both", false, repeat("**/*a*a/", STARS, "b"), repeat("aaaa/", DEPTH, "c"));
	check_pair("brackets", false, repeat("*[a-b]", STARS, "c"), repeat("a", NAME_BYTES, ""));
	check_pair("brackets never closed", false, repeat("*[", STARS, "c"),
		repeat("a", NAME_BYTES, ""));
	check_pair("two stars in names", false, repeat("**a", STARS, "b"),
		repeat("a", NAME_BYTES, ""));
}

/* ---- git ---- */

static struct random_source source;

static const char *pick(const char *const *choices, size_t count)
{
	return choices[random_below(&source, count)];
}

/* Names that patterns are likely to match. */
static const char *random_name(void)
{
	static const char *const names[] = {"a", "b", "ab", "abc", "a.o", ".a", "b.c", "a b", "*",
		"[a]", "a-b", "\\a", "!a", "#b", "a ", "\xc3\xa4", "ba", "bb.o"};

	return pick(names, PIN_ARRAY_COUNT(names));
}

static void write_part(FILE *file)
{
	static const char *const pieces[] = {"a", "b", "c", ".", "*", "?", "[ab]", "[!a]", "[a-b]",
		"\\a", "\\*", " ", "-", "[[:alpha:]]", "[]a]", "[a", "**", "*.o", "a*", "o", "\\",
		"!", "\xc3\xa4"};

	switch (random_below(&source, 6)) {
	case 0:
		fputs("**", file);
		break;
	case 1:
		fputs("*", file);
		break;
	case 2:
	case 3:
		fputs(random_name(), file);
		break;
	default:
		for (uint64_t left = random_below(&source, 4) + 1; left > 0; left--) {
			const char *piece = pick(pieces, PIN_ARRAY_COUNT(pieces));

			fputs(piece, file);
		}
		break;
	}
}

static void write_rule(FILE *file)
{
	static const char *const ends[] = {"", "", "", "", "/", "/", " ", "\\ ", "\r"};
	uint64_t parts = random_below(&source, 8);

	fputs(random_below(&source, 4) == 0 ? "!" : "", file);
	fputs(random_below(&source, 4) == 0 ? "/" : "", file);
	write_part(file);
	for (parts = parts < 4 ? 0 : parts - 4; parts > 0; parts--) {
		fputc('/', file);
		write_part(file);
	}
	fprintf(file, "%s\n", pick(ends, PIN_ARRAY_COUNT(ends)));
}

static void write_rules(const char *directory, const char *name)
{
	char path[400];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "w");
	expect_ready(path, file != NULL);
	for (uint64_t left = random_below(&source, 5) + 1; left > 0; left--) {
		write_rule(file);
	}
	expect_ready(path, fclose(file) == 0);
}

/* Names may come twice: then there is one less. */
static void make_random(const char *directory, int depth)
{
	char path[400];

	for (int i = 0; i < 6; i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, random_name());
		if (depth > 0 && random_below(&source, 2) == 0) {
			if (mkdir(path, 0755) == 0) {
				make_random(path, depth - 1);
			}
		} else {
			int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

			if (fd >= 0) {
				close(fd);
			}
		}
	}
	if (random_below(&source, 3) == 0) {
		write_rules(directory, ".gitignore");
	}
}

/* Paths as git is asked for them and answers, each ending in NUL. */
struct paths {
	char *bytes;
	size_t length;
	size_t capacity;
};

static void paths_add(struct paths *paths, const char *path)
{
	size_t bytes = strlen(path) + 1;

	if (paths->length + bytes > paths->capacity) {
		paths->capacity = 2 * (paths->length + bytes);
		paths->bytes = realloc(paths->bytes, paths->capacity);
		expect_ready("realloc", paths->bytes != NULL);
	}
	memcpy(paths->bytes + paths->length, path, bytes);
	paths->length += bytes;
}

static bool paths_have(const struct paths *paths, const char *path)
{
	for (size_t at = 0; at < paths->length; at += strlen(paths->bytes + at) + 1) {
		if (strcmp(paths->bytes + at, path) == 0) {
			return true;
		}
	}
	return false;
}

static int note_file(void *arg, const struct pinion_walk_entry *entry)
{
	expect_true(
		entry->path, entry->kind == PINION_WALK_FILE || entry->kind == PINION_WALK_IGNORED);
	/* Without the root, "./". */
	if (entry->kind == PINION_WALK_FILE && strncmp(entry->path, "./.git/", 7) != 0) {
		paths_add(arg, entry->path + 2);
	}
	return 0;
}

static void walk_tree(uint32_t skip_ignored, struct paths *out_paths)
{
	struct pinion_walk_config config;

	*out_paths = (struct paths){.length = 0};
	pinion_walk_config_init(&config);
	config.skip_ignored = skip_ignored;
	expect_number("walk", 0, pinion_walk_with(".", &config, note_file, out_paths));
}

static void ask_git(const struct paths *all, struct paths *out_hidden)
{
	FILE *questions = fopen("../questions", "w");
	FILE *answers;
	int c;
	char path[400];
	size_t length = 0;

	expect_ready("questions",
		questions != NULL && fwrite(all->bytes, 1, all->length, questions) == all->length &&
			fclose(questions) == 0);
	answers = popen("git check-ignore --stdin -z <../questions", "r");
	expect_ready("git", answers != NULL);
	*out_hidden = (struct paths){.length = 0};
	while ((c = fgetc(answers)) != EOF && length < sizeof(path)) {
		path[length++] = (char)c;
		if (c == '\0') {
			paths_add(out_hidden, path);
			length = 0;
		}
	}
	/* 0: some are ignored, 1: none is. */
	c = pclose(answers);
	expect_ready("git check-ignore", WIFEXITED(c) && WEXITSTATUS(c) <= 1);
}

static void compare_with_git(unsigned round)
{
	struct paths all;
	struct paths seen;
	struct paths hidden;
	char what[300];
	size_t hidden_count = 0;

	walk_tree(0, &all);
	walk_tree(1, &seen);
	ask_git(&all, &hidden);
	for (size_t at = 0; at < all.length; at += strlen(all.bytes + at) + 1) {
		const char *path = all.bytes + at;
		bool is_hidden = paths_have(&hidden, path);

		hidden_count += is_hidden;
		snprintf(what, sizeof(what), "round %u: git hides %.200s", round, path);
		expect_number(what, is_hidden, !paths_have(&seen, path));
	}
	printf("round %u: %zu hidden\n", round, hidden_count);
	free(all.bytes);
	free(seen.bytes);
	free(hidden.bytes);
}

/* False: there is no git. */
static bool check_git(void)
{
	if (system("git --version >/dev/null 2>&1") != 0) {
		return false;
	}
	/* Nothing of the user's, or of the machine's. */
	setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
	setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
	setenv("XDG_CONFIG_HOME", scratch_path, 1);
	setenv("HOME", scratch_path, 1);
	for (unsigned i = 0; i < ROUNDS && expect_failure_count == 0; i++) {
		char name[32];

		snprintf(name, sizeof(name), "git%u", i);
		expect_ready(name, mkdir(name, 0755) == 0 && chdir(name) == 0);
		expect_ready("git init", system("git init -q .") == 0);
		make_random(".", 3);
		write_rules(".", ".git/info/exclude");
		compare_with_git(i);
		expect_ready("chdir", chdir("..") == 0);
	}
	return true;
}

int main(void)
{
	bool has_git;

	random_begin(&source);
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("ignore_rules_follow_git");
	check_table();
	check_refusals();
	check_endless();
	has_git = check_git();
	/* A failure leaves its tree, to be looked at. */
	if (expect_failure_count == 0) {
		scratch_leave();
	}
	if (!has_git && expect_failure_count == 0) {
		printf("git is not installed: not compared with it\n");
		return EXPECT_SKIPPED;
	}
	return expect_status();
}

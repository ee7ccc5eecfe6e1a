/* SPDX-License-Identifier: MIT */
/*
 * Goal: of the matches of a rule with a filter exactly those are findings that
 * pass its entropy, allowlists, path, condition and companions, whatever the
 * windows; the secret is the group it names.
 *
 * Method: one text and one rule a row, with the findings expected. Entropies
 * are calculated by hand. Proves EX-51, EX-52.
 */
#include "tests/support/expect.h"
#include "tools/scan/confirm.h"
#include "tools/scan/engine.h"
#include "tools/scan/findings.h"
#include "tools/scan/findings_limits.h"
#include "tools/scan/rule_filter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if !defined(HAVE_PCRE2) || !defined(HAVE_HYPERSCAN)
int main(void)
{
	printf("skipped: built without PCRE2 or Hyperscan\n");
	return 77;
}
#else

enum { STEP_BYTES = 16 };

/* What rows have in common. */
struct subject {
	struct rules rules;
	const char *path;
	const char *text;
	char found[256]; /* RULE:SECRET for each finding, with spaces between */
	char limits[64];
	uint64_t secret_bytes; /* of the last finding */
};

static struct rule_filter *add_rule(struct subject *subject, const char *id, const char *pattern)
{
	struct rule_filter *filter = rule_filter_create(RULE_DIALECT_GO);

	expect_ready(pattern,
		filter != NULL &&
			rules_add(&subject->rules, id, pattern, strlen(pattern), false) == 0);
	rules_set_filter(&subject->rules, filter);
	return filter;
}

static void collect(void *arg, const struct finding *findings, size_t count)
{
	struct subject *subject = arg;

	for (size_t i = 0; i < count; i++) {
		const struct finding *finding = &findings[i];
		size_t length = strlen(subject->found);

		subject->secret_bytes = finding->secret_end - finding->secret_start;
		snprintf(subject->found + length, sizeof(subject->found) - length, "%s%s:%.*s",
			length > 0 ? " " : "", subject->rules.items[finding->rule].id,
			(int)(finding->secret_end - finding->secret_start),
			(const char *)finding->text +
				(finding->secret_start - finding->text_start));
	}
}

static void note_limit(void *arg, const struct findings_limit *limit)
{
	struct subject *subject = arg;

	snprintf(subject->limits, sizeof(subject->limits), "%s%s at %llu",
		limit->costly_count > 0	  ? "steps"
			: limit->is_dense ? "density"
					  : "findings",
		limit->is_over ? "" : ", goes on,", (unsigned long long)limit->searched_to);
}

static bool locate(
	void *arg, const struct finding *finding, uint64_t *out_line, uint64_t *out_column)
{
	const struct subject *subject = arg;

	*out_line = 1;
	*out_column = 1;
	for (uint64_t i = 0; i < finding->start; i++) {
		*out_line += subject->text[i] == '\n';
		*out_column = subject->text[i] == '\n' ? 1 : *out_column + 1;
	}
	return true;
}

static void scan(struct subject *subject, size_t step)
{
	struct matcher_trouble trouble = {0};
	struct findings findings;
	struct engine *engine;
	struct engine_worker *worker;
	struct engine_yield yield = {0};
	struct engine_file engine_file;
	struct findings_file file = {0};
	size_t length = strlen(subject->text);

	subject->found[0] = '\0';
	subject->limits[0] = '\0';
	subject->secret_bytes = 0;
	expect_ready("engine",
		engine_create(&matcher_hyperscan, &subject->rules, &engine, &trouble) == 0);
	expect_ready("worker", engine_worker_create(engine, &worker) == 0);
	findings_init(&findings, &subject->rules);
	expect_number("open", 0, engine_file_open(engine, &engine_file));
	findings_file_init(&file);
	file.path = subject->path;
	file.path_bytes = strlen(subject->path);
	file.locate = locate;
	file.locate_arg = subject;
	engine_file.over = &file.over;
	for (size_t from = 0, i = 0; from < length; from += step, i++) {
		struct pinion_window window = {
			.bytes = (const uint8_t *)subject->text,
			.length_bytes = from + step < length ? from + step : length,
			.prefix_bytes = from,
			.index = i,
			.is_last = from + step >= length,
		};

		expect_number("window", 0, engine_window(worker, &engine_file, &window, &yield));
		expect_number("add", 0,
			findings_add(&findings, &file, &window, &yield, collect, subject));
	}
	expect_number("finish", 0, findings_finish(&findings, &file, collect, subject));
	findings_limits_show(&file, note_limit, subject);
	findings_file_fini(&file);
	engine_file_close(worker, &engine_file);
	engine_worker_destroy(worker);
	engine_destroy(engine);
	candidates_free(&yield.found);
	snippets_free(&yield.snippets);
}

static void measure(const char *what, struct subject *subject, const char *text)
{
	struct matcher_trouble trouble = {0};
	const char *missing;
	uint32_t rule;

	subject->text = text;
	subject->path = subject->path != NULL ? subject->path : "src/a.c";
	for (uint32_t i = 0; i < subject->rules.count; i++) {
		expect_ready(
			what, matcher_hyperscan.measure(&subject->rules.items[i], &trouble) == 0);
	}
	expect_ready(what, rules_resolve(&subject->rules, &rule, &missing) == 0);
}

/* In windows of that many bytes. */
static void expect_in_steps(
	const char *what, struct subject *subject, const char *expected, size_t step)
{
	scan(subject, step);
	expect_text(what, expected, subject->found);
}

/* Frees the rules. */
static void expect_found(
	const char *what, struct subject *subject, const char *text, const char *expected)
{
	measure(what, subject, text);
	expect_in_steps(what, subject, expected, STEP_BYTES);
	expect_in_steps(what, subject, expected, strlen(text));
	rules_free(&subject->rules);
}

/* Of long texts. */
static void expect_whole(
	const char *what, struct subject *subject, const char *text, const char *expected)
{
	measure(what, subject, text);
	expect_in_steps(what, subject, expected, 5000);
	expect_in_steps(what, subject, expected, strlen(text));
	rules_free(&subject->rules);
}

static void check_secrets(void)
{
	static const char text[] = "key=abc12 key=9 ";
	struct subject subject = {0};

	(void)add_rule(&subject, "r", "key=([a-z]*)([0-9]*)");
	expect_found("the first group that is not empty", &subject, text, "r:abc r:9");
	subject = (struct subject){0};
	add_rule(&subject, "r", "key=([a-z]*)([0-9]*)")->secret_group = 2;
	expect_found("the group of that number", &subject, text, "r:12 r:9");
	subject = (struct subject){0};
	(void)add_rule(&subject, "r", "\n?key=.(?:\n|$)");
	expect_found(
		"a match without its newlines", &subject, "x\nkey=a\nkey=b", "r:key=a r:key=b");
}

static void check_entropy(void)
{
	struct subject subject = {0};

	expect_true("two of four", fabs(rule_entropy((const uint8_t *)"aabb", 4) - 1) < 1e-9);
	expect_true("four of four", fabs(rule_entropy((const uint8_t *)"abcd", 4) - 2) < 1e-9);
	expect_true("one", fabs(rule_entropy((const uint8_t *)"aaaa", 4)) < 1e-9);
	expect_true("aab: log2(3) - 2/3",
		fabs(rule_entropy((const uint8_t *)"aab", 3) - 0.9182958340544896) < 1e-9);
	expect_true("nothing", rule_entropy((const uint8_t *)"", 0) == 0);
	add_rule(&subject, "r", "=([a-z]{4})")->entropy_min = 1;
	expect_found("more than the least", &subject, "=aabb =abcd =aaab =aabc", "r:abcd r:aabc");
}

static struct rule_allowlist *add_list(struct rule_filter *filter)
{
	struct rule_allowlist *list = rule_allowlists_add(filter->own);

	expect_ready("list", list != NULL);
	return list;
}

static void check_allowlists(void)
{
	static const char text[] = "k=one x\nk=two\nk=test3 # fine\n";
	/* One of many stop words, and what it leaves. */
	static const char *const words[][2] = {{"TeSt", "r:one r:two"}, {"t3", "r:one r:two"},
		{"EST3", "r:one r:two"}, {"two", "r:one r:test3"}, {"o", "r:test3"},
		{"test3", "r:one r:two"}, {"te3", "r:one r:two r:test3"},
		{"test33", "r:one r:two r:test3"}, {"", ""}};
	static char far[16384];
	struct subject subject = {0};
	struct rule_allowlist *list;

	list = add_list(add_rule(&subject, "r", "k=([a-z0-9]+)"));
	(void)rule_regexes_add(&list->regexes, "^t.o$");
	(void)rule_words_add(&list->stopwords, "TEST");
	expect_found("a secret's expression or a word", &subject, text, "r:one");

	for (size_t word = 0; word < sizeof(words) / sizeof(words[0]); word++) {
		subject = (struct subject){0};
		list = add_list(add_rule(&subject, "r", "k=([a-z0-9]+)"));
		for (int i = 0; i < 9; i++) {
			(void)rule_words_add(&list->stopwords, "absent");
		}
		(void)rule_words_add(&list->stopwords, words[word][0]);
		expect_found(words[word][0], &subject, text, words[word][1]);
	}

	subject = (struct subject){0};
	list = add_list(add_rule(&subject, "r", "k=([a-z0-9]+)"));
	(void)rule_regexes_add(&list->regexes, "^k=two$");
	list->target = RULE_TARGET_MATCH;
	expect_found("a match's expression", &subject, text, "r:one r:test3");

	subject = (struct subject){0};
	list = add_list(add_rule(&subject, "r", "k=([a-z0-9]+)"));
	(void)rule_regexes_add(&list->regexes, "# fine$|x$");
	list->target = RULE_TARGET_LINE;
	expect_found("a line's expression", &subject, text, "r:two");

	subject = (struct subject){.path = "tests/a.c"};
	list = add_list(add_rule(&subject, "r", "k=([a-z0-9]+)"));
	(void)rule_regexes_add(&list->paths, "^tests/");
	(void)rule_words_add(&list->stopwords, "o");
	list->needs_all = true;
	expect_found("all kinds", &subject, text, "r:test3");

	/* Far from the match; neither `^` nor `$` is where the line is cut. */
	memset(far, '-', sizeof(far) - 1);
	memcpy(far + 4200, "k=one", 5);
	memcpy(far + 4200 + 5 + 4000, "END\nk=two", 9);
	subject = (struct subject){0};
	list = add_list(add_rule(&subject, "r", "k=([a-z]+)"));
	(void)rule_regexes_add(&list->regexes, "END$");
	list->target = RULE_TARGET_LINE;
	expect_whole("4000 bytes away", &subject, far, "r:two");
	subject = (struct subject){0};
	list = add_list(add_rule(&subject, "r", "k=([a-z]+)"));
	(void)rule_regexes_add(&list->regexes, "^-+k|(?m)^-+k|k=two-+(?:$|\\z)");
	list->target = RULE_TARGET_LINE;
	expect_whole("cuts", &subject, far, "r:one r:two");

	subject = (struct subject){0};
	list = add_list(add_rule(&subject, "r", "k=([a-z0-9]+)"));
	(void)rule_regexes_add(&list->paths, "^tests/");
	(void)rule_words_add(&list->stopwords, "o");
	list->needs_all = true;
	expect_found("not all kinds", &subject, text, "r:one r:two r:test3");
}

static bool keeps_short(const void *object, const struct rule_subject *subject)
{
	return subject->secret_bytes <= *(const size_t *)object && subject->entropy > 0 &&
		strcmp(subject->path, "src/a.c") == 0 && subject->line_bytes > 3;
}

static void check_others(void)
{
	static size_t most = 3;
	struct subject subject = {0};
	struct rule_filter *filter = add_rule(&subject, "r", "k=([a-z]+)");

	filter->condition.object = &most;
	filter->condition.keeps = keeps_short;
	expect_found("a condition", &subject, "k=abc k=abcd k=aaa", "r:abc");

	subject = (struct subject){.path = "a.env"};
	filter = add_rule(&subject, "env", "k=([a-z]+)");
	expect_ready("path", rule_text_set(&filter->path.pattern, "\\.env$") == 0);
	filter = add_rule(&subject, "c", "k=([a-z]+)");
	expect_ready("path", rule_text_set(&filter->path.pattern, "\\.c$") == 0);
	expect_found("files of a path", &subject, "k=abc", "env:abc");
}

static void check_companions(void)
{
	static const char text[] = "id=1\nx\nkey=a\n\n\n\nid=2 key=b\n\n\n\nkey=c\n";
	struct subject subject = {0};
	struct rule_companion near = {
		.rule_id = (char *)"id", .has_lines = true, .within_lines = 2};
	struct rule_filter *filter = add_rule(&subject, "key", "key=([a-z])");

	expect_ready("memory", rule_filter_add_companion(filter, &near) == 0);
	add_rule(&subject, "id", "id=([0-9])")->skips_report = true;
	expect_found("within lines", &subject, text, "key:a key:b");

	subject = (struct subject){0};
	near.has_columns = true;
	near.within_columns = 1;
	filter = add_rule(&subject, "key", "key=([a-z])");
	expect_ready("memory", rule_filter_add_companion(filter, &near) == 0);
	(void)add_rule(&subject, "id", "id=([0-9])");
	expect_found("and columns", &subject, text, "id:1 key:a id:2");

	subject = (struct subject){0};
	add_rule(&subject, "id", "id=([0-9])")->skips_report = true;
	expect_found("only a companion, of none", &subject, text, "");
}

/* A text of `before`, `unit` so often, and `after`; returns its length. */
static size_t fill(char *text, const char *before, const char *unit, int count, const char *after)
{
	char *end = stpcpy(text, before);

	for (int i = 0; i < count; i++) {
		end = stpcpy(end, unit);
	}
	return (size_t)(stpcpy(end, after) - text);
}

/* The secret of the only finding has that length; 0: there is none. */
static void check_length(const char *pattern, const char *text, uint64_t length)
{
	struct subject subject = {0};

	(void)add_rule(&subject, "r", pattern);
	measure(pattern, &subject, text);
	scan(&subject, strlen(text));
	rules_free(&subject.rules);
	expect_number(pattern, (long long)length, (long long)subject.secret_bytes);
}

static void check_long_matches(void)
{
	static char text[70000];

	(void)fill(text, "K", "ab", 8000, "Z");
	check_length("K((?:a|b)*)Z", text, 16000);
	(void)fill(text, "x\"", "x\\\"", 1500, "\"");
	check_length("\"((?:[^\"\\\\]|\\\\.)*)\"", text, 4500);
	(void)fill(text, "K=", "abc.", 3000, "z;");
	check_length("K=((?:[\\w-]+\\.)*[\\w-]+);", text, 12001);
	(void)fill(text, "K", "x\n", 8000, "Z");
	check_length("K([\\s\\S]*?)Z", text, 16000);
	(void)fill(text, "K", "a", 16384, "Z");
	check_length("K(a+)Z", text, 16384);
	/* Too long: what is not the end may be left out. */
	(void)fill(text, "K", "a", 40000, "Z");
	check_length("K(a+)Z", text, 0);
	check_length("K(a+)", text, 16385);
	/* Groups as in Go. */
	(void)fill(text, "K", "a", 300, "Z");
	check_length("K((a|aa)+)+Z", text, 300);
	check_length("K(a+)+Z", text, 300);
	(void)fill(text, "key=", "abcde", 60, "");
	check_length("key=((?:[a-z0-9]{4,})[-_]?)+", text, 300);
	(void)fill(text, "\"", "ab\\\"", 80, "c\"");
	check_length("\"(?:([^\"\\\\]+)|\\\\.)*\"", text, 1);
}

/* A class of all bytes takes PCRE2 no more than one of them. */
static void check_large_pattern(void)
{
	static const char pattern[] = "(?:[\\s\\S]K[\\s\\S]Q){1000}";
	struct confirm_regex *regex;
	char reason[REGEX_REASON_BYTES] = "";
	uint32_t level = 0;

	expect_number(pattern, 0,
		confirm_regex_create(RULE_DIALECT_GO, CONFIRM_SCOPE_PARTS, pattern,
			sizeof(pattern) - 1, &level, &regex, reason));
	expect_number(reason, 0, confirm_regex_check(regex, reason));
	confirm_regex_destroy(regex);
}

/* 31 matches of a rule may take too many steps; the 32nd ends the rule. */
static void check_costly(uint32_t count, const char *expected)
{
	static const char line[] = "key=aaaaaaaaaaaaaaaaaaaaaaaaaa!\n";
	static char text[33 * sizeof(line)];
	struct subject subject = {0};

	text[0] = '\0';
	for (uint32_t i = 0; i < count; i++) {
		strcat(text, line);
	}
	strcat(text, "key=abc\n");
	(void)add_rule(&subject, "r", "(?m)key=((?:[a-z0-9]+[.]?)+)$");
	measure("after costly matches", &subject, text);
	expect_in_steps("after costly matches", &subject, expected, strlen(text));
	rules_free(&subject.rules);
}

static void check_limits(void)
{
	static char text[512];
	struct subject subject = {.rules.findings_max = 2};

	(void)add_rule(&subject, "r", "k=([a-z])");
	expect_found("two at most", &subject, "k=a k=b k=c k=d", "r:a r:b");
	expect_text("why it ended", "findings at 7", subject.limits);

	/* (a|aa)+$ takes exponentially many steps where there is no end. */
	subject = (struct subject){0};
	memset(text, 'a', 300);
	snprintf(text + 300, sizeof(text) - 300, " b\nab");
	(void)add_rule(&subject, "r", "x|(?:a|aa)+(?:[ab])\\z");
	expect_found("a match that takes too many steps", &subject, text, "");
	expect_text("is named, and is over after many", "steps at 0", subject.limits);
	memset(text, 'a', 30);
	snprintf(text + 30, sizeof(text) - 30, "!\nkey=abc\n");
	memcpy(text, "key=", 4);
	subject = (struct subject){0};
	(void)add_rule(&subject, "r", "(?m)key=((?:[a-z0-9]+[.]?)+)$");
	expect_found("what follows it", &subject, text, "r:abc");
	expect_text("is named", "steps, goes on, at 0", subject.limits);
	check_costly(31, "r:abc");
	check_costly(32, "");
}

int main(void)
{
	check_secrets();
	check_entropy();
	check_allowlists();
	check_others();
	check_companions();
	check_limits();
	check_long_matches();
	check_large_pattern();
	return expect_status();
}
#endif

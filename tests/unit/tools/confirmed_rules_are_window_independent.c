/* SPDX-License-Identifier: MIT */
/*
 * Goal: the findings of confirmed rules are those of PCRE2 over the whole file,
 * filtered, however it is cut into windows and in whatever order these come.
 *
 * Method: random texts over a small alphabet, patterns of both dialects
 * (bounded and not, anchors, look-around, atomic groups, back references), all
 * in one set. The oracle is a loop over the text with PCRE2 alone. Texts that
 * come with findings are those of the file. Proves BP-28, EX-52.
 */
#include "tests/support/expect.h"
#include "tests/support/random.h"
#include "tools/scan/confirm.h"
#include "tools/scan/engine.h"
#include "tools/scan/findings.h"
#include "tools/scan/rule_filter.h"

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

enum {
	/* Longer than what windows overlap by, where a match may be wide. */
	TEXT_BYTES_MAX = 100000,
	SHORT_BYTES_MAX = 4000,
	WINDOWS_MAX = 4000,
	TEXTS = 30,
	/* One in so many is a long text. */
	LONG_SHARE = 5,
	CUTS = 4,
};

static struct random_source source;
static uint64_t seed;

static uint32_t below(uint32_t limit)
{
	return (uint32_t)random_below(&source, limit);
}

struct pattern {
	enum rule_dialect dialect;
	const char *text;
	double entropy_min;
};

static const struct pattern patterns[] = {
	{RULE_DIALECT_GO, "a{2,3}", 0},
	{RULE_DIALECT_GO, "a+b", 0},
	{RULE_DIALECT_GO, "a|ab|abb", 0},
	{RULE_DIALECT_GO, "b([a_ ]*?)b", 0.9},
	{RULE_DIALECT_GO, "(?s)a.*?_", 0},
	{RULE_DIALECT_GO, "(?s)_a.*_", 0},
	{RULE_DIALECT_GO, "\\bab", 0},
	{RULE_DIALECT_GO, "b(?:\\s|$)", 0},
	{RULE_DIALECT_GO, "(?:^|_)a+", 0},
	{RULE_DIALECT_GO, "(?m)^a+$", 0},
	{RULE_DIALECT_GO, "a[^b]{0,40}$", 0},
	{RULE_DIALECT_GO, "(?:ab)+a", 0},
	{RULE_DIALECT_GO, "(?:a+b)+_", 0},
	{RULE_DIALECT_GO, "[ab]{10,60}", 0.99},
	{RULE_DIALECT_GO, "a\\z|b\\n", 0},
	{RULE_DIALECT_GO, "(?s)_a.{0,900}\\z|_a", 0},
	{RULE_DIALECT_PCRE, "a+(?=b)", 0},
	{RULE_DIALECT_PCRE, "a+(?![b_])", 0},
	{RULE_DIALECT_PCRE, "(?<=b)a{1,9}", 0},
	{RULE_DIALECT_PCRE, "(?<!a)b+", 0},
	{RULE_DIALECT_PCRE, "(?>a+)(?:ab|b)", 0},
	{RULE_DIALECT_PCRE, "(a|b)\\1_?", 0},
	{RULE_DIALECT_PCRE, "a++b*+_", 0},
	{RULE_DIALECT_PCRE, "^a+$", 0},
	{RULE_DIALECT_PCRE, "_(?=[^_]*_b)", 0},
	{RULE_DIALECT_PCRE, "b\\Z", 0},
};
enum { PATTERN_COUNT = sizeof(patterns) / sizeof(patterns[0]) };

struct file_text {
	uint8_t bytes[TEXT_BYTES_MAX];
	size_t length;
};

static void fill_some(struct file_text *text, size_t until)
{
	static const char letters[] = "aaaabbbbab_ \n";
	size_t run = 0;
	uint8_t byte = 'a';

	for (; text->length < until; text->length++) {
		if (run == 0) {
			run = below(60) == 0 ? below(900) : 1;
			byte = (uint8_t)letters[below(sizeof(letters) - 1)];
		}
		text->bytes[text->length] = byte;
		run--;
	}
}

/* Long ones are islands in a sea that nothing but `[^b]` matches. */
static void fill_text(struct file_text *text, bool is_long)
{
	text->length = 0;
	if (!is_long) {
		fill_some(text, below(SHORT_BYTES_MAX));
		return;
	}
	while (text->length < TEXT_BYTES_MAX - 4000) {
		size_t sea = below(3000);

		memset(text->bytes + text->length, '\n', sea);
		text->length += sea;
		fill_some(text, text->length + below(60));
	}
}

static void add(struct finding_list *list, uint32_t rule, size_t start, size_t end)
{
	struct finding finding = {.rule = rule, .start = start, .end = end};

	expect_ready("memory", finding_list_add(list, &finding) == 0);
}

static void run_oracle(
	const struct rules *rules, const struct file_text *text, struct finding_list *out)
{
	struct confirm_room *room = confirm_room_create();
	struct confirm_part part = {text->bytes, text->length, true, true};

	for (uint32_t i = 0; i < rules->count; i++) {
		const struct rule_filter *filter = rules->items[i].filter;
		struct confirm_match match;
		size_t from = 0;

		while (confirm_regex_match(
			       filter->pattern, room, &part, from, text->length, 0, &match) == 1) {
			double entropy = rule_entropy(text->bytes + match.secret_start,
				match.secret_end - match.secret_start);

			if (filter->entropy_min <= 0 || entropy > filter->entropy_min) {
				add(out, i, match.start, match.end);
			}
			from = match.end;
		}
	}
	confirm_room_destroy(room);
	finding_list_sort(out);
}

/* A start with too wide a match hides no later one, in whole files too. */
static void check_later_start(const struct rules *rules, struct file_text *text)
{
	struct confirm_part part = {text->bytes, TEXT_BYTES_MAX, true, true};
	struct confirm_room *room = confirm_room_create();
	struct confirm_match match = {0};

	memset(text->bytes, 'b', TEXT_BYTES_MAX);
	text->bytes[10] = 'a';
	text->bytes[3000] = 'a';
	text->bytes[17000] = '_';
	for (uint32_t i = 0; i < rules->count; i++) {
		if (strcmp(patterns[i].text, "(?s)a.*?_") != 0) {
			continue;
		}
		expect_number("match", 1,
			confirm_regex_match(rules->items[i].filter->pattern, room, &part, 0,
				part.length, 0, &match));
	}
	expect_number("start", 3000, (long long)match.start);
	expect_number("end", 17001, (long long)match.end);
	confirm_room_destroy(room);
}

static const struct file_text *text_now;
static uint64_t found_count[PATTERN_COUNT];

static void collect(void *arg, const struct finding *findings, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct finding *finding = &findings[i];
		uint64_t from =
			finding->start > FINDING_CONTEXT ? finding->start - FINDING_CONTEXT : 0;
		uint64_t until = finding->end + FINDING_CONTEXT;

		until = until < text_now->length ? until : text_now->length;
		expect_number("start of the text", (long long)from, (long long)finding->text_start);
		expect_number("length of the text", (long long)(until - from), finding->text_bytes);
		expect_true("text is the file's",
			memcmp(finding->text, text_now->bytes + from, (size_t)(until - from)) == 0);
		add(arg, finding->rule, (size_t)finding->start, (size_t)finding->end);
		found_count[finding->rule]++;
	}
}

static size_t cut(const struct file_text *text, uint32_t overlap, size_t step_max,
	struct pinion_window *windows)
{
	size_t count = 0;
	size_t position = 0;

	do {
		size_t end = position + step_max / 4 + 1 + below((uint32_t)step_max);
		size_t prefix = position < overlap ? position : overlap;

		end = end < text->length ? end : text->length;
		windows[count] = (struct pinion_window){
			.index = count,
			.prefix_bytes = prefix,
			.base_offset_bytes = position - prefix,
			.bytes = text->bytes + position - prefix,
			.length_bytes = end - (position - prefix),
			.is_last = end == text->length,
		};
		count++;
		position = end;
	} while (position < text->length);
	for (size_t i = count; i > 1; i--) {
		size_t j = below((uint32_t)i);
		struct pinion_window window = windows[i - 1];

		windows[i - 1] = windows[j];
		windows[j] = window;
	}
	return count;
}

static void search(struct engine *engine, const struct findings *findings,
	const struct file_text *text, size_t step_max, struct finding_list *out)
{
	static struct pinion_window windows[WINDOWS_MAX];
	struct engine_worker *worker;
	struct engine_yield yield = {0};
	struct engine_file engine_file;
	struct findings_file file = {0};
	size_t count = cut(text, engine_needs(engine).overlap_bytes, step_max, windows);

	expect_number("worker", 0, engine_worker_create(engine, &worker));
	expect_number("open", 0, engine_file_open(engine, &engine_file));
	findings_file_init(&file);
	for (size_t i = 0; i < count; i++) {
		expect_number(
			"window", 0, engine_window(worker, &engine_file, &windows[i], &yield));
		expect_number(
			"add", 0, findings_add(findings, &file, &windows[i], &yield, collect, out));
	}
	expect_number("finish", 0, findings_finish(findings, &file, collect, out));
	expect_number("snippets that are left", 0, (long long)file.snippets.count);
	findings_file_fini(&file);
	engine_file_close(worker, &engine_file);
	engine_worker_destroy(worker);
	candidates_free(&yield.found);
	snippets_free(&yield.snippets);
}

static void compare(const struct finding_list *expected, const struct finding_list *got)
{
	for (size_t i = 0; i < expected->count || i < got->count; i++) {
		const struct finding *a = &expected->items[i];
		const struct finding *b = &got->items[i];

		if (i >= expected->count || i >= got->count || a->rule != b->rule ||
			a->start != b->start || a->end != b->end) {
			printf("finding %zu of %zu, expected %zu (PINION_SEED=%llu)\n", i,
				got->count, expected->count, (unsigned long long)seed);
			if (i < expected->count) {
				printf("expected %s %llu-%llu\n", patterns[a->rule].text,
					(unsigned long long)a->start, (unsigned long long)a->end);
			}
			if (i < got->count) {
				printf("got %s %llu-%llu\n", patterns[b->rule].text,
					(unsigned long long)b->start, (unsigned long long)b->end);
			}
			exit(1);
		}
	}
}

int main(void)
{
	static const size_t steps[CUTS] = {4 * TEXT_BYTES_MAX, 40, 700, 2000};
	/* Shares of a long text: at least 4 KiB. */
	static const size_t long_steps[CUTS] = {4 * TEXT_BYTES_MAX, 4000, 9000, 40000};
	static struct file_text text;
	struct matcher_trouble trouble = {0};
	struct rules rules = {0};
	struct findings findings;
	struct engine *engine;

	seed = random_begin(&source);
	for (uint32_t i = 0; i < PATTERN_COUNT; i++) {
		expect_ready("rule",
			rules_add(&rules, "rule", patterns[i].text, strlen(patterns[i].text),
				false) == 0);
		rules_set_filter(&rules, rule_filter_create(patterns[i].dialect));
		rules.items[i].filter->entropy_min = patterns[i].entropy_min;
		if (matcher_hyperscan.measure(&rules.items[i], &trouble) != 0) {
			printf("%s: %s\n", patterns[i].text, trouble.reason);
			return 1;
		}
	}
	expect_ready("engine", engine_create(&matcher_hyperscan, &rules, &engine, &trouble) == 0);
	check_later_start(&rules, &text);
	findings_init(&findings, &rules);
	text_now = &text;
	for (int round = 0; round < TEXTS; round++) {
		bool is_long = round % LONG_SHARE == 0;
		struct finding_list expected = {0};

		fill_text(&text, is_long);
		run_oracle(&rules, &text, &expected);
		for (int i = 0; i < CUTS; i++) {
			struct finding_list got = {0};

			search(engine, &findings, &text, is_long ? long_steps[i] : steps[i], &got);
			compare(&expected, &got);
			finding_list_free(&got);
		}
		finding_list_free(&expected);
	}
	for (uint32_t i = 0; i < PATTERN_COUNT; i++) {
		expect_true(patterns[i].text, found_count[i] > 0);
	}
	engine_destroy(engine);
	rules_free(&rules);
	return expect_status();
}
#endif

/* SPDX-License-Identifier: MIT */
/*
 * Goal: the findings in a file are the same however it is cut into windows, in
 * whatever order those arrive, and whether zeros come as bytes or as holes.
 *
 * Method: random texts over a small alphabet and patterns with context (\b ^ $
 * \A \z), of fixed, variable and unbounded width. One window over the whole
 * text is the reference; random cuts must agree with it. Candidates of patterns
 * without context are held against a naive oracle over regexec(3), and the two
 * ways of finding starts against each other.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tests/support/random.h"
#include "tools/scan/engine.h"
#include "tools/scan/findings.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TEXT_BYTES_MAX = 600,
	WINDOWS_MAX = TEXT_BYTES_MAX + 1,
	ROUNDS = 60,
	TEXTS = 25,
	CUTS = 5,
};

static struct random_source source;
static uint64_t seed;

static uint32_t below(uint32_t limit)
{
	return (uint32_t)random_below(&source, limit);
}

static void fail(const char *what, const char *pattern)
{
	printf("%s: pattern %s (PINION_SEED=%llu)\n", what, pattern, (unsigned long long)seed);
	exit(1);
}

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

struct text {
	uint8_t bytes[TEXT_BYTES_MAX];
	size_t length;
};

/* Letters in runs, so that matches are many, and zeros in long ones. */
static void fill_text(struct text *text, size_t length_max)
{
	static const char letters[] = "aaabbbab \n_\r";
	size_t length = below((uint32_t)length_max + 1);

	text->length = 0;
	while (text->length < length) {
		if (below(40) == 0) {
			size_t run = below(200);

			for (; run > 0 && text->length < length; run--) {
				text->bytes[text->length++] = 0;
			}
		} else {
			text->bytes[text->length++] = (uint8_t)letters[below(sizeof(letters) - 1)];
		}
	}
}

struct subject {
	struct rules rules;
	struct findings findings;
	struct engine *engine;
	struct engine_worker *worker;
	const char *name;
};

static void subject_add(struct subject *subject, const char *pattern, bool is_literal)
{
	if (rules_add(&subject->rules, "rule", pattern, strlen(pattern), is_literal) != 0) {
		fail("out of memory", pattern);
	}
	subject->name = pattern;
}

static void subject_start(struct subject *subject, const struct matcher_ops *matcher)
{
	struct matcher_trouble trouble = {0};

	for (uint32_t i = 0; i < subject->rules.count; i++) {
		if (matcher->measure(&subject->rules.items[i], &trouble) != 0) {
			fail(trouble.reason, subject->rules.items[i].pattern);
		}
	}
	if (engine_create(matcher, &subject->rules, &subject->engine, &trouble) != 0 ||
		engine_worker_create(subject->engine, &subject->worker) != 0) {
		fail(trouble.reason, subject->name);
	}
	findings_init(&subject->findings, &subject->rules);
}

static void subject_end(struct subject *subject)
{
	engine_worker_destroy(subject->worker);
	engine_destroy(subject->engine);
	rules_free(&subject->rules);
}

static void collect(void *arg, const struct finding *findings, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct candidate item = {
			.start = findings[i].start,
			.end = findings[i].end,
			.rule = findings[i].rule,
		};

		memcpy(item.head, findings[i].head, sizeof(item.head));
		if (candidates_add(arg, &item) != 0) {
			fail("out of memory", "");
		}
	}
}

static bool is_zero(const struct text *text, size_t from, size_t to)
{
	while (from < to && text->bytes[from] == 0) {
		from++;
	}
	return from == to;
}

/*
 * Cuts the text. Zeros may become holes, unless the overlap in front of them
 * is something else, as in a scan. Returns the number of windows.
 */
static size_t cut(const struct text *text, struct engine_needs needs, size_t step_max,
	struct pinion_window *windows)
{
	size_t count = 0;
	size_t position = 0;

	do {
		size_t step = 1 + below((uint32_t)step_max);
		size_t end = position + step < text->length ? position + step : text->length;
		size_t prefix = position < needs.overlap_bytes ? position : needs.overlap_bytes;
		size_t zeros = 0;
		struct pinion_window window = {.index = count};

		while (position + zeros < text->length && text->bytes[position + zeros] == 0) {
			zeros++;
		}
		if (needs.report_holes && zeros > 0 && below(4) != 0 &&
			is_zero(text, position - prefix, position)) {
			end = position + zeros - below((uint32_t)zeros);
			window.is_hole = true;
			prefix = 0;
		}
		window.prefix_bytes = prefix;
		window.base_offset_bytes = position - prefix;
		window.bytes = window.is_hole ? NULL : text->bytes + position - prefix;
		window.length_bytes = end - (position - prefix);
		windows[count++] = window;
		position = end;
	} while (position < text->length);
	windows[count - 1].is_last = true;
	return count;
}

static void shuffle(struct pinion_window *windows, size_t count)
{
	for (size_t i = count; i > 1; i--) {
		size_t j = below((uint32_t)i);
		struct pinion_window window = windows[i - 1];

		windows[i - 1] = windows[j];
		windows[j] = window;
	}
}

static void scan_windows(struct subject *subject, const struct pinion_window *windows, size_t count,
	struct candidates *out_findings)
{
	static struct engine_yield yield;
	struct findings_file file = {0};
	struct engine_file engine_file = {0};
	int error = engine_file_open(subject->engine, &engine_file);

	findings_file_init(&file);
	for (size_t i = 0; i < count && error == 0; i++) {
		error = engine_window(subject->worker, &engine_file, &windows[i], &yield);
		if (error == 0) {
			error = findings_add(&subject->findings, &file, &windows[i], &yield,
				collect, out_findings);
		}
	}
	if (error == 0) {
		error = findings_finish(&subject->findings, &file, collect, out_findings);
	}
	engine_file_close(subject->worker, &engine_file);
	findings_file_fini(&file);
	if (error != 0) {
		fail(strerror(-error), subject->name);
	}
}

static void expect_equal(const struct candidates *expected, const struct candidates *got,
	const char *what, const char *pattern)
{
	bool is_equal = expected->count == got->count;

	for (size_t i = 0; i < expected->count && is_equal; i++) {
		const struct candidate *a = &expected->items[i];
		const struct candidate *b = &got->items[i];

		is_equal = a->start == b->start && a->end == b->end && a->rule == b->rule &&
			memcmp(a->head, b->head, sizeof(a->head)) == 0;
	}
	if (!is_equal) {
		printf("expected %zu findings, got %zu\n", expected->count, got->count);
		fail(what, pattern);
	}
}

static void scan_whole(
	struct subject *subject, const struct text *text, struct candidates *out_findings)
{
	struct pinion_window window = {
		.bytes = text->bytes,
		.length_bytes = text->length,
		.is_last = true,
	};

	scan_windows(subject, &window, 1, out_findings);
}

static void check_cuts(struct subject *subject, const struct text *text)
{
	struct engine_needs needs = engine_needs(subject->engine);
	static struct pinion_window windows[WINDOWS_MAX];
	struct candidates expected = {0};

	scan_whole(subject, text, &expected);
	for (uint32_t i = 0; i < CUTS; i++) {
		static const size_t steps[] = {1, 3, 20, 100, 300};
		struct candidates got = {0};
		size_t count = cut(text, needs, steps[i], windows);

		if (!needs.in_order) {
			shuffle(windows, count);
		}
		scan_windows(subject, windows, count, &got);
		expect_equal(&expected, &got, "windows differ from one block", subject->name);
		candidates_free(&got);
	}
	candidates_free(&expected);
}

#if defined(HAVE_HYPERSCAN)

/* A pattern, and whether regexec(3) means the same by it. */
struct sample {
	const char *pattern;
	bool has_oracle;
};

static const struct sample samples[] = {
	{"ab", true},
	{"aa", true},
	{"a{3}", true},
	{"[ab]{2}b", true},
	{"a{2,3}", true},
	{"a[ab]{1,5}b", true},
	{"(a|ab)(b|bb)", true},
	{"b{1,9}a", true},
	{"(ab){1,3}", true},
	{"a.{0,4}b", false},
	{"\\bab", false},
	{"ab\\b", false},
	{"\\b[ab]{1,3}\\b", false},
	{"\\Bab", false},
	{"ab\\B", false},
	{"^a", false},
	{"^[ab]{1,4}$", false},
	{"b$", false},
	{"a{1,3}$", false},
	{"(^|[^a])b{1,3}", false},
	{"^a|[b_]{1,2}", false},
	{"(\\Aa|^b|[\\^_])b?", false},
	{"\\Aab?", false},
	{"ab?\\z", false},
	{"b\\Z", false},
	{"a[^b]{1,6}a", false},
	{"a[^b]{3}", false},
	{"[^ab]{2,5}b", false},
	{"b\\x00{2}", false},
	{"[ab]{1,2}\\x00{1,40}\\b", false},
	{"\\x00\\b", false},
	{"b\\x00{4}$", false},
	{"(?i)A[bB]{1,2}", false},
	{"a[ab ]{1,60}b", false},
};

static const struct sample unbounded_samples[] = {
	{"a.*b", false},
	{"^a+$", false},
	{"ab+", false},
	{"\\ba[^b]+b\\b", false},
	{"a[ab]*\\z", false},
	{"a[^b]+b", false},
	{"a[^b]*", false},
	{"(?s)b.{3,}a", false},
	{"(?s)(a|b.{2,5}).*?b\\b", false},
	{"\\x00+a?", false},
	{"[^b]{4}a*", false},
	{"a(?:\\x00\\x00)*b", false},
	{"b(?:ab)*[^a]+$", false},
	{"a.{3}[^b]{2,4}.*b", false},
};

static void expect_holes(const struct subject *subject)
{
	if (!engine_needs(subject->engine).report_holes) {
		fail("holes are read", subject->name);
	}
}

static void check_mixed_rules(void)
{
	struct subject subject = {0};
	struct text text;
	uint32_t count = 1 + below(4);

	for (uint32_t i = 0; i < count; i++) {
		subject_add(&subject, samples[below(COUNT(samples))].pattern, false);
	}
	if (below(2) == 0) {
		subject_add(&subject, unbounded_samples[below(COUNT(unbounded_samples))].pattern,
			false);
	}
	subject_start(&subject, &matcher_hyperscan);
	for (uint32_t i = 0; i < TEXTS; i++) {
		fill_text(&text, i % 5 == 0 ? 8 : TEXT_BYTES_MAX);
		check_cuts(&subject, &text);
	}
	subject_end(&subject);
}

/* Without others, so that zeros that they match are holes nevertheless. */
static void check_unbounded_alone(const struct sample *sample)
{
	struct subject subject = {0};
	struct text text;

	subject_add(&subject, sample->pattern, false);
	subject_start(&subject, &matcher_hyperscan);
	expect_holes(&subject);
	for (uint32_t i = 0; i < 4 * TEXTS; i++) {
		fill_text(&text, TEXT_BYTES_MAX);
		check_cuts(&subject, &text);
	}
	subject_end(&subject);
}

/* Candidates, not findings: every end with its leftmost start. */
static void check_oracle(const char *pattern)
{
	struct subject subject = {0};
	char anchored[128];
	regex_t regex;

	snprintf(anchored, sizeof(anchored), "^(%s)$", pattern);
	if (regcomp(&regex, anchored, REG_EXTENDED | REG_NOSUB) != 0) {
		fail("the oracle refuses it", pattern);
	}
	subject_add(&subject, pattern, false);
	subject_start(&subject, &matcher_hyperscan);
	for (uint32_t round = 0; round < 20; round++) {
		struct engine_yield yield = {0};
		struct engine_file file = {0};
		char text[24];
		size_t length = below(sizeof(text));
		struct pinion_window window = {
			.bytes = (uint8_t *)text, .length_bytes = length, .is_last = true};
		struct candidates expected = {0};

		for (size_t i = 0; i < length; i++) {
			text[i] = "aabb."[below(5)];
		}
		for (size_t end = 1; end <= length; end++) {
			for (size_t start = 0; start < end; start++) {
				char part[sizeof(text) + 1] = {0};
				struct candidate candidate = {.start = start, .end = end};

				memcpy(part, text + start, end - start);
				if (regexec(&regex, part, 0, NULL, 0) == 0) {
					memcpy(candidate.head, text + start,
						end - start < 4 ? end - start : 4);
					if (candidates_add(&expected, &candidate) != 0) {
						fail("out of memory", pattern);
					}
					break;
				}
			}
		}
		if (engine_window(subject.worker, &file, &window, &yield) != 0) {
			fail("search failed", pattern);
		}
		candidates_sort_by_end(&yield.found);
		expect_equal(&expected, &yield.found, "candidates differ from oracle", pattern);
		candidates_free(&expected);
		candidates_free(&yield.found);
	}
	subject_end(&subject);
	regfree(&regex);
}

/*
 * An alternative too wide for the first way of finding starts forces the other.
 */
static void check_both_starts(const struct sample *sample)
{
	char widened[160];
	struct subject narrow = {0};
	struct subject wide = {0};
	struct text text;

	snprintf(widened, sizeof(widened), "(?:%s)|\\x01{200}", sample->pattern);
	subject_add(&narrow, sample->pattern, false);
	subject_start(&narrow, &matcher_hyperscan);
	subject_add(&wide, widened, false);
	subject_start(&wide, &matcher_hyperscan);
	for (uint32_t i = 0; i < 10; i++) {
		struct candidates expected = {0};
		struct candidates got = {0};

		fill_text(&text, TEXT_BYTES_MAX);
		scan_whole(&narrow, &text, &expected);
		scan_whole(&wide, &text, &got);
		expect_equal(&expected, &got, "ways of finding starts differ", sample->pattern);
		candidates_free(&expected);
		candidates_free(&got);
		check_cuts(&wide, &text);
	}
	subject_end(&narrow);
	subject_end(&wide);
}

static void check_hyperscan(void)
{
	for (uint32_t i = 0; i < ROUNDS; i++) {
		check_mixed_rules();
	}
	for (uint32_t i = 0; i < COUNT(unbounded_samples); i++) {
		check_unbounded_alone(&unbounded_samples[i]);
	}
	for (uint32_t i = 0; i < COUNT(samples); i++) {
		if (samples[i].has_oracle) {
			check_oracle(samples[i].pattern);
		}
		check_both_starts(&samples[i]);
	}
}

#else

static void check_hyperscan(void)
{
	printf("built without Hyperscan: literals only\n");
}

#endif

static void check_literals(const struct matcher_ops *matcher)
{
	static const char *const words[] = {"a", "ab", "aa", "aba", "b ", "aabbab"};
	struct subject subject = {0};
	struct text text;

	for (uint32_t i = 0; i < COUNT(words); i++) {
		subject_add(&subject, words[i], true);
	}
	subject_start(&subject, matcher);
	for (uint32_t i = 0; i < 100; i++) {
		fill_text(&text, TEXT_BYTES_MAX);
		check_cuts(&subject, &text);
	}
	subject_end(&subject);
}

/* A lone literal has a matcher of its own: it finds what any other finds. */
static void check_lone_literal(const char *word)
{
	struct subject alone = {0};
	struct subject among = {0};
	struct text text;

	subject_add(&alone, word, true);
	subject_start(&alone, &matcher_literal);
	subject_add(&among, word, true);
	subject_start(&among, matcher_default());
	for (uint32_t i = 0; i < 20; i++) {
		struct candidates expected = {0};
		struct candidates got = {0};

		fill_text(&text, TEXT_BYTES_MAX);
		scan_whole(&among, &text, &expected);
		scan_whole(&alone, &text, &got);
		expect_equal(&expected, &got, "matchers differ", word);
		candidates_free(&expected);
		candidates_free(&got);
		check_cuts(&alone, &text);
	}
	subject_end(&alone);
	subject_end(&among);
}

int main(void)
{
	static const char *const lone[] = {"a", "ab", "aa", "b ", "aabbab", "abababababababab"};

	seed = random_begin(&source);
	check_literals(&matcher_literal);
	check_literals(matcher_default());
	for (uint32_t i = 0; i < COUNT(lone); i++) {
		check_lone_literal(lone[i]);
	}
	check_hyperscan();
	return 0;
}

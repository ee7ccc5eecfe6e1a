/* SPDX-License-Identifier: MIT */
/*
 * Goal: lines, columns, digests, texts, words that allow and the bytes around a
 * finding are those of the whole file, however it is cut into windows and in
 * whatever order those come.
 *
 * Method: random texts with short, long and no lines, candidates at random
 * places, each in the window that has its end, as the engine hands them out.
 * Each is looked up and held against a count from the start of the file.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tests/support/random.h"
#include "tools/scan/evidence.h"
#include "tools/scan/newlines.h"
#include "tools/scan/sha256.h"

#include <stdbool.h>
#include <string.h>

enum {
	TEXT_BYTES_MAX = 200000,
	WINDOWS_MAX = 2000,
	CANDIDATES_MAX = 300,
	ROUNDS = 60,
	TEXT_SHOWN = 20,
	/* What the engine's windows hold back. */
	HELD_BACK = 2,
	CONTEXT_BYTES = 300,
};

static struct random_source source;
static uint64_t seed;
static uint8_t text[TEXT_BYTES_MAX];
static size_t text_bytes;
static struct pinion_window windows[WINDOWS_MAX];
static size_t window_count;
static struct candidate candidates[CANDIDATES_MAX];
static size_t candidate_count;

static size_t below(size_t limit)
{
	return (size_t)random_below(&source, limit);
}

static void fail(const char *what, const struct candidate *candidate)
{
	printf("%s of [%llu, %llu), rule %u, is not the file's (PINION_SEED=%llu)\n", what,
		(unsigned long long)candidate->start, (unsigned long long)candidate->end,
		candidate->rule, (unsigned long long)seed);
	exit(1);
}

static void fill_text(size_t length)
{
	static const char *const words[] = {
		"pinion:allow", "gitleaks:allow", "xpinion:allow", ":allow"};
	static const size_t line_lengths[] = {2, 30, 3000, 100000};
	size_t line = line_lengths[below(4)];

	text_bytes = length;
	for (size_t i = 0; i < length; i++) {
		text[i] = below(line) == 0 ? '\n' : (uint8_t)('a' + below(3));
	}
	for (size_t i = 0; i < length / 5000 + below(3); i++) {
		const char *word = words[below(4)];
		size_t size = strlen(word);

		if (size < length) {
			memcpy(text + below(length - size), word, size);
		}
	}
	/* Zeros that may be a hole. */
	if (below(3) == 0 && length > 10) {
		size_t start = below(length - 1);

		memset(text + start, 0, below(length - start));
	}
}

static size_t zeros_from(size_t position)
{
	size_t count = 0;

	while (position + count < text_bytes && text[position + count] == 0) {
		count++;
	}
	return count;
}

static void cut(size_t step_max, size_t overlap)
{
	size_t position = 0;

	window_count = 0;
	do {
		size_t prefix = position < overlap ? position : overlap;
		size_t step = 1 + below(step_max);
		size_t zeros = zeros_from(position);
		struct pinion_window window = {.index = window_count};

		if (window_count == WINDOWS_MAX - 1 || step > text_bytes - position) {
			step = text_bytes - position;
		}
		if (zeros > overlap && position >= overlap &&
			memchr(text + position - prefix, 0, prefix) == text + position - prefix) {
			window.is_hole = true;
			step = zeros - below(zeros);
			prefix = 0;
		}
		window.prefix_bytes = prefix;
		window.base_offset_bytes = position - prefix;
		window.length_bytes = prefix + step;
		window.bytes = window.is_hole ? NULL : text + position - prefix;
		windows[window_count++] = window;
		position += step;
	} while (position < text_bytes);
	windows[window_count - 1].is_last = true;
}

/*
 * Rule 0 is at most `width` long, and matches no zeros; rule 1 is as long as
 * may be.
 */
static void choose_candidates(size_t width, bool in_order)
{
	size_t count = 1 + below(CANDIDATES_MAX);

	candidate_count = 0;
	for (size_t i = 0; i < count; i++) {
		struct candidate *candidate = &candidates[candidate_count];
		size_t start = below(text_bytes);
		size_t limit = text_bytes - start;

		candidate->rule = in_order && below(2) == 0 ? 1 : 0;
		if (candidate->rule == 0 && limit > width) {
			limit = width;
		} else if (below(2) == 0 && limit > 100) {
			limit = 100;
		}
		candidate->start = start;
		candidate->end = start + 1 + below(limit);
		if (candidate->rule == 1 ||
			memchr(text + start, 0, candidate->end - start) == NULL) {
			candidate_count++;
		}
	}
}

static bool is_owned(const struct pinion_window *window, const struct candidate *candidate)
{
	uint64_t from = window->base_offset_bytes + window->prefix_bytes;
	uint64_t until = window->base_offset_bytes + window->length_bytes;
	uint64_t held = window->is_last ? 0 : HELD_BACK;

	if (candidate->rule == 1) {
		return candidate->end > from && candidate->end <= until;
	}
	return candidate->end + HELD_BACK > from && candidate->end + held <= until;
}

/* As a search that counts newlines leaves them: of a part of the window. */
static void count_part(const struct pinion_window *window, struct newlines_part *part)
{
	size_t length = window->length_bytes;
	size_t from = below(length + 1);
	size_t until = from + below(length - from + 1);

	*part = (struct newlines_part){0};
	if (window->is_hole || below(3) == 0) {
		return;
	}
	part->from = window->base_offset_bytes + from;
	part->until = window->base_offset_bytes + until;
	part->count = newlines_count(window->bytes + from, until - from);
}

static void add_all(const struct evidence_source *asked, struct evidence *evidence)
{
	struct evidence_window *gathered;
	struct engine_yield yield = {0};

	if (!asked->in_order) {
		for (size_t i = window_count; i > 1; i--) {
			size_t j = below(i);
			struct pinion_window window = windows[i - 1];

			windows[i - 1] = windows[j];
			windows[j] = window;
		}
	}
	for (size_t i = 0; i < window_count; i++) {
		yield.found.count = 0;
		count_part(&windows[i], &yield.newlines);
		for (size_t j = 0; j < candidate_count; j++) {
			if (is_owned(&windows[i], &candidates[j]) &&
				candidates_add(&yield.found, &candidates[j]) != 0) {
				fail("memory", &candidates[j]);
			}
		}
		if (evidence_gather(asked, evidence, &windows[i], &yield, &gathered) != 0 ||
			evidence_add(asked, evidence, gathered) != 0) {
			fail("memory", &candidates[0]);
		}
	}
	candidates_free(&yield.found);
}

/* Of each byte. */
static uint32_t lines[TEXT_BYTES_MAX];
static uint32_t line_starts[TEXT_BYTES_MAX];

static void count_lines(void)
{
	uint32_t line = 1;
	uint32_t start = 0;

	for (uint32_t i = 0; i < text_bytes; i++) {
		lines[i] = line;
		line_starts[i] = start;
		if (text[i] == '\n') {
			line++;
			start = i + 1;
		}
	}
}

static bool is_allowed(const struct candidate *candidate)
{
	uint64_t from = candidate->start > EVIDENCE_REACH ? candidate->start - EVIDENCE_REACH : 0;
	uint64_t until = candidate->end + EVIDENCE_REACH + 6;
	uint32_t last = lines[candidate->end - 1];
	uint32_t first = lines[candidate->start];
	const uint8_t *place = text + from;

	until = until < text_bytes ? until : text_bytes;
	if (candidate->rule == 1 && candidate->end - candidate->start > EVIDENCE_CARRY) {
		first = last;
	}
	while ((place = memmem(place, (size_t)(text + until - place), ":allow", 6)) != NULL) {
		size_t at = (size_t)(place - text);
		bool is_word = (at >= 6 && memcmp(place - 6, "pinion", 6) == 0) ||
			(at >= 8 && memcmp(place - 8, "gitleaks", 8) == 0);

		if (is_word && (lines[at] == first || lines[at] == last)) {
			return true;
		}
		place++;
	}
	return false;
}

static void expect_bytes(const struct candidate *candidate, const struct evidence_place *place)
{
	size_t length = (size_t)(candidate->end - candidate->start);
	bool is_far = candidate->rule == 1 && length > EVIDENCE_CARRY;
	size_t shown = length < TEXT_SHOWN ? length : TEXT_SHOWN;
	uint8_t digest[SHA256_BYTES];
	struct sha256 hash;

	if (place->has_digest == is_far) {
		fail("the presence of a digest", candidate);
	}
	if (is_far) {
		return;
	}
	sha256_init(&hash);
	sha256_add(&hash, text + candidate->start, length);
	sha256_finish(&hash, digest);
	if (memcmp(digest, place->digest, sizeof(place->digest)) != 0) {
		fail("the digest", candidate);
	}
	if (place->text_bytes != shown ||
		memcmp(place->text, text + candidate->start, shown) != 0) {
		fail("the text", candidate);
	}
}

static void expect_place(const struct candidate *candidate, const struct evidence_place *place)
{
	bool is_far = candidate->rule == 1 && candidate->end - candidate->start > EVIDENCE_CARRY;
	uint64_t last = candidate->end - 1;
	uint64_t column = candidate->start - line_starts[candidate->start] + 1;

	if (place->end_line != lines[last] || place->end_column != last - line_starts[last] + 2) {
		fail("the line of the end", candidate);
	}
	if (is_far ? place->line != 0
		   : place->line != lines[candidate->start] || place->column != column) {
		fail("the line", candidate);
	}
	if (place->is_allowed != is_allowed(candidate)) {
		fail("the permission", candidate);
	}
}

/* Up to the next zero; a hole has left one. */
static void expect_run(const struct candidate *candidate, struct snippets *copy, size_t from,
	size_t until, const char *what)
{
	for (size_t i = from; i < until; i++) {
		const struct snippet *run = snippets_find(copy, i);

		if (run == NULL || run->bytes[i - run->start] != text[i]) {
			fail(what, candidate);
		}
		if (text[i] == 0) {
			break;
		}
	}
}

static void expect_context(const struct evidence *evidence, const struct candidate *candidate)
{
	bool is_far = candidate->rule == 1 &&
		candidate->end - candidate->start > EVIDENCE_CARRY - CONTEXT_BYTES;
	size_t start = (size_t)candidate->start;
	size_t end = (size_t)candidate->end;
	size_t from = start > CONTEXT_BYTES ? start - CONTEXT_BYTES : 0;
	size_t until = end + CONTEXT_BYTES < text_bytes ? end + CONTEXT_BYTES : text_bytes;
	struct snippets copy = {0};

	if (evidence_copy(evidence, from, end + CONTEXT_BYTES, &copy) != 0) {
		fail("memory", candidate);
	}
	for (size_t i = from; i < start; i++) {
		from = text[i] == 0 ? i + 1 : from;
	}
	if (!is_far) {
		expect_run(candidate, &copy, from, start, "the context before");
	}
	expect_run(candidate, &copy, end - 1, until, "the context after");
	snippets_free(&copy);
}

static int compare_starts(const void *left, const void *right)
{
	const struct candidate *a = left;
	const struct candidate *b = right;

	return a->start < b->start ? -1 : a->start > b->start;
}

static void check_text(void)
{
	static const size_t lengths[] = {50, 3000, 20000, TEXT_BYTES_MAX};
	static const size_t steps[] = {5, 300, 5000, 100000};
	size_t length = 1 + below(lengths[below(4)]);
	size_t step = steps[below(4)];
	size_t width = 1 + below(200);
	struct rule rule_items[2] = {
		{.max_width = (uint32_t)width}, {.max_width = RULE_WIDTH_UNBOUNDED}};
	struct rules rules = {.items = rule_items, .count = 2};
	struct evidence_source asked = {
		.needs = {.lines = true,
			.digests = true,
			.allows = true,
			.text_bytes = TEXT_SHOWN,
			.context_bytes = CONTEXT_BYTES},
		.rules = &rules,
		.in_order = below(2) == 0,
	};
	struct evidence evidence = {0};

	asked.overlap_bytes = evidence_overlap_bytes(&asked.needs, (uint32_t)width + HELD_BACK + 1);
	fill_text(length);
	count_lines();
	cut(step, asked.overlap_bytes);
	choose_candidates(width, asked.in_order);
	add_all(&asked, &evidence);
	qsort(candidates, candidate_count, sizeof(candidates[0]), compare_starts);
	for (size_t i = 0; i < candidate_count; i++) {
		const struct finding finding = {
			.start = candidates[i].start,
			.end = candidates[i].end,
			.rule = candidates[i].rule,
		};
		struct evidence_place place;

		evidence_forget(&evidence, finding.start);
		evidence_find(&evidence, &rules, &finding, &place);
		expect_place(&candidates[i], &place);
		expect_bytes(&candidates[i], &place);
		expect_context(&evidence, &candidates[i]);
	}
	evidence_fini(&evidence);
}

/* FIPS 180-4's examples, and a million letters. */
static void check_digest(void)
{
	static const uint8_t abc[] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea};
	static const uint8_t million[] = {0xcd, 0xc7, 0x6e, 0x5c, 0x99, 0x14, 0xfb, 0x92};
	uint8_t digest[SHA256_BYTES];
	struct sha256 hash;

	sha256_init(&hash);
	sha256_add(&hash, "a", 1);
	sha256_add(&hash, "bc", 2);
	sha256_finish(&hash, digest);
	if (memcmp(digest, abc, sizeof(abc)) != 0) {
		printf("SHA-256 of abc is wrong\n");
		exit(1);
	}
	memset(text, 'a', 1000);
	sha256_init(&hash);
	for (size_t left = 1000000; left > 0;) {
		size_t part = 1 + below(left < 1000 ? left : 1000);

		sha256_add(&hash, text, part);
		left -= part;
	}
	sha256_finish(&hash, digest);
	if (memcmp(digest, million, sizeof(million)) != 0) {
		printf("SHA-256 of 10^6 letters is wrong\n");
		exit(1);
	}
}

int main(void)
{
	seed = random_begin(&source);
	check_digest();
	for (int i = 0; i < ROUNDS; i++) {
		check_text();
	}
	return 0;
}

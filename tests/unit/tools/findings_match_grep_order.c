/* SPDX-License-Identifier: MIT */
/*
 * Goal: of all candidates exactly those become findings that a grep would
 * print (leftmost, longest, not overlapping), sorted by start, end and rule,
 * whatever windows they come in and in whatever order.
 *
 * Method: random occurrences of literals, and random candidates of variable
 * width, held against an oracle that picks again and again the leftmost of all
 * that is left. The windows are random and shuffled.
 */
#include "tests/support/random.h"
#include "tools/scan/findings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TEXT_BYTES = 300,
	ROUNDS = 3000,
};

static struct random_source source;
static uint64_t seed;

static uint32_t below(uint32_t limit)
{
	return (uint32_t)random_below(&source, limit);
}

static void fail(const char *what)
{
	printf("%s (PINION_SEED=%" PRIu64 ")\n", what, seed);
	exit(1);
}

static void add(struct candidates *list, uint64_t start, uint64_t end, uint32_t rule)
{
	struct candidate candidate = {.start = start, .end = end, .rule = rule};

	if (candidates_add(list, &candidate) != 0) {
		fail("out of memory");
	}
}

/* Fixed: "aa", "aba" and so on in a random text. Each end once. */
static void make_literals(const struct rules *rules, struct candidates *out_all)
{
	char text[TEXT_BYTES];

	for (size_t i = 0; i < TEXT_BYTES; i++) {
		text[i] = below(4) == 0 ? 'b' : 'a';
	}
	for (uint32_t rule = 0; rule < rules->count; rule++) {
		size_t width = rules->items[rule].pattern_bytes;

		for (size_t i = 0; i + width <= TEXT_BYTES; i++) {
			if (memcmp(text + i, rules->items[rule].pattern, width) == 0) {
				add(out_all, i, i + width, rule);
			}
		}
	}
}

static void make_variable(const struct rules *rules, struct candidates *out_all)
{
	for (uint32_t rule = 0; rule < rules->count; rule++) {
		uint32_t width = rules->items[rule].max_width;
		uint32_t density = 1 + below(30);

		for (uint32_t end = 1; end <= TEXT_BYTES; end++) {
			uint32_t limit = end < width ? end : width;

			if (below(density) == 0) {
				add(out_all, end - 1 - below(limit), end, rule);
			}
		}
	}
}

/* The leftmost that starts after `from`, of those the longest; or NULL. */
static const struct candidate *pick(const struct candidates *all, uint32_t rule, uint64_t from)
{
	const struct candidate *best = NULL;

	for (size_t i = 0; i < all->count; i++) {
		const struct candidate *item = &all->items[i];

		if (item->rule != rule || item->start < from) {
			continue;
		}
		if (best == NULL || item->start < best->start ||
			(item->start == best->start && item->end > best->end)) {
			best = item;
		}
	}
	return best;
}

static void run_oracle(
	const struct rules *rules, const struct candidates *all, struct candidates *out_findings)
{
	for (uint32_t rule = 0; rule < rules->count; rule++) {
		const struct candidate *best = pick(all, rule, 0);

		while (best != NULL) {
			add(out_findings, best->start, best->end, rule);
			best = pick(all, rule, best->end);
		}
	}
	candidates_sort_by_start(out_findings);
}

static void collect(void *arg, const struct finding *findings, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		add(arg, findings[i].start, findings[i].end, findings[i].rule);
	}
}

struct part {
	struct pinion_window window;
	struct engine_yield yield;
};

static size_t cut(const struct candidates *all, struct part *parts)
{
	size_t count = 0;
	uint64_t from = 0;

	while (from < TEXT_BYTES) {
		struct part part = {.window.index = count};
		uint64_t to = from + 1 + below(80);

		part.window.is_last = to >= TEXT_BYTES;
		part.yield.complete_to = part.window.is_last ? UINT64_MAX : to;
		for (size_t i = 0; i < all->count; i++) {
			const struct candidate *item = &all->items[i];

			if (item->end > from && item->end <= part.yield.complete_to) {
				add(&part.yield.found, item->start, item->end, item->rule);
			}
		}
		parts[count++] = part;
		from = to;
	}
	for (size_t i = count; i > 1; i--) {
		size_t j = below((uint32_t)i);
		struct part part = parts[i - 1];

		parts[i - 1] = parts[j];
		parts[j] = part;
	}
	return count;
}

static void reduce(const struct rules *rules, struct part *parts, size_t count,
	struct candidates *out_findings)
{
	struct findings findings;
	struct findings_file file = {0};

	findings_init(&findings, rules);
	findings_file_init(&file);
	for (size_t i = 0; i < count; i++) {
		if (findings_add(&findings, &file, &parts[i].window, &parts[i].yield, collect,
			    out_findings) != 0) {
			fail("out of memory");
		}
		candidates_free(&parts[i].yield.found);
	}
	if (file.waiting != NULL || file.held.count > 0) {
		fail("something is held back after the last window");
	}
	if (findings_finish(&findings, &file, collect, out_findings) != 0) {
		fail("out of memory");
	}
	findings_file_fini(&file);
}

static void check(const struct rules *rules, const struct candidates *all)
{
	static struct part parts[TEXT_BYTES];
	struct candidates expected = {0};
	struct candidates got = {0};

	run_oracle(rules, all, &expected);
	reduce(rules, parts, cut(all, parts), &got);
	for (size_t i = 0; i < expected.count || i < got.count; i++) {
		const struct candidate *a = &expected.items[i];
		const struct candidate *b = &got.items[i];

		if (i >= expected.count || i >= got.count || a->start != b->start ||
			a->end != b->end || a->rule != b->rule) {
			printf("finding %zu of %zu, expected %zu: ", i, got.count, expected.count);
			fail("differs from the oracle");
		}
	}
	candidates_free(&expected);
	candidates_free(&got);
}

int main(void)
{
	static const char *const words[] = {"aa", "a", "aba", "aaaa", "abaab"};
	struct rules rules = {0};

	seed = random_begin(&source);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (rules_add(&rules, "word", words[i], strlen(words[i]), true) != 0) {
			fail("out of memory");
		}
	}
	for (uint32_t round = 0; round < ROUNDS; round++) {
		bool is_literal = round % 2 == 0;
		struct candidates all = {0};

		for (uint32_t i = 0; i < rules.count; i++) {
			rules.items[i].max_width =
				is_literal ? (uint32_t)rules.items[i].pattern_bytes : 1 + below(60);
		}
		if (round % 50 == 1) {
			rules.items[0].max_width = RULE_WIDTH_UNBOUNDED;
		}
		if (is_literal) {
			make_literals(&rules, &all);
		} else {
			make_variable(&rules, &all);
		}
		check(&rules, &all);
		candidates_free(&all);
	}
	rules_free(&rules);
	return 0;
}

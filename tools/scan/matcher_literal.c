/* SPDX-License-Identifier: MIT */
/*
 * The matcher of a lone literal, and of a program built without Hyperscan: one
 * pass for each literal. Every occurrence is a candidate, overlapping ones
 * included.
 */
#include "tools/scan/matcher.h"

#include "tools/scan/literal_find.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct matcher {
	const struct rules *rules;
	struct literal literals[]; /* one per rule */
};

struct matcher_worker {
	const struct matcher *matcher;
};

static int literal_measure(struct rule *rule, struct matcher_trouble *out_trouble)
{
	if (!rule->is_literal) {
		matcher_complain(out_trouble, UINT32_MAX,
			"built without regular expressions (needs libhyperscan-dev); -F works");
		return -EINVAL;
	}
	if (rule->pattern_bytes == 0) {
		matcher_complain(
			out_trouble, UINT32_MAX, "an empty pattern would match everywhere");
		return -EINVAL;
	}
	if (rule->pattern_bytes > MATCHER_WIDTH_MAX) {
		matcher_complain(
			out_trouble, UINT32_MAX, "longer than %u bytes", MATCHER_WIDTH_MAX);
		return -EINVAL;
	}
	rule->min_width = (uint32_t)rule->pattern_bytes;
	rule->max_width = (uint32_t)rule->pattern_bytes;
	return 0;
}

static int literal_create(const struct rules *rules, struct matcher **out_matcher,
	struct matcher_trouble *out_trouble)
{
	struct matcher *matcher =
		malloc(sizeof(*matcher) + rules->count * sizeof(matcher->literals[0]));

	(void)out_trouble;
	if (matcher == NULL) {
		return -ENOMEM;
	}
	matcher->rules = rules;
	for (uint32_t i = 0; i < rules->count; i++) {
		literal_init(&matcher->literals[i], rules->items[i].pattern,
			rules->items[i].pattern_bytes);
	}
	*out_matcher = matcher;
	return 0;
}

static void literal_destroy(struct matcher *matcher)
{
	free(matcher);
}

static int literal_worker_create(struct matcher *matcher, struct matcher_worker **out_worker)
{
	struct matcher_worker *worker = malloc(sizeof(*worker));

	if (worker == NULL) {
		return -ENOMEM;
	}
	worker->matcher = matcher;
	*out_worker = worker;
	return 0;
}

static void literal_worker_destroy(struct matcher_worker *worker)
{
	free(worker);
}

/* Of a lone literal, where nothing is found. */
static const uint8_t *find_first(const struct literal *literal, const struct matcher_block *block,
	const uint8_t *from, const uint8_t *end)
{
	struct literal_lines lines;
	const uint8_t *hit = literal_find_and_count(literal, from, end, &lines);

	if (lines.from < lines.until) {
		uint64_t start = block->base_offset + (uint64_t)(lines.from - block->bytes);

		*block->newlines = (struct newlines_part){
			.from = start,
			.until = start + (uint64_t)(lines.until - lines.from),
			.count = lines.newlines,
		};
	}
	return hit;
}

static int search_literal(const struct literal *literal, uint32_t index,
	const struct matcher_block *block, uint64_t ends_max, struct candidates *found)
{
	bool counts = block->newlines != NULL;
	uint64_t end_count = 0;
	size_t width = literal->length;
	const uint8_t *end = block->bytes + block->last_end;
	const uint8_t *from =
		block->bytes + (block->first_end > width ? block->first_end - width : 0);

	while (end - from >= (ptrdiff_t)width && end_count++ < ends_max) {
		const uint8_t *hit = counts ? find_first(literal, block, from, end)
					    : literal_find(literal, from, end);
		struct candidate candidate = {.rule = index};
		int error;

		if (hit == NULL) {
			break;
		}
		candidate.start = block->base_offset + (uint64_t)(hit - block->bytes);
		candidate.end = candidate.start + width;
		memcpy(candidate.head, hit,
			width < sizeof(candidate.head) ? width : sizeof(candidate.head));
		error = candidates_add(found, &candidate);
		if (error != 0) {
			return error;
		}
		from = hit + 1;
		counts = false;
	}
	return 0;
}

static int literal_search(
	struct matcher_worker *worker, const struct matcher_block *block, struct candidates *found)
{
	const struct rules *rules = worker->matcher->rules;

	for (uint32_t i = 0; i < rules->count; i++) {
		const struct rule *rule = &rules->items[i];
		int error;

		if (block->over != NULL && rules_over_has(block->over, i)) {
			continue;
		}
		error = search_literal(&worker->matcher->literals[i], i, block,
			rules_ends_max(rules, rule), found);
		if (error != 0) {
			return error;
		}
	}
	return 0;
}

/* All rules are bounded here, so the stream functions are never called. */
const struct matcher_ops matcher_literal = {
	.name = "literal",
	.measure = literal_measure,
	.create = literal_create,
	.destroy = literal_destroy,
	.worker_create = literal_worker_create,
	.worker_destroy = literal_worker_destroy,
	.search = literal_search,
};

/* SPDX-License-Identifier: MIT */
/*
 * Deciding findings by their companions. Findings are sorted, so are their
 * lines: those near a line are found by halving.
 */
#include "tools/scan/companions.h"

#include "tools/scan/rule_filter.h"

#include <errno.h>
#include <stdlib.h>

/* Of a finding. A line that is not known is that of the finding before. */
struct place {
	uint64_t line;
	uint64_t column;
	bool is_known;
};

bool companions_concern(const struct rules *rules, uint32_t rule)
{
	const struct rule_filter *filter = rules->items[rule].filter;

	return rules->items[rule].is_companion || (filter != NULL && filter->companion_count > 0);
}

bool companions_need_places(const struct rules *rules)
{
	for (uint32_t i = 0; i < rules->count; i++) {
		const struct rule_filter *filter = rules->items[i].filter;

		for (uint32_t j = 0; filter != NULL && j < filter->companion_count; j++) {
			if (filter->companions[j].has_lines || filter->companions[j].has_columns) {
				return true;
			}
		}
	}
	return false;
}

static uint64_t distance(uint64_t left, uint64_t right)
{
	return left < right ? right - left : left - right;
}

static bool is_near(const struct rule_companion *companion, const struct place *place,
	const struct place *other)
{
	if (!companion->has_lines && !companion->has_columns) {
		return true;
	}
	if (!place->is_known || !other->is_known) {
		return false;
	}
	return (!companion->has_lines ||
		       distance(place->line, other->line) <= companion->within_lines) &&
		(!companion->has_columns ||
			distance(place->column, other->column) <= companion->within_columns);
}

/* The first finding whose line may be near enough. */
static size_t first_near(const struct finding_list *findings, const struct place *places,
	const struct rule_companion *companion, uint64_t line)
{
	size_t low = 0;
	size_t high = findings->count;

	if (!companion->has_lines || line <= companion->within_lines) {
		return 0;
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (places[middle].line < line - companion->within_lines) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

static bool has_companion(const struct finding_list *findings, const struct place *places,
	size_t index, const struct rule_companion *companion)
{
	const struct place *place = &places[index];

	for (size_t i = first_near(findings, places, companion, place->line); i < findings->count;
		i++) {
		if (companion->has_lines &&
			places[i].line > place->line + companion->within_lines) {
			break;
		}
		if (i != index && findings->items[i].rule == companion->rule &&
			is_near(companion, place, &places[i])) {
			return true;
		}
	}
	return false;
}

static bool is_kept(const struct rules *rules, const struct finding_list *findings,
	const struct place *places, size_t index)
{
	const struct rule_filter *filter = rules->items[findings->items[index].rule].filter;

	if (filter == NULL) {
		return true;
	}
	for (uint32_t i = 0; i < filter->companion_count; i++) {
		if (!has_companion(findings, places, index, &filter->companions[i])) {
			return false;
		}
	}
	return !filter->skips_report;
}

static void locate_all(const struct finding_list *findings, companions_locate_fn locate, void *arg,
	struct place *places)
{
	for (size_t i = 0; i < findings->count; i++) {
		struct place *place = &places[i];

		place->is_known = locate != NULL &&
			locate(arg, &findings->items[i], &place->line, &place->column);
		if (!place->is_known) {
			place->line = i > 0 ? places[i - 1].line : 0;
		}
	}
}

int companions_apply(const struct rules *rules, struct finding_list *findings,
	companions_locate_fn locate, void *arg)
{
	struct place *places = calloc(findings->count + 1, sizeof(*places));
	bool *keeps = calloc(findings->count + 1, sizeof(*keeps));
	size_t kept = 0;

	if (places == NULL || keeps == NULL) {
		free(places);
		free(keeps);
		return -ENOMEM;
	}
	locate_all(findings, locate, arg, places);
	for (size_t i = 0; i < findings->count; i++) {
		keeps[i] = is_kept(rules, findings, places, i);
	}
	for (size_t i = 0; i < findings->count; i++) {
		if (keeps[i]) {
			findings->items[kept++] = findings->items[i];
		} else {
			free(findings->items[i].text);
		}
	}
	findings->count = kept;
	free(places);
	free(keeps);
	return 0;
}

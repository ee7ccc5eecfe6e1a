/* SPDX-License-Identifier: MIT */
/*
 * What depends on limits depends on the bytes of a file alone.
 */
#include "tools/scan/findings_limits.h"

#include <stdlib.h>

void findings_limits_end(
	const struct findings *findings, struct findings_file *file, struct findings_rule *state)
{
	size_t words = rules_total(findings->rules) / 64 + 1;
	uint64_t *bits = file->over.bits;

	state->is_over = true;
	if (bits == NULL) {
		bits = calloc(words, sizeof(*bits));
		__atomic_store_n(&file->over.bits, bits, __ATOMIC_RELEASE);
	}
	if (bits != NULL) {
		__atomic_fetch_or(&bits[state->rule / 64], (uint64_t)1 << (state->rule % 64),
			__ATOMIC_RELAXED);
		__atomic_fetch_add(&file->over.count, 1, __ATOMIC_RELAXED);
	}
}

void findings_limits_end_costly(
	const struct findings *findings, struct findings_file *file, struct findings_rule *state)
{
	state->is_costly = true;
	if (state->costly_count++ == 0) {
		state->costly_at = state->searched_to;
	}
	state->open.count = 0;
	if (!state->is_over) {
		findings_limits_end(findings, file, state);
	}
}

bool findings_limits_cut(
	const struct findings *findings, struct findings_rule *state, uint64_t start)
{
	uint64_t max = findings->rules->findings_max;

	state->is_cut = max != 0 && state->taken_count == max;
	state->cut_at = start;
	return state->is_cut;
}

/* Where matches of a rule may be missing. */
static uint64_t known_to_of(const struct rules *rules, const struct findings_rule *state)
{
	uint32_t width = rules->items[state->rule].max_width;

	if (state->costly_count > 0) {
		return state->costly_at;
	}
	if (!state->is_over) {
		return UINT64_MAX;
	}
	if (state->is_cut) {
		return state->cut_at;
	}
	return width != RULE_WIDTH_UNBOUNDED && state->searched_to > width
		? state->searched_to - width
		: 0;
}

uint64_t findings_limits_known_to(const struct rules *rules, const struct findings_file *file)
{
	uint64_t known_to = UINT64_MAX;

	for (size_t i = 0; i < file->rule_count; i++) {
		uint64_t here = known_to_of(rules, &file->rules[i]);

		known_to = here < known_to ? here : known_to;
	}
	return known_to;
}

void findings_limits_show(const struct findings_file *file, findings_limit_fn show, void *arg)
{
	for (size_t i = 0; i < file->rule_count; i++) {
		const struct findings_rule *state = &file->rules[i];
		struct findings_limit limit = {
			.rule = state->rule,
			.is_dense = !state->is_cut,
			.is_over = true,
			.count = state->taken_count,
			.searched_to = state->is_cut ? state->taken_to : state->searched_to,
		};

		if (state->is_over && !state->is_costly) {
			show(arg, &limit);
		}
		if (state->costly_count > 0) {
			limit.is_dense = false;
			limit.is_over = state->is_costly;
			limit.costly_count = state->costly_count;
			limit.searched_to = state->costly_at;
			show(arg, &limit);
		}
	}
}

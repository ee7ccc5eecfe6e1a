/* SPDX-License-Identifier: MIT */
/*
 * Copies from a window, from left to right.
 */
#include "tools/scan/kept_text.h"

#include <errno.h>

bool kept_text_of_rule(const struct rules *rules, uint32_t rule)
{
	return rules->keeps_text || rules->items[rule].filter != NULL;
}

bool kept_text_of_any(const struct rules *rules)
{
	if (rules->keeps_text) {
		return rules->count > 0;
	}
	for (uint32_t i = 0; i < rules->count; i++) {
		if (rules->items[i].filter != NULL) {
			return true;
		}
	}
	return false;
}

static uint64_t greatest(uint64_t left, uint64_t right)
{
	return left > right ? left : right;
}

static uint64_t least(uint64_t left, uint64_t right)
{
	return left < right ? left : right;
}

/*
 * The candidate's bytes and their context. One zero of a gap stays before them,
 * so that they do not look like the start of the file.
 */
static struct snippet snippet_of(
	const struct pinion_window *window, const struct candidate *candidate)
{
	uint64_t from = window->base_offset_bytes;
	uint64_t until = from + window->length_bytes;
	struct snippet snippet;

	for (size_t i = 0; i < window->gap_count; i++) {
		const struct pinion_gap *gap = &window->gaps[i];

		if (gap->offset_bytes + gap->length_bytes <= candidate->start) {
			from = gap->offset_bytes + gap->length_bytes - 1;
		} else if (gap->offset_bytes >= candidate->end) {
			until = gap->offset_bytes;
			break;
		}
	}
	if (candidate->start > SNIPPET_CONTEXT) {
		from = greatest(from, candidate->start - SNIPPET_CONTEXT);
	}
	until = least(until, candidate->end + SNIPPET_CONTEXT);
	snippet = (struct snippet){
		.start = from,
		.length = (size_t)(until - from),
		.bytes = (uint8_t *)(uintptr_t)window->bytes + (from - window->base_offset_bytes),
	};
	snippet.has_end =
		window->is_last && until == window->base_offset_bytes + window->length_bytes;
	return snippet;
}

int kept_text_add(const struct rules *rules, const struct pinion_window *window,
	const struct candidates *found, struct candidates *scratch, struct snippets *snippets)
{
	int error = 0;

	scratch->count = 0;
	for (size_t i = 0; i < found->count && error == 0; i++) {
		/* A stream's may begin before the window. */
		if (kept_text_of_rule(rules, found->items[i].rule) &&
			found->items[i].start >= window->base_offset_bytes) {
			error = candidates_add(scratch, &found->items[i]);
		}
	}
	candidates_sort_by_start(scratch);
	for (size_t i = 0; i < scratch->count && error == 0; i++) {
		struct snippet snippet = snippet_of(window, &scratch->items[i]);

		error = snippets_add(snippets, &snippet);
	}
	return error;
}

/* SPDX-License-Identifier: MIT */
/*
 * What libyara has found becomes findings.
 */
#include "tools/scan/findings_whole.h"

#include "tools/scan/findings_held.h"
#include "tools/scan/findings_limits.h"

#include <errno.h>

/* Of longer findings no text is kept: these may overlap. */
enum { WHOLE_TEXT_BYTES = 64 << 10 };

static bool is_same(const struct candidate *left, const struct candidate *right)
{
	return left->start == right->start && left->end == right->end && left->rule == right->rule;
}

static int choose_whole(const struct findings *findings, struct findings_file *file,
	const struct candidate *candidate, bool *out_takes)
{
	struct findings_rule *state = findings_file_rule(file, candidate->rule);

	if (state == NULL) {
		return -ENOMEM;
	}
	*out_takes = !state->is_over;
	if (state->is_over) {
		return 0;
	}
	state->searched_to = candidate->end;
	state->work += candidate->end - candidate->start;
	if (findings->rules->findings_max != 0 &&
		(findings_limits_cut(findings, state, candidate->start) ||
			state->work > RULES_WORK_MAX)) {
		findings_limits_end(findings, file, state);
		*out_takes = false;
		return 0;
	}
	state->taken_to = candidate->end;
	state->taken_count++;
	return 0;
}

int findings_whole_choose(
	const struct findings *findings, struct findings_file *file, struct candidates *found)
{
	size_t kept = 0;
	int error = 0;

	candidates_sort_by_start(found);
	pthread_mutex_lock(&file->lock);
	for (size_t i = 0; i < found->count && error == 0; i++) {
		const struct candidate *candidate = &found->items[i];
		bool takes = false;

		if (kept == 0 || !is_same(&found->items[kept - 1], candidate)) {
			error = choose_whole(findings, file, candidate, &takes);
		}
		if (takes) {
			found->items[kept++] = *candidate;
		}
	}
	pthread_mutex_unlock(&file->lock);
	found->count = kept;
	return error;
}

int findings_whole_hold(const struct findings *findings, struct findings_file *file,
	const struct pinion_window *window, const struct candidates *found)
{
	const struct snippet whole = {
		.length = window->length_bytes, .bytes = (uint8_t *)(uintptr_t)window->bytes};
	int error = 0;

	pthread_mutex_lock(&file->lock);
	for (size_t i = 0; i < found->count && error == 0; i++) {
		const struct candidate *candidate = &found->items[i];
		bool has_text = candidate->end - candidate->start <= WHOLE_TEXT_BYTES;

		error = findings_held_add_within(
			findings, file, has_text ? &whole : NULL, candidate);
	}
	pthread_mutex_unlock(&file->lock);
	return error;
}

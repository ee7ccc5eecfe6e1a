/* SPDX-License-Identifier: MIT */
/*
 * Open candidates are a list by start, one for each.
 */
#include "tools/scan/findings_rule.h"

#include "tools/scan/clusters.h"
#include "tools/scan/findings_held.h"
#include "tools/scan/findings_limits.h"
#include "tools/scan/rule_filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The first open candidate that starts at `start` or further right. */
static size_t find_place(const struct candidates *open, uint64_t start)
{
	size_t low = 0;
	size_t high = open->count;

	if (high > 0 && open->items[high - 1].start < start) {
		return high;
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (open->items[middle].start < start) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

/*
 * Opens a candidate. They come ordered by end, so one with the same start as
 * another is the longer one, and most belong at the end of the list. A
 * candidate that belongs at its front covers all others: it, or a candidate
 * that covers it, is taken.
 */
static int open_candidate(struct findings_rule *state, const struct candidate *candidate)
{
	struct candidates *open = &state->open;
	size_t place;
	int error;

	if (candidate->start < state->taken_to) {
		return 0;
	}
	place = find_place(open, candidate->start);
	if (place == 0) {
		open->count = 0;
	} else if (place < open->count && open->items[place].start == candidate->start) {
		open->items[place] = *candidate;
		return 0;
	}
	error = candidates_add(open, candidate);
	if (error == 0 && place < open->count - 1) {
		memmove(&open->items[place + 1], &open->items[place],
			(open->count - 1 - place) * sizeof(open->items[0]));
		open->items[place] = *candidate;
	}
	return error;
}

/* Whether open candidates of a rule without a widest match are too many. */
static bool is_too_open(const struct findings *findings, struct findings_rule *state)
{
	const struct candidates *open = &state->open;
	uint64_t taken_to = state->taken_to;
	uint64_t count = 0;

	if (open->count <= findings->rules->findings_max || open->count < state->open_look) {
		return false;
	}
	for (size_t i = 0; i < open->count; i++) {
		if (open->items[i].start >= taken_to) {
			taken_to = open->items[i].end;
			count++;
		}
	}
	state->open_look = 2 * open->count;
	return count > findings->rules->findings_max;
}

int findings_rule_take(const struct findings *findings, struct findings_file *file,
	struct findings_rule *state, const struct candidate *candidate)
{
	bool is_unbounded = findings->rules->items[state->rule].max_width == RULE_WIDTH_UNBOUNDED;
	int error;

	if (state->is_over) {
		return 0;
	}
	if (findings->rules->items[state->rule].filter != NULL) {
		error = clusters_take(findings, file, state, candidate);
		if (error != -ELOOP) {
			return error;
		}
		findings_limits_end_costly(findings, file, state);
		return 0;
	}
	state->searched_to = candidate->end;
	if (findings->rules->findings_max == 0) {
		return open_candidate(state, candidate);
	}
	if (!is_unbounded) {
		state->work += candidate->end - candidate->start;
		if (state->work > RULES_WORK_MAX) {
			findings_limits_end(findings, file, state);
			return 0;
		}
	}
	error = open_candidate(state, candidate);
	if (error == 0 && is_unbounded && is_too_open(findings, state)) {
		findings_limits_end(findings, file, state);
	}
	return error;
}

/* Whether a candidate yet to come could start here or further left. */
static bool is_decided(const struct findings *findings, const struct findings_file *file,
	const struct findings_rule *state, uint64_t start)
{
	uint32_t width = findings->rules->items[state->rule].max_width;

	if (file->complete_to == UINT64_MAX || state->is_over) {
		return true;
	}
	return width != RULE_WIDTH_UNBOUNDED && start + width <= file->complete_to;
}

/*
 * Takes the leftmost open candidates that overlap nothing, as far as decided.
 */
static int decide_plain(
	const struct findings *findings, struct findings_file *file, struct findings_rule *state)
{
	struct candidates *open = &state->open;
	size_t done = 0;
	int error = 0;

	while (done < open->count && error == 0) {
		const struct candidate *candidate = &open->items[done];

		if (candidate->start >= state->taken_to) {
			if (!is_decided(findings, file, state, candidate->start)) {
				break;
			}
			if (findings_limits_cut(findings, state, candidate->start)) {
				if (!state->is_over) {
					findings_limits_end(findings, file, state);
				}
				done = open->count;
				break;
			}
			state->taken_to = candidate->end;
			state->taken_count += candidate->is_example ? 0 : 1;
			error = candidate->is_example
				? 0
				: findings_held_add(findings, file, candidate);
		}
		done++;
	}
	if (done > 0) {
		open->count -= done;
		memmove(open->items, open->items + done, open->count * sizeof(open->items[0]));
	}
	return error;
}

/* A rule that is only there for others, of which none asks for it. */
static bool is_unwanted(const struct findings *findings, uint32_t rule)
{
	const struct rule *item = &findings->rules->items[rule];

	return item->filter->skips_report && !item->is_companion;
}

/* As decide_plain(), for a confirmed rule. */
static int decide_confirmed(
	const struct findings *findings, struct findings_file *file, struct findings_rule *state)
{
	struct finding finding;
	int status;

	while ((status = clusters_next(findings, file, state, &finding)) == 1) {
		if (!is_unwanted(findings, state->rule) &&
			findings_limits_cut(findings, state, finding.start)) {
			free(finding.text);
			state->open.count = 0;
			state->taken_to = state->shown_to;
			status = 0;
			if (!state->is_over) {
				findings_limits_end(findings, file, state);
			}
			break;
		}
		if (is_unwanted(findings, state->rule)) {
			free(finding.text);
			continue;
		}
		state->taken_count++;
		state->shown_to = finding.end;
		status = finding_list_add(&file->held, &finding);
		if (status != 0) {
			free(finding.text);
			break;
		}
	}
	if (status == -ELOOP) {
		findings_limits_end_costly(findings, file, state);
		return 0;
	}
	if (status == -E2BIG) {
		state->open.count = 0;
		findings_limits_end(findings, file, state);
		return 0;
	}
	return status;
}

int findings_rule_decide(
	const struct findings *findings, struct findings_file *file, struct findings_rule *state)
{
	return findings->rules->items[state->rule].filter != NULL
		? decide_confirmed(findings, file, state)
		: decide_plain(findings, file, state);
}

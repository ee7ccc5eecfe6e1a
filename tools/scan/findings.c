/* SPDX-License-Identifier: MIT */
/*
 * The reduction of candidates to findings; what it promises is in findings.h.
 */
#include "tools/scan/findings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A window that came before its predecessors. */
struct findings_window {
	struct findings_window *next;
	uint64_t index;
	struct engine_yield yield;
};

void findings_init(struct findings *findings, const struct rules *rules)
{
	*findings = (struct findings){.rules = rules};
	for (uint32_t i = 0; i < rules->count; i++) {
		if (rules->items[i].max_width > findings->widest) {
			findings->widest = rules->items[i].max_width;
		}
	}
}

void findings_file_init(struct findings_file *file)
{
	pthread_mutex_init(&file->lock, NULL);
	file->is_ready = true;
}

static void window_free(struct findings_window *window)
{
	candidates_free(&window->yield.found);
	free(window);
}

void findings_file_fini(struct findings_file *file)
{
	if (!file->is_ready) {
		return;
	}
	while (file->waiting != NULL) {
		struct findings_window *window = file->waiting;

		file->waiting = window->next;
		window_free(window);
	}
	for (size_t i = 0; i < file->rule_count; i++) {
		candidates_free(&file->rules[i].open);
	}
	free(file->rules);
	candidates_free(&file->held);
	pthread_mutex_destroy(&file->lock);
	memset(file, 0, sizeof(*file));
}

/* The state of a rule, made when it first has a candidate. NULL: no memory. */
static struct findings_rule *need_rule(struct findings_file *file, uint32_t rule)
{
	size_t low = 0;
	size_t high = file->rule_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (file->rules[middle].rule < rule) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	if (low < file->rule_count && file->rules[low].rule == rule) {
		return &file->rules[low];
	}
	if (file->rule_count == file->rule_capacity) {
		size_t capacity = file->rule_capacity == 0 ? 8 : file->rule_capacity * 2;
		struct findings_rule *rules = realloc(file->rules, capacity * sizeof(*file->rules));

		if (rules == NULL) {
			return NULL;
		}
		file->rules = rules;
		file->rule_capacity = capacity;
	}
	memmove(&file->rules[low + 1], &file->rules[low],
		(file->rule_count - low) * sizeof(*file->rules));
	file->rules[low] = (struct findings_rule){.rule = rule};
	file->rule_count++;
	return &file->rules[low];
}

/*
 * Opens a candidate. They come ordered by end, so one with the same start as
 * another is the longer one, and most belong at the end of the list.
 */
static int open_candidate(struct findings_rule *state, const struct candidate *candidate)
{
	struct candidates *open = &state->open;
	size_t place = open->count;
	int error;

	if (candidate->start < state->taken_to) {
		return 0;
	}
	while (place > 0 && open->items[place - 1].start > candidate->start) {
		place--;
	}
	if (place > 0 && open->items[place - 1].start == candidate->start) {
		open->items[place - 1] = *candidate;
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

/* Whether a candidate yet to come could start here or further left. */
static bool is_decided(const struct findings *findings, const struct findings_file *file,
	uint32_t rule, uint64_t start)
{
	uint32_t width = findings->rules->items[rule].max_width;

	if (file->complete_to == UINT64_MAX) {
		return true;
	}
	return width != RULE_WIDTH_UNBOUNDED && start + width <= file->complete_to;
}

/*
 * Takes the leftmost open candidates that overlap nothing, as far as decided.
 */
static int decide_rule(
	const struct findings *findings, struct findings_file *file, struct findings_rule *state)
{
	struct candidates *open = &state->open;
	size_t done = 0;
	int error = 0;

	while (done < open->count && error == 0) {
		const struct candidate *candidate = &open->items[done];

		if (candidate->start >= state->taken_to) {
			if (!is_decided(findings, file, state->rule, candidate->start)) {
				break;
			}
			state->taken_to = candidate->end;
			error = candidate->is_example ? 0 : candidates_add(&file->held, candidate);
		}
		done++;
	}
	if (done > 0) {
		open->count -= done;
		memmove(open->items, open->items + done, open->count * sizeof(open->items[0]));
	}
	return error;
}

static int decide(const struct findings *findings, struct findings_file *file)
{
	int error = 0;

	for (size_t i = 0; i < file->rule_count && error == 0; i++) {
		error = decide_rule(findings, file, &file->rules[i]);
	}
	return error;
}

/* No finding that is still to come starts before this. */
static uint64_t find_watermark(const struct findings *findings, const struct findings_file *file)
{
	uint64_t watermark = 0;

	if (file->complete_to == UINT64_MAX) {
		return UINT64_MAX;
	}
	if (findings->widest != RULE_WIDTH_UNBOUNDED && file->complete_to >= findings->widest) {
		watermark = file->complete_to - findings->widest + 1;
	}
	for (size_t i = 0; i < file->rule_count; i++) {
		const struct candidates *open = &file->rules[i].open;

		if (open->count > 0 && open->items[0].start < watermark) {
			watermark = open->items[0].start;
		}
	}
	return watermark;
}

static void show_decided(const struct findings *findings, struct findings_file *file,
	findings_show_fn show, void *arg)
{
	uint64_t watermark = find_watermark(findings, file);
	size_t count = 0;

	candidates_sort_by_start(&file->held);
	while (count < file->held.count && file->held.items[count].start < watermark) {
		count++;
	}
	if (count == 0) {
		return;
	}
	show(arg, file->held.items, count);
	file->held.count -= count;
	memmove(file->held.items, file->held.items + count,
		file->held.count * sizeof(*file->held.items));
}

/* Takes the next window of the file. */
static int merge(
	const struct findings *findings, struct findings_file *file, struct engine_yield *yield)
{
	struct findings_rule *state = NULL;
	int error = 0;

	file->next_index++;
	file->complete_to = yield->complete_to;
	for (size_t i = 0; i < yield->found.count && error == 0; i++) {
		const struct candidate *candidate = &yield->found.items[i];

		if (state == NULL || state->rule != candidate->rule) {
			state = need_rule(file, candidate->rule);
		}
		error = state == NULL ? -ENOMEM : open_candidate(state, candidate);
	}
	return error != 0 ? error : decide(findings, file);
}

static int keep_waiting(struct findings_file *file, const struct pinion_window *window,
	const struct engine_yield *yield)
{
	struct findings_window *kept = calloc(1, sizeof(*kept));
	struct findings_window **place = &file->waiting;

	if (kept == NULL) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < yield->found.count; i++) {
		if (candidates_add(&kept->yield.found, &yield->found.items[i]) != 0) {
			window_free(kept);
			return -ENOMEM;
		}
	}
	kept->index = window->index;
	kept->yield.complete_to = yield->complete_to;
	while (*place != NULL && (*place)->index < kept->index) {
		place = &(*place)->next;
	}
	kept->next = *place;
	*place = kept;
	return 0;
}

/* Takes windows that wait; all of them, or those whose turn it is. */
static int merge_waiting(const struct findings *findings, struct findings_file *file, bool all)
{
	int error = 0;

	while (error == 0 && file->waiting != NULL &&
		(all || file->waiting->index == file->next_index)) {
		struct findings_window *window = file->waiting;

		file->waiting = window->next;
		error = merge(findings, file, &window->yield);
		window_free(window);
	}
	return error;
}

int findings_add(const struct findings *findings, struct findings_file *file,
	const struct pinion_window *window, struct engine_yield *yield, findings_show_fn show,
	void *arg)
{
	int error;

	if (window->index == 0 && window->is_last && yield->found.count == 0) {
		return 0;
	}
	candidates_sort_by_end(&yield->found);
	pthread_mutex_lock(&file->lock);
	if (window->index == file->next_index) {
		error = merge(findings, file, yield);
		if (error == 0) {
			error = merge_waiting(findings, file, false);
		}
	} else {
		error = keep_waiting(file, window, yield);
	}
	if (error == 0 && file->held.count > 0) {
		show_decided(findings, file, show, arg);
	}
	pthread_mutex_unlock(&file->lock);
	return error;
}

int findings_finish(const struct findings *findings, struct findings_file *file,
	findings_show_fn show, void *arg)
{
	int error;

	pthread_mutex_lock(&file->lock);
	error = merge_waiting(findings, file, true);
	file->complete_to = UINT64_MAX;
	if (error == 0) {
		error = decide(findings, file);
	}
	show_decided(findings, file, show, arg);
	pthread_mutex_unlock(&file->lock);
	return error;
}

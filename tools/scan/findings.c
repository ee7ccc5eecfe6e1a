/* SPDX-License-Identifier: MIT */
/*
 * The reduction of candidates to findings; what it promises is in findings.h.
 */
#include "tools/scan/findings.h"

#include "tools/scan/findings_rule.h"
#include "tools/scan/kept_text.h"

#include <errno.h>

/* Bytes before the first open candidate that has any are not needed again. */
static void drop_snippets(const struct findings *findings, struct findings_file *file)
{
	uint64_t needed = UINT64_MAX;

	for (size_t i = 0; i < file->rule_count; i++) {
		const struct candidates *open = &file->rules[i].open;

		if (open->count > 0 && kept_text_of_rule(findings->rules, file->rules[i].rule) &&
			open->items[0].start < needed) {
			needed = open->items[0].start;
		}
	}
	snippets_drop(&file->snippets,
		needed > SNIPPET_CONTEXT && needed != UINT64_MAX ? needed - SNIPPET_CONTEXT
			: needed == UINT64_MAX			 ? needed
								 : 0);
}

static int decide(const struct findings *findings, struct findings_file *file)
{
	int error = 0;

	for (size_t i = 0; i < file->rule_count && error == 0; i++) {
		error = findings_rule_decide(findings, file, &file->rules[i]);
	}
	if (file->snippets.count > 0) {
		drop_snippets(findings, file);
	}
	return error;
}

/* Takes the next window of the file. */
static int merge(
	const struct findings *findings, struct findings_file *file, struct engine_yield *yield)
{
	struct findings_rule *state = NULL;
	int error = snippets_add_all(&file->snippets, &yield->snippets);

	file->next_index++;
	file->complete_to = yield->complete_to;
	for (size_t i = 0; i < yield->found.count && error == 0; i++) {
		const struct candidate *candidate = &yield->found.items[i];

		if (state == NULL || state->rule != candidate->rule) {
			state = findings_file_rule(file, candidate->rule);
		}
		error = state == NULL ? -ENOMEM
				      : findings_rule_take(findings, file, state, candidate);
	}
	return error != 0 ? error : decide(findings, file);
}

/* Takes windows that wait; all of them, or those whose turn it is. */
static int merge_waiting(const struct findings *findings, struct findings_file *file, bool all)
{
	struct early_window *window;
	int error = 0;

	while (error == 0 &&
		(window = early_windows_take(&file->waiting, file->next_index, all)) != NULL) {
		error = merge(findings, file, &window->yield);
		early_windows_free(window);
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
		error = early_windows_add(&file->waiting, window, yield);
	}
	if (error == 0 && file->held.count > 0) {
		findings_held_show(findings, file, show, arg);
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
	file->has_ended = true;
	if (error == 0) {
		error = decide(findings, file);
	}
	if (error == 0 && findings->rules->has_companions) {
		finding_list_sort(&file->held);
		error = companions_apply(
			findings->rules, &file->held, file->locate, file->locate_arg);
	}
	findings_held_show(findings, file, show, arg);
	pthread_mutex_unlock(&file->lock);
	return error;
}

/* SPDX-License-Identifier: MIT */
/*
 * The reduction of candidates to findings; what it promises is in findings.h.
 */
#include "tools/scan/findings.h"

#include "tools/scan/clusters.h"
#include "tools/scan/confirm.h"
#include "tools/scan/kept_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Of longer findings in whole files no text is kept: these may overlap. */
enum { WHOLE_TEXT_BYTES = 64 << 10 };

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
	snippets_free(&window->yield.snippets);
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
	free(file->over.bits);
	finding_list_free(&file->held);
	snippets_free(&file->snippets);
	confirm_room_destroy(file->room);
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

/* ---- limits ---- */

/* Without memory for it engines go on, and what they find is left out. */
static void set_over(
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

static int end_costly(
	const struct findings *findings, struct findings_file *file, struct findings_rule *state)
{
	state->is_costly = true;
	if (state->costly_count++ == 0) {
		state->costly_at = state->searched_to;
	}
	state->open.count = 0;
	if (!state->is_over) {
		set_over(findings, file, state);
	}
	return 0;
}

/* Takes a candidate, or finds the rule over with it. */
static int take_candidate(const struct findings *findings, struct findings_file *file,
	struct findings_rule *state, const struct candidate *candidate)
{
	bool is_unbounded = findings->rules->items[state->rule].max_width == RULE_WIDTH_UNBOUNDED;
	int error;

	if (state->is_over) {
		return 0;
	}
	if (findings->rules->items[state->rule].filter != NULL) {
		error = clusters_take(findings, file, state, candidate);
		return error == -ELOOP ? end_costly(findings, file, state) : error;
	}
	state->searched_to = candidate->end;
	if (findings->rules->findings_max == 0) {
		return open_candidate(state, candidate);
	}
	if (!is_unbounded) {
		state->work += candidate->end - candidate->start;
		if (state->work > RULES_WORK_MAX) {
			set_over(findings, file, state);
			return 0;
		}
	}
	error = open_candidate(state, candidate);
	if (error == 0 && is_unbounded && is_too_open(findings, state)) {
		set_over(findings, file, state);
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

/* Whether one more may not be shown. */
static bool is_cut(const struct findings *findings, struct findings_rule *state, uint64_t start)
{
	uint64_t max = findings->rules->findings_max;

	state->is_cut = max != 0 && state->taken_count == max;
	state->cut_at = start;
	return state->is_cut;
}

/* Without it, a finding of a plain rule is one all the same. */
static int set_text(const struct snippet *snippet, struct finding *finding)
{
	uint64_t from;
	uint64_t until;

	if (snippet == NULL || finding->end > snippet->start + snippet->length) {
		return 0;
	}
	from = snippet->start;
	until = snippet->start + snippet->length;
	if (finding->start > from + FINDING_CONTEXT) {
		from = finding->start - FINDING_CONTEXT;
	}
	if (finding->end + FINDING_CONTEXT < until) {
		until = finding->end + FINDING_CONTEXT;
	}
	finding->text = malloc((size_t)(until - from));
	if (finding->text == NULL) {
		return -ENOMEM;
	}
	memcpy(finding->text, snippet->bytes + (from - snippet->start), (size_t)(until - from));
	finding->text_start = from;
	finding->text_bytes = (uint32_t)(until - from);
	return 0;
}

/*
 * Holds a plain rule's finding until it is shown, with its text of the snippet;
 * NULL: without.
 */
static int hold_within(const struct findings *findings, struct findings_file *file,
	const struct snippet *snippet, const struct candidate *candidate)
{
	struct finding finding = {
		.start = candidate->start,
		.end = candidate->end,
		.secret_start = candidate->start,
		.secret_end = candidate->end,
		.rule = candidate->rule,
		.string = candidate->string,
	};
	int error;

	memcpy(finding.head, candidate->head, sizeof(finding.head));
	error = findings->rules->keeps_text ? set_text(snippet, &finding) : 0;
	if (error == 0) {
		error = finding_list_add(&file->held, &finding);
	}
	if (error != 0) {
		free(finding.text);
	}
	return error;
}

static int hold(const struct findings *findings, struct findings_file *file,
	const struct candidate *candidate)
{
	const struct snippet *snippet = findings->rules->keeps_text
		? snippets_find(&file->snippets, candidate->start)
		: NULL;

	return hold_within(findings, file, snippet, candidate);
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
			if (!is_decided(findings, file, state, candidate->start)) {
				break;
			}
			if (is_cut(findings, state, candidate->start)) {
				if (!state->is_over) {
					set_over(findings, file, state);
				}
				done = open->count;
				break;
			}
			state->taken_to = candidate->end;
			state->taken_count += candidate->is_example ? 0 : 1;
			error = candidate->is_example ? 0 : hold(findings, file, candidate);
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

/* As decide_rule(), for a confirmed rule. */
static int decide_confirmed(
	const struct findings *findings, struct findings_file *file, struct findings_rule *state)
{
	struct finding finding;
	int status;

	while ((status = clusters_next(findings, file, state, &finding)) == 1) {
		if (!is_unwanted(findings, state->rule) && is_cut(findings, state, finding.start)) {
			free(finding.text);
			state->open.count = 0;
			state->taken_to = state->shown_to;
			status = 0;
			if (!state->is_over) {
				set_over(findings, file, state);
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
		return end_costly(findings, file, state);
	}
	if (status == -E2BIG) {
		state->open.count = 0;
		set_over(findings, file, state);
		return 0;
	}
	return status;
}

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
		struct findings_rule *state = &file->rules[i];

		error = findings->rules->items[state->rule].filter != NULL
			? decide_confirmed(findings, file, state)
			: decide_rule(findings, file, state);
	}
	if (file->snippets.count > 0) {
		drop_snippets(findings, file);
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

/*
 * Whether the bytes after it have come, too, and the findings in them, if they
 * are asked for: before `known_to` none is missing.
 */
static bool is_held_long(const struct findings *findings, const struct findings_file *file,
	const struct finding *finding, uint64_t known_to)
{
	uint64_t until = finding->end + findings->hold_bytes;

	if (findings->holds_for_others && known_to != UINT64_MAX && until > known_to) {
		return false;
	}
	return file->complete_to == UINT64_MAX || until <= file->complete_to;
}

/* Whether its companions are not decided yet. */
static bool is_waiting(const struct findings *findings, const struct findings_file *file,
	const struct finding *finding)
{
	return findings->rules->has_companions && !file->has_ended &&
		companions_concern(findings->rules, finding->rule);
}

/* No finding that starts before this is to come, or may be dropped. */
static uint64_t find_known(
	const struct findings *findings, const struct findings_file *file, uint64_t watermark)
{
	size_t index = 0;

	if (!findings->holds_for_others || !findings->rules->has_companions || file->has_ended) {
		return watermark;
	}
	while (index < file->held.count && !is_waiting(findings, file, &file->held.items[index])) {
		index++;
	}
	return index < file->held.count && file->held.items[index].start < watermark
		? file->held.items[index].start
		: watermark;
}

/* Leaves the others sorted. */
static void show_decided(const struct findings *findings, struct findings_file *file,
	findings_show_fn show, void *arg)
{
	uint64_t watermark = find_watermark(findings, file);
	uint64_t known_to;
	size_t count = 0;

	finding_list_sort(&file->held);
	known_to = find_known(findings, file, watermark);
	while (count < file->held.count && file->held.items[count].start < watermark &&
		is_held_long(findings, file, &file->held.items[count], known_to) &&
		!is_waiting(findings, file, &file->held.items[count])) {
		count++;
	}
	if (count == 0) {
		return;
	}
	show(arg, file->held.items, count);
	finding_list_drop(&file->held, count);
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
			state = need_rule(file, candidate->rule);
		}
		error = state == NULL ? -ENOMEM : take_candidate(findings, file, state, candidate);
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
	if (snippets_add_all(&kept->yield.snippets, &yield->snippets) != 0) {
		window_free(kept);
		return -ENOMEM;
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
	file->has_ended = true;
	if (error == 0) {
		error = decide(findings, file);
	}
	if (error == 0 && findings->rules->has_companions) {
		finding_list_sort(&file->held);
		error = companions_apply(
			findings->rules, &file->held, file->locate, file->locate_arg);
	}
	show_decided(findings, file, show, arg);
	pthread_mutex_unlock(&file->lock);
	return error;
}

/* ---- files that another engine has searched ---- */

static bool is_same(const struct candidate *left, const struct candidate *right)
{
	return left->start == right->start && left->end == right->end && left->rule == right->rule;
}

static int choose_whole(const struct findings *findings, struct findings_file *file,
	const struct candidate *candidate, bool *out_takes)
{
	struct findings_rule *state = need_rule(file, candidate->rule);

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
		(is_cut(findings, state, candidate->start) || state->work > RULES_WORK_MAX)) {
		set_over(findings, file, state);
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

		error = hold_within(findings, file, has_text ? &whole : NULL, candidate);
	}
	pthread_mutex_unlock(&file->lock);
	return error;
}

uint64_t findings_settled_to(const struct findings *findings, const struct findings_file *file)
{
	uint64_t settled_to = find_watermark(findings, file);

	if (file->held.count > 0 && file->held.items[0].start < settled_to) {
		settled_to = file->held.items[0].start;
	}
	return settled_to;
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

uint64_t findings_known_to(const struct rules *rules, const struct findings_file *file)
{
	uint64_t known_to = UINT64_MAX;

	for (size_t i = 0; i < file->rule_count; i++) {
		uint64_t here = known_to_of(rules, &file->rules[i]);

		known_to = here < known_to ? here : known_to;
	}
	return known_to;
}

void findings_limits(const struct findings_file *file, findings_limit_fn show, void *arg)
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

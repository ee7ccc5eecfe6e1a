/* SPDX-License-Identifier: MIT */
/*
 * The windows of a file, and the bytes carried from each to the next.
 */
#include "tools/scan/evidence.h"

#include "tools/growing.h"
#include "tools/scan/evidence_window.h"
#include "tools/scan/matcher.h"
#include "tools/scan/newlines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* No window's bytes begin further before its new ones. */
enum { BACK_BYTES = 1 << 20 };

void evidence_free(struct evidence *evidence)
{
	for (size_t i = 0; i < evidence->window_count; i++) {
		evidence_window_free(evidence->windows[i]);
	}
	free(evidence->windows);
	free(evidence->carry);
	memset(evidence, 0, sizeof(*evidence));
}

/* ---- the carry ---- */

static bool starts_before(const struct candidates *found, uint64_t base)
{
	for (size_t i = 0; i < found->count; i++) {
		if (found->items[i].start < base) {
			return true;
		}
	}
	return false;
}

/* The bytes to look at; `out_copy` is to be freed. */
static int make_view(const struct evidence_source *source, const struct evidence *evidence,
	const struct pinion_window *window, const struct candidates *found,
	struct evidence_view *out_view, uint8_t **out_copy)
{
	size_t prefix = window->prefix_bytes;
	size_t fresh = window->is_hole ? 0 : window->length_bytes - prefix;
	bool has_carry = source->in_order && evidence->carry_length > prefix &&
		starts_before(found, window->base_offset_bytes + source->needs.context_bytes);

	*out_copy = NULL;
	*out_view = (struct evidence_view){
		.bytes = window->bytes,
		.length = prefix + fresh,
		.fresh = prefix,
		.base = window->base_offset_bytes,
		.zeros = window->is_hole ? window->length_bytes : 0,
		.has_line_start = window->base_offset_bytes == 0,
		.is_last = window->is_last,
	};
	if (!has_carry) {
		return 0;
	}
	*out_copy = malloc(evidence->carry_length + fresh);
	if (*out_copy == NULL) {
		return -ENOMEM;
	}
	memcpy(*out_copy, evidence->carry, evidence->carry_length);
	if (fresh > 0) {
		memcpy(*out_copy + evidence->carry_length, window->bytes + prefix, fresh);
	}
	out_view->bytes = *out_copy;
	out_view->length = evidence->carry_length + fresh;
	out_view->fresh = evidence->carry_length;
	out_view->base = window->base_offset_bytes + prefix - evidence->carry_length;
	out_view->line_start = evidence->carry_line_start;
	out_view->has_line_start = true;
	return 0;
}

/* Of a hole `bytes` is NULL. */
static void note_dropped_lines(
	struct evidence *evidence, uint64_t base, const uint8_t *bytes, size_t dropped)
{
	size_t old = evidence->carry_length < dropped ? evidence->carry_length : dropped;
	size_t start = 0;

	if (bytes != NULL && dropped > old) {
		start = newlines_last_start(bytes, dropped - old);
		start += start != 0 ? old : 0;
	}
	if (start == 0) {
		start = newlines_last_start(evidence->carry, old);
	}
	if (start != 0) {
		evidence->carry_line_start = base + start;
	}
}

/* Keeps the last bytes of the window, and of those before it. */
static int carry_on(struct evidence *evidence, const struct pinion_window *window)
{
	uint64_t from = window->base_offset_bytes + window->prefix_bytes;
	size_t fresh = window->length_bytes - window->prefix_bytes;
	const uint8_t *bytes = window->is_hole ? NULL : window->bytes + window->prefix_bytes;
	size_t old = evidence->carry_length;
	size_t kept;

	if (evidence->carry == NULL) {
		evidence->carry = malloc(EVIDENCE_CARRY);
	}
	if (evidence->carry == NULL) {
		return -ENOMEM;
	}
	if (old + fresh > EVIDENCE_CARRY) {
		note_dropped_lines(evidence, from - old, bytes, old + fresh - EVIDENCE_CARRY);
	}
	if (fresh > EVIDENCE_CARRY) {
		bytes = bytes == NULL ? NULL : bytes + fresh - EVIDENCE_CARRY;
		fresh = EVIDENCE_CARRY;
	}
	kept = old + fresh > EVIDENCE_CARRY ? EVIDENCE_CARRY - fresh : old;
	memmove(evidence->carry, evidence->carry + old - kept, kept);
	if (bytes != NULL) {
		memcpy(evidence->carry + kept, bytes, fresh);
	} else {
		memset(evidence->carry + kept, 0, fresh);
	}
	evidence->carry_length = kept + fresh;
	return 0;
}

/* ---- windows ---- */

static int insert(struct evidence *evidence, struct evidence_window *window)
{
	size_t place = evidence->window_count;
	struct evidence_window **windows = growing_make_room(
		evidence->windows, place, &evidence->window_capacity, sizeof(*windows));

	if (windows == NULL) {
		return -ENOMEM;
	}
	evidence->windows = windows;
	while (place > 0 && evidence->windows[place - 1]->from > window->from) {
		evidence->windows[place] = evidence->windows[place - 1];
		place--;
	}
	evidence->windows[place] = window;
	evidence->window_count++;
	return 0;
}

static void resolve(struct evidence *evidence)
{
	while (evidence->resolved_count < evidence->window_count) {
		struct evidence_window *window = evidence->windows[evidence->resolved_count];

		if (window->from != evidence->resolved_to) {
			break;
		}
		window->lines_before = evidence->newlines;
		window->prior_start = evidence->line_start;
		evidence->newlines += window->newlines;
		if (window->last_start != 0) {
			evidence->line_start = window->last_start;
		}
		evidence->resolved_to = window->until;
		evidence->resolved_count++;
	}
}

/* Without candidates, words that allow, and context. */
static bool is_plain(const struct evidence_window *window)
{
	return !window->has_candidates && window->allow_count == 0 && window->context.count == 0;
}

/*
 * Where windows are in order, plain ones are joined, since with a rule without
 * a longest match nothing is forgotten before the end. Starts of lines that are
 * more than an overlap away are of no use any more, but for the last of them.
 */
static void join_last(struct evidence *evidence, uint32_t overlap_bytes)
{
	struct evidence_window *left;
	struct evidence_window *right;

	if (evidence->window_count < 2 || evidence->resolved_count < evidence->window_count) {
		return;
	}
	left = evidence->windows[evidence->window_count - 2];
	right = evidence->windows[evidence->window_count - 1];
	if (!is_plain(left) || !is_plain(right)) {
		return;
	}
	if (!evidence_window_join(left, right, overlap_bytes)) {
		return;
	}
	evidence_window_free(right);
	evidence->window_count--;
	evidence->resolved_count--;
}

/*
 * How many of the new bytes are kept as context of earlier windows' candidates.
 * Where windows are in order, those candidates are known.
 */
static uint64_t context_head(const struct evidence_source *source, const struct evidence *evidence,
	const struct pinion_window *window)
{
	uint64_t from = window->base_offset_bytes + window->prefix_bytes;

	if (!source->in_order) {
		return from == 0 ? 0 : source->needs.context_bytes;
	}
	return evidence->context_to > from ? evidence->context_to - from : 0;
}

static void note_context(const struct evidence_source *source, struct evidence *evidence,
	const struct candidates *found)
{
	uint32_t reach = source->needs.context_bytes;

	for (size_t i = 0; reach > 0 && i < found->count; i++) {
		if (found->items[i].end + reach > evidence->context_to) {
			evidence->context_to = found->items[i].end + reach;
		}
	}
}

int evidence_gather(const struct evidence_source *source, struct evidence *evidence,
	const struct pinion_window *window, const struct engine_yield *yield,
	struct evidence_window **out_window)
{
	const struct candidates *found = &yield->found;
	struct evidence_window *kept = calloc(1, sizeof(*kept));
	struct evidence_view view;
	uint8_t *copy = NULL;
	int error = kept == NULL ? -ENOMEM : 0;

	if (error == 0) {
		error = make_view(source, evidence, window, found, &view, &copy);
		view.newlines = yield->newlines;
		view.context_head = context_head(source, evidence, window);
	}
	if (error == 0) {
		error = evidence_window_fill(source, &view, found, kept);
	}
	free(copy);
	if (error == 0 && source->in_order && !window->is_last) {
		note_context(source, evidence, found);
		error = carry_on(evidence, window);
	}
	if (error != 0) {
		evidence_window_free(kept);
		return error;
	}
	*out_window = kept;
	return 0;
}

int evidence_add(const struct evidence_source *source, struct evidence *evidence,
	struct evidence_window *window)
{
	int error = insert(evidence, window);

	if (error != 0) {
		evidence_window_free(window);
		return error;
	}
	resolve(evidence);
	if (source->in_order) {
		join_last(evidence, source->overlap_bytes);
	}
	return 0;
}

void evidence_forget(struct evidence *evidence, uint64_t offset)
{
	size_t count = 0;

	/* The last one has what a later window's first line needs. */
	while (count + 1 < evidence->resolved_count && evidence->windows[count]->until < offset &&
		offset - evidence->windows[count]->until > EVIDENCE_REACH) {
		evidence_window_free(evidence->windows[count]);
		count++;
	}
	if (count > 0) {
		evidence->window_count -= count;
		evidence->resolved_count -= count;
		memmove(evidence->windows, evidence->windows + count,
			evidence->window_count * sizeof(evidence->windows[0]));
	}
}

/* ---- lookups ---- */

/* The last window that begins at `offset` or before; count: there is none. */
static size_t find_window(const struct evidence *evidence, uint64_t offset)
{
	size_t low = 0;
	size_t high = evidence->window_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (evidence->windows[middle]->from <= offset) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low == 0 ? evidence->window_count : low - 1;
}

/* The last mark at `offset` or before; NULL: there is none. */
static const struct line_mark *find_mark(const struct evidence_window *window, uint64_t offset)
{
	size_t low = 0;
	size_t high = window->mark_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (window->marks[middle].start <= offset) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low == 0 ? NULL : &window->marks[low - 1];
}

/* The line of a byte: where it starts, and its number, from 0. */
struct line {
	uint64_t start;
	uint64_t number;
};

static bool find_line(const struct evidence *evidence, uint64_t offset, struct line *out_line)
{
	size_t index = find_window(evidence, offset);

	if (index >= evidence->resolved_count || offset >= evidence->resolved_to) {
		return false;
	}
	out_line->start = evidence->windows[index]->prior_start;
	out_line->number = evidence->windows[index]->lines_before;
	for (; index < evidence->resolved_count; index++) {
		const struct evidence_window *window = evidence->windows[index];
		const struct line_mark *mark = find_mark(window, offset);

		if (window->from > offset && window->from - offset > BACK_BYTES) {
			break;
		}
		if (mark != NULL && mark->start >= out_line->start) {
			out_line->start = mark->start;
			out_line->number = (uint64_t)((int64_t)window->lines_before + mark->line);
		}
	}
	return true;
}

bool evidence_find_line(
	const struct evidence *evidence, uint64_t offset, uint64_t *out_number, uint64_t *out_start)
{
	struct line line;

	if (!find_line(evidence, offset, &line)) {
		return false;
	}
	*out_number = line.number;
	*out_start = line.start;
	return true;
}

/* It was found in the window of its end, or in one beside that. */
static const struct quote *find_quote(const struct evidence *evidence,
	const struct finding *finding, const struct evidence_window **out_window)
{
	const struct quote key = {
		.start = finding->start, .end = finding->end, .rule = finding->rule};
	size_t middle = find_window(evidence, finding->end);
	size_t index = middle > 0 ? middle - 1 : 0;

	for (; index < evidence->window_count && index <= middle + 1; index++) {
		const struct evidence_window *window = evidence->windows[index];
		const struct quote *quote = window->quote_count == 0
			? NULL
			: bsearch(&key, window->quotes, window->quote_count, sizeof(key),
				  evidence_compare_quotes);

		if (quote != NULL) {
			*out_window = window;
			return quote;
		}
	}
	return NULL;
}

static bool has_allow(const struct evidence_window *window, uint64_t from, uint64_t until,
	const struct line *first, const struct line *last)
{
	for (size_t i = 0; i < window->allow_count; i++) {
		const struct allow_mark *allow = &window->allows[i];
		uint64_t line = (uint64_t)((int64_t)window->lines_before + allow->line);

		if (allow->offset > until) {
			break;
		}
		if (allow->offset >= from && (line == first->number || line == last->number)) {
			return true;
		}
	}
	return false;
}

static bool is_allowed(const struct evidence *evidence, const struct finding *finding,
	const struct line *first, const struct line *last)
{
	uint64_t from = finding->start > EVIDENCE_REACH ? finding->start - EVIDENCE_REACH : 0;
	uint64_t until = finding->end + EVIDENCE_REACH;
	size_t index = find_window(evidence, from);

	index = index == evidence->window_count ? 0 : index;
	for (; index < evidence->resolved_count; index++) {
		const struct evidence_window *window = evidence->windows[index];

		if (window->from > until && window->from - until > BACK_BYTES) {
			break;
		}
		if (window->allow_count > 0 && has_allow(window, from, until, first, last)) {
			return true;
		}
	}
	return false;
}

void evidence_find(struct evidence *evidence, const struct rules *rules,
	const struct finding *finding, struct evidence_place *out_place)
{
	bool is_far = rules->items[finding->rule].max_width == RULE_WIDTH_UNBOUNDED &&
		finding->end - finding->start > EVIDENCE_CARRY;
	const struct evidence_window *window = NULL;
	const struct quote *quote;
	struct line first;
	struct line last;

	*out_place = (struct evidence_place){0};
	if (find_line(evidence, finding->end - 1, &last)) {
		out_place->end_line = last.number + 1;
		out_place->end_column = finding->end - last.start + 1;
		if (is_far || !find_line(evidence, finding->start, &first)) {
			first = last;
		} else {
			out_place->line = first.number + 1;
			out_place->column = finding->start - first.start + 1;
		}
		out_place->is_allowed = is_allowed(evidence, finding, &first, &last);
	}
	quote = find_quote(evidence, finding, &window);
	if (quote != NULL) {
		out_place->has_digest = quote->has_digest;
		memcpy(out_place->digest, quote->digest, sizeof(quote->digest));
		out_place->text = window->texts + quote->text;
		out_place->text_bytes = quote->text_bytes;
	}
}

/* Adds the part of a snippet that is in [from, until). */
static int copy_part(
	const struct snippet *item, uint64_t from, uint64_t until, struct snippets *out)
{
	uint64_t end = item->start + item->length;
	uint64_t first = item->start > from ? item->start : from;
	uint64_t last = end < until ? end : until;
	struct snippet part = {.start = first};

	if (first >= last) {
		return 0;
	}
	part.bytes = item->bytes + (first - item->start);
	part.length = (size_t)(last - first);
	return snippets_add(out, &part);
}

int evidence_copy(
	const struct evidence *evidence, uint64_t from, uint64_t until, struct snippets *out)
{
	size_t index = find_window(evidence, from);
	int error = 0;

	/* A window's old bytes may begin before those of others. */
	index = index == evidence->window_count ? 0 : index;
	for (; index < evidence->resolved_count && error == 0; index++) {
		const struct evidence_window *window = evidence->windows[index];

		if (window->from > until && window->from - until > BACK_BYTES) {
			break;
		}
		for (size_t i = snippets_first(&window->context, from); i < window->context.count &&
			window->context.items[i].start < until && error == 0;
			i++) {
			error = copy_part(&window->context.items[i], from, until, out);
		}
	}
	return error;
}

/* SPDX-License-Identifier: MIT */
/*
 * One pass over the candidates' places in order, in which the newlines between
 * them are counted, so that all newlines of the window are counted once.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tools/scan/evidence_window.h"

#include "tools/growing.h"
#include "tools/scan/newlines.h"
#include "tools/scan/sha256.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int add_mark(struct evidence_window *window, uint64_t start, int64_t line)
{
	struct line_mark *marks = growing_make_room(
		window->marks, window->mark_count, &window->mark_capacity, sizeof(*window->marks));

	if (marks == NULL) {
		return -ENOMEM;
	}
	window->marks = marks;
	marks[window->mark_count++] = (struct line_mark){.start = start, .line = line};
	return 0;
}

static int add_allow(struct evidence_window *window, uint64_t offset, int64_t line)
{
	struct allow_mark *allows = growing_make_room(window->allows, window->allow_count,
		&window->allow_capacity, sizeof(*window->allows));

	if (allows == NULL) {
		return -ENOMEM;
	}
	window->allows = allows;
	allows[window->allow_count++] = (struct allow_mark){.offset = offset, .line = line};
	return 0;
}

/* ---- words that allow ---- */

static const char allow_tail[] = ":allow";
enum { ALLOW_TAIL_BYTES = sizeof(allow_tail) - 1 };

static bool ends_in(const uint8_t *bytes, size_t length, const char *word)
{
	size_t size = strlen(word);

	return length >= size && memcmp(bytes + length - size, word, size) == 0;
}

/* In [first, last) of the view, which is within one line. */
static int find_allows(struct evidence_window *window, const struct evidence_view *view,
	size_t first, size_t last, int64_t line)
{
	int error = 0;

	while (error == 0 && first < last) {
		const uint8_t *hit =
			memmem(view->bytes + first, last - first, allow_tail, ALLOW_TAIL_BYTES);
		size_t at;

		if (hit == NULL) {
			break;
		}
		at = (size_t)(hit - view->bytes);
		if (ends_in(view->bytes, at, "pinion") || ends_in(view->bytes, at, "gitleaks")) {
			error = add_allow(window, view->base + at, line);
		}
		first = at + ALLOW_TAIL_BYTES;
	}
	return error;
}

/*
 * The words in lines that borders cut, as far as they count for a finding on
 * the other side: of the line that the new bytes begin in, and of the line that
 * the next window begins in, whose overlap may hold the end of that line.
 */
static int find_allows_at_borders(
	struct evidence_window *window, const struct evidence_view *view, uint32_t overlap_bytes)
{
	enum { FAR = EVIDENCE_REACH + EVIDENCE_ALLOW_BYTES };
	size_t fresh = view->fresh;
	size_t first = fresh > EVIDENCE_ALLOW_BYTES ? fresh - EVIDENCE_ALLOW_BYTES : 0;
	size_t last = view->length - fresh > FAR ? fresh + FAR : view->length;
	size_t next;
	int64_t line;
	int error;

	if (view->length == fresh) {
		return 0;
	}
	first += newlines_last_start(view->bytes + first, fresh - first);
	last = fresh + newlines_first(view->bytes + fresh, last - fresh);
	error = find_allows(window, view, first, last, 0);
	if (error != 0 || view->is_last) {
		return error;
	}
	next = view->length > overlap_bytes ? view->length - overlap_bytes : 0;
	line = (int64_t)window->newlines -
		(int64_t)newlines_count(view->bytes + next, view->length - next);
	first = next > FAR ? next - FAR : 0;
	first += newlines_last_start(view->bytes + first, next - first);
	last = view->length - next > EVIDENCE_ALLOW_BYTES ? next + EVIDENCE_ALLOW_BYTES
							  : view->length;
	last = next + newlines_first(view->bytes + next, last - next);
	return find_allows(window, view, first, last, line);
}

/* ---- lines ---- */

/* The pass over the places of candidates. */
struct sweep {
	struct evidence_window *window;
	const struct evidence_view *view;
	bool finds_allows;
	int64_t old_newlines; /* before the new bytes */
	int64_t newlines;     /* before `at` */
	size_t at;
	size_t line_end; /* of the line that `at` is in, after the first place */
	size_t clear_to; /* no word that allows ends between `at` and here */
	bool has_line;
};

/*
 * As find_allows(), of lines that come in order: most are short and have none,
 * so they are searched several at a time.
 */
static int find_allows_ahead(struct sweep *sweep, size_t first, size_t last, int64_t line)
{
	enum { AHEAD = 4096 };
	const struct evidence_view *view = sweep->view;
	size_t until = view->length - first > AHEAD ? first + AHEAD : view->length;
	const uint8_t *hit;

	if (last <= sweep->clear_to) {
		return 0;
	}
	until = until > last ? until : last;
	hit = memmem(view->bytes + first, until - first, allow_tail, ALLOW_TAIL_BYTES);
	sweep->clear_to = hit == NULL ? until : (size_t)(hit - view->bytes) + ALLOW_TAIL_BYTES - 1;
	return last <= sweep->clear_to ? 0 : find_allows(sweep->window, view, first, last, line);
}

static int mark_line_at(struct sweep *sweep, size_t at)
{
	const struct evidence_view *view = sweep->view;
	uint64_t start = view->base + sweep->at;
	size_t after;
	size_t first = sweep->at;
	int64_t line;
	int error = 0;

	if (sweep->has_line && at <= sweep->line_end) {
		return 0;
	}
	sweep->newlines += (int64_t)newlines_count(view->bytes + sweep->at, at - sweep->at);
	after = newlines_last_start(view->bytes + sweep->at, at - sweep->at);
	line = sweep->newlines - sweep->old_newlines;
	if (after != 0) {
		start += after;
		first += after;
	} else if (view->has_line_start) {
		start = view->line_start;
	}
	if (after != 0 || view->has_line_start) {
		error = add_mark(sweep->window, start, line);
	}
	sweep->at = at;
	sweep->line_end = at + newlines_first(view->bytes + at, view->length - at);
	sweep->has_line = true;
	if (error == 0 && sweep->finds_allows) {
		error = find_allows_ahead(sweep, first, sweep->line_end, line);
	}
	return error;
}

static int compare(uint64_t left, uint64_t right)
{
	return left < right ? -1 : left > right;
}

static int compare_allows(const void *left, const void *right)
{
	return compare(((const struct allow_mark *)left)->offset,
		((const struct allow_mark *)right)->offset);
}

/* Bytes of a view, each of whose lines may be asked for. */
struct span {
	size_t start;
	size_t end; /* behind its last byte */
};

static int compare_spans(const void *left, const void *right)
{
	return compare(((const struct span *)left)->start, ((const struct span *)right)->start);
}

/*
 * Where candidates start, and their last bytes, as far as the view has them. A
 * confirmed rule's finding may start on any line of its candidate. At most two
 * for each candidate; returns their number.
 */
static size_t list_spans(const struct evidence_source *source, const struct evidence_view *view,
	const struct candidates *found, struct span *spans)
{
	uint64_t until = view->base + view->length;
	size_t count = 0;

	for (size_t i = 0; i < found->count; i++) {
		const struct candidate *candidate = &found->items[i];
		bool has_start = candidate->start >= view->base && candidate->start < until;
		bool has_end = candidate->end > view->base && candidate->end <= until;
		size_t start = (size_t)(candidate->start - view->base);
		size_t end = (size_t)(candidate->end - view->base);

		if (has_start && has_end && end > start &&
			source->rules->items[candidate->rule].filter != NULL) {
			spans[count++] = (struct span){start, end};
			continue;
		}
		if (has_start) {
			spans[count++] = (struct span){start, start + 1};
		}
		if (has_end) {
			spans[count++] = (struct span){end - 1, end};
		}
	}
	return count;
}

/* Candidates of many rules overlap: each of their lines is marked once. */
static int mark_spans(struct sweep *sweep, const struct span *spans, size_t count)
{
	size_t done = 0;
	int error = 0;

	for (size_t i = 0; i < count && error == 0; i++) {
		size_t at = spans[i].start > done ? spans[i].start : done;

		while (error == 0 && at < spans[i].end) {
			error = mark_line_at(sweep, at);
			at = sweep->line_end + 1;
		}
		done = at > done ? at : done;
	}
	return error;
}

static int mark_lines(
	const struct evidence_source *source, struct sweep *sweep, const struct candidates *found)
{
	struct span *spans = calloc(found->count, 2 * sizeof(*spans));
	size_t count;
	int error;

	if (spans == NULL) {
		return -ENOMEM;
	}
	count = list_spans(source, sweep->view, found, spans);
	qsort(spans, count, sizeof(*spans), compare_spans);
	error = mark_spans(sweep, spans, count);
	free(spans);
	return error;
}

/*
 * Sorts marks of which those from `last` on are in descending order, and are
 * of all lines from the least of them on: others of these lines are dropped.
 */
static void sort_marks(struct evidence_window *window, size_t last)
{
	struct line_mark *marks = window->marks;
	size_t count = window->mark_count - last;
	size_t kept = last;

	for (size_t i = 0; i < count / 2; i++) {
		struct line_mark mark = marks[last + i];

		marks[last + i] = marks[window->mark_count - 1 - i];
		marks[window->mark_count - 1 - i] = mark;
	}
	while (count > 0 && kept > 0 && marks[kept - 1].start >= marks[last].start) {
		kept--;
	}
	if (kept < last) {
		memmove(marks + kept, marks + last, count * sizeof(*marks));
		window->mark_count = kept + count;
	}
}

/*
 * The starts of all lines that the first byte of a later window may be in: the
 * last ones, back to the first that is at least an overlap away.
 */
static int mark_last_lines(
	struct evidence_window *window, const struct evidence_view *view, uint32_t overlap_bytes)
{
	size_t end = view->length;
	size_t first = window->mark_count;
	int64_t line = (int64_t)window->newlines;
	int error = 0;

	while (error == 0 && end > view->fresh) {
		size_t after = newlines_last_start(view->bytes + view->fresh, end - view->fresh);
		size_t start = view->fresh + after;

		if (after == 0) {
			break;
		}
		error = add_mark(window, view->base + start, line);
		if (view->length - start > overlap_bytes) {
			break;
		}
		line--;
		end = start - 1;
	}
	sort_marks(window, first);
	return error;
}

static uint64_t count_between(const struct evidence_view *view, uint64_t from, uint64_t until)
{
	return newlines_count(view->bytes + (from - view->base), (size_t)(until - from));
}

/*
 * Those of the new bytes: the part counted by the search begins somewhat before
 * them, or after their start, and ends before their end.
 */
static uint64_t count_fresh(const struct evidence_view *view)
{
	const struct newlines_part *part = &view->newlines;
	uint64_t from = view->base + view->fresh;
	uint64_t until = view->base + view->length;
	uint64_t count = part->count;

	if (part->from < view->base || part->until > until || part->until <= from ||
		(part->from < from && from - part->from > part->until - from)) {
		return count_between(view, from, until);
	}
	if (part->from < from) {
		count -= count_between(view, part->from, from);
	} else {
		count += count_between(view, from, part->from);
	}
	return count + count_between(view, part->until, until);
}

static int fill_lines(const struct evidence_source *source, const struct evidence_view *view,
	const struct candidates *found, struct evidence_window *window)
{
	struct sweep sweep = {.window = window, .view = view, .finds_allows = source->needs.allows};
	size_t last;
	int error;

	/* Old bytes are counted where candidates may be in them. */
	if (found->count > 0) {
		sweep.old_newlines = (int64_t)newlines_count(view->bytes, view->fresh);
		error = mark_lines(source, &sweep, found);
		sweep.newlines +=
			(int64_t)newlines_count(view->bytes + sweep.at, view->length - sweep.at);
		window->newlines = (uint64_t)(sweep.newlines - sweep.old_newlines);
	} else {
		error = 0;
		window->newlines = count_fresh(view);
	}
	last = newlines_last_start(view->bytes + view->fresh, view->length - view->fresh);
	window->last_start = last == 0 ? 0 : view->base + view->fresh + last;
	if (error == 0 && !view->is_last && source->overlap_bytes > 0) {
		error = mark_last_lines(window, view, source->overlap_bytes);
	}
	if (error == 0 && source->needs.allows) {
		error = find_allows_at_borders(window, view, source->overlap_bytes);
	}
	if (window->allow_count > 1) {
		qsort(window->allows, window->allow_count, sizeof(*window->allows), compare_allows);
	}
	return error;
}

/* ---- digests and texts ---- */

int evidence_compare_quotes(const void *left, const void *right)
{
	const struct quote *a = left;
	const struct quote *b = right;
	int order = compare(a->start, b->start);

	order = order != 0 ? order : compare(a->end, b->end);
	return order != 0 ? order : compare(a->rule, b->rule);
}

/* The number of bytes from `start` on, at most `length`; zeros do not count. */
static size_t bytes_from(const struct evidence_view *view, uint64_t start, uint64_t length)
{
	uint64_t until = view->base + view->length;
	uint64_t count = start < until ? until - start : 0;

	return (size_t)(count < length ? count : length);
}

/* Of bytes that go on into a hole, its zeros too. */
static void digest(const struct evidence_view *view, struct quote *quote)
{
	static const uint8_t zeros[SHA256_BLOCK_BYTES];
	struct sha256 hash;
	uint8_t whole[SHA256_BYTES];
	uint64_t length = quote->end - quote->start;
	size_t seen = bytes_from(view, quote->start, length);

	sha256_init(&hash);
	if (seen > 0) {
		sha256_add(&hash, view->bytes + (quote->start - view->base), seen);
	}
	for (length -= seen; length > 0;) {
		size_t part = length < sizeof(zeros) ? (size_t)length : sizeof(zeros);

		sha256_add(&hash, zeros, part);
		length -= part;
	}
	sha256_finish(&hash, whole);
	memcpy(quote->digest, whole, sizeof(quote->digest));
	quote->has_digest = true;
}

static bool is_quotable(const struct evidence_source *source, const struct evidence_view *view,
	const struct candidate *candidate)
{
	uint32_t width = source->rules->items[candidate->rule].max_width;

	if (width == RULE_WIDTH_UNBOUNDED && candidate->end - candidate->start > EVIDENCE_CARRY) {
		return false;
	}
	return candidate->start >= view->base &&
		candidate->end <= view->base + view->length + view->zeros;
}

static void quote_candidate(const struct evidence_source *source, const struct evidence_view *view,
	const struct candidate *candidate, struct evidence_window *window)
{
	struct quote *quote = &window->quotes[window->quote_count++];
	uint64_t length = candidate->end - candidate->start;
	size_t seen;

	*quote = (struct quote){.start = candidate->start,
		.end = candidate->end,
		.rule = candidate->rule,
		.text = window->text_bytes};
	if (source->needs.digests) {
		digest(view, quote);
	}
	length = length < source->needs.text_bytes ? length : source->needs.text_bytes;
	quote->text_bytes = (uint32_t)length;
	seen = bytes_from(view, candidate->start, length);
	if (seen > 0) {
		memcpy(window->texts + window->text_bytes,
			view->bytes + (candidate->start - view->base), seen);
	}
	window->text_bytes += (size_t)length;
}

static int quote_all(const struct evidence_source *source, const struct evidence_view *view,
	const struct candidates *found, struct evidence_window *window)
{
	size_t text_bytes = 1;

	for (size_t i = 0; i < found->count; i++) {
		uint64_t length = found->items[i].end - found->items[i].start;

		text_bytes += length < source->needs.text_bytes ? (size_t)length
								: source->needs.text_bytes;
	}
	window->quotes = calloc(found->count, sizeof(*window->quotes));
	window->texts = calloc(1, text_bytes);
	if (window->quotes == NULL || window->texts == NULL) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < found->count; i++) {
		if (is_quotable(source, view, &found->items[i])) {
			quote_candidate(source, view, &found->items[i], window);
		}
	}
	qsort(window->quotes, window->quote_count, sizeof(*window->quotes),
		evidence_compare_quotes);
	return 0;
}

/* ---- context ---- */

/*
 * Keeps [from, until), as far as the view has it. A hole's first zero ends the
 * text before it; more of them are of no use.
 */
static int keep_piece(struct evidence_window *window, const struct evidence_view *view,
	uint64_t from, uint64_t until)
{
	static uint8_t zero;
	uint64_t end = view->base + view->length;
	struct snippet piece = {.start = from > view->base ? from : view->base};
	int error = 0;

	if (piece.start < end && piece.start < until) {
		piece.bytes = (uint8_t *)(uintptr_t)view->bytes + (piece.start - view->base);
		piece.length = (size_t)((until < end ? until : end) - piece.start);
		error = snippets_add(&window->context, &piece);
	}
	piece.start = from > end ? from : end;
	if (error == 0 && piece.start < until && piece.start < end + view->zeros) {
		piece.bytes = &zero;
		piece.length = 1;
		error = snippets_add(&window->context, &piece);
	}
	return error;
}

/*
 * All of a confirmed rule's candidate, whose finding may be a part of it; of
 * others the bytes around them, and the last one, which may end the line.
 */
static int keep_context(const struct evidence_source *source, const struct evidence_view *view,
	const struct candidates *found, struct evidence_window *window)
{
	uint64_t reach = source->needs.context_bytes;
	uint64_t from = view->base + view->fresh;
	int error = keep_piece(window, view, from, from + view->context_head);

	for (size_t i = 0; i < found->count && error == 0; i++) {
		const struct candidate *candidate = &found->items[i];
		uint64_t first = candidate->start > reach ? candidate->start - reach : 0;

		if (source->rules->items[candidate->rule].filter != NULL) {
			error = keep_piece(window, view, first, candidate->end + reach);
			continue;
		}
		error = keep_piece(window, view, first, candidate->start);
		if (error == 0) {
			error = keep_piece(
				window, view, candidate->end - 1, candidate->end + reach);
		}
	}
	return error;
}

int evidence_window_fill(const struct evidence_source *source, const struct evidence_view *view,
	const struct candidates *found, struct evidence_window *window)
{
	const struct evidence_needs *needs = &source->needs;
	int error = 0;

	window->base = view->base;
	window->from = view->base + view->fresh;
	window->until = view->base + view->length + view->zeros;
	window->has_candidates = found->count > 0;
	if (evidence_counts_lines(needs)) {
		error = fill_lines(source, view, found, window);
	}
	if (error == 0 && found->count > 0 && (needs->digests || needs->text_bytes > 0)) {
		error = quote_all(source, view, found, window);
	}
	return error == 0 && needs->context_bytes > 0 ? keep_context(source, view, found, window)
						      : error;
}

bool evidence_window_join(
	struct evidence_window *left, const struct evidence_window *right, uint32_t overlap_bytes)
{
	size_t first = left->mark_count;

	if (right->mark_count == 0 || right->until - right->marks[0].start <= overlap_bytes) {
		while (first > 0 && right->until - left->marks[first - 1].start <= overlap_bytes) {
			first--;
		}
		first -= first > 0 ? 1 : 0;
	}
	if (first > 0) {
		left->mark_count -= first;
		memmove(left->marks, left->marks + first,
			left->mark_count * sizeof(left->marks[0]));
	}
	for (size_t i = 0; i < right->mark_count; i++) {
		if (add_mark(left, right->marks[i].start,
			    right->marks[i].line + (int64_t)left->newlines) != 0) {
			/* Starts dropped above are of no use any more. */
			left->mark_count -= i;
			return false;
		}
	}
	left->newlines += right->newlines;
	left->until = right->until;
	left->last_start = right->last_start != 0 ? right->last_start : left->last_start;
	return true;
}

void evidence_window_free(struct evidence_window *window)
{
	if (window == NULL) {
		return;
	}
	free(window->marks);
	free(window->allows);
	free(window->quotes);
	free(window->texts);
	snippets_free(&window->context);
	free(window);
}

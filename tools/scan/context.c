/* SPDX-License-Identifier: MIT */
/*
 * Lines from the bytes that windows have left, the places of secrets in them,
 * and the order in which both are written.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tools/scan/context.h"

#include "tools/growing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char mark[] = "…";
enum { MARK_BYTES = sizeof(mark) - 1 };

/* Bytes that are shown as their excerpt. */
struct hidden {
	uint64_t start;
	uint64_t end;
	bool is_joined; /* with others that begin in it */
	char *excerpt;
	size_t excerpt_bytes;
};

/* A line that is to be written. */
struct context_line {
	uint64_t number;
	uint64_t next_number; /* of the line after it */
	uint64_t offset;      /* of its first byte that is shown */
	bool is_own;	      /* of the finding that it was made for */
	struct output_text text;
};

struct context {
	struct hidden *hidden; /* by start; none overlaps another */
	size_t hidden_first;   /* those before it are of no use any more */
	size_t hidden_count;
	size_t hidden_capacity;
	struct context_line *lines; /* by number */
	size_t line_count;
	size_t line_capacity;
	struct snippets bytes; /* around the finding in hand */
	bool has_group;
	uint64_t next_number; /* of the line after the last that was written */
};

struct context *context_create(void)
{
	return calloc(1, sizeof(struct context));
}

void context_destroy(struct context *context)
{
	if (context == NULL) {
		return;
	}
	for (size_t i = context->hidden_first; i < context->hidden_count; i++) {
		free(context->hidden[i].excerpt);
	}
	for (size_t i = 0; i < context->line_count; i++) {
		output_text_free(&context->lines[i].text);
	}
	free(context->hidden);
	free(context->lines);
	snippets_free(&context->bytes);
	free(context);
}

/* ---- hidden bytes ---- */

/* The first of them that ends after `offset`; the count: none does. */
static size_t find_hidden(const struct context *context, uint64_t offset)
{
	size_t low = context->hidden_first;
	size_t high = context->hidden_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (context->hidden[middle].end <= offset) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

/* Joins to it those after it that overlap it. */
static void join_hidden(struct context *context, size_t index)
{
	struct hidden *kept = &context->hidden[index];
	size_t until = index + 1;

	while (until < context->hidden_count && context->hidden[until].start < kept->end) {
		if (context->hidden[until].end > kept->end) {
			kept->end = context->hidden[until].end;
			kept->is_joined = true;
		}
		free(context->hidden[until].excerpt);
		until++;
	}
	memmove(kept + 1, context->hidden + until, (context->hidden_count - until) * sizeof(*kept));
	context->hidden_count -= until - index - 1;
}

int context_hide(
	struct context *context, uint64_t start, uint64_t end, const struct output_text *excerpt)
{
	struct hidden item = {.start = start, .end = end, .excerpt_bytes = excerpt->length};
	struct hidden *items = growing_make_room(
		context->hidden, context->hidden_count, &context->hidden_capacity, sizeof(*items));
	size_t place;

	if (items == NULL) {
		return -ENOMEM;
	}
	context->hidden = items;
	place = find_hidden(context, start);
	item.excerpt = malloc(excerpt->length + 1);
	if (item.excerpt == NULL) {
		return -ENOMEM;
	}
	memcpy(item.excerpt, excerpt->bytes, excerpt->length);
	place += place < context->hidden_count && items[place].start <= start ? 1 : 0;
	memmove(items + place + 1, items + place, (context->hidden_count - place) * sizeof(*items));
	items[place] = item;
	context->hidden_count++;
	join_hidden(context, place > context->hidden_first ? place - 1 : place);
	return 0;
}

/* Drops those that end before `offset`; a few may stay for a while. */
static void forget_hidden(struct context *context, uint64_t offset)
{
	size_t first = context->hidden_first;

	while (first < context->hidden_count && context->hidden[first].end <= offset) {
		free(context->hidden[first++].excerpt);
	}
	context->hidden_first = first;
	if (first > context->hidden_count / 2) {
		context->hidden_count -= first;
		memmove(context->hidden, context->hidden + first,
			context->hidden_count * sizeof(*context->hidden));
		context->hidden_first = 0;
	}
}

/* ---- the text of a line ---- */

/* What a finding's lines are made from. */
struct scene {
	struct context *context;
	const struct report_style *style;
	const struct report_finding *finding;
	uint64_t limit; /* bytes from here on are not shown */
};

/* The text of a line in the making. */
struct writing {
	struct output_text *text;
	uint64_t at;	/* in the file */
	size_t shown;	/* bytes that are no secret */
	bool is_full;	/* the rest of the line is only passed over */
	bool is_marked; /* its last part is a secret */
};

/* Marks an omission, once. */
static void append_mark(struct output_text *text)
{
	if (text->length < MARK_BYTES ||
		memcmp(text->bytes + text->length - MARK_BYTES, mark, MARK_BYTES) != 0) {
		output_text_string(text, mark);
	}
}

static bool continues_character(uint8_t byte)
{
	return (byte & 0xc0) == 0x80;
}

/* Bytes before `length` that do not cut a character of UTF-8. */
static size_t whole_characters(const uint8_t *bytes, size_t length)
{
	size_t whole = length;

	while (whole > 0 && length - whole < 3 && continues_character(bytes[whole])) {
		whole--;
	}
	return continues_character(bytes[whole]) ? length : whole;
}

/* The bytes from there on, up to the next secret. NULL: there are none. */
static const uint8_t *bytes_at(const struct scene *scene, uint64_t at, size_t *out_length)
{
	const struct snippet *run = snippets_find(&scene->context->bytes, at);
	size_t index = find_hidden(scene->context, at);
	uint64_t end;

	if (run == NULL || at >= scene->limit) {
		return NULL;
	}
	end = run->start + run->length;
	end = end < scene->limit ? end : scene->limit;
	if (index < scene->context->hidden_count && scene->context->hidden[index].start < end) {
		end = scene->context->hidden[index].start;
	}
	*out_length = (size_t)(end - at);
	return run->bytes + (at - run->start);
}

/* Passes over the secret there, if there is one. */
static bool write_hidden(const struct scene *scene, struct writing *writing)
{
	const struct context *context = scene->context;
	size_t index = find_hidden(context, writing->at);
	const struct hidden *hidden;

	if (index == context->hidden_count || context->hidden[index].start > writing->at) {
		return false;
	}
	hidden = &context->hidden[index];
	if (!writing->is_full && hidden->start < writing->at) {
		append_mark(writing->text);
	} else if (!writing->is_full) {
		report_begin_match(writing->text, scene->style);
		output_text_append(writing->text, hidden->excerpt, hidden->excerpt_bytes);
		report_end_match(writing->text, scene->style);
		if (hidden->is_joined && scene->style->redact_percent == 0) {
			append_mark(writing->text);
		}
	}
	writing->at = hidden->end;
	writing->is_marked = true;
	return true;
}

static void write_bytes(struct writing *writing, const uint8_t *bytes, size_t length)
{
	size_t room = CONTEXT_LINE_BYTES - writing->shown;

	if (writing->is_full) {
		return;
	}
	if (length > room) {
		length = whole_characters(bytes, room);
		writing->is_full = true;
	}
	output_text_escaped(writing->text, (const char *)bytes, length, false);
	writing->is_marked = writing->is_marked && length == 0;
	writing->shown += length;
	if (writing->is_full) {
		append_mark(writing->text);
	}
}

/*
 * Writes a line from `start` on. Returns where the next one starts; 0: there is
 * none, or that is not known.
 */
static uint64_t write_line(const struct scene *scene, uint64_t start, struct output_text *text)
{
	struct writing writing = {.text = text, .at = start};

	for (;;) {
		const uint8_t *bytes;
		const uint8_t *newline;
		const uint8_t *zero;
		size_t length;
		size_t ending;

		if (write_hidden(scene, &writing)) {
			continue;
		}
		bytes = bytes_at(scene, writing.at, &length);
		if (bytes == NULL) {
			/* The end of the file needs no mark. */
			if (!writing.is_full && !writing.is_marked && writing.at >= scene->limit) {
				append_mark(text);
			}
			return 0;
		}
		newline = memchr(bytes, '\n', length);
		length = newline != NULL ? (size_t)(newline - bytes) : length;
		zero = memchr(bytes, 0, length);
		length = zero != NULL ? (size_t)(zero - bytes) : length;
		ending = zero == NULL && newline != NULL && length > 0 && bytes[length - 1] == '\r';
		write_bytes(&writing, bytes, length - ending);
		writing.at += length;
		if (zero != NULL) {
			append_mark(text);
			return 0;
		}
		if (newline != NULL) {
			return writing.at + 1;
		}
	}
}

/* ---- the lines of a finding ---- */

/* Newlines in bytes that are there. */
static uint64_t count_newlines(const struct scene *scene, uint64_t from, uint64_t until)
{
	uint64_t count = 0;

	while (from < until) {
		const struct snippet *run = snippets_find(&scene->context->bytes, from);
		const uint8_t *bytes;

		if (run == NULL) {
			break;
		}
		bytes = run->bytes + (from - run->start);
		for (uint64_t end = run->start + run->length; from < until && from < end; from++) {
			count += *bytes++ == '\n';
		}
	}
	return count;
}

static uint64_t number_after(const struct scene *scene, uint64_t offset)
{
	const struct report_finding *finding = scene->finding;

	return offset >= finding->end
		? finding->place.end_line + count_newlines(scene, finding->end - 1, offset)
		: finding->place.line + count_newlines(scene, finding->start, offset);
}

/* Takes over the line's text. */
static void add_line(
	const struct scene *scene, const struct report_out *out, struct context_line *line)
{
	struct context *context = scene->context;
	struct context_line *lines = growing_make_room(
		context->lines, context->line_count, &context->line_capacity, sizeof(*lines));
	size_t place = context->line_count;

	out->lines->failed = out->lines->failed || lines == NULL || line->text.failed;
	if (lines == NULL || line->number < context->next_number) {
		output_text_free(&line->text);
		return;
	}
	context->lines = lines;
	while (place > 0 && lines[place - 1].number > line->number) {
		place--;
	}
	if (place > 0 && lines[place - 1].number == line->number) {
		if (line->is_own && !lines[place - 1].is_own) {
			output_text_free(&lines[place - 1].text);
			lines[place - 1] = *line;
		} else {
			output_text_free(&line->text);
		}
		return;
	}
	memmove(lines + place + 1, lines + place, (context->line_count - place) * sizeof(*lines));
	lines[place] = *line;
	context->line_count++;
}

/* As add_line(), of the line from `start` on; returns as write_line(). */
static uint64_t make_line(const struct scene *scene, const struct report_out *out,
	struct context_line *line, uint64_t start)
{
	uint64_t next = write_line(scene, start, &line->text);

	line->offset = start;
	line->next_number = line->number + 1;
	if (next > scene->finding->start) {
		line->next_number = number_after(scene, next);
	}
	add_line(scene, out, line);
	return next;
}

/* The bytes before a finding. */
struct before {
	uint64_t from;	     /* the first byte */
	uint64_t line_start; /* of the finding's line */
	bool has_line_start;
};

/*
 * Sets `out_start` to where the line that ends before `end` starts. The bytes
 * from `from` on are there.
 */
static bool find_start(const struct scene *scene, uint64_t from, uint64_t end, uint64_t *out_start)
{
	const struct snippet *run = snippets_find(&scene->context->bytes, from);
	const uint8_t *newline = NULL;

	if (from < end) {
		newline = memrchr(run->bytes + (from - run->start), '\n', (size_t)(end - from));
	}
	*out_start = newline == NULL ? 0 : run->start + (uint64_t)(newline - run->bytes) + 1;
	return newline != NULL || from == 0;
}

static struct before look_back(const struct scene *scene)
{
	uint64_t start = scene->finding->start;
	const struct snippet *run =
		start > 0 ? snippets_find(&scene->context->bytes, start - 1) : NULL;
	struct before before = {.from = start};
	const uint8_t *zero;

	if (run != NULL) {
		before.from = run->start;
		if (start - before.from > CONTEXT_BYTES) {
			before.from = start - CONTEXT_BYTES;
		}
		zero = memrchr(
			run->bytes + (before.from - run->start), 0, (size_t)(start - before.from));
		if (zero != NULL) {
			before.from = run->start + (uint64_t)(zero - run->bytes) + 1;
		}
	}
	before.has_line_start = find_start(scene, before.from, start, &before.line_start);
	return before;
}

static bool is_within_hidden(const struct context *context, uint64_t offset)
{
	size_t index = find_hidden(context, offset);

	return index < context->hidden_count && context->hidden[index].start < offset;
}

static void add_lines_before(
	const struct scene *scene, const struct report_out *out, const struct before *before)
{
	uint64_t start = before->line_start;
	uint64_t number = scene->finding->place.line;

	if (!before->has_line_start) {
		return;
	}
	for (uint32_t i = 0; i < scene->style->lines_before && start > before->from; i++) {
		struct context_line line = {.number = --number};

		if (!find_start(scene, before->from, start - 1, &start) ||
			scene->finding->start - start > CONTEXT_REACH) {
			break;
		}
		if (start < scene->limit && !is_within_hidden(scene->context, start)) {
			(void)make_line(scene, out, &line, start);
		}
	}
}

/* A part of a long line around the finding. */
static uint64_t add_own_line(
	const struct scene *scene, const struct report_out *out, const struct before *before)
{
	const struct report_finding *finding = scene->finding;
	struct context_line line = {.number = finding->place.line, .is_own = true};
	uint64_t start = before->line_start;

	if (!before->has_line_start || finding->start - start > CONTEXT_LINE_BYTES / 2) {
		start = before->from;
		if (finding->start - start > CONTEXT_LINE_BYTES / 2) {
			start = finding->start - CONTEXT_LINE_BYTES / 2;
		}
		for (int i = 0; i < 3 && start < finding->start; i++) {
			const struct snippet *run = snippets_find(&scene->context->bytes, start);

			if (!continues_character(run->bytes[start - run->start])) {
				break;
			}
			start++;
		}
		append_mark(&line.text);
	}
	return make_line(scene, out, &line, start);
}

static void add_lines_after(const struct scene *scene, const struct report_out *out, uint64_t start)
{
	uint64_t end = scene->finding->end;
	uint32_t count = 0;

	while (start != 0 && start <= end + CONTEXT_REACH &&
		(start < end || count < scene->style->lines_after)) {
		struct context_line line = {.number = number_after(scene, start)};
		const struct snippet *run = snippets_find(&scene->context->bytes, start);

		if (start >= scene->limit || run == NULL || run->bytes[start - run->start] == 0) {
			break;
		}
		count += start >= end ? 1 : 0;
		start = make_line(scene, out, &line, start);
	}
}

/* Whether the bytes before it are there still. */
static bool is_near(const struct report_finding *finding)
{
	return finding->place.line != 0 &&
		(finding->rule->max_width != RULE_WIDTH_UNBOUNDED ||
			finding->end - finding->start <= EVIDENCE_CARRY - CONTEXT_BYTES);
}

static void add_lines(const struct scene *scene, const struct report_out *out)
{
	struct before before = look_back(scene);

	add_lines_before(scene, out, &before);
	add_lines_after(scene, out, add_own_line(scene, out, &before));
}

/* ---- output ---- */

/* Before a line of this number. */
static void separate(struct context *context, const struct report_out *out, uint64_t number)
{
	if (!context->has_group || number > context->next_number) {
		output_text_string(out->lines, REPORT_GROUP_END);
	}
	context->has_group = true;
}

static void write_lines(struct context *context, const struct report_out *out, uint64_t below)
{
	size_t count = 0;

	while (count < context->line_count && context->lines[count].number < below) {
		struct context_line *line = &context->lines[count++];

		separate(context, out, line->number);
		report_context_line(
			out, out->style->has_offsets ? line->offset : line->number, &line->text);
		context->next_number = line->next_number;
		output_text_free(&line->text);
	}
	context->line_count -= count;
	if (count == 0) {
		return;
	}
	memmove(context->lines, context->lines + count,
		context->line_count * sizeof(*context->lines));
}

void context_begin_finding(struct context *context, const struct report_out *out,
	const struct evidence *evidence, const struct report_finding *finding, uint64_t known_to)
{
	uint64_t from = finding->start > CONTEXT_BYTES ? finding->start - CONTEXT_BYTES : 0;
	struct scene scene = {
		.context = context,
		.style = out->style,
		.finding = finding,
		.limit = finding->end + CONTEXT_BYTES,
	};
	uint64_t number = finding->place.line;

	if (!is_near(finding)) {
		context_end(context, out);
		output_text_string(out->lines, REPORT_GROUP_END);
		return;
	}
	scene.limit = known_to < scene.limit ? known_to : scene.limit;
	forget_hidden(context, from);
	snippets_clear(&context->bytes);
	if (evidence_copy(evidence, from, finding->end + CONTEXT_BYTES, &context->bytes) != 0) {
		out->lines->failed = true;
		return;
	}
	add_lines(&scene, out);
	write_lines(context, out, number);
	separate(context, out, number);
	if (number > context->next_number) {
		context->next_number = number;
	}
}

void context_end(struct context *context, const struct report_out *out)
{
	write_lines(context, out, UINT64_MAX);
	context->has_group = false;
}

/* SPDX-License-Identifier: MIT */
/*
 * Text: PATH:LINE:COLUMN: RULE: EXCERPT, as editors take it; with -b
 * PATH:START-END: RULE: EXCERPT. Nothing in it is raw but colours. Where a
 * commit has the file, PATH is COMMIT:PATH, as `git show` takes it. Lines of
 * context are PATH-LINE-TEXT.
 */
#include "tools/scan/report_format.h"

#include <string.h>

#define COLOR_PATH "\033[35m"
#define COLOR_PLACE "\033[32m"
#define COLOR_RULE "\033[1;31m"
#define COLOR_END "\033[0m"

static void begin_color(const struct report_out *out, const char *color)
{
	if (out->style->has_colors) {
		output_text_string(out->lines, color);
	}
}

static void end_color(const struct report_out *out)
{
	begin_color(out, COLOR_END);
}

static void append_numbers(
	struct output_text *lines, uint64_t first, const char *between, uint64_t second)
{
	output_text_decimal(lines, first);
	output_text_string(lines, between);
	output_text_decimal(lines, second);
}

/* Without a line of its start, that of its end; 0:0: neither is known. */
static void append_place(const struct report_out *out, const struct report_finding *finding)
{
	const struct evidence_place *place = &finding->place;

	if (out->style->has_offsets) {
		append_numbers(out->lines, finding->start, "-", finding->end);
	} else if (place->line != 0) {
		append_numbers(out->lines, place->line, ":", place->column);
	} else {
		append_numbers(out->lines, place->end_line, ":", place->end_column);
	}
}

/* Of a commit: " (AUTHOR, DAY)". */
static void append_author(const struct report_out *out)
{
	const struct source_facts *facts = out->facts;

	if (facts != NULL && facts->commit != NULL) {
		output_text_string(out->lines, " (");
		output_text_escaped(out->lines, facts->author, strlen(facts->author), true);
		output_text_string(out->lines, ", ");
		output_text_append(out->lines, facts->date, strcspn(facts->date, "T"));
		output_text_string(out->lines, ")");
	}
}

static void append_finding(const struct report_out *out, const struct report_finding *finding)
{
	struct output_text *lines = out->lines;

	begin_color(out, COLOR_PATH);
	report_append_path(out);
	end_color(out);
	output_text_append(lines, ":", 1);
	begin_color(out, COLOR_PLACE);
	append_place(out, finding);
	end_color(out);
	output_text_append(lines, ": ", 2);
	begin_color(out, COLOR_RULE);
	output_text_escaped(lines, finding->rule->id, strlen(finding->rule->id), true);
	end_color(out);
	output_text_append(lines, ": ", 2);
	report_excerpt(lines, out->style, finding);
	append_author(out);
	output_text_append(lines, "\n", 1);
}

void report_begin_match(struct output_text *out, const struct report_style *style)
{
	if (style->has_colors) {
		output_text_string(out, COLOR_RULE);
	}
}

void report_end_match(struct output_text *out, const struct report_style *style)
{
	if (style->has_colors) {
		output_text_string(out, COLOR_END);
	}
}

void report_context_line(
	const struct report_out *out, uint64_t place, const struct output_text *text)
{
	struct output_text *lines = out->lines;

	begin_color(out, COLOR_PATH);
	report_append_path(out);
	end_color(out);
	output_text_append(lines, "-", 1);
	begin_color(out, COLOR_PLACE);
	output_text_decimal(lines, place);
	end_color(out);
	output_text_append(lines, "-", 1);
	output_text_append(lines, text->bytes, text->length);
	output_text_append(lines, "\n", 1);
}

const struct report_format report_text = {
	.name = "text",
	.needs = {.lines = true},
	.shape_path = report_shape_text_path,
	.finding = append_finding,
};

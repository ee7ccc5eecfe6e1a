/* SPDX-License-Identifier: MIT */
/*
 * JSON Lines: an object for each finding, each range that could not be read,
 * and each rule that has reached a limit in a file. A path that is not UTF-8 is
 * {"bytes":"BASE64"}.
 */
#include "tools/scan/report_format.h"

#include <string.h>

static void append_number(struct output_text *lines, const char *name, uint64_t number)
{
	output_text_string(lines, ",\"");
	output_text_string(lines, name);
	output_text_string(lines, "\":");
	output_text_decimal(lines, number);
}

static void append_head(const struct report_out *out, const char *id)
{
	output_text_string(out->lines, "{\"rule\":");
	output_text_json(out->lines, id, strlen(id));
	output_text_string(out->lines, ",\"path\":");
	output_text_append(out->lines, out->path->bytes, out->path->length);
}

/* The whole member is left out where nothing is known. */
static void append_place(struct output_text *lines, const struct evidence_place *place)
{
	if (place->line != 0) {
		append_number(lines, "line", place->line);
		append_number(lines, "column", place->column);
	}
	if (place->end_line != 0) {
		append_number(lines, "end_line", place->end_line);
		append_number(lines, "end_column", place->end_column);
	}
}

static void append_string(struct output_text *lines, const char *name, const char *value)
{
	output_text_string(lines, ",\"");
	output_text_string(lines, name);
	output_text_string(lines, "\":");
	output_text_json(lines, value, strlen(value));
}

static void append_facts(const struct report_out *out)
{
	const struct source_facts *facts = out->facts;

	if (facts == NULL) {
		return;
	}
	append_string(out->lines, "blob", facts->blob);
	if (facts->commit != NULL) {
		append_string(out->lines, "commit", facts->commit);
		append_string(out->lines, "author", facts->author);
		append_string(out->lines, "email", facts->email);
		append_string(out->lines, "date", facts->date);
	}
}

static void append_finding(const struct report_out *out, const struct report_finding *finding)
{
	struct output_text *lines = out->lines;

	append_head(out, finding->rule->id);
	append_number(lines, "start", finding->start);
	append_number(lines, "end", finding->end);
	append_place(lines, &finding->place);
	if (finding->decoded != NULL) {
		output_text_format(lines, ",\"decoded\":\"%s\"", finding->decoded);
	} else if (finding->secret_start != finding->start || finding->secret_end != finding->end) {
		append_number(lines, "secret_start", finding->secret_start);
		append_number(lines, "secret_end", finding->secret_end);
	}
	output_text_string(lines, ",\"fingerprint\":\"");
	output_text_string(lines, finding->fingerprint);
	output_text_string(lines, "\"");
	if (finding->string != NULL) {
		append_string(lines, "string", finding->string);
	}
	append_facts(out);
	if (out->style->redact_percent != REPORT_REDACT_STANDARD) {
		struct output_text excerpt = {0};

		report_excerpt(&excerpt, out->style, finding);
		output_text_string(lines, ",\"match\":");
		output_text_json(lines, excerpt.bytes, excerpt.length);
		lines->failed = lines->failed || excerpt.failed;
		output_text_free(&excerpt);
	}
	output_text_string(lines, "}\n");
}

static void append_gap(const struct report_out *out, const struct pinion_gap *gap)
{
	output_text_string(out->lines, "{\"path\":");
	output_text_append(out->lines, out->path->bytes, out->path->length);
	append_number(out->lines, "unread_start", gap->offset_bytes);
	append_number(out->lines, "unread_end", gap->offset_bytes + gap->length_bytes);
	append_number(out->lines, "errno", (uint64_t)-gap->error);
	output_text_string(out->lines, "}\n");
}

static void append_limit(
	const struct report_out *out, const char *id, const struct findings_limit *limit)
{
	append_head(out, id);
	output_text_string(out->lines, ",\"limit\":");
	output_text_string(out->lines,
		limit->costly_count > 0	  ? "\"steps\""
			: limit->is_dense ? "\"density\""
					  : "\"findings\"");
	append_number(out->lines, "findings", limit->count);
	if (limit->costly_count > 0) {
		append_number(out->lines, "left_out", limit->costly_count);
		append_number(out->lines, "first_start", limit->searched_to);
	} else {
		append_number(out->lines, "searched_to", limit->searched_to);
	}
	append_facts(out);
	output_text_string(out->lines, "}\n");
}

const struct report_format report_json = {
	.name = "json",
	.needs = {.lines = true, .digests = true},
	.shape_path = output_text_json,
	.finding = append_finding,
	.gap = append_gap,
	.limit = append_limit,
};

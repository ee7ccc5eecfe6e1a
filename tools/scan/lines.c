/* SPDX-License-Identifier: MIT */
/*
 * Writing findings. A path is put into shape once for all its findings in
 * hand, since one file may have very many.
 */
#include "tools/scan/lines.h"

#include <string.h>

enum {
	/* Shows one byte of a finding for each four. */
	EXCERPT_SHARE = 4,
};

/*
 * The head of an unbounded rule's finding is long gone when its end is found.
 */
static void append_excerpt(
	struct output_text *text, const struct rule *rule, const struct finding *finding)
{
	uint64_t shown = (finding->end - finding->start) / EXCERPT_SHARE;

	if (shown > sizeof(finding->head)) {
		shown = sizeof(finding->head);
	}
	if (rule->max_width == RULE_WIDTH_UNBOUNDED) {
		shown = 0;
	}
	for (uint64_t i = 0; i < shown; i++) {
		uint8_t byte = finding->head[i];

		if (byte == ' ') {
			output_text_string(text, "\\x20");
		} else {
			output_text_escaped(text, (const char *)&byte, 1, true);
		}
	}
	output_text_string(text, "…");
}

static void append_text_line(struct output_text *lines, const struct output_text *path,
	const struct rules *rules, const struct finding *finding)
{
	output_text_append(lines, path->bytes, path->length);
	output_text_append(lines, ":", 1);
	output_text_decimal(lines, finding->start);
	output_text_append(lines, "-", 1);
	output_text_decimal(lines, finding->end);
	output_text_append(lines, ": ", 2);
	output_text_string(lines, rules->items[finding->rule].id);
	output_text_append(lines, ": ", 2);
	append_excerpt(lines, &rules->items[finding->rule], finding);
	output_text_append(lines, "\n", 1);
}

static void append_json_line(struct output_text *lines, const struct output_text *path,
	const struct rules *rules, const struct finding *finding)
{
	const char *id = rules->items[finding->rule].id;

	output_text_string(lines, "{\"rule\":");
	output_text_json(lines, id, strlen(id));
	output_text_string(lines, ",\"path\":");
	output_text_append(lines, path->bytes, path->length);
	output_text_string(lines, ",\"start\":");
	output_text_decimal(lines, finding->start);
	output_text_string(lines, ",\"end\":");
	output_text_decimal(lines, finding->end);
	output_text_string(lines, "}\n");
}

void finding_lines_append(struct output_text *lines, struct output_text *path_text,
	enum finding_format format, const struct rules *rules, const char *path, size_t path_bytes,
	const struct finding *findings, size_t count)
{
	path_text->length = 0;
	if (format == FINDING_FORMAT_JSON) {
		output_text_json(path_text, path, path_bytes);
	} else {
		output_text_escaped(path_text, path, path_bytes, true);
	}
	lines->failed = lines->failed || path_text->failed;
	for (size_t i = 0; i < count; i++) {
		if (format == FINDING_FORMAT_JSON) {
			append_json_line(lines, path_text, rules, &findings[i]);
		} else {
			append_text_line(lines, path_text, rules, &findings[i]);
		}
	}
}

void gap_lines_append(struct output_text *lines, struct output_text *path_text, const char *path,
	size_t path_bytes, const struct pinion_gap *gaps, size_t count)
{
	path_text->length = 0;
	output_text_json(path_text, path, path_bytes);
	lines->failed = lines->failed || path_text->failed;
	for (size_t i = 0; i < count; i++) {
		output_text_string(lines, "{\"path\":");
		output_text_append(lines, path_text->bytes, path_text->length);
		output_text_string(lines, ",\"unread_start\":");
		output_text_decimal(lines, gaps[i].offset_bytes);
		output_text_string(lines, ",\"unread_end\":");
		output_text_decimal(lines, gaps[i].offset_bytes + gaps[i].length_bytes);
		output_text_string(lines, ",\"errno\":");
		output_text_decimal(lines, (unsigned long long)-gaps[i].error);
		output_text_string(lines, "}\n");
	}
}

void limit_line_append(struct output_text *lines, struct output_text *path_text, const char *id,
	const char *path, size_t path_bytes, const struct findings_limit *limit)
{
	path_text->length = 0;
	output_text_json(path_text, path, path_bytes);
	lines->failed = lines->failed || path_text->failed;
	output_text_string(lines, "{\"rule\":");
	output_text_json(lines, id, strlen(id));
	output_text_string(lines, ",\"path\":");
	output_text_append(lines, path_text->bytes, path_text->length);
	output_text_string(lines, ",\"limit\":");
	output_text_string(lines,
		limit->is_costly	  ? "\"steps\""
			: limit->is_dense ? "\"density\""
					  : "\"findings\"");
	output_text_string(lines, ",\"findings\":");
	output_text_decimal(lines, limit->count);
	output_text_string(lines, ",\"searched_to\":");
	output_text_decimal(lines, limit->searched_to);
	output_text_string(lines, "}\n");
}

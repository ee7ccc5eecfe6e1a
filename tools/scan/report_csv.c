/* SPDX-License-Identifier: MIT */
/*
 * CSV: a record for each finding, on one line, after a line of names. Hidden
 * characters are escaped as in text.
 *
 * Source: RFC 4180, but for the ends of lines; OWASP, "CSV Injection".
 */
#include "tools/scan/report_format.h"

#include <string.h>

/* A spreadsheet would compute it, whatever the quotes around it. */
static bool is_formula(const char *bytes, size_t length)
{
	return length > 0 && memchr("=+-@\t\r", bytes[0], 6) != NULL;
}

/* Quoted where it has to be; a formula comes after an apostrophe. */
static void append_field(struct output_text *out, const char *bytes, size_t length)
{
	bool is_quoted = length > 0 &&
		(memchr(bytes, ',', length) != NULL || memchr(bytes, '"', length) != NULL);

	output_text_string(out, is_quoted ? "\"" : "");
	output_text_string(out, is_formula(bytes, length) ? "'" : "");
	for (size_t i = 0; i < length; i++) {
		output_text_append(out, bytes + i, 1);
		if (bytes[i] == '"') {
			output_text_append(out, "\"", 1);
		}
	}
	output_text_string(out, is_quoted ? "\"" : "");
}

static void shape_path(struct output_text *out, const char *path, size_t path_bytes)
{
	struct output_text shown = {0};

	output_text_escaped(&shown, path, path_bytes, true);
	append_field(out, shown.bytes, shown.length);
	out->failed = out->failed || shown.failed;
	output_text_free(&shown);
}

static void begin(struct output_text *out, const struct report_run *run)
{
	output_text_string(
		out, "rule,path,line,column,end_line,end_column,start,end,fingerprint,excerpt");
	output_text_string(out, run->has_commits ? ",blob,commit,author,email,date\n" : "\n");
}

/* Empty: not known. */
static void append_number(struct output_text *lines, uint64_t number)
{
	output_text_string(lines, ",");
	if (number != 0) {
		output_text_decimal(lines, number);
	}
}

/* Empty: no commit has it. */
static void append_fact(struct output_text *lines, const char *value)
{
	struct output_text shown = {0};

	output_text_string(lines, ",");
	if (value != NULL) {
		output_text_escaped(&shown, value, strlen(value), true);
		append_field(lines, shown.bytes, shown.length);
	}
	lines->failed = lines->failed || shown.failed;
	output_text_free(&shown);
}

static void append_facts(const struct report_out *out)
{
	const struct source_facts *facts = out->facts;

	if (facts != NULL) {
		append_fact(out->lines, facts->blob);
		append_fact(out->lines, facts->commit);
		append_fact(out->lines, facts->author);
		append_fact(out->lines, facts->email);
		append_fact(out->lines, facts->date);
	}
}

static void append_finding(const struct report_out *out, const struct report_finding *finding)
{
	struct output_text *lines = out->lines;
	struct output_text excerpt = {0};

	output_text_escaped(&excerpt, finding->rule->id, strlen(finding->rule->id), true);
	append_field(lines, excerpt.bytes, excerpt.length);
	excerpt.length = 0;
	output_text_string(lines, ",");
	output_text_append(lines, out->path->bytes, out->path->length);
	append_number(lines, finding->place.line);
	append_number(lines, finding->place.column);
	append_number(lines, finding->place.end_line);
	append_number(lines, finding->place.end_column);
	output_text_string(lines, ",");
	output_text_decimal(lines, finding->start);
	output_text_string(lines, ",");
	output_text_decimal(lines, finding->end);
	output_text_string(lines, ",");
	output_text_string(lines, finding->fingerprint);
	output_text_string(lines, ",");
	report_excerpt(&excerpt, out->style, finding);
	append_field(lines, excerpt.bytes, excerpt.length);
	append_facts(out);
	output_text_string(lines, "\n");
	lines->failed = lines->failed || excerpt.failed;
	output_text_free(&excerpt);
}

const struct report_format report_csv = {
	.name = "csv",
	.needs = {.lines = true, .digests = true},
	.shape_path = shape_path,
	.begin = begin,
	.finding = append_finding,
};

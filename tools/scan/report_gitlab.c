/* SPDX-License-Identifier: MIT */
/*
 * GitLab's report of secret detection. Files have no commit; it is then as
 * GitLab's own analyzer writes it where there is none.
 *
 * Source: gitlab-org/security-products/security-report-schemas 15.0.6,
 * secret-detection-report-format.json.
 */
#include "tools/scan/report_format.h"

#include "tools/report.h"

#include <pinion/version.h>
#include <string.h>

static const char no_commit[] = "0000000000000000000000000000000000000000";

/* Always a JSON string: bytes that are not UTF-8 are escaped as in text. */
static void shape_path(struct output_text *out, const char *path, size_t path_bytes)
{
	struct output_text shown = {0};

	output_text_escaped(&shown, path, path_bytes, true);
	output_text_json(out, shown.bytes, shown.length);
	out->failed = out->failed || shown.failed;
	output_text_free(&shown);
}

static void begin(struct output_text *out, const struct report_run *run)
{
	(void)run;
	output_text_string(out, "{\"version\":\"15.0.6\",\"vulnerabilities\":[");
}

static void append_string(struct output_text *lines, const char *name, const char *value)
{
	output_text_format(lines, ",\"%s\":", name);
	output_text_json(lines, value, strlen(value));
}

static void append_commit(const struct report_out *out)
{
	const struct source_facts *facts = out->facts;
	struct output_text author = {0};

	if (facts == NULL || facts->commit == NULL) {
		output_text_format(out->lines, ",\"commit\":{\"sha\":\"%s\"}", no_commit);
		return;
	}
	output_text_format(out->lines, ",\"commit\":{\"sha\":\"%s\",\"author\":", facts->commit);
	output_text_escaped(&author, facts->author, strlen(facts->author), true);
	output_text_json(out->lines, author.bytes, author.length);
	out->lines->failed = out->lines->failed || author.failed;
	output_text_free(&author);
	append_string(out->lines, "date", facts->date);
	output_text_string(out->lines, "}");
}

static void append_finding(const struct report_out *out, const struct report_finding *finding)
{
	struct output_text *lines = out->lines;
	struct output_text excerpt = {0};
	const char *id = finding->rule->id;

	output_text_format(lines, ",\n{\"id\":\"%s-%llu\",\"category\":\"secret_detection\"",
		finding->fingerprint, (unsigned long long)finding->start);
	append_string(lines, "name", id);
	report_excerpt(&excerpt, out->style, finding);
	output_text_string(lines, ",\"description\":");
	output_text_json(lines, excerpt.bytes, excerpt.length);
	lines->failed = lines->failed || excerpt.failed;
	output_text_free(&excerpt);
	output_text_string(lines, ",\"severity\":\"Critical\",\"location\":{\"file\":");
	output_text_append(lines, out->path->bytes, out->path->length);
	append_commit(out);
	if (finding->place.line != 0) {
		output_text_format(
			lines, ",\"start_line\":%llu", (unsigned long long)finding->place.line);
	}
	if (finding->place.end_line != 0) {
		output_text_format(
			lines, ",\"end_line\":%llu", (unsigned long long)finding->place.end_line);
	}
	output_text_string(lines, "},\"identifiers\":[{\"type\":\"pinion_rule_id\"");
	append_string(lines, "name", id);
	append_string(lines, "value", id);
	output_text_string(lines, "}]}");
}

static void append_note(const struct report_out *out, const char *level, const char *reason)
{
	struct output_text message = {0};
	struct output_text *lines = out->lines;

	/* Without the quotes of the path. */
	output_text_string(lines, ",\n{\"level\":");
	output_text_json(lines, level, strlen(level));
	output_text_string(lines, ",\"value\":");
	output_text_append(&message, out->path->bytes, out->path->length);
	output_text_string(&message, ": ");
	output_text_string(&message, reason);
	output_text_json(lines, message.bytes, message.length);
	output_text_string(lines, "}");
	lines->failed = lines->failed || message.failed;
	output_text_free(&message);
}

static void append_gap(const struct report_out *out, const struct pinion_gap *gap)
{
	char text[192];

	report_gap_reason(gap, text, sizeof(text));
	append_note(out, "fatal", text);
}

static void append_limit(
	const struct report_out *out, const char *id, const struct findings_limit *limit)
{
	char text[REPORT_LIMIT_BYTES];

	report_limit_reason(id, limit, text);
	append_note(out, "warn", text);
}

static void append_time(struct output_text *out, const char *name, time_t when)
{
	char text[REPORT_TIME_BYTES];

	report_write_time(when, text);
	append_string(out, name, text);
}

static void append_program(struct output_text *out, const char *role)
{
	output_text_format(out,
		",\"%s\":{\"id\":\"pinion\",\"name\":\"pinion\",\"vendor\":{\"name\":\"pinion\"},"
		"\"version\":\"%s\"}",
		role, pinion_version());
}

static void end(struct output_text *out, const struct report_run *run)
{
	output_text_string(out, "],\"scan\":{\"type\":\"secret_detection\"");
	append_program(out, "analyzer");
	append_program(out, "scanner");
	append_time(out, "start_time", run->start);
	append_time(out, "end_time", time(NULL));
	append_string(out, "status", run->has_trouble ? "failure" : "success");
	output_text_string(out, ",\"messages\":[");
	report_append_notes(out, run, "]}}\n");
}

const struct report_format report_gitlab = {
	.name = "gitlab",
	.needs = {.lines = true, .digests = true},
	.is_document = true,
	.shape_path = shape_path,
	.begin = begin,
	.finding = append_finding,
	.gap = append_gap,
	.limit = append_limit,
	.end = end,
};

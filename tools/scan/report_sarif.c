/* SPDX-License-Identifier: MIT */
/*
 * SARIF 2.1.0, one run. Columns count characters here, so they are left out
 * where a line begins too far before a finding for its bytes to be kept.
 *
 * Source: OASIS, Static Analysis Results Interchange Format 2.1.0; RFC 3986 for
 * the names of files.
 */
#include "tools/scan/report_format.h"

#include "tools/report.h"

#include <pinion/version.h>
#include <stdio.h>
#include <string.h>

static bool is_plain_in_uri(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
		(byte >= '0' && byte <= '9') || (byte != '\0' && strchr("-._~/", byte) != NULL);
}

/* As a JSON string: relative, or of the scheme "file". */
static void shape_path(struct output_text *out, const char *path, size_t path_bytes)
{
	static const char digits[] = "0123456789ABCDEF";

	output_text_string(out, path[0] == '/' ? "\"file://" : "\"");
	for (size_t i = 0; i < path_bytes; i++) {
		uint8_t byte = (uint8_t)path[i];
		char escape[3] = {'%', digits[byte >> 4], digits[byte & 15]};

		if (is_plain_in_uri(path[i])) {
			output_text_append(out, path + i, 1);
		} else {
			output_text_append(out, escape, sizeof(escape));
		}
	}
	output_text_string(out, "\"");
}

static void append_time(struct output_text *out, const char *name, time_t when)
{
	char text[REPORT_TIME_BYTES];

	report_write_time(when, text);
	output_text_format(out, "\"%s\":\"%s%s\"", name, text, text[0] == '\0' ? "" : "Z");
}

static void append_repository(struct output_text *out, const struct report_run *run)
{
	if (run->repository == NULL) {
		return;
	}
	output_text_string(out, ",\"versionControlProvenance\":[{\"repositoryUri\":");
	shape_path(out, run->repository, strlen(run->repository));
	if (run->revision != NULL) {
		output_text_format(out, ",\"revisionId\":\"%s\"", run->revision);
	}
	output_text_string(out, "}]");
}

static void append_description(struct output_text *out, const struct rule *rule)
{
	if (rule->description != NULL) {
		output_text_string(out, ",\"shortDescription\":{\"text\":");
		output_text_json(out, rule->description, strlen(rule->description));
		output_text_string(out, "}");
	}
}

static void begin(struct output_text *out, const struct report_run *run)
{
	output_text_format(out,
		"{\"version\":\"2.1.0\","
		"\"$schema\":\"https://json.schemastore.org/sarif-2.1.0.json\","
		"\"runs\":[{\"tool\":{\"driver\":{\"name\":\"pinion\",\"version\":\"%s\","
		"\"rules\":[",
		pinion_version());
	for (uint32_t i = 0; i < rules_total(run->rules); i++) {
		const char *id = run->rules->items[i].id;

		output_text_string(out, i == 0 ? "\n{\"id\":" : ",\n{\"id\":");
		output_text_json(out, id, strlen(id));
		append_description(out, &run->rules->items[i]);
		output_text_string(out, "}");
	}
	output_text_string(out, "]}},\"columnKind\":\"unicodeCodePoints\"");
	append_repository(out, run);
	output_text_string(out, ",\"results\":[");
}

static void append_location(const struct report_out *out)
{
	output_text_string(
		out->lines, "\"locations\":[{\"physicalLocation\":{\"artifactLocation\":{\"uri\":");
	output_text_append(out->lines, out->path->bytes, out->path->length);
	output_text_string(out->lines, "}");
}

/*
 * The column after the characters between the start of the line that the byte
 * at `anchor` is in, and `at`. 0: not known.
 */
static uint64_t find_column(const struct report_finding *finding, uint64_t anchor, uint64_t at)
{
	uint64_t until = finding->text_start + finding->text_bytes;
	uint64_t column = 1;
	size_t start;

	if (finding->text == NULL || anchor < finding->text_start || at > until) {
		return 0;
	}
	start = (size_t)(anchor - finding->text_start);
	while (start > 0 && finding->text[start - 1] != '\n') {
		start--;
	}
	if (start == 0 && finding->text_start > 0) {
		return 0;
	}
	for (; start < at - finding->text_start; start++) {
		/* Bytes 10xxxxxx go on with a character. */
		column += (finding->text[start] & 0xc0) != 0x80;
	}
	return column;
}

static void append_region(struct output_text *lines, const struct report_finding *finding)
{
	const struct evidence_place *place = &finding->place;
	uint64_t column = find_column(finding, finding->start, finding->start);
	uint64_t end_column = find_column(finding, finding->end - 1, finding->end);

	output_text_format(lines, ",\"region\":{\"byteOffset\":%llu,\"byteLength\":%llu",
		(unsigned long long)finding->start,
		(unsigned long long)(finding->end - finding->start));
	if (place->line != 0 && place->end_line != 0) {
		output_text_format(lines, ",\"startLine\":%llu,\"endLine\":%llu",
			(unsigned long long)place->line, (unsigned long long)place->end_line);
		if (column != 0 && end_column != 0) {
			output_text_format(lines, ",\"startColumn\":%llu,\"endColumn\":%llu",
				(unsigned long long)column, (unsigned long long)end_column);
		}
	}
	output_text_string(lines, "}");
}

struct property {
	const char *name;
	const char *value; /* NULL: not known */
};

static void append_property(
	struct output_text *lines, const struct property *property, bool is_first)
{
	struct output_text shown = {0};

	output_text_format(lines, "%s\"%s\":", is_first ? "" : ",", property->name);
	output_text_escaped(&shown, property->value, strlen(property->value), true);
	output_text_json(lines, shown.bytes, shown.length);
	lines->failed = lines->failed || shown.failed;
	output_text_free(&shown);
}

/*
 * SARIF has no place for the commit of a result, nor for the string of a YARA
 * rule, but a result's own properties.
 */
static void append_properties(const struct report_out *out, const struct report_finding *finding)
{
	static const struct source_facts none;
	const struct source_facts *facts = out->facts != NULL ? out->facts : &none;
	const struct property properties[] = {
		{"blob", facts->blob},
		{"commit", facts->commit},
		{"author", facts->author},
		{"email", facts->email},
		{"date", facts->date},
		{"string", finding->string},
	};
	bool is_first = true;

	for (size_t i = 0; i < sizeof(properties) / sizeof(properties[0]); i++) {
		if (properties[i].value == NULL) {
			continue;
		}
		output_text_string(out->lines, is_first ? ",\"properties\":{" : "");
		append_property(out->lines, &properties[i], is_first);
		is_first = false;
	}
	output_text_string(out->lines, is_first ? "" : "}");
}

static void append_finding(const struct report_out *out, const struct report_finding *finding)
{
	struct output_text *lines = out->lines;
	struct output_text message = {0};

	output_text_string(&message, finding->rule->id);
	output_text_string(&message, ": ");
	report_excerpt(&message, out->style, finding);
	output_text_string(lines, ",\n{\"ruleId\":");
	output_text_json(lines, finding->rule->id, strlen(finding->rule->id));
	output_text_format(lines, ",\"ruleIndex\":%u,\"level\":\"error\",\"message\":{\"text\":",
		finding->rule_index);
	output_text_json(lines, message.bytes, message.length);
	lines->failed = lines->failed || message.failed;
	output_text_free(&message);
	output_text_string(lines, "},");
	append_location(out);
	append_region(lines, finding);
	output_text_format(
		lines, "}}],\"partialFingerprints\":{\"pinion/v1\":\"%s\"}", finding->fingerprint);
	append_properties(out, finding);
	output_text_string(lines, "}");
}

static void append_note(const struct report_out *out, const char *level, const char *text)
{
	output_text_format(out->lines, ",\n{\"level\":\"%s\",\"message\":{\"text\":", level);
	output_text_json(out->lines, text, strlen(text));
	output_text_string(out->lines, "},");
	append_location(out);
	output_text_string(out->lines, "}}]}");
}

static void append_gap(const struct report_out *out, const struct pinion_gap *gap)
{
	char text[192];

	report_gap_reason(gap, text, sizeof(text));
	append_note(out, "error", text);
}

static void append_limit(
	const struct report_out *out, const char *id, const struct findings_limit *limit)
{
	char text[REPORT_LIMIT_BYTES];

	report_limit_reason(id, limit, text);
	append_note(out, "warning", text);
}

static void end(struct output_text *out, const struct report_run *run)
{
	output_text_string(out, "],\"invocations\":[{\"executionSuccessful\":");
	output_text_string(out, run->has_trouble ? "false," : "true,");
	append_time(out, "startTimeUtc", run->start);
	output_text_string(out, ",");
	append_time(out, "endTimeUtc", time(NULL));
	output_text_string(out, ",\"toolExecutionNotifications\":[");
	report_append_notes(out, run, "]}]}]}\n");
}

const struct report_format report_sarif = {
	.name = "sarif",
	.needs = {.lines = true, .digests = true},
	.needs_text = true,
	.is_document = true,
	.shape_path = shape_path,
	.begin = begin,
	.finding = append_finding,
	.gap = append_gap,
	.limit = append_limit,
	.end = end,
};

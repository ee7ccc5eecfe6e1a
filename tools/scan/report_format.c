/* SPDX-License-Identifier: MIT */
/*
 * The list of formats, and what several of them share.
 */
#include "tools/scan/report_format.h"

#include "tools/options.h"

#include <stdio.h>

enum {
	/* Shows a byte of a finding for each four, and 4 at most. */
	EXCERPT_SHARE = 4,
	EXCERPT_MAX = 4,
	COMMIT_CHARS = 12,
};

static const struct report_format *const formats[] = {
	&report_text,
	&report_json,
	&report_sarif,
	&report_csv,
	&report_gitlab,
};
enum { FORMAT_COUNT = sizeof(formats) / sizeof(formats[0]) };

const struct report_format *report_format_parse(const char *name)
{
	const char *names[FORMAT_COUNT + 1] = {NULL};
	int index;

	for (int i = 0; i < FORMAT_COUNT; i++) {
		names[i] = formats[i]->name;
	}
	index = options_choice("format", name, names);
	return index >= 0 ? formats[index] : NULL;
}

void report_shape_text_path(struct output_text *out, const char *path, size_t path_bytes)
{
	output_text_escaped(out, path, path_bytes, true);
}

void report_append_path(const struct report_out *out)
{
	if (out->facts != NULL && out->facts->commit != NULL) {
		output_text_append(out->lines, out->facts->commit, COMMIT_CHARS);
		output_text_string(out->lines, ":");
	}
	output_text_append(out->lines, out->path->bytes, out->path->length);
}

void report_limit_reason(
	const char *id, const struct findings_limit *limit, char out_reason[REPORT_LIMIT_BYTES])
{
	if (limit->costly_count > 0) {
		snprintf(out_reason, REPORT_LIMIT_BYTES,
			"rule %s: what starts at byte %llu takes too many steps to match%s; %s", id,
			(unsigned long long)limit->searched_to,
			limit->costly_count > 1 ? ", as do others" : "",
			limit->is_over ? "the rule is not searched for further in this file"
				       : "it is left out");
	} else if (limit->is_dense) {
		snprintf(out_reason, REPORT_LIMIT_BYTES,
			"rule %s: its matches are too dense to go on after byte %llu "
			"(--max-findings-per-file=0 goes on)",
			id, (unsigned long long)limit->searched_to);
	} else {
		snprintf(out_reason, REPORT_LIMIT_BYTES,
			"rule %s: only the first %llu findings are shown (--max-findings-per-file)",
			id, (unsigned long long)limit->count);
	}
}

void report_write_time(time_t when, char out_text[REPORT_TIME_BYTES])
{
	struct tm parts;

	out_text[0] = '\0';
	if (gmtime_r(&when, &parts) != NULL) {
		(void)strftime(out_text, REPORT_TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &parts);
	}
}

/* Each begins with a comma, which the first has no use for. */
void report_append_notes(struct output_text *out, const struct report_run *run, const char *closing)
{
	if (run->notes->length > 0) {
		output_text_append(out, run->notes->bytes + 1, run->notes->length - 1);
	}
	output_text_string(out, closing);
}

/*
 * By default, enough to recognise a secret, not to use it. The head of an
 * unbounded rule's finding is long gone when its end is found.
 */
static void append_standard(struct output_text *out, const struct report_finding *finding)
{
	bool has_text = finding->rule->filter != NULL;
	const uint8_t *bytes = has_text ? finding->place.text : finding->head;
	uint64_t shown = (finding->secret_end - finding->secret_start) / EXCERPT_SHARE;

	if (shown > EXCERPT_MAX) {
		shown = EXCERPT_MAX;
	}
	if (finding->rule->max_width == RULE_WIDTH_UNBOUNDED ||
		(has_text && shown > finding->place.text_bytes)) {
		shown = 0;
	}
	for (uint64_t i = 0; i < shown; i++) {
		uint8_t byte = bytes[i];

		if (byte == ' ') {
			output_text_string(out, "\\x20");
		} else {
			output_text_escaped(out, (const char *)&byte, 1, true);
		}
	}
	output_text_string(out, "…");
}

void report_excerpt(struct output_text *out, const struct report_style *style,
	const struct report_finding *finding)
{
	uint64_t length = finding->secret_end - finding->secret_start;
	uint64_t hidden;
	uint64_t shown;

	if (style->redact_percent == REPORT_REDACT_STANDARD) {
		append_standard(out, finding);
		return;
	}
	hidden = length / 100 * (uint64_t)style->redact_percent +
		(length % 100 * (uint64_t)style->redact_percent + 99) / 100;
	shown = length - hidden;
	shown = shown < finding->place.text_bytes ? shown : finding->place.text_bytes;
	output_text_escaped(out, (const char *)finding->place.text, (size_t)shown, true);
	if (shown < length) {
		output_text_string(out, "…");
	}
}

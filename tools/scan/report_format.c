/* SPDX-License-Identifier: MIT */
/*
 * The list of formats, and what several of them share.
 */
#include "tools/scan/report_format.h"

#include "tools/options.h"

enum {
	/* Shows one byte of a finding for each four, and so many at most. */
	EXCERPT_SHARE = 4,
	EXCERPT_MAX = 4,
};

static const struct report_format *const formats[] = {
	&report_text,
	&report_json,
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

/*
 * By default, enough to recognise a secret, not to use it. The head of an
 * unbounded rule's finding is long gone when its end is found.
 */
void report_excerpt(struct output_text *out, const struct report_finding *finding)
{
	uint64_t shown = (finding->end - finding->start) / EXCERPT_SHARE;

	if (shown > EXCERPT_MAX) {
		shown = EXCERPT_MAX;
	}
	if (finding->rule->max_width == RULE_WIDTH_UNBOUNDED) {
		shown = 0;
	}
	for (uint64_t i = 0; i < shown; i++) {
		uint8_t byte = finding->head[i];

		if (byte == ' ') {
			output_text_string(out, "\\x20");
		} else {
			output_text_escaped(out, (const char *)&byte, 1, true);
		}
	}
	output_text_string(out, "…");
}

/* SPDX-License-Identifier: MIT */
/*
 * Text: PATH:START-END: RULE: EXCERPT.
 */
#include "tools/scan/report_format.h"

static void append_finding(const struct report_out *out, const struct report_finding *finding)
{
	struct output_text *lines = out->lines;

	output_text_append(lines, out->path->bytes, out->path->length);
	output_text_append(lines, ":", 1);
	output_text_decimal(lines, finding->start);
	output_text_append(lines, "-", 1);
	output_text_decimal(lines, finding->end);
	output_text_append(lines, ": ", 2);
	output_text_string(lines, finding->rule->id);
	output_text_append(lines, ": ", 2);
	report_excerpt(lines, finding);
	output_text_append(lines, "\n", 1);
}

const struct report_format report_text = {
	.name = "text",
	.shape_path = report_shape_text_path,
	.finding = append_finding,
};

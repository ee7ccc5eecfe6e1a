/* SPDX-License-Identifier: MIT */
/*
 * The files that have findings, instead of those: -l, and with the number
 * --count.
 */
#include "tools/scan/report_format.h"

static void append_path(const struct report_out *out, uint64_t count)
{
	(void)count;
	report_append_path(out);
	output_text_string(out->lines, "\n");
}

static void append_count(const struct report_out *out, uint64_t count)
{
	report_append_path(out);
	output_text_string(out->lines, ":");
	output_text_decimal(out->lines, count);
	output_text_string(out->lines, "\n");
}

const struct report_format report_paths = {
	.ends_files = true,
	.shape_path = report_shape_text_path,
	.file_end = append_path,
};

const struct report_format report_counts = {
	.shape_path = report_shape_text_path,
	.file_end = append_count,
};

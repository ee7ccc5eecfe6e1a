/* SPDX-License-Identifier: MIT */
/*
 * The formats of findings: a table of functions each, in a file of its own. A
 * format appends to `out->lines` what is to be written.
 */
#ifndef PINION_TOOLS_SCAN_REPORT_FORMAT_H
#define PINION_TOOLS_SCAN_REPORT_FORMAT_H

#include "tools/output_text.h"
#include "tools/scan/findings.h"
#include "tools/scan/rules.h"

#include <pinion/scan.h>

struct report_finding {
	const struct rule *rule;
	uint64_t start;
	uint64_t end;
	const uint8_t *head; /* its first four bytes, zeros: not known */
};

struct report_out {
	struct output_text *lines;
	const struct output_text *path; /* of the file, as the format shapes it */
};

struct report_format {
	const char *name; /* of --format */
	void (*shape_path)(struct output_text *out, const char *path, size_t path_bytes);
	void (*finding)(const struct report_out *out, const struct report_finding *finding);
	/* NULL: the format has no such lines. */
	void (*gap)(const struct report_out *out, const struct pinion_gap *gap);
	void (*limit)(
		const struct report_out *out, const char *id, const struct findings_limit *limit);
};

extern const struct report_format report_text;
extern const struct report_format report_json;

/* The format of this name, or NULL after a message that lists them. */
const struct report_format *report_format_parse(const char *name);

/* Escaped as on stderr, so that both can be compared. */
void report_shape_text_path(struct output_text *out, const char *path, size_t path_bytes);

/* The part of a finding that may be shown, escaped, with `…` for the rest. */
void report_excerpt(struct output_text *out, const struct report_finding *finding);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Findings as lines, for people or as JSON Lines for programs.
 *
 * Text: PATH:START-END: RULE: EXCERPT. PATH is escaped as on stderr, so that
 * both can be compared. EXCERPT is the first quarter of the finding, at most
 * four bytes, and an ellipsis: enough to recognise a secret, not to use it.
 *
 * JSON: {"rule":…,"path":…,"start":…,"end":…}; a path that is not UTF-8 is
 * {"bytes":"BASE64"}. A range that could not be read is
 * {"path":…,"unread_start":…,"unread_end":…,"errno":…}; a rule that has reached
 * a limit in a file is
 * {"rule":…,"path":…,"limit":…,"findings":…,"searched_to":…}.
 */
#ifndef PINION_TOOLS_SCAN_LINES_H
#define PINION_TOOLS_SCAN_LINES_H

#include "tools/output_text.h"
#include "tools/scan/finding.h"
#include "tools/scan/findings.h"
#include "tools/scan/rules.h"

#include <pinion/scan.h>

enum finding_format {
	FINDING_FORMAT_TEXT = 0,
	FINDING_FORMAT_JSON = 1,
};

/* Appends one line for each finding. `path_text` is scratch space. */
void finding_lines_append(struct output_text *lines, struct output_text *path_text,
	enum finding_format format, const struct rules *rules, const char *path, size_t path_bytes,
	const struct finding *findings, size_t count);

/* Appends one JSON line for a rule that has reached a limit in the file. */
void limit_line_append(struct output_text *lines, struct output_text *path_text, const char *id,
	const char *path, size_t path_bytes, const struct findings_limit *limit);

/* Appends one JSON line for each range that could not be read. */
void gap_lines_append(struct output_text *lines, struct output_text *path_text, const char *path,
	size_t path_bytes, const struct pinion_gap *gaps, size_t count);

#endif

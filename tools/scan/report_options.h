/* SPDX-License-Identifier: MIT */
/*
 * What the command line asks of a scan's output: its options, for the
 * command's table.
 */
#ifndef PINION_TOOLS_SCAN_REPORT_OPTIONS_H
#define PINION_TOOLS_SCAN_REPORT_OPTIONS_H

#include "tools/scan/baseline.h"
#include "tools/scan/report_format.h"

#include <stdint.h>

struct report_options {
	const struct report_format *format;
	struct report_style style;
	struct baseline baseline;
	const char **baseline_files;
	uint32_t baseline_count;
	bool has_baseline;
	bool heeds_nothing; /* --no-allow: no word allows a finding */
	bool has_format;    /* --format */
	bool has_own_form;  /* -l, --count */
	bool has_both_forms;
	const char *output_file; /* NULL: standard output */
	/* Lines of context, of which -C is where the others are not given. */
	uint32_t context_lines;
	bool has_before;
	bool has_after;
	int color; /* an enum of report_options.c */
};

/* Rows for a command's table of options, to be used between braces. */
#define REPORT_SPEC_FORMAT \
	0, "format", "FORMAT", "text (default), json, sarif, csv or gitlab", \
		"json is an object a line, sarif is SARIF 2.1.0, gitlab its report of secrets."
#define REPORT_SPEC_OFFSETS \
	'b', "byte-offset", NULL, "offsets in bytes, START-END, in place of LINE:COLUMN", NULL
#define REPORT_SPEC_REDACT \
	0, "redact", "[=PERCENT]", "hide PERCENT of each finding; default: 100", \
		"Without it a quarter of a finding is shown, 4 bytes at most."
#define REPORT_SPEC_BASELINE \
	0, "baseline", "FILE", "leave out findings that are in an earlier run's FILE", \
		"FILE is what --format=json or sarif has written."
#define REPORT_SPEC_NO_ALLOW \
	0, "no-allow", NULL, "report findings that a word on their line allows, too", \
		"pinion:allow and gitleaks:allow do, but for patterns of -e."
#define REPORT_SPEC_PATHS \
	'l', "files-with-findings", NULL, "print the paths of files with findings only", NULL
#define REPORT_SPEC_COUNTS \
	'c', "count", NULL, "print the number of findings of each file with some, PATH:N", NULL
#define REPORT_SPEC_AFTER \
	'A', "after-context", "N", "show the line of each finding, and N lines after it", NULL
#define REPORT_SPEC_BEFORE \
	'B', "before-context", "N", "show the line of each finding, and N lines before it", NULL
#define REPORT_SPEC_CONTEXT \
	'C', "context", "N", "both: N lines before and after it", \
		"As PATH-LINE-TEXT, with secrets hidden as in findings; 4096 bytes each way."
#define REPORT_SPEC_COLOR \
	0, "color", "[=WHEN]", "colours: auto (default), always, never", \
		"auto: on a terminal, unless NO_COLOR is set or TERM is dumb."
#define REPORT_SPEC_OUTPUT \
	0, "output", "FILE", "write FILE, when all is found, in place of standard output", \
		"An older FILE stays as it is until then, and where the scan is stopped. -: " \
		"standard output."

/* All defaults. */
void report_options_init(struct report_options *out_options);
void report_options_fini(struct report_options *options);

/* An option by its name. False: its value is bad, which is reported. */
bool report_options_parse(struct report_options *options, const char *name, const char *value);

/*
 * Reads the baselines, of which a pipe that brings nothing for so long fails;
 * 0: no limit. False: reported.
 */
bool report_options_load(struct report_options *options, uint64_t silence_ns_max);

/* After the last one. False: they do not fit together, which is reported. */
bool report_options_check(struct report_options *options);

#endif

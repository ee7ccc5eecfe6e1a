/* SPDX-License-Identifier: MIT */
/*
 * The formats of findings: a table of functions each, in a file of its own.
 *
 * A format appends to `out->lines` the bytes to write at once. Some formats are
 * lines, and the lines of several files mix. The others are one document: their
 * findings are separated, and notes about files wait for its end.
 */
#ifndef PINION_TOOLS_SCAN_REPORT_FORMAT_H
#define PINION_TOOLS_SCAN_REPORT_FORMAT_H

#include "tools/output_text.h"
#include "tools/scan/evidence.h"
#include "tools/scan/finding.h"
#include "tools/scan/findings_limits.h"
#include "tools/scan/rules.h"
#include "tools/scan/source_facts.h"

#include <pinion/scan.h>
#include <time.h>

enum {
	REPORT_FINGERPRINT_CHARS = 32,
	/* The most that is shown of a finding. */
	REPORT_EXCERPT_MAX = 256,
	/* --redact is not given. */
	REPORT_REDACT_STANDARD = -1,
};

/* How findings are shown, as the command line asks. */
struct report_style {
	bool has_offsets; /* -b */
	bool has_colors;
	int redact_percent; /* of a finding that are hidden */
	bool has_context;   /* the lines of findings, too (context.h) */
	uint32_t lines_before;
	uint32_t lines_after;
};

/* Between groups of lines. */
#define REPORT_GROUP_END "--\n"

/* What a document says about its run. */
struct report_run {
	const struct rules *rules;
	time_t start;
	bool has_trouble;		 /* at the end */
	bool has_commits;		 /* findings are shown with their commits */
	const char *repository;		 /* its folder; NULL: none is scanned */
	const char *revision;		 /* the commit of its HEAD; NULL: none */
	const struct output_text *notes; /* about files, separated; at the end */
};

struct report_finding {
	const struct rule *rule;
	uint32_t rule_index;
	uint64_t start;
	uint64_t end;
	/* Of a plain rule: all of it. Excerpts and fingerprints are of this. */
	uint64_t secret_start;
	uint64_t secret_end;
	/* Bytes of the file around it, from `text_start` on; NULL: not kept. */
	const uint8_t *text;
	uint64_t text_start;
	uint32_t text_bytes;
	const char *string;	     /* of a YARA rule, that it matches: `$a`; NULL: none */
	const char *decoded;	     /* the form of the text that it is in; NULL: bytes */
	const uint8_t *head;	     /* its first four bytes, zeros: not known */
	struct evidence_place place; /* as far as it was asked for */
	char fingerprint[REPORT_FINGERPRINT_CHARS + 1]; /* empty: not asked for */
};

struct report_out {
	struct output_text *lines;
	const struct output_text *path;	  /* of the file, as the format shapes it */
	const struct source_facts *facts; /* of a source; NULL: a file */
	const struct report_style *style;
};

struct report_format {
	const char *name; /* of --format; NULL: it has an option of its own */
	struct evidence_needs needs;
	bool needs_text; /* of findings of plain rules, too */
	bool is_document;
	bool ends_files; /* one finding of a file is enough */
	void (*shape_path)(struct output_text *out, const char *path, size_t path_bytes);
	/* Any of these may be NULL. */
	void (*begin)(struct output_text *out, const struct report_run *run);
	void (*finding)(const struct report_out *out, const struct report_finding *finding);
	void (*gap)(const struct report_out *out, const struct pinion_gap *gap);
	void (*limit)(
		const struct report_out *out, const char *id, const struct findings_limit *limit);
	/* A file with that number of findings has ended. */
	void (*file_end)(const struct report_out *out, uint64_t count);
	void (*end)(struct output_text *out, const struct report_run *run);
};

extern const struct report_format report_text;
extern const struct report_format report_json;
extern const struct report_format report_sarif;
extern const struct report_format report_csv;
extern const struct report_format report_gitlab;
extern const struct report_format report_paths;	 /* -l */
extern const struct report_format report_counts; /* --count */

/* The format of this name, or NULL after a message that lists them. */
const struct report_format *report_format_parse(const char *name);

/* Escaped as on stderr, so that both can be compared. */
void report_shape_text_path(struct output_text *out, const char *path, size_t path_bytes);

/* With the commit before it, where there is one. */
void report_append_path(const struct report_out *out);

/* A line of text output that is no finding; `place`: its number, or offset. */
void report_context_line(
	const struct report_out *out, uint64_t place, const struct output_text *text);

/* Around the excerpt of a secret in such a line. */
void report_begin_match(struct output_text *out, const struct report_style *style);
void report_end_match(struct output_text *out, const struct report_style *style);

enum { REPORT_LIMIT_BYTES = 320 };

/* Words for a rule that has reached a limit in a file. */
void report_limit_reason(
	const char *id, const struct findings_limit *limit, char out_reason[REPORT_LIMIT_BYTES]);

/* In UTC, as both formats that have times write it; without an ending. */
enum { REPORT_TIME_BYTES = 32 };
void report_write_time(time_t when, char out_text[REPORT_TIME_BYTES]);

/* The notes about files of a document, which `closing` ends. */
void report_append_notes(
	struct output_text *out, const struct report_run *run, const char *closing);

/* The part of a finding that may be shown, escaped, with `…` for the rest. */
void report_excerpt(struct output_text *out, const struct report_style *style,
	const struct report_finding *finding);

#endif

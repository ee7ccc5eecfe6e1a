/* SPDX-License-Identifier: MIT */
/*
 * Findings on their way out: leaves out those that are allowed or in the
 * baseline, shapes the others as the format wants them, and says on stderr
 * what concerns people whatever the format is.
 */
#ifndef PINION_TOOLS_SCAN_REPORTER_H
#define PINION_TOOLS_SCAN_REPORTER_H

#include "tools/scan/report_options.h"
#include "tools/scan/search.h"
#include "tools/scan/sorted_output.h"

/* Shared by all workers. */
struct reporter {
	const struct report_options *options;
	const struct rules *rules;
	/* Rules before this are those of -e: no word allows their findings. */
	uint32_t first_allowable;
	struct report_run run;
	struct sorted_output *sorted; /* NULL: files are written as they end */
	bool needs_prints;	      /* of all findings, whatever the format shows */
	pthread_mutex_t lock;	      /* guards what follows */
	bool has_begun;
	bool has_findings;
	/* Of a document. */
	struct output_text notes;
	uint64_t lost_notes; /* beyond a limit on their bytes */
};

/* What one worker uses. Zero-initialise. */
struct reporter_worker {
	struct output_text lines; /* to be written */
	struct output_text path;
	struct output_text excerpt; /* of a secret in a line of context */
	struct fingerprint print;   /* of the last finding, if it has any */
	uint64_t finding_count;
	uint64_t known_count;	/* of the baseline, not shown */
	uint64_t allowed_count; /* by a word on their lines, not shown */
};

void reporter_init(struct reporter *reporter, const struct report_options *options,
	const struct rules *rules, uint32_t first_allowable);
void reporter_fini(struct reporter *reporter);
void reporter_worker_fini(struct reporter_worker *worker);

/* What files have to leave for this. */
struct evidence_needs reporter_needs(const struct reporter *reporter);

/*
 * Each leaves in worker->lines what there is to write, perhaps nothing, which
 * reporter_write() takes. reporter_findings() returns the number of findings
 * that are shown; with context they are the first of findings_file.held.
 */
size_t reporter_findings(struct reporter *reporter, struct reporter_worker *worker,
	const struct pinion_scan_file *file, const struct finding *findings, size_t count);
/* Unread ranges: a line each on stderr, too. */
void reporter_gaps(struct reporter *reporter, struct reporter_worker *worker,
	const struct pinion_scan_file *file, const struct pinion_gap *gaps, size_t count);
/* A rule that has reached a limit: a line on stderr, too. */
void reporter_limit(struct reporter *reporter, struct reporter_worker *worker,
	const struct pinion_scan_file *file, const struct findings_limit *limit);
/*
 * No finding of the file is to come: the lines after its last one. Needs no
 * evidence; frees the file's context.
 */
void reporter_context_end(struct reporter *reporter, struct reporter_worker *worker,
	const struct pinion_scan_file *file);
/* The file has ended, with that number of findings shown. */
void reporter_file_end(struct reporter *reporter, struct reporter_worker *worker,
	const struct pinion_scan_file *file, uint64_t shown_count);

/* Writes worker->lines of a file, or has them sorted. False: it has failed. */
bool reporter_write(struct reporter *reporter, struct reporter_worker *worker, uint64_t sequence);

/* Of the sorted output: `arg` is the reporter. */
bool reporter_write_sorted(void *arg, const struct sorted_text *text);

/* Writes the rest of a document. False: a write has failed, or no memory. */
bool reporter_end(struct reporter *reporter, bool has_trouble);

#endif

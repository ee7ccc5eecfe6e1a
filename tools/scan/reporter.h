/* SPDX-License-Identifier: MIT */
/*
 * Findings on their way out: shapes what a file has as the format wants it,
 * and says on stderr what concerns people whatever the format is.
 */
#ifndef PINION_TOOLS_SCAN_REPORTER_H
#define PINION_TOOLS_SCAN_REPORTER_H

#include "tools/scan/report_format.h"

/* Shared by all workers. */
struct reporter {
	const struct report_format *format;
	const struct rules *rules;
};

/* What one worker uses. Zero-initialise. */
struct reporter_worker {
	struct output_text lines; /* to be written */
	struct output_text path;
	uint64_t finding_count;
};

void reporter_worker_fini(struct reporter_worker *worker);

/* Each leaves in worker->lines what there is to write, perhaps nothing. */
void reporter_findings(const struct reporter *reporter, struct reporter_worker *worker,
	const struct pinion_scan_file *file, const struct finding *findings, size_t count);
/* Unread ranges: a line each on stderr, too. */
void reporter_gaps(const struct reporter *reporter, struct reporter_worker *worker,
	const struct pinion_scan_file *file, const struct pinion_gap *gaps, size_t count);
/* A rule that has reached a limit: a line on stderr, too. */
void reporter_limit(const struct reporter *reporter, struct reporter_worker *worker,
	const struct pinion_scan_file *file, const struct findings_limit *limit);

#endif

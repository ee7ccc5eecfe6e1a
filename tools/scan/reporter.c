/* SPDX-License-Identifier: MIT */
/*
 * A path is put into shape once for all its findings in hand, since one file
 * may have very many.
 */
#include "tools/scan/reporter.h"

#include "tools/report.h"

#include <stdio.h>

void reporter_worker_fini(struct reporter_worker *worker)
{
	output_text_free(&worker->lines);
	output_text_free(&worker->path);
}

static struct report_out begin(const struct reporter *reporter, struct reporter_worker *worker,
	const struct pinion_scan_file *file)
{
	worker->lines.length = 0;
	worker->path.length = 0;
	reporter->format->shape_path(&worker->path, file->path, file->path_bytes);
	worker->lines.failed = worker->lines.failed || worker->path.failed;
	return (struct report_out){.lines = &worker->lines, .path = &worker->path};
}

void reporter_findings(const struct reporter *reporter, struct reporter_worker *worker,
	const struct pinion_scan_file *file, const struct finding *findings, size_t count)
{
	struct report_out out = begin(reporter, worker, file);

	worker->finding_count += count;
	for (size_t i = 0; i < count; i++) {
		struct report_finding finding = {
			.rule = &reporter->rules->items[findings[i].rule],
			.start = findings[i].start,
			.end = findings[i].end,
			.head = findings[i].head,
		};

		reporter->format->finding(&out, &finding);
	}
}

void reporter_gaps(const struct reporter *reporter, struct reporter_worker *worker,
	const struct pinion_scan_file *file, const struct pinion_gap *gaps, size_t count)
{
	struct report_out out = begin(reporter, worker, file);

	for (size_t i = 0; i < count; i++) {
		report_gap(file->path, &gaps[i]);
		if (reporter->format->gap != NULL) {
			reporter->format->gap(&out, &gaps[i]);
		}
	}
}

/* A line for people, whatever the format is. */
static void report_limit(const char *path, const char *id, const struct findings_limit *limit)
{
	char reason[320];

	if (limit->is_costly) {
		snprintf(reason, sizeof(reason),
			"rule %s: a match at byte %llu takes too many steps; the rule is not "
			"searched for further in this file",
			id, (unsigned long long)limit->searched_to);
	} else if (limit->is_dense) {
		snprintf(reason, sizeof(reason),
			"rule %s: its matches are too dense to go on after byte %llu "
			"(--max-findings-per-file=0 goes on)",
			id, (unsigned long long)limit->searched_to);
	} else {
		snprintf(reason, sizeof(reason),
			"rule %s: only the first %llu findings are shown (--max-findings-per-file)",
			id, (unsigned long long)limit->count);
	}
	report_path(path, reason);
}

void reporter_limit(const struct reporter *reporter, struct reporter_worker *worker,
	const struct pinion_scan_file *file, const struct findings_limit *limit)
{
	const char *id = reporter->rules->items[limit->rule].id;
	struct report_out out = begin(reporter, worker, file);

	report_limit(file->path, id, limit);
	if (reporter->format->limit != NULL) {
		reporter->format->limit(&out, id, limit);
	}
}

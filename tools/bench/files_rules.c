/* SPDX-License-Identifier: MIT */
/*
 * What `scan` does with bytes: search them for the built-in rules, and take
 * the findings as `pinion scan` does, but show none.
 */
#include "tools/bench/files.h"

#include "tools/report.h"
#include "tools/scan/patterns.h"

#include <errno.h>

static int scan_start(struct files_bench *bench)
{
	const struct matcher_ops *matcher = matcher_default();
	struct scan_patterns patterns = {0};
	struct matcher_trouble trouble = {.rule = UINT32_MAX};
	struct engine_needs needs;
	int rc;

	if (matcher == &matcher_literal) {
		report_line("scan: no regular expressions are built into this program: install "
			    "libhyperscan-dev and configure again");
		return -EOPNOTSUPP;
	}
	if (!scan_rules_load(&patterns, matcher, &bench->rules)) {
		return -EINVAL;
	}
	rc = search_init(&bench->search, matcher, &bench->rules, &trouble);
	if (rc == -EINVAL) {
		scan_rules_complain(&bench->rules, &trouble);
		return rc;
	}
	for (uint32_t i = 0; rc == 0 && i < bench->worker_count; i++) {
		rc = search_worker_init(&bench->workers[i].search, &bench->search);
	}
	if (rc != 0) {
		report_line("scan: cannot start: %s", report_reason(rc));
		return rc;
	}
	needs = engine_needs(bench->search.engine);
	bench->scan.overlap_bytes = needs.overlap_bytes;
	if (needs.in_order) {
		bench->scan.order = PINION_SCAN_IN_ORDER;
	}
	return 0;
}

static void count_findings(void *arg, const struct finding *findings, size_t count)
{
	struct files_worker *worker = arg;

	(void)findings;
	worker->finding_count += count;
}

static int scan_open(void *arg, struct pinion_scan_file *file)
{
	const struct files_bench *bench = arg;

	return search_open(&bench->search, file->user);
}

static int scan_window(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	struct files_bench *bench = arg;
	struct files_worker *worker = bench_files_worker(bench);

	return search_window(
		&bench->search, &worker->search, file->user, window, count_findings, worker);
}

static const struct search_notes no_notes;

static int scan_close(void *arg, struct pinion_scan_file *file, int error)
{
	struct files_bench *bench = arg;
	struct files_worker *worker = bench_files_worker(bench);

	(void)error;
	return search_close(
		&bench->search, &worker->search, file->user, count_findings, &no_notes, worker);
}

static int scan_touch_begin(void *arg, uint32_t thread_index)
{
	struct files_bench *bench = arg;

	return engine_file_open(bench->search.engine, &bench->workers[thread_index].engine_file);
}

/* Each buffer is searched alone, without the bytes before it: no less work. */
static int scan_touch(void *arg, uint32_t thread_index, const uint8_t *bytes, size_t length,
	uint64_t offset_bytes)
{
	struct files_bench *bench = arg;
	struct files_worker *worker = &bench->workers[thread_index];
	struct pinion_window window = {
		.bytes = bytes,
		.length_bytes = length,
		.base_offset_bytes = offset_bytes,
	};

	return engine_window(
		worker->search.engine, &worker->engine_file, &window, &worker->search.yield);
}

static void scan_touch_end(void *arg, uint32_t thread_index)
{
	struct files_bench *bench = arg;
	struct files_worker *worker = &bench->workers[thread_index];

	engine_file_close(worker->search.engine, &worker->engine_file);
}

const struct work bench_scan_work = {
	.order = PINION_SCAN_PARALLEL,
	.file_user_bytes = sizeof(struct search_file),
	.start = scan_start,
	.scan = {.open = scan_open, .window = scan_window, .close = scan_close},
	.touch = {.begin = scan_touch_begin, .bytes = scan_touch, .end = scan_touch_end},
};

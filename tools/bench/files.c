/* SPDX-License-Identifier: MIT */
/*
 * The subjects that read large files, but for what they do with the bytes.
 */
#include "tools/bench/files.h"

#include "tools/report.h"
#include "tools/signals.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So that the step from file to file is measured too. */
enum { FILES_MIN = 2 };

/* ---- both sides ---- */

struct files_worker *bench_files_worker(struct files_bench *bench)
{
	return &bench->workers[pinion_worker_index(bench->runtime)];
}

static void report_file(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	(void)arg;
	report_outcome(file, outcome, error);
}

/* A figure counts only if every byte was read, past the page cache. */
static int check_totals(const struct files_bench *bench, const struct pinion_scan_stats *totals)
{
	if (signals_interrupted()) {
		return -ECANCELED;
	}
	if (totals->done != bench->set->count || totals->direct_files != bench->set->count ||
		totals->read_bytes != bench->set->total_bytes) {
		report_line("not all was read past the page cache: %llu of %u files, "
			    "%llu of %llu bytes",
			(unsigned long long)totals->direct_files, bench->set->count,
			(unsigned long long)totals->read_bytes,
			(unsigned long long)bench->set->total_bytes);
		return -EIO;
	}
	return 0;
}

static int add_files(const struct files_bench *bench, struct pinion_scan *scan)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < bench->set->count; i++) {
		rc = pinion_scan_add_file(scan, bench->set->files[i].path);
	}
	return rc;
}

static int run_ours(struct files_bench *bench, uint64_t *out_elapsed_ns)
{
	struct pinion_scan_ops ops = bench->work->scan;
	struct pinion_scan_stats totals = {0};
	struct pinion_scan *scan;
	uint64_t start_ns;
	int rc;

	ops.report = report_file;
	rc = pinion_scan_create(bench->runtime, &bench->scan, &ops, bench, &scan);
	if (rc != 0) {
		report_line("cannot start a scan: %s", report_reason(rc));
		return rc;
	}
	signals_watch(scan);
	start_ns = bench_now_ns();
	rc = add_files(bench, scan);
	(void)pinion_scan_finish(scan, &totals, sizeof(totals));
	*out_elapsed_ns = bench_now_ns() - start_ns;
	signals_hold();
	pinion_scan_destroy(scan);
	if (rc != 0 && rc != -ECANCELED) {
		report_line("cannot add a file: %s", report_reason(rc));
		return rc;
	}
	return check_totals(bench, &totals);
}

static int run_raw(struct files_bench *bench, bool is_touching, uint64_t *out_elapsed_ns)
{
	struct rawread_touch touch = bench->work->touch;
	int rc;

	touch.arg = bench;
	rc = rawread_run(bench->rawread, is_touching ? &touch : NULL, out_elapsed_ns);
	if (rc != 0 && rc != -ECANCELED) {
		report_line("the raw loop failed: %s", report_reason(rc));
	}
	return rc;
}

static int files_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct files_bench *bench = state;
	uint64_t elapsed_ns;
	int rc;

	effort_begin(&bench->effort, bench->runtime);
	rc = side == BENCH_OURS ? run_ours(bench, &elapsed_ns)
				: run_raw(bench, side == BENCH_TOUCHING, &elapsed_ns);
	effort_end(&bench->effort, bench->runtime, side, bench->set->total_bytes);
	if (rc != 0) {
		return rc;
	}
	/* Bytes per nanosecond are GB per second. */
	return samples_add(out_figures, (double)bench->set->total_bytes / (double)elapsed_ns);
}

static uint32_t files_further(void *state, struct bench_further further[BENCH_FURTHER_MAX])
{
	struct files_bench *bench = state;

	return effort_further(&bench->effort, further);
}

/* ---- start and stop ---- */

static void files_stop(void *state)
{
	struct files_bench *bench = state;

	pinion_runtime_destroy(bench->runtime);
	rawread_destroy(bench->rawread);
	for (uint32_t i = 0; i < bench->worker_count; i++) {
		search_worker_fini(&bench->workers[i].search);
	}
	free(bench->workers);
	search_fini(&bench->search);
	rules_free(&bench->rules);
	free(bench);
}

/* One file for each worker at least, since `sum` cannot cut them. */
int bench_provide_files(struct bench *bench, uint32_t worker_count)
{
	const struct bench_options *options = bench->options;
	const struct bench_sweep *sweep = &options->sweep;
	uint32_t count = worker_count < FILES_MIN ? FILES_MIN : worker_count;

	/* They serve all points and all subjects. */
	for (uint32_t i = 0; i < sweep->counts[BENCH_WORKERS]; i++) {
		uint32_t workers = sweep->values[BENCH_WORKERS][i];

		count = count < workers ? workers : count;
	}
	if (bench->files != NULL) {
		return 0;
	}
	if (options->file_count > 0) {
		return fileset_open(options->files, options->file_count, &bench->files);
	}
	return fileset_make(options->directory, count, options->size_bytes, &bench->files);
}

void bench_setting_files(struct bench_setting *setting, const struct fileset *set)
{
	uint32_t worker_count = setting->facts.worker_count;

	snprintf(setting->text, sizeof(setting->text), "%u file%s, %llu MiB, %u worker%s",
		set->count, set->count == 1 ? "" : "s",
		(unsigned long long)(set->total_bytes >> 20), worker_count,
		worker_count == 1 ? "" : "s");
}

static int start_workers(struct files_bench *bench)
{
	size_t bytes;

	bench->worker_count = pinion_runtime_worker_count(bench->runtime);
	bytes = bench->worker_count * sizeof(*bench->workers);
	bench->workers = aligned_alloc(alignof(struct files_worker), bytes);
	if (bench->workers == NULL) {
		bench->worker_count = 0;
		return -ENOMEM;
	}
	memset(bench->workers, 0, bytes);
	return rawread_create(bench->set, bench->worker_count, &bench->rawread);
}

static int start_runtime(
	struct files_bench *bench, struct bench *session, struct bench_setting *out_setting)
{
	int rc = pinion_runtime_create(&session->options->runtime, &bench->runtime);

	if (rc != 0) {
		report_line("cannot start: %s", report_reason(rc));
		return rc;
	}
	pinion_runtime_get_info(bench->runtime, &out_setting->facts, sizeof(out_setting->facts));
	rc = bench_provide_files(session, out_setting->facts.worker_count);
	if (rc != 0) {
		return rc;
	}
	bench->set = session->files;
	rc = start_workers(bench);
	if (rc != 0) {
		report_line("cannot start: %s", report_reason(rc));
	}
	return rc;
}

static int files_start(struct bench *session, struct bench_setting *out_setting, void **out_state)
{
	const struct work *work = session->subject->variant;
	struct files_bench *bench = calloc(1, sizeof(*bench));
	int rc;

	if (bench == NULL) {
		report_line("%s", report_reason(ENOMEM));
		return -ENOMEM;
	}
	bench->work = work;
	pinion_scan_config_init(&bench->scan);
	bench->scan.order = work->order;
	bench->scan.direct = PINION_DIRECT_ALWAYS;
	bench->scan.file_user_bytes = work->file_user_bytes;
	rc = start_runtime(bench, session, out_setting);
	if (rc == 0 && work->start != NULL) {
		rc = work->start(bench);
	}
	if (rc != 0) {
		files_stop(bench);
		return rc;
	}
	bench_setting_files(out_setting, bench->set);
	*out_state = bench;
	return 0;
}

/* What all of them have. */
#define FILES_SHARED \
	.unit = "GB/s", .is_rate = true, .axes = BENCH_BY(BENCH_WORKERS), .start = files_start, \
	.run = files_run, .stop = files_stop, .further = files_further

const struct bench_subject bench_read = {
	.name = "read",
	.brief = "large files read past the page cache, against a loop of pread(2)",
	.sides = {[BENCH_OURS] = "pinion_scan", [BENCH_FLOOR] = "pread-direct"},
	.variant = &bench_read_work,
	FILES_SHARED,
};

const struct bench_subject bench_sum = {
	.name = "sum",
	.brief = "large files hashed with XXH3 from start to end, against a loop of pread(2)",
	.sides =
		{
			[BENCH_OURS] = "pinion_scan+xxh3-64",
			[BENCH_FLOOR] = "pread-direct",
			[BENCH_TOUCHING] = "pread-direct+xxh3-64",
		},
	.variant = &bench_sum_work,
	FILES_SHARED,
};

const struct bench_subject bench_scan = {
	.name = "scan",
	.brief = "large files searched for the built-in rules, against a loop of pread(2)",
	.sides =
		{
			[BENCH_OURS] = "pinion_scan+rules",
			[BENCH_FLOOR] = "pread-direct",
			[BENCH_TOUCHING] = "pread-direct+rules",
		},
	.variant = &bench_scan_work,
	FILES_SHARED,
};

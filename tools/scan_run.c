/* SPDX-License-Identifier: MIT */
/*
 * The scan: what the library calls for each file and window, and how it is
 * set up and ended.
 *
 * Each worker has an engine worker, lists and line space of its own; each file
 * in flight has its findings' state in the scan's memory. Lines of a file are
 * written while its lock is held, which keeps them in order.
 */
#include "scan.h"

#include "engine.h"
#include "findings.h"
#include "input.h"
#include "options.h"
#include "report.h"

#include <errno.h>
#include <pinion/runtime.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	PAGE_BYTES = 4096,
	/*
	 * Buffers larger than the default are fewer, so that memory stays
	 * alike.
	 */
	BUFFER_BYTES_TOTAL = 12 << 20,
	BUFFER_COUNT_MIN = 4,
	/* The least of a default window that is worth its overlap. */
	WINDOW_SHARE_MIN = 768 << 10,
};

/* What one worker uses; nobody else does while the scan runs. */
struct scan_worker {
	struct engine_worker *engine;
	struct engine_yield yield;
	struct output_text lines;
	struct output_text path_text;
	uint64_t finding_count;
	bool has_trouble;
};

/* One file's, in the scan's memory. */
struct scan_file {
	struct engine_file engine;
	struct findings_file findings;
};

struct scan_job {
	const struct scan_options *options;
	const struct rules *rules;
	struct engine *engine;
	struct findings findings;
	struct pinion_runtime *runtime;
	struct pinion_scan *scan;
	struct pinion_scan_totals totals;
	struct scan_worker *workers; /* one more than workers: see worker_here() */
	uint32_t worker_count;
	bool has_trouble;
};

/* The last one is the adding thread's, which reports some paths itself. */
static struct scan_worker *worker_here(struct scan_job *job)
{
	int index = pinion_worker_index(job->runtime);

	return &job->workers[index >= 0 ? (uint32_t)index : job->worker_count];
}

/* A batch of findings on its way out. */
struct show {
	struct scan_job *job;
	const struct pinion_scan_file *file;
	struct scan_worker *worker;
};

static void show_findings(void *arg, const struct candidate *findings, size_t count)
{
	struct show *show = arg;
	struct scan_worker *worker = show->worker;
	struct output_text *lines = &worker->lines;

	worker->finding_count += count;
	lines->length = 0;
	finding_lines_append(lines, &worker->path_text, show->job->options->format,
		show->job->rules, show->file->path, show->file->path_bytes, findings, count);
	if (lines->failed) {
		report_path(show->file->path, report_reason(ENOMEM));
		worker->has_trouble = true;
		lines->failed = false;
		worker->path_text.failed = false;
	} else if (!output_write(lines->bytes, lines->length)) {
		/* Nobody would see the rest. */
		pinion_scan_cancel(show->job->scan);
	}
}

static int on_open(void *arg, struct pinion_scan_file *file)
{
	struct scan_job *job = arg;
	struct scan_file *state = file->user;

	findings_file_init(&state->findings);
	return engine_file_open(job->engine, &state->engine);
}

static int on_window(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	struct scan_job *job = arg;
	struct scan_file *state = file->user;
	struct scan_worker *worker = worker_here(job);
	struct show show = {.job = job, .file = file, .worker = worker};
	int error = engine_window(worker->engine, &state->engine, window, &worker->yield);

	if (error == 0) {
		error = findings_add(&job->findings, &state->findings, window, &worker->yield,
			show_findings, &show);
	}
	return error;
}

static int on_close(void *arg, struct pinion_scan_file *file, int error)
{
	struct scan_job *job = arg;
	struct scan_file *state = file->user;
	struct scan_worker *worker = worker_here(job);
	struct show show = {.job = job, .file = file, .worker = worker};
	int finish_error;

	engine_file_close(worker->engine, &state->engine);
	finish_error = findings_finish(&job->findings, &state->findings, show_findings, &show);
	findings_file_fini(&state->findings);
	return error != 0 ? error : finish_error;
}

static void on_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	struct scan_job *job = arg;
	struct scan_worker *worker = worker_here(job);

	/* Plain symbolic links and what was stopped early are no trouble. */
	if (outcome == PINION_SCAN_FAILED || (outcome == PINION_SCAN_SKIPPED && error != 0)) {
		report_outcome(file, outcome, error);
		worker->has_trouble = true;
	}
}

static const struct pinion_scan_ops scan_ops = {
	.open = on_open,
	.window = on_window,
	.close = on_close,
	.report = on_report,
};

static uint32_t round_up(uint32_t bytes)
{
	return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* Buffers that hold a window with its overlap, as many as fit the memory. */
static void size_buffers(
	const struct scan_options *options, uint32_t overlap_bytes, struct pinion_config *config)
{
	uint32_t window_bytes = options->window_bytes;
	uint32_t overlap = round_up(overlap_bytes);
	uint32_t count;

	if (window_bytes == 0 && overlap < config->buffer_bytes &&
		config->buffer_bytes - overlap >= WINDOW_SHARE_MIN) {
		return;
	}
	if (window_bytes == 0) {
		window_bytes = config->buffer_bytes;
	}
	if (window_bytes + overlap <= config->buffer_bytes) {
		return;
	}
	config->buffer_bytes = window_bytes + overlap;
	count = BUFFER_BYTES_TOTAL / config->buffer_bytes;
	config->buffer_count = count < BUFFER_COUNT_MIN ? BUFFER_COUNT_MIN : count;
}

static int start(struct scan_job *job)
{
	struct engine_needs needs = engine_needs(job->engine);
	struct pinion_scan_config scan_config = job->options->scan;
	struct pinion_config config = job->options->runtime;
	int error;

	size_buffers(job->options, needs.overlap_bytes, &config);
	error = pinion_runtime_create(&config, &job->runtime);
	if (error != 0) {
		return error;
	}
	job->worker_count = pinion_runtime_worker_count(job->runtime);
	job->workers = calloc(job->worker_count + 1, sizeof(*job->workers));
	if (job->workers == NULL) {
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < job->worker_count && error == 0; i++) {
		error = engine_worker_create(job->engine, &job->workers[i].engine);
	}
	scan_config.order = needs.in_order ? PINION_SCAN_IN_ORDER : PINION_SCAN_PARALLEL;
	scan_config.overlap_bytes = needs.overlap_bytes;
	scan_config.window_bytes = job->options->window_bytes;
	scan_config.report_holes = needs.report_holes;
	scan_config.file_user_bytes = sizeof(struct scan_file);
	if (error == 0) {
		error = pinion_scan_create(job->runtime, &scan_config, &scan_ops, job, &job->scan);
	}
	return error;
}

static void feed(struct scan_job *job)
{
	struct input input = {
		.paths = job->options->paths,
		.path_count = job->options->path_count,
		.list_path = job->options->list_path,
		.list_is_nul = job->options->list_is_nul,
		.recurse = true,
	};
	int error;

	input_watch_signals(job->scan);
	error = input_feed(&input, job->scan);
	if (error != 0 && error != -ECANCELED) {
		job->has_trouble = true;
	}
	error = pinion_scan_finish(job->scan, &job->totals);
	if (error != 0) {
		report_line("cannot finish: %s", report_reason(error));
		job->has_trouble = true;
	}
	input_hold_signals();
}

/* Accepts a job that was never or only partly started. */
static void stop(struct scan_job *job)
{
	pinion_scan_destroy(job->scan);
	pinion_runtime_destroy(job->runtime);
	for (uint32_t i = 0; job->workers != NULL && i <= job->worker_count; i++) {
		struct scan_worker *worker = &job->workers[i];

		engine_worker_destroy(worker->engine);
		candidates_free(&worker->yield.found);
		output_text_free(&worker->lines);
		output_text_free(&worker->path_text);
	}
	free(job->workers);
	engine_destroy(job->engine);
}

static uint64_t count_findings(struct scan_job *job)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i <= job->worker_count; i++) {
		count += job->workers[i].finding_count;
		job->has_trouble = job->has_trouble || job->workers[i].has_trouble;
	}
	return count;
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void report_end(const struct scan_job *job, uint64_t finding_count, double seconds)
{
	double gigabytes = (double)job->totals.read_bytes / 1e9;
	bool is_stopped = input_was_interrupted();

	if (is_stopped) {
		report_line("stopped early by a signal");
	}
	if (job->options->has_stats || job->totals.failed > 0 || job->totals.cancelled > 0) {
		report_totals(&job->totals);
	}
	if (job->options->has_stats) {
		report_line("findings: %llu; %.3f GB (holes: %.3f GB) in %.3f s, %.3f GB/s; "
			    "%llu files past the page cache",
			(unsigned long long)finding_count, gigabytes,
			(double)job->totals.hole_bytes / 1e9, seconds,
			seconds > 0 ? gigabytes / seconds : 0.0,
			(unsigned long long)job->totals.direct_files);
	}
}

static int end(struct scan_job *job, double seconds)
{
	uint64_t finding_count = count_findings(job);
	bool is_written = output_finish();

	report_end(job, finding_count, seconds);
	if (input_was_interrupted()) {
		return EXIT_STATUS_STOPPED;
	}
	if (job->has_trouble || !is_written) {
		return EXIT_STATUS_TROUBLE;
	}
	return finding_count > 0 ? EXIT_STATUS_FOUND : EXIT_STATUS_CLEAN;
}

int scan_run(const struct scan_options *options, const struct matcher_ops *matcher,
	const struct rules *rules)
{
	struct scan_job job = {.options = options, .rules = rules};
	struct matcher_trouble trouble = {.rule = UINT32_MAX};
	int status = EXIT_STATUS_TROUBLE;
	int error = engine_create(matcher, rules, &job.engine, &trouble);

	findings_init(&job.findings, rules);
	if (error == -EINVAL) {
		scan_rules_complain(rules, &trouble);
		return EXIT_STATUS_TROUBLE;
	}
	if (error == 0) {
		error = start(&job);
	}
	if (error != 0) {
		report_line("cannot start: %s", report_reason(error));
	} else {
		double start_seconds = seconds_now();

		feed(&job);
		status = end(&job, seconds_now() - start_seconds);
	}
	stop(&job);
	input_watch_signals(NULL);
	return status;
}

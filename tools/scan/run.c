/* SPDX-License-Identifier: MIT */
/*
 * How a scan is set up, fed and ended.
 */
#include "tools/scan/run.h"

#include "tools/distribution.h"
#include "tools/input.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/output_file.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/scan/compile_limit.h"
#include "tools/scan/git/scan.h"
#include "tools/scan/job.h"
#include "tools/scan/unpack.h"
#include "tools/signals.h"
#include "tools/throttle.h"

#include <errno.h>
#include <pinion/runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
	/* So often a signal is looked for while rules are compiled. */
	COMPILE_LOOK_NS = 100 * 1000 * 1000,
};

static uint32_t round_up(uint32_t bytes)
{
	return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* Buffers that hold a window with its overlap, as many as fit the memory. */
static void size_buffers(
	const struct scan_options *options, uint32_t overlap_bytes, struct pinion_config *config)
{
	uint32_t window_bytes = options->scanning.window_bytes;
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

static void complain(struct scan_job *job, int error)
{
	if (scan_job_is_sound(job)) {
		report_no_start(error);
	} else {
		report_line("cannot start: %s", job->test.reason);
	}
}

static int create_runtime(void *arg)
{
	struct scan_job *job = arg;
	struct pinion_config config = job->options->scanning.runtime;
	struct evidence_needs needs = reporter_needs(&job->reporter);
	uint32_t overlap_bytes =
		evidence_overlap_bytes(&needs, engine_overlap_bytes(job->reporter.rules));

	size_buffers(job->options, overlap_bytes, &config);
	scanning_fit_buffers(
		&job->options->scanning, job->options->paths, job->options->path_count, &config);
	return pinion_runtime_create(&config, &job->runtime);
}

/* Its syncs of the disk take some ms. */
static int begin_log(void *arg)
{
	struct scan_job *job = arg;
	const struct scan_options *options = job->options;

	return checkpointing_begin(&options->scanning.checkpointing, "scan", options->paths,
		       options->path_count, &job->checkpointing)
		? 0
		: -EIO;
}

struct compiling {
	struct scan_job *job;
	const struct matcher_ops *matcher;
	struct matcher_trouble trouble;
};

static int compile(void *arg)
{
	struct compiling *compiling = arg;
	struct scan_job *job = compiling->job;

	return search_init(
		&job->search, compiling->matcher, job->reporter.rules, &compiling->trouble);
}

static bool has_failed(struct meanwhile *logging)
{
	return (logging->has_returned || meanwhile_await(logging, 0)) && logging->result != 0;
}

/*
 * Only the end of the process ends a compilation; no output has been written
 * yet that this would lose. compile_limit.h ends a compilation that takes long.
 * `logging`: NULL, or has had its line if it failed.
 */
static void await_compiled(struct meanwhile *compiling, struct meanwhile *logging)
{
	while (!meanwhile_await(compiling, COMPILE_LOOK_NS)) {
		if (logging != NULL && has_failed(logging)) {
			_exit(EXIT_STATUS_TROUBLE);
		}
		if (signals_interrupted()) {
			report_line("stopped early by a signal");
			_exit(EXIT_STATUS_STOPPED);
		}
	}
}

/*
 * The parts of the start that take time, side by side: the log is opened, the
 * rules are compiled, the library that does it is put to the test, the workers
 * start and touch their memory. False: one of them failed, and has reported it.
 * The test may go on after it.
 */
static bool prepare(struct scan_job *job, const struct matcher_ops *matcher)
{
	bool has_log = job->options->scanning.checkpointing.file != NULL && distribution == NULL;
	struct compiling compiling = {
		.job = job,
		.matcher = matcher,
		.trouble = {.rule = UINT32_MAX},
	};
	struct meanwhile creating;
	struct meanwhile searching;
	struct meanwhile logging;
	int search_error;
	int log_error;
	int error;

	if (has_log) {
		meanwhile_begin(&logging, begin_log, job);
	}
	/* What the first open waits for is begun first. */
	meanwhile_begin(&creating, create_runtime, job);
	meanwhile_begin(&searching, compile, &compiling);
	scan_job_begin_test(job, matcher);
	await_compiled(&searching, has_log ? &logging : NULL);
	search_error = meanwhile_end(&searching);
	compile_limit_end();
	error = meanwhile_end(&creating);
	log_error = has_log ? meanwhile_end(&logging) : 0;
	if (log_error != 0) {
		return false;
	}
	/* A library that cannot be trusted may be the reason of an error. */
	if ((search_error != 0 || error != 0 || !job->test.running.has_thread) &&
		!scan_job_is_sound(job)) {
		report_line("%s", job->test.reason);
		return false;
	}
	if (search_error == -EINVAL) {
		scan_rules_complain(job->reporter.rules, &compiling.trouble);
		return false;
	}
	error = search_error != 0 ? search_error : error;
	if (error != 0) {
		complain(job, error);
	}
	return error == 0;
}

static int start(struct scan_job *job)
{
	struct engine_needs needs = engine_needs(job->search.engine);
	struct evidence_needs evidence = reporter_needs(&job->reporter);
	struct pinion_scan_config scan_config = job->options->scanning.scan;
	int error;

	distribution_configure(&scan_config);
	search_ask(&job->search, &evidence);
	job->search.hole_ns_max = scan_config.file_timeout_ns;
	job->search.is_stopped = signals_interrupted;
	error = scan_job_add_workers(job);
	if (error == 0 && scan_config.walk_order == PINION_SCAN_WALK_BY_PATH) {
		error = scan_job_sort(job, &scan_config);
	}
	scan_config.order =
		needs.in_order || decode_is_on(&job->options->decode) || yara_search_is_on(job)
		? PINION_SCAN_IN_ORDER
		: PINION_SCAN_PARALLEL;
	scan_config.overlap_bytes = job->search.evidence.overlap_bytes;
	scan_config.window_bytes = job->options->scanning.window_bytes;
	scan_config.report_holes = needs.report_holes;
	scan_config.report_gaps = 1;
	if (yara_search_is_on(job)) {
		scan_config.files_in_flight = yara_search_files_in_flight(job, job->worker_count);
	}
	scan_config.file_user_bytes = sizeof(struct search_file);
	if (error == 0 && job->options->archives.is_on) {
		error = unpack_create(job, &job->unpack);
	}
	if (error == 0) {
		error = pinion_scan_create(
			job->runtime, &scan_config, &scan_job_ops, job, &job->scan);
	}
	return error;
}

/* Of named files; 0: there are others, of which it is not known. */
static uint64_t total_bytes(const struct scan_options *options)
{
	uint64_t sum = 0;

	for (int i = 0; i < options->path_count; i++) {
		struct stat status;

		if (stat(options->paths[i], &status) != 0 || !S_ISREG(status.st_mode)) {
			return 0;
		}
		sum += (uint64_t)status.st_size;
	}
	return options->scanning.list_count == 0 ? sum : 0;
}

static void feed(struct scan_job *job)
{
	struct input input = {
		.paths = job->options->paths,
		.path_count = job->options->path_count,
		.lists = job->options->scanning.lists,
		.list_count = job->options->scanning.list_count,
		.list_is_nul = job->options->scanning.list_is_nul,
		.recurse = true,
		.sharding = job->options->scanning.choosing.sharding,
		.other_shard_count = &job->other_shard_count,
	};
	int error;

	if (job->options->git.repository != NULL) {
		git_scan(job, &job->totals);
		return;
	}
	signals_watch(job->scan);
	error = input_feed(&input, job->scan);
	if (error != 0 && error != -ECANCELED) {
		job->has_trouble = true;
	}
	error = pinion_scan_finish(job->scan, &job->totals, sizeof(job->totals));
	if (error != 0) {
		report_line("cannot finish: %s", report_reason(error));
		job->has_trouble = true;
	}
	if (job->unpack != NULL) {
		unpack_finish(job->unpack, &job->archives);
	}
	signals_hold();
}

/* Accepts a job that was never or only partly started. */
static void stop(struct scan_job *job)
{
	(void)scan_job_is_sound(job); /* its thread ends */
	pinion_scan_destroy(job->scan);
	unpack_destroy(job->unpack);
	pinion_runtime_destroy(job->runtime);
	(void)checkpointing_end(job->checkpointing, NULL);
	scan_job_fini(job);
	reporter_fini(&job->reporter);
	search_fini(&job->search);
}

/* What the workers have counted, together. */
struct sums {
	struct tally tally;
	struct tally_extra extra;
	struct yara_counts yara;
	uint64_t binary_count; /* of files that were left out when they were open */
};

static void add_worker(struct scan_job *job, const struct scan_worker *worker, struct sums *sums)
{
	tally_sum(&sums->tally, &worker->tally);
	yara_search_count(worker->yara, &sums->yara);
	sums->extra.findings += worker->reporter.finding_count;
	sums->extra.known += worker->reporter.known_count;
	sums->extra.allowed += worker->reporter.allowed_count;
	job->totals.read_bytes += worker->part_bytes;
	job->totals.hole_bytes += worker->part_bytes;
	job->totals.done -= worker->late_failed + worker->late_cancelled + worker->late_skipped;
	job->totals.skipped += worker->late_skipped;
	sums->binary_count += worker->late_skipped;
	job->totals.failed += worker->late_failed;
	job->totals.cancelled += worker->late_cancelled;
	job->has_trouble = job->has_trouble || worker->has_trouble;
}

static void add_up(struct scan_job *job, struct sums *out_sums)
{
	*out_sums = (struct sums){.extra.seconds = 0};
	out_sums->extra.archives = job->unpack != NULL ? &job->archives : NULL;
	out_sums->extra.yara = yara_search_is_on(job) ? &out_sums->yara : NULL;
	for (uint32_t i = 0; i <= job->worker_count; i++) {
		add_worker(job, &job->workers[i], out_sums);
	}
	for (const struct scan_worker *other = job->others; other != NULL; other = other->next) {
		add_worker(job, other, out_sums);
	}
}

static void report_stats(const struct scan_job *job, const struct sums *sums)
{
	char first[48];

	snprintf(
		first, sizeof(first), "findings: %llu; ", (unsigned long long)sums->extra.findings);
	scanning_report_speed(first, &job->totals, sums->extra.seconds);
	if (sums->extra.known > 0 || sums->extra.allowed > 0) {
		report_note("not shown: %llu of the baseline, %llu allowed on their lines",
			(unsigned long long)sums->extra.known,
			(unsigned long long)sums->extra.allowed);
	}
	if (job->unpack != NULL) {
		tally_note_archives(&job->archives);
	}
	throttle_report();
}

static void report_end(const struct scan_job *job, const struct sums *sums)
{
	bool has_stats = job->options->scanning.has_stats;
	bool has_json = job->options->has_json_stats;

	checkpointing_report(job->checkpointing, signals_interrupted());
	if ((has_stats && !has_json) || job->totals.cancelled > 0 ||
		(job->totals.seen > 0 && job->has_trouble)) {
		report_totals(&job->totals);
	}
	if (yara_search_is_on(job)) {
		yara_search_note(job, &sums->yara);
	}
	if (has_json) {
		struct output_text text = {0};
		struct throttle_targets targets;
		struct tally_extra extra = sums->extra;

		extra.targets = throttle_get_targets(&targets) ? &targets : NULL;
		tally_write(&sums->tally, &job->totals, &extra, &text);
		report_raw(&text);
	} else if (has_stats) {
		report_stats(job, sums);
	}
}

/* With what a merge has to know. False: the log is not whole. */
static bool end_checkpoint(struct scan_job *job, const struct sums *sums)
{
	const struct report_format *format = job->options->report.format;
	struct output_text head = {0};
	struct checkpointing_end last = {
		.totals = {.seen = job->totals.seen + job->other_shard_count,
			.done = job->totals.done,
			.failed = job->totals.failed,
			.skipped = job->totals.skipped,
			.ignored = job->totals.ignored + job->other_shard_count,
			.other_shard = sums->tally.left_out[PINION_WALK_BY_SHARD] +
				job->other_shard_count},
		.noted_count = job->totals.done + job->totals.failed + sums->binary_count,
		.has_trouble = job->has_trouble,
		.form = format->is_document   ? CHECKPOINT_FORM_DOCUMENT
			: job->unpack != NULL ? CHECKPOINT_FORM_ARCHIVES
					      : CHECKPOINT_FORM_LINES,
		.head = &head,
	};
	bool is_whole;

	if (format->begin != NULL && !format->is_document) {
		format->begin(&head, &job->reporter.run);
	}
	is_whole = checkpointing_end(job->checkpointing, &last);
	output_text_free(&head);
	job->checkpointing = NULL;
	return is_whole;
}

static int end(struct scan_job *job, double seconds)
{
	bool is_stopped = signals_interrupted();
	bool is_sound = scan_job_is_sound(job);
	struct sums sums;
	bool is_written;

	add_up(job, &sums);
	sums.extra.seconds = seconds;
	is_written = is_sound && reporter_end(&job->reporter, job->has_trouble || is_stopped);
	is_written = output_finish() && is_written;
	is_written &= output_file_end(is_written && !is_stopped);
	is_written &= scanning_save_trace(&job->options->scanning, job->runtime);
	if (!is_sound) {
		report_line("%s", job->test.reason);
		return EXIT_STATUS_TROUBLE;
	}
	report_end(job, &sums);
	if (is_written && !is_stopped && job->totals.cancelled == 0) {
		is_written = end_checkpoint(job, &sums);
	}
	return scanning_exit_status(job->has_trouble || !is_written, sums.extra.findings > 0);
}

int scan_run(const struct scan_options *options, const struct matcher_ops *matcher,
	const struct rules *rules)
{
	struct scan_job job = {0};
	int status = EXIT_STATUS_TROUBLE;

	scan_job_init(&job, options);
	/* Of a rank: it may raise a limit that the runtime looks at. */
	if (distribution != NULL && begin_log(&job) != 0) {
		(void)output_file_end(false);
		return EXIT_STATUS_TROUBLE;
	}
	/*
	 * Compiling rules takes a while; a signal then is a stop like any
	 * other.
	 */
	progress_watch(total_bytes(options)); /* the thread of signals shows it */
	signals_hold();
	reporter_init(&job.reporter, &options->report, rules, options->patterns.expression_count);
	job.reporter.needs_prints = options->git.repository != NULL;
	job.reporter.run.has_commits = options->git.repository != NULL;
	if (prepare(&job, matcher)) {
		int error = start(&job);

		if (error != 0) {
			complain(&job, error);
		} else {
			double start_seconds = scanning_seconds_now();

			progress_begin(true);
			throttle_begin(job.runtime);
			feed(&job);
			progress_hide();
			status = end(&job, scanning_seconds_now() - start_seconds);
		}
	}
	throttle_end();
	stop(&job);
	(void)output_file_end(false);
	signals_release();
	return status;
}

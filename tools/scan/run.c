/* SPDX-License-Identifier: MIT */
/*
 * The scan: what the library calls for each file and window, and how it is
 * set up and ended.
 *
 * Each worker has an engine worker, lists and line space of its own; each file
 * in flight has its findings' state in the scan's memory. Lines of a file are
 * written while its lock is held, which keeps them in order.
 */
#include "tools/scan/run.h"

#include "tools/input.h"
#include "tools/meanwhile.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/output_file.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/scan/compile_limit.h"
#include "tools/scan/reporter.h"
#include "tools/scan/rules_cache.h"
#include "tools/scan/search.h"
#include "tools/scan/selftest.h"
#include "tools/scan/tally.h"
#include "tools/signals.h"
#include "tools/throttle.h"

#include <errno.h>
#include <pinion/runtime.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
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

/* State of one worker, which no other uses while the scan runs. */
struct scan_worker {
	struct search_worker search;
	struct reporter_worker reporter;
	struct tally tally;
	uint64_t hole_bytes; /* searched of the hole that is being searched */
	uint64_t part_bytes; /* of holes that were not searched to their ends */
	bool has_trouble;
};

/*
 * The test of the library that searches. It takes some 15 ms, in which the scan
 * already reads: only a line of its output waits until the test has passed.
 */
struct library_test {
	bool compiles;	  /* some rules are not compiled already */
	char reason[320]; /* why the library that searches cannot be trusted */
	struct meanwhile running;
	pthread_mutex_t lock; /* of the end of `running` */
	int error;
	bool has_ended; /* [W:lock holder R:any] then `error` is known */
};

struct scan_job {
	struct library_test test;
	const struct scan_options *options;
	struct reporter reporter;
	struct search search;
	struct pinion_runtime *runtime;
	struct pinion_scan *scan;
	struct pinion_scan_stats totals;
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

static int test_library(void *arg)
{
	struct library_test *test = arg;

	return selftest_library(test->compiles, test->reason, sizeof(test->reason));
}

/* Only where the library searches. */
static void begin_test(struct scan_job *job, const struct matcher_ops *matcher)
{
	if (matcher == &matcher_literal) {
		job->test.has_ended = true;
		return;
	}
	job->test.compiles =
		job->options->patterns.expression_count + job->options->patterns.file_count > 0 &&
		!rules_cached_has(job->reporter.rules);
	meanwhile_begin(&job->test.running, test_library, &job->test);
}

/* Waits for the end of the test. */
static bool is_library_sound(struct scan_job *job)
{
	struct library_test *test = &job->test;

	if (!__atomic_load_n(&test->has_ended, __ATOMIC_ACQUIRE)) {
		pthread_mutex_lock(&test->lock);
		if (!test->has_ended) {
			test->error = meanwhile_end(&test->running);
			__atomic_store_n(&test->has_ended, true, __ATOMIC_RELEASE);
		}
		pthread_mutex_unlock(&test->lock);
	}
	return test->error == 0;
}

static void write_lines(struct show *show)
{
	struct scan_worker *worker = show->worker;
	struct output_text *lines = &worker->reporter.lines;

	if (lines->failed) {
		report_path(show->file->path, report_reason(ENOMEM));
		worker->has_trouble = true;
		lines->failed = false;
		worker->reporter.path.failed = false;
	} else if (lines->length > 0 &&
		(!is_library_sound(show->job) ||
			!reporter_write(&show->job->reporter, &worker->reporter))) {
		/* Its findings cannot be trusted, or are not read. */
		pinion_scan_cancel(show->job->scan);
	}
}

static void show_findings(void *arg, const struct finding *findings, size_t count)
{
	struct show *show = arg;
	struct search_file *searched = show->file->user;
	size_t shown = reporter_findings(
		&show->job->reporter, &show->worker->reporter, show->file, findings, count);

	__atomic_fetch_add(&searched->shown_count, shown, __ATOMIC_RELAXED);
	progress_add(show->job->runtime, &(struct progress){.findings = shown});
	write_lines(show);
}

static void show_gaps(void *arg, const struct pinion_gap *gaps, size_t count)
{
	struct show *show = arg;

	reporter_gaps(&show->job->reporter, &show->worker->reporter, show->file, gaps, count);
	write_lines(show);
}

static void show_limit(void *arg, const struct findings_limit *limit)
{
	struct show *show = arg;

	show->worker->has_trouble = show->worker->has_trouble || limit->costly_count > 0;
	reporter_limit(&show->job->reporter, &show->worker->reporter, show->file, limit);
	write_lines(show);
}

static const struct search_notes notes = {.gaps = show_gaps, .limit = show_limit};

static void note_hole(void *arg, uint64_t bytes)
{
	struct show *show = arg;

	show->worker->hole_bytes += bytes;
	progress_add(show->job->runtime, &(struct progress){.bytes = bytes});
}

static int on_open(void *arg, struct pinion_scan_file *file)
{
	const struct scan_job *job = arg;
	struct search_file *searched = file->user;
	int error = search_open(&job->search, searched);

	searched->findings.path = file->path;
	searched->findings.path_bytes = file->path_bytes;
	searched->is_sparse = file->file.allocated_bytes < file->file.size_bytes;
	if (error == 0) {
		progress_add(job->runtime, &(struct progress){.begun_files = 1});
	}
	return error;
}

static bool has_enough(const struct scan_job *job, struct search_file *searched)
{
	return job->options->report.format->ends_files &&
		__atomic_load_n(&searched->shown_count, __ATOMIC_RELAXED) > 0;
}

static int on_window(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	struct scan_job *job = arg;
	struct show show = {.job = job, .file = file, .worker = worker_here(job)};

	uint64_t new_bytes = window->length_bytes - window->prefix_bytes;
	int rc;

	if (!window->is_hole) {
		progress_add(job->runtime, &(struct progress){.bytes = new_bytes});
	}
	show.worker->hole_bytes = 0;
	rc = search_window(
		&job->search, &show.worker->search, file->user, window, show_findings, &show);
	if (rc != 0) {
		/* The scan counts holes only whole. */
		show.worker->part_bytes += show.worker->hole_bytes;
	}
	return rc == 0 && has_enough(job, file->user) ? PINION_SCAN_ENOUGH : rc;
}

static int on_close(void *arg, struct pinion_scan_file *file, int error)
{
	struct scan_job *job = arg;
	struct show show = {.job = job, .file = file, .worker = worker_here(job)};
	struct search_file *searched = file->user;
	int close_error = search_close(
		&job->search, &show.worker->search, searched, show_findings, &notes, &show);

	if (job->options->report.format->file_end != NULL) {
		reporter_file_end(
			&job->reporter, &show.worker->reporter, file, searched->shown_count);
		write_lines(&show);
	}
	progress_add(job->runtime, &(struct progress){.ended_files = 1});
	return error != 0 ? error : close_error;
}

/* `pinion scan WORD PATH`, as grep is called. */
static bool is_likely_a_pattern(const struct scan_job *job, const char *path, int error)
{
	const struct scan_options *options = job->options;

	return error == -ENOENT && options->path_count > 1 &&
		options->patterns.expression_count + options->patterns.file_count == 0 &&
		strcmp(path, options->paths[0]) == 0;
}

static void on_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	struct scan_job *job = arg;
	struct scan_worker *worker = worker_here(job);

	const struct search_file *searched = file->user;

	tally_add(&worker->tally, file, outcome, error);
	if (scanning_is_trouble(outcome, error)) {
		if (searched != NULL && searched->is_late) {
			report_hole_timeout(file, searched->late_offset);
		} else if (searched == NULL || !searched->has_gaps) {
			report_outcome(file, outcome, error);
		}
		if (is_likely_a_pattern(job, file->path, error)) {
			report_line("a pattern to search for follows -e, a plain word -F -e");
		}
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

/* A limit on addresses is the likely reason for a lack of memory. */
static void report_no_start(struct scan_job *job, int error)
{
	struct rlimit limit;

	if (!is_library_sound(job)) {
		report_line("cannot start: %s", job->test.reason);
	} else if (error == -ENOMEM && getrlimit(RLIMIT_AS, &limit) == 0 &&
		limit.rlim_cur != RLIM_INFINITY) {
		report_line("cannot start below `ulimit -v` %llu: %s; raise that (LimitAS= in the "
			    "systemd unit)",
			(unsigned long long)limit.rlim_cur / 1024, report_reason(error));
	} else {
		report_line("cannot start: %s",
			error == -EINVAL ? "a value is refused" : report_reason(error));
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

/*
 * Only the end of the process ends a compilation; no output has been written
 * yet that this would lose. compile_limit.h ends one that takes long.
 */
static void await_compiled(struct meanwhile *compiling)
{
	while (!meanwhile_await(compiling, COMPILE_LOOK_NS)) {
		if (signals_interrupted()) {
			report_line("stopped early by a signal");
			_exit(EXIT_STATUS_STOPPED);
		}
	}
}

/*
 * The parts of the start that take time, side by side: the rules are compiled,
 * the library that does it is put to the test, the workers start and touch
 * their memory. False: one of them failed, and has reported it. The test may go
 * on after it.
 */
static bool prepare(struct scan_job *job, const struct matcher_ops *matcher)
{
	struct compiling compiling = {
		.job = job,
		.matcher = matcher,
		.trouble = {.rule = UINT32_MAX},
	};
	struct meanwhile creating;
	struct meanwhile searching;
	int search_error;
	int error;

	/* What the first open waits for is begun first. */
	meanwhile_begin(&creating, create_runtime, job);
	meanwhile_begin(&searching, compile, &compiling);
	begin_test(job, matcher);
	await_compiled(&searching);
	search_error = meanwhile_end(&searching);
	compile_limit_end();
	error = meanwhile_end(&creating);
	/* A library that cannot be trusted may be the reason of an error. */
	if ((search_error != 0 || error != 0 || !job->test.running.has_thread) &&
		!is_library_sound(job)) {
		report_line("%s", job->test.reason);
		return false;
	}
	if (search_error == -EINVAL) {
		scan_rules_complain(job->reporter.rules, &compiling.trouble);
		return false;
	}
	error = search_error != 0 ? search_error : error;
	if (error != 0) {
		report_no_start(job, error);
	}
	return error == 0;
}

static int start(struct scan_job *job)
{
	struct engine_needs needs = engine_needs(job->search.engine);
	struct evidence_needs evidence = reporter_needs(&job->reporter);
	struct pinion_scan_config scan_config = job->options->scanning.scan;
	int error = 0;

	search_ask(&job->search, &evidence);
	job->search.hole_ns_max = scan_config.file_timeout_ns;
	job->search.is_stopped = signals_interrupted;
	job->search.note_hole = note_hole;
	job->worker_count = pinion_runtime_worker_count(job->runtime);
	job->workers = calloc(job->worker_count + 1, sizeof(*job->workers));
	if (job->workers == NULL) {
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < job->worker_count && error == 0; i++) {
		error = search_worker_init(&job->workers[i].search, &job->search);
	}
	scan_config.order = needs.in_order ? PINION_SCAN_IN_ORDER : PINION_SCAN_PARALLEL;
	scan_config.overlap_bytes = job->search.evidence.overlap_bytes;
	scan_config.window_bytes = job->options->scanning.window_bytes;
	scan_config.report_holes = needs.report_holes;
	scan_config.report_gaps = 1;
	scan_config.file_user_bytes = sizeof(struct search_file);
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
		.lists = job->options->scanning.lists,
		.list_count = job->options->scanning.list_count,
		.list_is_nul = job->options->scanning.list_is_nul,
		.recurse = true,
	};
	int error;

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
	signals_hold();
}

/* Accepts a job that was never or only partly started. */
static void stop(struct scan_job *job)
{
	(void)is_library_sound(job); /* its thread ends */
	pinion_scan_destroy(job->scan);
	pinion_runtime_destroy(job->runtime);
	for (uint32_t i = 0; job->workers != NULL && i <= job->worker_count; i++) {
		struct scan_worker *worker = &job->workers[i];

		search_worker_fini(&worker->search);
		reporter_worker_fini(&worker->reporter);
	}
	free(job->workers);
	reporter_fini(&job->reporter);
	search_fini(&job->search);
}

/* What the workers have counted, together. */
struct sums {
	struct tally tally;
	struct tally_extra extra;
};

static void add_up(struct scan_job *job, struct sums *out_sums)
{
	*out_sums = (struct sums){.extra.seconds = 0};
	for (uint32_t i = 0; i <= job->worker_count; i++) {
		const struct scan_worker *worker = &job->workers[i];

		tally_sum(&out_sums->tally, &worker->tally);
		out_sums->extra.findings += worker->reporter.finding_count;
		out_sums->extra.known += worker->reporter.known_count;
		out_sums->extra.allowed += worker->reporter.allowed_count;
		job->totals.read_bytes += worker->part_bytes;
		job->totals.hole_bytes += worker->part_bytes;
		job->has_trouble = job->has_trouble || worker->has_trouble;
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
	throttle_report();
}

static void report_end(const struct scan_job *job, const struct sums *sums)
{
	bool is_stopped = signals_interrupted();
	bool has_stats = job->options->scanning.has_stats;
	bool has_json = job->options->has_json_stats;

	if (is_stopped) {
		report_line("stopped early by a signal");
	}
	if ((has_stats && !has_json) || job->totals.cancelled > 0 ||
		(job->totals.seen > 0 && job->has_trouble)) {
		report_totals(&job->totals);
	}
	if (has_json) {
		struct output_text text = {0};

		tally_write(&sums->tally, &job->totals, &sums->extra, &text);
		report_raw(&text);
	} else if (has_stats) {
		report_stats(job, sums);
	}
}

static int end(struct scan_job *job, double seconds)
{
	bool is_stopped = signals_interrupted();
	bool is_sound = is_library_sound(job);
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
	return scanning_exit_status(job->has_trouble || !is_written, sums.extra.findings > 0);
}

int scan_run(const struct scan_options *options, const struct matcher_ops *matcher,
	const struct rules *rules)
{
	struct scan_job job = {.options = options, .test.lock = PTHREAD_MUTEX_INITIALIZER};
	int status = EXIT_STATUS_TROUBLE;

	/*
	 * Compiling rules takes a while; a signal then is a stop like any
	 * other.
	 */
	signals_hold();
	reporter_init(&job.reporter, &options->report, rules, options->patterns.expression_count);
	if (prepare(&job, matcher)) {
		int error = start(&job);

		if (error != 0) {
			report_no_start(&job, error);
		} else {
			double start_seconds = scanning_seconds_now();

			progress_begin(true);
			throttle_begin(job.runtime);
			feed(&job);
			status = end(&job, scanning_seconds_now() - start_seconds);
		}
	}
	throttle_end();
	stop(&job);
	(void)output_file_end(false);
	signals_release();
	return status;
}

/* SPDX-License-Identifier: MIT */
/*
 * The callbacks of a scan, and the states of its workers.
 */
#include "tools/scan/job.h"

#include "tools/options.h"
#include "tools/output.h"
#include "tools/output_file.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/scan/rules_cache.h"
#include "tools/scan/search_pause.h"
#include "tools/scan/selftest.h"
#include "tools/scan/source.h"
#include "tools/scan/unpack.h"
#include "tools/scan/utf16.h"
#include "tools/tracing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* No window that is not the last is shorter. */
enum { BINARY_LOOK_BYTES = 4096 };

int scan_job_add_workers(struct scan_job *job)
{
	int error = 0;

	job->worker_count = pinion_runtime_worker_count(job->runtime);
	job->workers = calloc(job->worker_count + 1, sizeof(*job->workers));
	if (job->workers == NULL) {
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < job->worker_count && error == 0; i++) {
		error = search_worker_init(&job->workers[i].search, &job->search);
	}
	return error;
}

int scan_job_sort(struct scan_job *job, struct pinion_scan_config *config)
{
	int error = sorted_output_init(&job->sorted, 0, reporter_write_sorted, &job->reporter);

	if (error == 0) {
		job->reporter.sorted = &job->sorted;
		config->paths_ahead_max = SORTED_PATHS_MAX;
	}
	return error;
}

struct scan_worker *scan_job_add_worker(struct scan_job *job)
{
	struct scan_worker *worker = calloc(1, sizeof(*worker));

	if (worker == NULL || search_worker_init(&worker->search, &job->search) != 0) {
		free(worker);
		return NULL;
	}
	pthread_mutex_lock(&job->lock);
	worker->next = job->others;
	job->others = worker;
	pthread_mutex_unlock(&job->lock);
	return worker;
}

static void worker_fini(struct scan_worker *worker)
{
	source_destroy(worker->decoded);
	yara_worker_destroy(worker->yara);
	search_worker_fini(&worker->search);
	reporter_worker_fini(&worker->reporter);
}

void scan_job_fini(struct scan_job *job)
{
	for (uint32_t i = 0; job->workers != NULL && i <= job->worker_count; i++) {
		worker_fini(&job->workers[i]);
	}
	free(job->workers);
	free(job->repository);
	free(job->revision);
	while (job->others != NULL) {
		struct scan_worker *worker = job->others;

		job->others = worker->next;
		worker_fini(worker);
		free(worker);
	}
	sorted_output_fini(&job->sorted);
	pthread_mutex_destroy(&job->lock);
	pthread_mutex_destroy(&job->test.lock);
}

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

void scan_job_begin_test(struct scan_job *job, const struct matcher_ops *matcher)
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

bool scan_job_is_sound(struct scan_job *job)
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

/* With decoded text the whole file's. */
static struct search_kept *kept_of(const struct pinion_scan_file *file)
{
	struct search_file *searched = file->user;

	return searched->whole != NULL ? &searched->whole->kept : &searched->kept;
}

/* Of that finding, whose fingerprint the worker has; NULL: of none. */
static void write_lines(struct show *show, const struct finding *finding)
{
	struct scan_worker *worker = show->worker;
	struct search_kept *kept = kept_of(show->file);
	struct output_text *lines = &worker->reporter.lines;

	if (kept->is_on && !lines->failed) {
		output_text_append(&kept->lines, lines->bytes, lines->length);
		lines->failed = kept->lines.failed;
		lines->length = 0;
	}
	if (lines->failed) {
		report_path(show->file->path, report_reason(ENOMEM));
		worker->has_trouble = true;
		lines->failed = false;
		worker->reporter.path.failed = false;
	} else if (worker->keep != NULL && (lines->length > 0 || finding != NULL)) {
		worker->keep(worker->keep_arg, finding, &worker->reporter);
	} else if (lines->length > 0 &&
		(!scan_job_is_sound(show->job) ||
			!reporter_write(
				&show->job->reporter, &worker->reporter, show->file->sequence))) {
		/* Its findings cannot be trusted, or are not read. */
		pinion_scan_cancel(show->job->scan);
	}
}

/* One by one, since some may be left out later. */
static void keep_findings(struct show *show, const struct finding *findings, size_t count)
{
	struct reporter_worker *reporter = &show->worker->reporter;

	for (size_t i = 0; i < count; i++) {
		if (reporter_findings(&show->job->reporter, reporter, show->file, &findings[i], 1) >
			0) {
			write_lines(show, &findings[i]);
		}
	}
}

static void show_findings(void *arg, const struct finding *findings, size_t count)
{
	struct show *show = arg;
	struct search_file *searched = show->file->user;
	struct search_kept *kept = kept_of(show->file);
	struct reporter_worker *reporter = &show->worker->reporter;
	uint64_t known_count = reporter->known_count;
	uint64_t allowed_count = reporter->allowed_count;
	size_t shown;

	if (show->worker->keep != NULL) {
		keep_findings(show, findings, count);
		return;
	}
	shown = reporter_findings(&show->job->reporter, reporter, show->file, findings, count);
	kept->known_count += reporter->known_count - known_count;
	kept->allowed_count += reporter->allowed_count - allowed_count;
	__atomic_fetch_add(&searched->shown_count, shown, __ATOMIC_RELAXED);
	progress_add(show->job->runtime, &(struct progress){.findings = shown});
	write_lines(show, NULL);
}

static void show_gaps(void *arg, const struct pinion_gap *gaps, size_t count)
{
	struct show *show = arg;

	kept_of(show->file)->is_noted = true;
	reporter_gaps(&show->job->reporter, &show->worker->reporter, show->file, gaps, count);
	write_lines(show, NULL);
}

static void show_limit(void *arg, const struct findings_limit *limit)
{
	struct show *show = arg;

	kept_of(show->file)->is_noted = true;
	show->worker->has_trouble = show->worker->has_trouble || limit->costly_count > 0;
	reporter_limit(&show->job->reporter, &show->worker->reporter, show->file, limit);
	write_lines(show, NULL);
}

static const struct search_notes notes = {.gaps = show_gaps, .limit = show_limit};

static void note_hole(void *arg, uint64_t bytes)
{
	struct show *show = arg;

	show->worker->hole_bytes += bytes;
	progress_add(show->job->runtime, &(struct progress){.bytes = bytes});
}

int scan_job_open(struct scan_job *job, struct pinion_scan_file *file)
{
	struct search_file *searched = file->user;
	int error = search_open(&job->search, searched);

	searched->findings.path = file->path;
	searched->findings.path_bytes = file->path_bytes;
	searched->findings.commit = searched->facts == NULL ? NULL : searched->facts->commit;
	searched->is_sparse = file->file.allocated_bytes < file->file.size_bytes;
	if (error == 0 && searched->decoded == NULL) {
		progress_add(job->runtime, &(struct progress){.begun_files = 1});
	}
	return error;
}

bool scan_job_is_binary(const struct scan_options *options, const struct pinion_window *window)
{
	size_t length =
		window->length_bytes < BINARY_LOOK_BYTES ? window->length_bytes : BINARY_LOOK_BYTES;
	size_t mark;

	if (window->is_hole) {
		return true;
	}
	return memchr(window->bytes, 0, length) != NULL &&
		!(options->decode.has_utf16 &&
			utf16_kind_of(window->bytes, length, &mark) != UTF16_NONE);
}

/* The first window of a file that is to be left out. */
static bool leaves_out(const struct scan_job *job, struct search_file *searched,
	const struct pinion_window *window)
{
	if (!job->options->skips_binary || window->index != 0 || searched->decoded != NULL ||
		searched->kept.start_offset > 0 || !scan_job_is_binary(job->options, window)) {
		return false;
	}
	searched->is_binary = true;
	__atomic_store_n(&searched->is_taken, true, __ATOMIC_RELAXED);
	return true;
}

static bool has_enough(const struct scan_job *job, struct search_file *searched)
{
	return job->options->report.format->ends_files &&
		__atomic_load_n(&searched->shown_count, __ATOMIC_RELAXED) > 0;
}

/* Decoded text is not decoded once more. */
static bool may_be_decoded(const struct scan_job *job, const struct search_file *searched)
{
	return decode_is_on(&job->options->decode) && searched->decoded == NULL;
}

int scan_job_window(struct scan_job *job, struct scan_worker *worker, struct pinion_scan_file *file,
	const struct pinion_window *window)
{
	struct show show = {.job = job, .file = file, .worker = worker};
	uint64_t new_bytes = window->length_bytes - window->prefix_bytes;
	int rc;

	if (leaves_out(job, file->user, window)) {
		return PINION_SCAN_ENOUGH;
	}
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
	if (yara_search_is_on(job)) {
		rc = yara_search_window(job, worker, file, window, rc);
	}
	if (rc == 0 && may_be_decoded(job, file->user)) {
		rc = decode_window(job, worker, file, window);
	}
	return rc == 0 && has_enough(job, file->user) ? PINION_SCAN_ENOUGH : rc;
}

int scan_job_take_whole(struct scan_job *job, struct scan_worker *worker,
	const struct pinion_scan_file *file, const struct pinion_window *window,
	struct candidates *found)
{
	struct search_file *whole = file->user;
	struct search_file searched = {.whole = whole, .facts = whole->facts};
	struct pinion_scan_file shown = *file;
	struct show show = {.job = job, .file = &shown, .worker = worker};
	int error = search_open(&job->search, &searched);
	int close_error;

	if (error != 0) {
		return error;
	}
	shown.user = &searched;
	error = search_take_whole(&job->search, &searched, window, found);
	close_error = search_close(
		&job->search, &worker->search, &searched, show_findings, &notes, &show);
	__atomic_fetch_add(&whole->shown_count, searched.shown_count, __ATOMIC_RELAXED);
	return error != 0 ? error : close_error;
}

int scan_job_close(
	struct scan_job *job, struct scan_worker *worker, struct pinion_scan_file *file, int error)
{
	struct show show = {.job = job, .file = file, .worker = worker};
	struct search_file *searched = file->user;
	int decode_error = decode_close(job, worker, file, error);
	int close_error = search_close(
		&job->search, &show.worker->search, searched, show_findings, &notes, &show);

	whole_free(&searched->whole_bytes);
	if (job->options->report.style.has_context) {
		reporter_context_end(&job->reporter, &show.worker->reporter, file);
		write_lines(&show, NULL);
	}
	if (searched->decoded != NULL) {
		return error != 0 ? error : close_error;
	}
	close_error = close_error != 0 ? close_error : decode_error;
	if (job->options->report.format->file_end != NULL && worker->keep == NULL &&
		!searched->kept.is_found) {
		reporter_file_end(
			&job->reporter, &show.worker->reporter, file, searched->shown_count);
		write_lines(&show, NULL);
	}
	progress_add(job->runtime, &(struct progress){.ended_files = 1});
	return error != 0 ? error : close_error;
}

/* ---- checkpoints ---- */

/*
 * Not of decoded text, whose state is elsewhere, not of a file that may be an
 * archive, which its first bytes decide, and not of a file that YARA needs
 * whole.
 */
static bool may_have_parts(const struct scan_job *job)
{
	return !decode_is_on(&job->options->decode) && job->unpack == NULL &&
		!yara_search_is_on(job);
}

/* Takes over what an earlier run has come to. */
static void take_found(struct scan_job *job, struct scan_worker *worker,
	struct search_file *searched, struct checkpointing_found *found)
{
	struct search_kept *kept = &searched->kept;

	kept->lines = found->text;
	found->text = (struct output_text){.bytes = NULL};
	searched->shown_count = found->counts[0];
	kept->known_count = found->counts[1];
	kept->allowed_count = found->counts[2];
	worker->reporter.finding_count += found->counts[0];
	worker->reporter.known_count += found->counts[1];
	worker->reporter.allowed_count += found->counts[2];
	progress_add(job->runtime, &(struct progress){.findings = found->counts[0]});
}

/* True: an earlier run has done all of the file, with its output. */
static bool find_kept(
	struct scan_job *job, struct scan_worker *worker, struct pinion_scan_file *file)
{
	struct search_file *searched = file->user;
	struct search_kept *kept = &searched->kept;
	struct checkpointing_found found = {.offset = 0};
	enum checkpointing_outcome outcome =
		checkpointing_find(job->checkpointing, file, &kept->file, &found);

	kept->is_on = true;
	kept->is_found = outcome == CHECKPOINTING_ALL;
	if (outcome == CHECKPOINTING_PART && may_have_parts(job) &&
		search_resume(&job->search, searched, found.state.bytes, found.state.length,
			found.offset)) {
		kept->start_offset = found.offset;
		file->start_offset_bytes = found.offset;
	}
	if (kept->is_found || kept->start_offset > 0) {
		take_found(job, worker, searched, &found);
	}
	output_text_free(&found.text);
	output_text_free(&found.state);
	return kept->is_found;
}

/* Notes how far a file has come, where nothing is pending just then. */
static void keep_part(struct scan_job *job, struct pinion_scan_file *file)
{
	struct search_file *searched = file->user;
	struct search_kept *kept = &searched->kept;
	struct output_text state = {.bytes = NULL};
	uint64_t offset;

	pthread_mutex_lock(&searched->findings.lock);
	/* Another worker may have noted one meanwhile. */
	if (checkpointing_wants_part(job->checkpointing, &kept->file, kept->lines.length) &&
		!kept->is_noted && search_pause(&job->search, searched, &state, &offset) &&
		offset > kept->start_offset) {
		struct checkpointing_result result = {
			.bytes = kept->lines.bytes,
			.length = kept->lines.length,
			.counts = {searched->shown_count, kept->known_count, kept->allowed_count},
		};

		checkpointing_add_part(
			job->checkpointing, file, &kept->file, &result, offset, &state);
	}
	pthread_mutex_unlock(&searched->findings.lock);
	output_text_free(&state);
}

/* After a window, on its worker. */
static void keep_some(
	struct scan_job *job, struct pinion_scan_file *file, const struct pinion_window *window)
{
	struct search_file *searched = file->user;

	if (job->checkpointing != NULL && !window->is_last && may_have_parts(job) &&
		checkpointing_wants_part(job->checkpointing, &searched->kept.file, 0)) {
		keep_part(job, file);
	}
}

/* Writes the output of a file that has ended. */
static void write_kept(struct scan_job *job, struct scan_worker *worker,
	const struct pinion_scan_file *file, struct search_kept *kept)
{
	struct show show = {.job = job, .file = file, .worker = worker};
	struct output_text lines = worker->reporter.lines;

	kept->is_on = false;
	worker->reporter.lines = kept->lines;
	write_lines(&show, NULL);
	output_text_free(&worker->reporter.lines);
	worker->reporter.lines = lines;
	worker->reporter.lines.length = 0;
}

/* Notes a file that has ended, opened or not. */
static void end_kept(struct scan_job *job, struct scan_worker *worker,
	const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	static const struct checkpointing_file unopened;
	struct search_file *searched = file->user;
	struct search_kept *kept = searched == NULL ? NULL : &searched->kept;
	struct checkpointing_result result = {.bytes = ""};
	bool is_noted = kept != NULL && kept->is_noted;

	if (kept != NULL) {
		result = (struct checkpointing_result){
			.bytes = kept->lines.bytes,
			.length = kept->lines.length,
			.counts = {searched->shown_count, kept->known_count, kept->allowed_count},
		};
	}
	if ((outcome == PINION_SCAN_DONE || outcome == PINION_SCAN_FAILED) &&
		(kept == NULL || !kept->is_found) &&
		!checkpointing_add(job->checkpointing, file, kept == NULL ? &unopened : &kept->file,
			error, &result, !is_noted)) {
		worker->has_trouble = true;
		pinion_scan_cancel(job->scan);
	}
	if (kept != NULL && kept->is_on) {
		write_kept(job, worker, file, kept);
	}
}

/* ---- what the library calls ---- */

/*
 * What an earlier run has written would be found again, and what this one
 * writes is no input. NULL: the file is one.
 */
static const char *writer_of(const struct scan_job *job, const struct pinion_scan_file *file)
{
	const struct pinion_file *opened = &file->file;

	if (output_file_has(opened->device, opened->inode)) {
		return "--output writes there: it is not searched";
	}
	if (checkpointing_has(job->checkpointing, file)) {
		return "--checkpoint writes there: it is not searched";
	}
	return tracing_has(opened->device, opened->inode)
		? "--trace writes there: it is not searched"
		: NULL;
}

static int on_open(void *arg, struct pinion_scan_file *file)
{
	struct scan_job *job = arg;
	struct search_file *searched = file->user;
	int error = scan_job_open(job, file);
	const char *words = error == 0 ? writer_of(job, file) : NULL;

	if (words != NULL) {
		report_path(file->path, words);
		searched->kept.is_noted = true;
		__atomic_store_n(&searched->is_taken, true, __ATOMIC_RELAXED);
		return PINION_SCAN_ENOUGH;
	}
	if (error == 0 && job->checkpointing != NULL && find_kept(job, worker_here(job), file)) {
		return PINION_SCAN_ENOUGH;
	}
	return error;
}

static int on_window(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	struct scan_job *job = arg;
	int claimed = job->unpack == NULL ? 0 : unpack_claim(file, window);
	int rc;

	if (claimed != 0) {
		return claimed > 0 ? PINION_SCAN_ENOUGH : claimed;
	}
	rc = scan_job_window(job, worker_here(job), file, window);
	if (rc == 0) {
		keep_some(job, file, window);
	}
	return rc;
}

static int on_close(void *arg, struct pinion_scan_file *file, int error)
{
	struct scan_job *job = arg;

	return scan_job_close(job, worker_here(job), file, error);
}

/* `pinion scan WORD PATH`, as grep is called. */
static bool is_likely_a_pattern(const struct scan_job *job, const char *path, int error)
{
	const struct scan_options *options = job->options;

	return error == -ENOENT && options->path_count > 1 &&
		options->patterns.expression_count + options->patterns.file_count == 0 &&
		strcmp(path, options->paths[0]) == 0;
}

static void complain(const struct scan_job *job, const struct pinion_scan_file *file,
	enum pinion_scan_outcome outcome, int error)
{
	const struct search_file *searched = file->user;

	if (searched != NULL && searched->is_late) {
		report_hole_timeout(file, searched->late_offset);
	} else if (searched == NULL || !searched->has_gaps) {
		report_outcome(file, outcome, error);
	}
	if (is_likely_a_pattern(job, file->path, error)) {
		report_line("a pattern to search for follows -e, a plain word -F -e");
	}
}

static void count_file(struct scan_worker *worker, const struct pinion_scan_file *file,
	enum pinion_scan_outcome outcome, int error)
{
	const struct search_file *searched = file->user;

	if (searched != NULL && searched->is_binary && outcome == PINION_SCAN_DONE) {
		worker->tally.skipped[TALLY_BINARY]++;
		worker->late_skipped++;
	} else {
		tally_add(&worker->tally, file, outcome, error);
	}
}

static void on_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	struct scan_job *job = arg;
	struct scan_worker *worker = worker_here(job);
	int begun = job->unpack == NULL ? 0 : unpack_begin(job->unpack, file, outcome);

	if (begun < 0) {
		worker->late_failed += outcome == PINION_SCAN_DONE;
		outcome = PINION_SCAN_FAILED;
		error = begun;
	}
	if (begun <= 0) {
		count_file(worker, file, outcome, error);
		if (job->checkpointing != NULL) {
			end_kept(job, worker, file, outcome, error);
		}
		if (scanning_is_trouble(outcome, error)) {
			complain(job, file, outcome, error);
			worker->has_trouble = true;
		} else {
			report_outcome(file, outcome, error);
		}
	}
	if (job->reporter.sorted != NULL && !sorted_output_end(&job->sorted, file->sequence)) {
		pinion_scan_cancel(job->scan);
	}
}

const struct pinion_scan_ops scan_job_ops = {
	.open = on_open,
	.window = on_window,
	.close = on_close,
	.report = on_report,
};

void scan_job_init(struct scan_job *job, const struct scan_options *options)
{
	job->options = options;
	job->search.note_hole = note_hole;
	pthread_mutex_init(&job->test.lock, NULL);
	pthread_mutex_init(&job->lock, NULL);
}

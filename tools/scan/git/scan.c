/* SPDX-License-Identifier: MIT */
/*
 * Readers: one for each worker, with a `git cat-file` of its own. git takes
 * longer to unpack a blob than the engine to search it, so that there are as
 * many of both. A reader is a task that is spawned anew after each few blobs;
 * it waits for its git with its worker, which has nothing else to do.
 *
 * Readers take blobs from the order in small groups of neighbours, which are
 * versions of one file: git keeps what it has unpacked of them.
 */
#include "tools/scan/git/scan.h"

#include "tools/progress.h"
#include "tools/report.h"
#include "tools/scan/git/cat_file.h"
#include "tools/scan/git/facts.h"
#include "tools/scan/git/history.h"
#include "tools/scan/git/results.h"
#include "tools/scan/source.h"
#include "tools/signals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* Neighbours that a reader takes together. */
	GROUP_BLOBS = 16,
	/* Fewer are not worth a reader. */
	READER_BLOBS_MIN = 64,
	/* Until a reader's task ends and another begins. */
	SLICE_BLOBS = 64,
	SLICE_BYTES = 16 << 20,
};

static const char missing_words[] = "the blob is missing, as in a partial clone";

struct git_scan;

struct git_reader {
	struct pinion_task task;
	struct git_scan *scan;
	uint32_t worker_index;
	struct cat_file file;
	struct source *source;
	struct scan_worker *worker;
	struct git_facts facts;
	struct git_kept_list kept; /* of the blob at hand */
	struct pinion_scan_stats totals;
	size_t quota; /* of blobs it may still ask for */
	size_t group; /* the next of its group, up to group_end */
	size_t group_end;
	size_t asked[CAT_FILE_AHEAD]; /* places in the order, a ring */
	size_t asked_first;
	size_t asked_count;
	size_t slice_blobs;
	uint64_t slice_bytes;
	bool has_lost; /* memory, or its git: it goes no further */
};

struct git_scan {
	struct scan_job *job;
	struct git_place place;
	struct git_history history;
	struct git_blobs blobs;
	struct git_results results;
	struct pinion_walk_matcher *matcher;
	struct git_reader *readers;
	size_t reader_count;
	size_t next; /* [W:any R:any] of the order, that no reader has taken */
	pthread_mutex_t lock;
	pthread_cond_t end;
	size_t running; /* [lock:lock] */
	bool is_over;	/* [W:any R:any] there is no point in going on */
};

/* ---- questions ---- */

static bool take_group(struct git_reader *reader)
{
	struct git_scan *scan = reader->scan;
	size_t wanted = reader->quota < GROUP_BLOBS ? reader->quota : GROUP_BLOBS;
	size_t first = wanted == 0 ? scan->blobs.order_count
				   : __atomic_fetch_add(&scan->next, wanted, __ATOMIC_RELAXED);

	if (first >= scan->blobs.order_count) {
		return false;
	}
	reader->group = first;
	reader->group_end =
		first + wanted < scan->blobs.order_count ? first + wanted : scan->blobs.order_count;
	reader->quota -= wanted;
	return true;
}

/* As many as may be asked ahead, or all there are. */
static void ask(struct git_reader *reader)
{
	struct git_scan *scan = reader->scan;
	char text[GIT_ID_CHARS_MAX + 1];

	while (reader->asked_count < CAT_FILE_AHEAD) {
		size_t place;

		if (reader->group == reader->group_end && !take_group(reader)) {
			cat_file_ask_no_more(&reader->file);
			return;
		}
		place = reader->group++;
		git_id_write(&scan->blobs, scan->blobs.items[scan->blobs.order[place]].id, text);
		cat_file_ask(&reader->file, text);
		reader->asked[(reader->asked_first + reader->asked_count) % CAT_FILE_AHEAD] = place;
		reader->asked_count++;
	}
}

/* ---- blobs ---- */

/* What the worker of a reader does with each line. */
static void keep_line(void *arg, const struct finding *finding, const struct reporter_worker *lines)
{
	struct git_reader *reader = arg;

	if (git_kept_add(&reader->kept, finding, lines) != 0) {
		reader->worker->has_trouble = true;
		reader->has_lost = true;
	}
}

static bool has_size(const struct git_reader *reader, uint64_t bytes)
{
	const struct pinion_walk_filter *filter = reader->scan->job->options->scanning.scan.filter;

	return filter == NULL ||
		(bytes >= filter->bytes_min &&
			(filter->bytes_max == 0 || bytes <= filter->bytes_max));
}

static void fail(struct git_reader *reader, const char *reason, int error)
{
	report_path(reader->facts.facts.name, reason);
	tally_add(&reader->worker->tally, NULL, PINION_SCAN_FAILED, error);
	reader->totals.failed++;
	reader->worker->has_trouble = true;
}

static void count_size(struct git_reader *reader)
{
	const struct pinion_scan_file left_out = {.reason = PINION_WALK_BY_SIZE};

	tally_add(&reader->worker->tally, &left_out, PINION_SCAN_IGNORED, 0);
	reader->totals.ignored++;
}

/* The bytes that git sends, searched or not. 0, or why git is of no use. */
static int feed(struct git_reader *reader, bool is_searched, int *out_error)
{
	const uint8_t *bytes;
	size_t length;
	int rc;

	*out_error = 0;
	while ((rc = cat_file_read(&reader->file, &bytes, &length)) == 0 && length > 0) {
		if (is_searched && *out_error == 0) {
			*out_error = source_feed(reader->source, bytes, length);
			reader->totals.read_bytes += length;
			reader->slice_bytes += length;
		}
	}
	return rc;
}

static int search_blob(struct git_reader *reader, const struct git_name *path)
{
	int search_error;
	int rc;
	int error = source_open(reader->source, path->bytes, path->length, &reader->facts.facts);

	if (error != 0) {
		rc = feed(reader, false, &search_error);
		fail(reader, report_reason(error), error);
		return rc;
	}
	rc = feed(reader, true, &search_error);
	error = source_close(reader->source, rc != 0 ? rc : search_error < 0 ? search_error : 0);
	if (rc != 0) {
		return rc;
	}
	if (error != 0) {
		fail(reader, report_reason(error), error);
		return 0;
	}
	if (source_is_binary(reader->source)) {
		reader->worker->tally.skipped[TALLY_BINARY]++;
		reader->totals.skipped++;
		return 0;
	}
	tally_add(&reader->worker->tally, NULL, PINION_SCAN_DONE, 0);
	reader->totals.done++;
	return 0;
}

/* 0, or why git is of no more use. */
static int read_blob(struct git_reader *reader, const struct git_blob *blob)
{
	const struct git_blobs *blobs = &reader->scan->blobs;
	enum cat_file_kind kind;
	uint64_t bytes;
	int ignored;
	int rc = git_facts_set(&reader->facts, blobs, blob);

	rc = rc == 0 ? cat_file_next(&reader->file, &kind, &bytes) : rc;
	if (rc != 0) {
		return rc;
	}
	if (kind == CAT_FILE_MISSING) {
		fail(reader, missing_words, -ENOENT);
		return 0;
	}
	if (kind == CAT_FILE_OTHER) {
		rc = feed(reader, false, &ignored);
		fail(reader, "is no blob", -EBADMSG);
		return rc;
	}
	if (!has_size(reader, bytes)) {
		count_size(reader);
		return feed(reader, false, &ignored);
	}
	return search_blob(reader, &blobs->paths.items[blob->path]);
}

/* ---- readers ---- */

/* Counts the blobs that it has taken and will not read. */
static void give_up(struct git_reader *reader, int error)
{
	size_t count = reader->asked_count + (reader->group_end - reader->group);

	reader->has_lost = true;
	if (error == -ECANCELED) {
		return;
	}
	report_line("%s: git cat-file %s; %zu blobs were not searched", reader->scan->place.path,
		error == -EPIPE ? "has ended early" : report_reason(error), count);
	for (size_t i = 0; i < count; i++) {
		tally_add(&reader->worker->tally, NULL, PINION_SCAN_FAILED, -EIO);
	}
	reader->totals.failed += count;
	reader->worker->has_trouble = true;
}

/* False: it is done. */
static bool run_slice(struct git_reader *reader)
{
	struct git_scan *scan = reader->scan;

	reader->slice_blobs = 0;
	reader->slice_bytes = 0;
	while (reader->slice_blobs < SLICE_BLOBS && reader->slice_bytes < SLICE_BYTES) {
		size_t place;
		int error;

		if (signals_interrupted() || __atomic_load_n(&scan->is_over, __ATOMIC_RELAXED)) {
			return false;
		}
		ask(reader);
		if (reader->asked_count == 0) {
			return false;
		}
		place = reader->asked[reader->asked_first];
		error = read_blob(reader, &scan->blobs.items[scan->blobs.order[place]]);
		if (error != 0) {
			give_up(reader, error);
			return false;
		}
		reader->asked_first = (reader->asked_first + 1) % CAT_FILE_AHEAD;
		reader->asked_count--;
		reader->slice_blobs++;
		if (!git_results_put(&scan->results, place, &reader->kept)) {
			__atomic_store_n(&scan->is_over, true, __ATOMIC_RELAXED);
		}
		if (reader->has_lost) {
			return false;
		}
	}
	return true;
}

static void end_reader(struct git_reader *reader)
{
	struct git_scan *scan = reader->scan;

	pthread_mutex_lock(&scan->lock);
	scan->running--;
	pthread_cond_signal(&scan->end);
	pthread_mutex_unlock(&scan->lock);
}

static int run_reader(struct pinion_task *task)
{
	struct git_reader *reader = (struct git_reader *)task;

	if (!run_slice(reader) ||
		pinion_task_spawn_on(
			reader->scan->job->runtime, reader->worker_index, &reader->task) != 0) {
		end_reader(reader);
	}
	return 0;
}

static void cancel_reader(struct pinion_task *task)
{
	end_reader((struct git_reader *)task);
}

/* On the first thread. */
static bool start_reader(struct git_scan *scan, struct git_reader *reader)
{
	if (!cat_file_start(&scan->place, &reader->file)) {
		return false;
	}
	reader->worker = scan_job_add_worker(scan->job);
	reader->source = reader->worker == NULL ? NULL : source_create(scan->job, reader->worker);
	if (reader->source == NULL) {
		report_line("%s", report_reason(ENOMEM));
		return false;
	}
	reader->worker->keep = keep_line;
	reader->worker->keep_arg = reader;
	reader->task.run = run_reader;
	reader->task.cancel = cancel_reader;
	return true;
}

static bool start_readers(struct git_scan *scan)
{
	size_t blobs = scan->blobs.order_count;
	size_t count = scan->job->worker_count;
	bool is_good = true;

	if (count > (blobs + READER_BLOBS_MIN - 1) / READER_BLOBS_MIN) {
		count = (blobs + READER_BLOBS_MIN - 1) / READER_BLOBS_MIN;
	}
	scan->readers = calloc(count + 1, sizeof(*scan->readers));
	if (scan->readers == NULL) {
		report_line("%s", report_reason(ENOMEM));
		return false;
	}
	for (size_t i = 0; i < count && is_good; i++) {
		struct git_reader *reader = &scan->readers[i];

		reader->scan = scan;
		reader->worker_index = (uint32_t)i;
		/* With few blobs none may take those of the others. */
		reader->quota =
			blobs > count * CAT_FILE_AHEAD * 4 ? SIZE_MAX : (blobs + count - 1) / count;
		scan->reader_count = i + 1;
		is_good = start_reader(scan, reader);
	}
	return is_good;
}

static void run_readers(struct git_scan *scan)
{
	pthread_mutex_lock(&scan->lock);
	for (size_t i = 0; i < scan->reader_count; i++) {
		scan->running++;
		if (pinion_task_spawn_on(scan->job->runtime, (uint32_t)i, &scan->readers[i].task) !=
			0) {
			scan->running--;
			scan->job->has_trouble = true;
		}
	}
	while (scan->running > 0) {
		pthread_cond_wait(&scan->end, &scan->lock);
	}
	pthread_mutex_unlock(&scan->lock);
}

/* Blobs that none has come to are cancelled. */
static void end_readers(struct git_scan *scan, struct pinion_scan_stats *totals)
{
	uint64_t ended = 0;

	for (size_t i = 0; i < scan->reader_count; i++) {
		struct git_reader *reader = &scan->readers[i];

		totals->done += reader->totals.done;
		totals->failed += reader->totals.failed;
		totals->ignored += reader->totals.ignored;
		totals->skipped += reader->totals.skipped;
		totals->read_bytes += reader->totals.read_bytes;
		ended += reader->totals.done + reader->totals.failed + reader->totals.ignored +
			reader->totals.skipped;
		cat_file_fini(&scan->place, &reader->file);
		source_destroy(reader->source);
		git_facts_fini(&reader->facts);
		git_kept_list_free(&reader->kept);
	}
	free(scan->readers);
	if (scan->results.worker != NULL && ended < scan->blobs.order_count) {
		totals->cancelled += scan->blobs.order_count - ended;
		scan->results.worker->tally.cancelled += scan->blobs.order_count - ended;
	}
}

/* ---- the whole ---- */

/* What a partial clone does not have. */
static void count_missing(struct git_scan *scan, struct pinion_scan_stats *totals)
{
	struct scan_worker *worker = scan->results.worker;
	struct git_facts facts = {.name = NULL};

	for (size_t i = 0; i < scan->blobs.count; i++) {
		const struct git_blob *blob = &scan->blobs.items[i];

		if (blob->is_missing && blob->reason == PINION_WALK_REASONS) {
			if (git_facts_set(&facts, &scan->blobs, blob) == 0) {
				report_path(facts.facts.name, missing_words);
			}
			tally_add(&worker->tally, NULL, PINION_SCAN_FAILED, -ENOENT);
			worker->has_trouble = true;
			totals->failed++;
		}
	}
	git_facts_fini(&facts);
}

static void count_left_out(struct git_scan *scan, struct pinion_scan_stats *totals)
{
	struct tally *tally = &scan->results.worker->tally;
	const struct git_blobs *blobs = &scan->blobs;

	count_missing(scan, totals);
	for (size_t i = 0; i < blobs->count; i++) {
		const struct pinion_scan_file left_out = {.reason = blobs->items[i].reason};

		if (left_out.reason != PINION_WALK_REASONS) {
			tally_add(tally, &left_out, PINION_SCAN_IGNORED, 0);
			totals->ignored++;
		}
	}
	for (size_t i = 0; i < blobs->submodules.count; i++) {
		report_path(blobs->submodules.items[i].bytes,
			"is a submodule, a repository of its own: not searched");
	}
	tally->submodules += blobs->submodules.count;
	totals->skipped += blobs->submodules.count;
}

static bool begin(struct git_scan *scan)
{
	const struct git_options *options = &scan->job->options->git;
	const struct pinion_walk_filter *filter = scan->job->options->scanning.scan.filter;
	int error = git_place_init(&scan->place, options->repository);

	scan->history = (struct git_history){
		.place = &scan->place,
		.since = options->since,
		.is_staged = options->is_staged,
		.process_count = scan->job->worker_count,
	};
	if (error == 0 && filter != NULL) {
		error = pinion_walk_matcher_create(filter, &scan->matcher);
		scan->blobs.matcher = scan->matcher;
	}
	if (error != 0) {
		report_line("%s", error == -EINVAL ? "a pattern is refused" : report_reason(error));
	}
	return error == 0;
}

static void search(struct git_scan *scan, struct pinion_scan_stats *totals)
{
	if (git_results_init(&scan->results, scan->job, &scan->blobs) != 0) {
		report_line("%s", report_reason(ENOMEM));
		scan->job->has_trouble = true;
	} else if (start_readers(scan)) {
		run_readers(scan);
	} else {
		scan->job->has_trouble = true;
	}
	if (scan->results.worker != NULL) {
		count_left_out(scan, totals);
	}
}

void git_scan(struct scan_job *job, struct pinion_scan_stats *out_totals)
{
	struct git_scan scan = {
		.job = job,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.end = PTHREAD_COND_INITIALIZER,
	};

	*out_totals = (struct pinion_scan_stats){0};
	/* Findings come in the order of paths in any case. */
	job->reporter.sorted = NULL;
	if (!begin(&scan)) {
		job->has_trouble = true;
	} else {
		if (!git_history_read(&scan.history, &scan.blobs)) {
			job->has_trouble = true;
		}
		job->repository = scan.history.folder;
		job->revision = scan.history.head;
		job->reporter.run.repository = job->repository;
		job->reporter.run.revision = job->revision;
		if (scan.history.is_shallow && !scan.history.is_staged) {
			report_line(
				"%s: a shallow clone: older commits are not here", scan.place.path);
		}
		search(&scan, out_totals);
		job->repeated_count = scan.results.repeated_count;
	}
	end_readers(&scan, out_totals);
	job->has_trouble = job->has_trouble || scan.results.has_failed;
	out_totals->seen = out_totals->done + out_totals->failed + out_totals->skipped +
		out_totals->cancelled + out_totals->ignored;
	git_results_fini(&scan.results);
	git_blobs_fini(&scan.blobs);
	pinion_walk_matcher_destroy(scan.matcher);
	git_place_fini(&scan.place);
}

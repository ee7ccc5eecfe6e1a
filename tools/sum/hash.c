/* SPDX-License-Identifier: MIT */
/*
 * The hashing of `pinion sum`: the calls of a scan for each file, the start and
 * end of a scan, and the mode that prints checksums.
 *
 * Each file in flight owns a hash state in the scan's memory. Its windows come
 * in order, so a state has one user at a time; but where the algorithm takes
 * parts in any order, several workers hash windows of one file at once, and
 * what they share besides the state is under the job's lock. The line is built
 * when the file is reported and goes through struct order.
 */
#include "tools/sum/job.h"

#include "tools/distribution.h"
#include "tools/input.h"
#include "tools/output.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/signals.h"
#include "tools/sum/checklist.h"
#include "tools/throttle.h"
#include "tools/tracing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STDIN_BYTES = 256 * 1024 };

/* What holes are hashed from. */
static const uint8_t zeros[256 * 1024];

void sum_trouble(struct sum_job *job)
{
	pthread_mutex_lock(&job->lock);
	job->has_trouble = true;
	pthread_mutex_unlock(&job->lock);
}

/* Goes on where an earlier run was in the file; from its start if it cannot. */
static int resume(struct sum_file *sum, struct pinion_scan_file *file,
	const struct checkpointing_found *found)
{
	if (sum->algorithm->load != NULL &&
		sum->algorithm->load(
			&sum->state, found->state.bytes, found->state.length, found->offset)) {
		sum->start_offset = found->offset;
		file->start_offset_bytes = found->offset;
		return 0;
	}
	sum->algorithm->discard(&sum->state);
	memset(&sum->state, 0, sizeof(sum->state));
	return sum->algorithm->init(&sum->state);
}

/* What is written meanwhile has no checksum. NULL: it is not. */
static const char *writer_of(const struct sum_job *job, const struct pinion_scan_file *file)
{
	if (checkpointing_has(job->checkpointing, file)) {
		return "--checkpoint writes there: it is not hashed";
	}
	return tracing_has(file->file.device, file->file.inode)
		? "--trace writes there: it is not hashed"
		: NULL;
}

/* What an earlier run has of the file; all of it is its line. */
static enum checkpointing_outcome find_line(
	struct sum_job *job, const struct pinion_scan_file *file, struct checkpointing_found *found)
{
	struct sum_file *sum = file->user;
	enum checkpointing_outcome outcome = job->checkpointing == NULL
		? CHECKPOINTING_NOTHING
		: checkpointing_find(job->checkpointing, file, &sum->kept, found);

	if (outcome == CHECKPOINTING_ALL) {
		sum->is_found = true;
		sum->line = found->text;
		found->text = (struct output_text){.bytes = NULL};
	}
	return outcome;
}

/* Coarse: it is at most a tick late. */
static int64_t unix_ns_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int begin_hash(struct sum_job *job, struct pinion_scan_file *file,
	const struct checkpointing_found *found, bool is_begun)
{
	struct sum_file *sum = file->user;
	int error;

	sum->algorithm = job->mode->algorithm(job, file->sequence);
	sum->in_parts = job->options->scanning.scan.order == PINION_SCAN_PARALLEL;
	error = sum->algorithm->init(&sum->state);
	if (error == 0 && is_begun) {
		error = resume(sum, file, found);
	}
	sum->is_hashing = error == 0;
	if (job->mode->ended != NULL) {
		gaps_init(&sum->gaps);
		sum->opened_ns = unix_ns_now();
	}
	if (error == 0) {
		progress_add(job->runtime, &(struct progress){.begun_files = 1});
	}
	return error;
}

static int file_open(void *arg, struct pinion_scan_file *file)
{
	struct sum_job *job = arg;
	struct sum_file *sum = file->user;
	struct checkpointing_found found = {.offset = 0};
	enum checkpointing_outcome outcome;
	int rc;

	sum->writer = writer_of(job, file);
	if (sum->writer != NULL) {
		return -EBUSY;
	}
	outcome = find_line(job, file, &found);
	rc = outcome == CHECKPOINTING_ALL
		? PINION_SCAN_ENOUGH
		: begin_hash(job, file, &found, outcome == CHECKPOINTING_PART);

	output_text_free(&found.text);
	output_text_free(&found.state);
	return rc;
}

/* Bytes of a window, all of it or a part. */
static int hash_bytes(struct sum_file *sum, const struct pinion_window *window,
	const uint8_t *bytes, size_t length, uint64_t offset)
{
	bool is_whole = window->index == 0 && window->is_last && sum->start_offset == 0;

	if (sum->in_parts && !is_whole) {
		return sum->algorithm->part(&sum->state, bytes, length, offset);
	}
	return sum->algorithm->update(&sum->state, bytes, length);
}

/* Adds to the time of the file's holes; true: it is more than they may take. */
static bool note_hole(struct sum_job *job, struct sum_file *sum, uint64_t ns, uint64_t offset)
{
	uint64_t timeout_ns = job->options->scanning.scan.file_timeout_ns;
	bool is_late;

	pthread_mutex_lock(&job->lock);
	sum->hole_ns += ns;
	if (!sum->is_late && timeout_ns != 0 && sum->hole_ns > timeout_ns) {
		sum->is_late = true;
		sum->late_offset = offset;
	}
	is_late = sum->is_late;
	pthread_mutex_unlock(&job->lock);
	return is_late;
}

/* Steps end at multiples of their size, where parts are few and large. */
static size_t hole_step(uint64_t offset, uint64_t left)
{
	uint64_t step = sizeof(zeros) - offset % sizeof(zeros);

	return (size_t)(left < step ? left : step);
}

/*
 * A hole may be exabytes long, so that a signal must end it, and so must the
 * time that all holes of a file may take together: nothing else ever would.
 */
static int hash_hole(struct sum_job *job, struct sum_file *sum, const struct pinion_window *window)
{
	uint64_t done = 0;
	int error = 0;

	while (error == 0 && done < window->length_bytes) {
		uint64_t start_ns = scanning_ns_now();
		uint64_t offset = window->base_offset_bytes + done;
		size_t step = hole_step(offset, window->length_bytes - done);

		error = signals_interrupted() ? -ECANCELED
					      : hash_bytes(sum, window, zeros, step, offset);
		if (error != 0) {
			break;
		}
		done += step;
		progress_add(job->runtime, &(struct progress){.bytes = step});
		if (note_hole(job, sum, scanning_ns_now() - start_ns, offset + step)) {
			error = -ETIME;
		}
	}
	if (error != 0) {
		pthread_mutex_lock(&job->lock);
		sum->part_bytes += done;
		pthread_mutex_unlock(&job->lock);
	}
	return error;
}

/* Of several that were hit at once, the first in the file is reported. */
static int note_gap(struct sum_job *job, struct sum_file *sum, const struct pinion_window *window)
{
	const struct pinion_gap *gap = &window->gaps[0];

	if (job->mode->ended != NULL) {
		return gaps_add(&sum->gaps, window);
	}
	pthread_mutex_lock(&job->lock);
	if (!sum->has_gap || gap->offset_bytes < sum->gap.offset_bytes) {
		sum->has_gap = true;
		sum->gap = *gap;
	}
	pthread_mutex_unlock(&job->lock);
	return gap->error;
}

/* Notes how far the file has come, from time to time. */
static void keep_part(
	struct sum_job *job, struct pinion_scan_file *file, const struct pinion_window *window)
{
	struct sum_file *sum = file->user;
	struct checkpointing_result result = {.bytes = ""};
	struct output_text state = {.bytes = NULL};
	uint64_t end = window->base_offset_bytes + window->length_bytes;

	if (job->checkpointing == NULL || window->is_last || sum->algorithm->save == NULL ||
		!checkpointing_wants_part(job->checkpointing, &sum->kept, 0)) {
		return;
	}
	pthread_mutex_lock(&job->lock);
	if (checkpointing_wants_part(job->checkpointing, &sum->kept, 0) &&
		sum->algorithm->save(&sum->state, &state, &end) && end > sum->start_offset) {
		checkpointing_add_part(job->checkpointing, file, &sum->kept, &result, end, &state);
	}
	pthread_mutex_unlock(&job->lock);
	output_text_free(&state);
}

static int file_window(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	struct sum_job *job = arg;
	struct sum_file *sum = file->user;
	size_t length = window->length_bytes - window->prefix_bytes;
	int error;

	if (window->is_hole) {
		error = hash_hole(job, sum, window);
	} else {
		progress_add(job->runtime, &(struct progress){.bytes = length});
		error = window->gap_count > 0
			? note_gap(job, sum, window)
			: hash_bytes(sum, window, window->bytes + window->prefix_bytes, length,
				  window->base_offset_bytes + window->prefix_bytes);
	}
	if (error == 0) {
		keep_part(job, file, window);
	}
	return error;
}

static int file_close(void *arg, struct pinion_scan_file *file, int error)
{
	const struct sum_job *job = arg;
	struct sum_file *sum = file->user;

	if (!sum->is_hashing) {
		return 0;
	}
	progress_add(job->runtime, &(struct progress){.ended_files = 1});
	sum->is_hashing = false;
	if (error != 0) {
		sum->algorithm->discard(&sum->state);
		return 0;
	}
	return sum->algorithm->final(&sum->state, sum->digest);
}

/* Notes a path that has ended, opened or not. */
static void keep_line(struct sum_job *job, const struct pinion_scan_file *file,
	enum pinion_scan_outcome outcome, int error, const struct output_text *text)
{
	static const struct checkpointing_file unopened;
	const struct sum_file *sum = file->user;
	struct checkpointing_result result = {.bytes = text->bytes, .length = text->length};

	if (job->checkpointing == NULL || (sum != NULL && sum->is_found) ||
		(outcome != PINION_SCAN_DONE && outcome != PINION_SCAN_FAILED)) {
		return;
	}
	if (!checkpointing_add(job->checkpointing, file, sum == NULL ? &unopened : &sum->kept,
		    error, &result, !text->failed)) {
		sum_trouble(job);
		pinion_scan_cancel(job->scan);
	}
}

void sum_report_failure(const struct sum_job *job, const struct pinion_scan_file *file,
	enum pinion_scan_outcome outcome, int error)
{
	const struct sum_file *sum = file->user;

	if (sum != NULL && sum->is_late) {
		report_hole_timeout(file, sum->late_offset);
	} else if (sum != NULL && sum->writer != NULL) {
		report_path(file->path, sum->writer);
	} else if (error == -EISDIR && !job->options->is_check) {
		report_path(file->path, "is a directory (use -r)");
	} else if (sum == NULL || !sum->has_gap) {
		report_outcome(file, outcome, error);
	}
}

static void file_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	struct sum_job *job = arg;
	struct output_text text = {0};
	struct sum_file *sum = file->user;

	if (outcome == PINION_SCAN_IGNORED && file->reason == PINION_WALK_BY_SHARD) {
		__atomic_fetch_add(&job->other_entry_count, 1, __ATOMIC_RELAXED);
	}
	if (sum != NULL && sum->part_bytes > 0) {
		pthread_mutex_lock(&job->lock);
		job->part_bytes += sum->part_bytes;
		pthread_mutex_unlock(&job->lock);
	}
	if (sum != NULL && sum->has_gap) {
		report_unread_byte(file->path, &sum->gap);
	}
	if (job->mode->ended != NULL) {
		job->mode->ended(job, &text, file, outcome, error);
	} else if (sum != NULL && sum->is_found) {
		text = sum->line;
	} else if (outcome == PINION_SCAN_DONE) {
		job->mode->line(job, &text, file->path, file->sequence, sum->digest);
	} else if (outcome == PINION_SCAN_FAILED && error == -ENOENT &&
		job->options->ignores_missing) {
		/* Its line in the list counts for nothing. */
	} else if (scanning_is_trouble(outcome, error)) {
		sum_report_failure(job, file, outcome, error);
		sum_trouble(job);
		job->mode->line(job, &text, file->path, file->sequence, NULL);
	} else {
		report_outcome(file, outcome, error);
	}
	if (text.failed) {
		report_path(file->path, report_reason(ENOMEM));
		sum_trouble(job);
	}
	keep_line(job, file, outcome, error, &text);
	order_put(&job->order, file->sequence, text.bytes, text.failed ? 0 : text.length);
	output_text_free(&text);
	if (!output_ok()) {
		/* The output has no reader any more. */
		pinion_scan_cancel(job->scan);
	}
}

bool sum_has_log(struct sum_job *job)
{
	bool is_open = true;

	if (job->is_logging) {
		job->is_logging = false;
		is_open = meanwhile_end(&job->logging) == 0;
	}
	if (!is_open) {
		sum_trouble(job);
	}
	return is_open;
}

int sum_begin(struct sum_job *job)
{
	static const struct pinion_scan_ops ops = {
		.open = file_open,
		.window = file_window,
		.close = file_close,
		.report = file_report,
	};
	struct pinion_scan_config scan_config;
	int error = 0;

	if (job->scan != NULL) {
		return 0;
	}
	if (job->runtime == NULL) {
		error = pinion_runtime_create(&job->options->scanning.runtime, &job->runtime);
		if (error == 0) {
			throttle_begin(job->runtime);
		}
	}
	if (!sum_has_log(job)) {
		return -EIO;
	}
	if (error == 0) {
		error = order_init(&job->order);
	}
	if (error == 0) {
		job->next_sequence = 0;
		scan_config = job->options->scanning.scan;
		distribution_configure(&scan_config);
		error = pinion_scan_create(job->runtime, &scan_config, &ops, job, &job->scan);
		if (error != 0) {
			order_fini(&job->order);
		}
	}
	if (error != 0) {
		report_no_start(error);
		sum_trouble(job);
		return error;
	}
	progress_begin(false);
	signals_watch(job->scan);
	return 0;
}

void sum_end(struct sum_job *job)
{
	struct pinion_scan_stats totals;

	if (job->scan == NULL) {
		return;
	}
	if (pinion_scan_finish(job->scan, &totals, sizeof(totals)) == 0) {
		job->totals.seen += totals.seen;
		job->totals.done += totals.done;
		/* The scan counts what hash_hole() ended as failed. */
		job->totals.failed += totals.failed;
		job->totals.skipped += totals.skipped;
		job->totals.cancelled += totals.cancelled;
		/* The scan counts holes only whole. */
		job->totals.read_bytes += totals.read_bytes + job->part_bytes;
		job->totals.hole_bytes += totals.hole_bytes + job->part_bytes;
		job->part_bytes = 0;
		job->totals.direct_files += totals.direct_files;
		job->totals.ignored += totals.ignored;
	}
	signals_hold();
	progress_hide();
	pinion_scan_destroy(job->scan);
	job->scan = NULL;
	if (job->order.has_lost) {
		report_line("out of memory: lines are missing");
		sum_trouble(job);
	}
	order_fini(&job->order);
}

static int hash_stdin(
	struct sum_job *job, const struct digest_algorithm *algorithm, uint8_t *digest)
{
	struct digest_state state = {0};
	uint8_t *bytes = malloc(STDIN_BYTES);
	ssize_t count = 0;
	int error = bytes == NULL ? -ENOMEM : algorithm->init(&state);

	if (error != 0) {
		free(bytes);
		return error;
	}
	do {
		count = input_read(STDIN_FILENO, bytes, STDIN_BYTES);
		error = count < 0 ? (int)count : algorithm->update(&state, bytes, (size_t)count);
		job->totals.read_bytes += count > 0 ? (uint64_t)count : 0;
	} while (error == 0 && count > 0);
	free(bytes);
	if (error != 0) {
		algorithm->discard(&state);
		return error;
	}
	return algorithm->final(&state, digest);
}

int sum_stdin(struct sum_job *job, const struct digest_algorithm *algorithm, uint8_t *digest)
{
	int error;

	signals_hold();
	error = hash_stdin(job, algorithm, digest);
	job->totals.seen++;
	if (error == 0) {
		job->totals.done++;
	} else if (error == -ECANCELED) {
		job->totals.cancelled++;
	} else {
		job->totals.failed++;
		report_line("standard input: %s",
			error == -EISDIR ? "is a directory" : report_reason(error));
		sum_trouble(job);
	}
	return error;
}

static const struct digest_algorithm *plain_algorithm(struct sum_job *job, uint64_t sequence)
{
	(void)sequence;
	return job->options->algorithm;
}

static void plain_line(struct sum_job *job, struct output_text *text, const char *path,
	uint64_t sequence, const uint8_t *digest)
{
	struct checklist_style style = {
		.is_tagged = job->options->is_tagged,
		.is_nul = job->options->scanning.list_is_nul,
		/* A line that is kept is for any output. */
		.is_shown = output_is_terminal() && job->checkpointing == NULL,
	};

	(void)sequence;
	if (digest != NULL) {
		checklist_append_line(text, job->options->algorithm, digest, path, style);
	}
}

static const struct sum_mode plain_mode = {
	.algorithm = plain_algorithm,
	.line = plain_line,
};

static void plain_stdin(struct sum_job *job)
{
	const struct digest_algorithm *algorithm = job->options->algorithm;
	uint8_t digest[DIGEST_BYTES_MAX];
	struct output_text text = {0};

	sum_end(job);
	if (sum_stdin(job, algorithm, digest) != 0) {
		return;
	}
	plain_line(job, &text, algorithm->stdin_name, 0, digest);
	output_write(text.bytes, text.length);
	if (text.failed) {
		sum_trouble(job);
	}
	output_text_free(&text);
}

/* Feeds operands up to the next "-", or up to the end with the list. */
static void plain_feed(struct sum_job *job, char *const *paths, int path_count, bool is_last)
{
	struct input input = {
		.paths = paths,
		.path_count = path_count,
		.lists = job->options->scanning.lists,
		.list_count = is_last ? job->options->scanning.list_count : 0,
		.list_is_nul = job->options->scanning.list_is_nul,
		.recurse = job->options->recurse,
		.sharding = job->options->scanning.choosing.sharding,
		.other_shard_count = &job->other_path_count,
	};
	int error;

	if ((path_count == 0 && input.list_count == 0) || sum_begin(job) != 0) {
		return;
	}
	error = input_feed(&input, job->scan);
	if (error != 0 && error != -ECANCELED) {
		sum_trouble(job);
	}
}

void sum_plain(struct sum_job *job, char *const *paths, int path_count)
{
	int start = 0;

	job->mode = &plain_mode;
	for (int i = 0; i < path_count; i++) {
		if (signals_interrupted() || !output_ok()) {
			return;
		}
		if (strcmp(paths[i], "-") == 0) {
			plain_feed(job, paths + start, i - start, false);
			plain_stdin(job);
			start = i + 1;
		}
	}
	plain_feed(job, paths + start, path_count - start, true);
}

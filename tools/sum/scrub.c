/* SPDX-License-Identifier: MIT */
/*
 * A run of --scrub: the queue of files by their last check, which the first
 * thread adds to the scan, and the options.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* qsort_r */
#endif
#include "tools/sum/scrub.h"

#include "tools/report.h"
#include "tools/signals.h"
#include "tools/sum/scrub_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Larger files are read one a worker, as all of them outlast a run. */
enum { LARGE_BYTES = 16 << 20 };

/* Those that were never checked in the order of the walk. */
static int compare_orders(const void *left, const void *right, void *arg)
{
	const struct scrub_file *files = arg;
	uint32_t a = *(const uint32_t *)left;
	uint32_t b = *(const uint32_t *)right;
	uint64_t order_a = files[a].order;
	uint64_t order_b = files[b].order;

	if (order_a != order_b) {
		return order_a < order_b ? -1 : 1;
	}
	return a < b ? -1 : a > b;
}

/*
 * Files that are read when the time is over are read to their end: of large
 * ones there is one a worker. After a signal the scan ends those.
 */
static void begin_large(struct scrub *scrub, struct scrub_file *file)
{
	struct sum_job *job = scrub->job;
	struct stat status;

	if (!job->options->scrub.has_duration || stat(file->path, &status) != 0 ||
		status.st_size < LARGE_BYTES) {
		return;
	}
	file->flags |= SCRUB_IS_LARGE;
	pthread_mutex_lock(&job->lock);
	while (scrub->large_count >= pinion_runtime_worker_count(job->runtime)) {
		pthread_cond_wait(&scrub->has_ended, &job->lock);
	}
	scrub->large_count++;
	pthread_mutex_unlock(&job->lock);
}

/*
 * At least one file is begun, so that each run comes further; nor does the time
 * of the walk count, which may be longer than that given.
 */
static void feed(struct scrub *scrub)
{
	uint64_t began_ns = scanning_ns_now();
	const struct scrub_options *options = &scrub->job->options->scrub;

	for (size_t i = 0; i < scrub->queue_count; i++) {
		struct scrub_file *file = &scrub->state.files[scrub->queue[i]];

		begin_large(scrub, file);
		if (i > 0 && options->has_duration &&
			scanning_ns_now() - began_ns >= options->max_duration_ns) {
			return;
		}
		if (pinion_scan_add_file(scrub->job->scan, file->path) == -ECANCELED) {
			return;
		}
	}
}

static void report_counts(const struct scrub *scrub)
{
	const uint64_t *counts = scrub->counts;
	uint64_t sum = 0;

	for (int i = 0; i < SCRUB_VERDICTS; i++) {
		sum += counts[i];
	}
	report_note("%llu files checked: %llu as they were, %llu new, %llu changed, %llu rotten, "
		    "%llu unreadable; %llu gone; %llu left for the next run",
		(unsigned long long)sum, (unsigned long long)counts[SCRUB_VERDICT_GOOD],
		(unsigned long long)counts[SCRUB_VERDICT_NEW],
		(unsigned long long)counts[SCRUB_VERDICT_CHANGED],
		(unsigned long long)counts[SCRUB_VERDICT_ROTTEN],
		(unsigned long long)counts[SCRUB_VERDICT_UNREADABLE],
		(unsigned long long)scrub->gone_count,
		(unsigned long long)(scrub->queue_count - sum));
}

static void run(struct scrub *scrub, char *const *paths, int path_count)
{
	struct sum_job *job = scrub->job;
	struct scrub_run about = {.began_ns = scrub->now_ns};
	int error;

	if (sum_begin(job) != 0 || scrub_walk(scrub, paths, path_count) != 0) {
		return;
	}
	if (scrub->queue_count > 0) {
		qsort_r(scrub->queue, scrub->queue_count, sizeof(*scrub->queue), compare_orders,
			scrub->state.files);
	}
	about.file_count = scrub->seen_count;
	about.due_count = scrub->queue_count;
	error = scrub_state_put_begin(&scrub->state, &about);
	error = error != 0 ? error : scrub_note_gone(scrub);
	if (error == 0) {
		feed(scrub);
	}
	sum_end(job);
	error = error != 0 || signals_interrupted()
		? error
		: scrub_state_put_end(&scrub->state, scrub_unix_ns_now());
	if (error != 0) {
		sum_trouble(job);
	}
	report_counts(scrub);
}

/* Relative ones are those of the current folder. False: no memory. */
static bool append_roots(struct output_text *text, char *const *paths, int path_count)
{
	bool is_relative = false;
	char *folder;

	for (int i = 0; i < path_count; i++) {
		output_text_string(text, i == 0 ? "" : " ");
		output_text_string(text, paths[i]);
		is_relative = is_relative || paths[i][0] != '/';
	}
	if (is_relative) {
		folder = getcwd(NULL, 0);
		output_text_format(text, " (in %s)", folder == NULL ? "?" : folder);
		free(folder);
	}
	output_text_append(text, "", 1);
	return !text->failed;
}

/* Whether an option is given that is about other work. */
static bool has_other_options(const struct sum_options *options)
{
	const struct scanning_options *scanning = &options->scanning;

	return options->is_check || options->is_tagged || options->is_status ||
		scanning->list_is_nul || scanning->list_count > 0 ||
		scanning->scan.walk_order == PINION_SCAN_WALK_BY_PATH ||
		scanning->checkpointing.file != NULL || scanning->checkpointing.resumes ||
		scanning->checkpointing.interval_ns != 0;
}

bool scrub_check(const struct sum_options *options, int path_count)
{
	const struct scrub_options *scrub = &options->scrub;
	bool is_status = options->is_status && !options->is_check;

	if (scrub->is_json && !is_status) {
		report_line("--json is about --status of a STATE");
		return false;
	}
	if (scrub->state == NULL && (scrub->has_age || scrub->has_duration)) {
		report_line("--max-age and --max-duration go only with --scrub=STATE");
		return false;
	}
	if (scrub->state != NULL && has_other_options(options)) {
		report_line("--scrub goes with none of -c, -0, --tag, --status, --files-from, "
			    "--sort, --checkpoint, --checkpoint-interval, --resume");
		return false;
	}
	if (scrub->state == NULL && is_status && path_count != 1) {
		report_line("--status without -c: name one STATE of --scrub");
		return false;
	}
	return true;
}

void sum_scrub(struct sum_job *job, char *const *paths, int path_count)
{
	const char *state = job->options->scrub.state;
	const char *slash = strrchr(state, '/');
	struct scrub scrub = {
		.job = job,
		.state_name = slash == NULL ? state : slash + 1,
		.now_ns = scrub_unix_ns_now(),
		.has_ended = PTHREAD_COND_INITIALIZER,
	};
	struct output_text roots = {.bytes = NULL};
	struct scrub_state_config config = {
		.path = state,
		.algorithm = job->options->algorithm->name,
		.salvages = job->options->scanning.checkpointing.salvages,
	};

	job->mode = &scrub_mode;
	job->scrub = &scrub;
	if (append_roots(&roots, paths, path_count)) {
		config.roots = roots.bytes;
		if (scrub_state_open(&scrub.state, &config)) {
			(void)stat(state, &scrub.state_status);
			run(&scrub, paths, path_count);
		} else {
			sum_trouble(job);
		}
	} else {
		report_line("%s", report_reason(ENOMEM));
		sum_trouble(job);
	}
	sum_end(job);
	output_text_free(&roots);
	if (!scrub_state_close(&scrub.state)) {
		sum_trouble(job);
	}
	free(scrub.queue);
	job->scrub = NULL;
}

/* SPDX-License-Identifier: MIT */
/*
 * What a file that was read has come to. Workers give the verdicts: each
 * changes the file of its own path alone, and the counts under the lock of the
 * job.
 */
#include "tools/output_text.h"
#include "tools/report.h"
#include "tools/sum/checklist.h"
#include "tools/sum/scrub_run.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* Lines of one file's ranges that could not be read; STATE has all. */
enum { RANGES_SHOWN_MAX = 64 };

#define NS_PER_S INT64_C(1000000000)
/* The coarsest that times of changes are. */
#define FRESH_NS (2 * NS_PER_S)

int64_t scrub_unix_ns_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static bool has_times(const struct scrub_file *known, const struct pinion_file *file)
{
	return known->size_bytes == file->size_bytes && known->modified_ns == file->modified_ns &&
		known->changed_ns == file->changed_ns;
}

/* Whether it was written while it was read; a path that is too long was not. */
static bool has_changed_since(const struct pinion_scan_file *file)
{
	struct stat status;

	if (stat(file->path, &status) != 0) {
		return errno != ENAMETOOLONG;
	}
	return (uint64_t)status.st_size != file->file.size_bytes ||
		status.st_mtim.tv_sec * NS_PER_S + status.st_mtim.tv_nsec !=
		file->file.modified_ns ||
		status.st_ctim.tv_sec * NS_PER_S + status.st_ctim.tv_nsec != file->file.changed_ns;
}

/* Of a file that was read to its end. */
static enum scrub_verdict compare(
	const struct scrub_file *known, const struct pinion_scan_file *file)
{
	const struct sum_file *sum = file->user;

	if ((known->flags & SCRUB_HAS_DIGEST) == 0) {
		return SCRUB_VERDICT_NEW;
	}
	if (memcmp(known->digest, sum->digest, sum->algorithm->digest_bytes) == 0) {
		return SCRUB_VERDICT_GOOD;
	}
	return has_times(known, &file->file) && (known->flags & SCRUB_IS_FRESH) == 0 &&
			!has_changed_since(file)
		? SCRUB_VERDICT_ROTTEN
		: SCRUB_VERDICT_CHANGED;
}

/* What the file is to be from now on. */
static void learn(struct scrub_file *known, const struct pinion_scan_file *file)
{
	const struct sum_file *sum = file->user;
	bool is_fresh =
		file->file.changed_ns == 0 || sum->opened_ns - file->file.changed_ns < FRESH_NS;

	known->size_bytes = file->file.size_bytes;
	known->modified_ns = file->file.modified_ns;
	known->changed_ns = file->file.changed_ns;
	memcpy(known->digest, sum->digest, sizeof(known->digest));
	known->flags |= SCRUB_HAS_DIGEST | (is_fresh ? SCRUB_IS_FRESH : 0u);
}

static void report_unread(struct sum_job *job, const struct pinion_scan_file *file,
	enum pinion_scan_outcome outcome, int error)
{
	const struct sum_file *sum = file->user;
	size_t count = sum == NULL ? 0 : sum->gaps.count;

	for (size_t i = 0; i < count && i < RANGES_SHOWN_MAX; i++) {
		report_gap(file->path, &sum->gaps.items[i]);
	}
	if (count > RANGES_SHOWN_MAX) {
		report_line("%s: %zu more ranges could not be read: --status lists them",
			file->path, count - RANGES_SHOWN_MAX);
	}
	if (count == 0) {
		sum_report_failure(job, file, outcome, error);
	}
	sum_trouble(job);
}

static void append_line(const struct sum_job *job, struct output_text *text, const char *path,
	enum scrub_verdict verdict)
{
	static const char *const words[SCRUB_VERDICTS] = {[SCRUB_VERDICT_NEW] = "NEW",
		[SCRUB_VERDICT_CHANGED] = "CHANGED",
		[SCRUB_VERDICT_ROTTEN] = "ROTTEN"};

	if (words[verdict] != NULL &&
		(verdict == SCRUB_VERDICT_ROTTEN || !job->options->is_quiet)) {
		checklist_append_verdict(text, path, words[verdict]);
	}
}

static void put(struct scrub *scrub, struct scrub_file *known, enum scrub_verdict verdict,
	const struct sum_file *sum)
{
	struct sum_job *job = scrub->job;
	int rc;

	known->checked_ns = scrub_unix_ns_now();
	rc = scrub_state_put(&scrub->state, known, sum == NULL ? NULL : sum->gaps.items,
		sum == NULL ? 0 : sum->gaps.count);
	if (rc != 0) {
		/* The log has said so, but for one record without memory. */
		if (rc == -ENOMEM) {
			report_path(known->path, report_reason(rc));
		}
		sum_trouble(job);
		pinion_scan_cancel(job->scan);
		return;
	}
	pthread_mutex_lock(&job->lock);
	scrub->counts[verdict]++;
	job->has_mismatch = job->has_mismatch || verdict == SCRUB_VERDICT_ROTTEN;
	pthread_mutex_unlock(&job->lock);
}

static void give_verdict(struct sum_job *job, struct output_text *text,
	const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	struct scrub *scrub = job->scrub;
	struct scrub_file *known = &scrub->state.files[scrub->queue[file->sequence]];
	struct sum_file *sum = file->user;
	enum scrub_verdict verdict = SCRUB_VERDICT_UNREADABLE;

	known->error = 0;
	if (outcome == PINION_SCAN_DONE) {
		verdict = compare(known, file);
	} else if (error == -ESTALE && sum != NULL && sum->opened_ns != 0 &&
		has_changed_since(file)) {
		verdict = SCRUB_VERDICT_CHANGED; /* in size, while it was read */
		known->flags &= ~(uint32_t)SCRUB_IS_ROTTEN;
	}
	if (verdict == SCRUB_VERDICT_ROTTEN) {
		known->flags |= SCRUB_IS_ROTTEN;
	} else if (outcome == PINION_SCAN_DONE) {
		known->flags = 0;
		learn(known, file);
	} else if (verdict == SCRUB_VERDICT_UNREADABLE) {
		known->error = error;
		if (sum != NULL) {
			gaps_join(&sum->gaps);
		}
		report_unread(job, file, outcome, error);
	}
	put(scrub, known, verdict, sum);
	append_line(job, text, file->path, verdict);
}

static void end_large(struct scrub *scrub, struct scrub_file *known)
{
	if ((known->flags & SCRUB_IS_LARGE) == 0) {
		return;
	}
	known->flags &= ~(uint32_t)SCRUB_IS_LARGE;
	pthread_mutex_lock(&scrub->job->lock);
	scrub->large_count--;
	pthread_cond_signal(&scrub->has_ended);
	pthread_mutex_unlock(&scrub->job->lock);
}

/* One that is not there is none for the next walk either. */
static bool has_vanished(const struct pinion_scan_file *file, int error)
{
	struct stat status;

	return error == -ENOENT && lstat(file->path, &status) != 0 && errno == ENOENT;
}

static void file_ended(struct sum_job *job, struct output_text *text,
	const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	struct scrub *scrub = job->scrub;
	struct sum_file *sum = file->user;

	end_large(scrub, &scrub->state.files[scrub->queue[file->sequence]]);
	if (outcome == PINION_SCAN_SKIPPED && error == 0) {
		error = -ENOTSUP; /* a link, which was a file for the walk */
	}
	if (outcome == PINION_SCAN_DONE ||
		(scanning_is_trouble(outcome, error) && !has_vanished(file, error))) {
		give_verdict(job, text, file, outcome, error);
	}
	if (sum != NULL && sum->opened_ns != 0) {
		gaps_fini(&sum->gaps);
	}
}

static const struct digest_algorithm *algorithm(struct sum_job *job, uint64_t sequence)
{
	(void)sequence;
	return job->options->algorithm;
}

const struct sum_mode scrub_mode = {
	.algorithm = algorithm,
	.ended = file_ended,
};

/* SPDX-License-Identifier: MIT */
/*
 * A run of --scrub: the walk, the queue of files by their last check, and the
 * verdict on each file that was read.
 *
 * The first thread walks and adds files to the scan. Workers give the verdicts:
 * each changes the file of its own path alone, and the counts under the lock of
 * the job.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* qsort_r */
#endif
#include "tools/sum/scrub.h"

#include "tools/growing.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/signals.h"
#include "tools/sum/checklist.h"
#include "tools/sum/job.h"
#include "tools/sum/scrub_state.h"

#include <errno.h>
#include <pinion/walk.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum verdict {
	VERDICT_GOOD,
	VERDICT_NEW,
	VERDICT_CHANGED,
	VERDICT_ROTTEN,
	VERDICT_UNREADABLE,
	VERDICTS,
};

enum {
	/* Lines of one file's ranges that could not be read; STATE has all. */
	RANGES_SHOWN_MAX = 64,
	/* Larger files are read one a worker, as all of them outlast a run. */
	LARGE_BYTES = 16 << 20,
};

#define NS_PER_S INT64_C(1000000000)
/* The coarsest that times of changes are. */
#define FRESH_NS (2 * NS_PER_S)

struct scrub {
	struct sum_job *job;
	struct scrub_state state;
	struct stat state_status; /* of its file */
	const char *state_name;	  /* without its folder */
	uint32_t *queue;	  /* numbers of files in the state */
	size_t queue_count;
	size_t queue_capacity;
	int64_t now_ns;	     /* since 1970, when the run began */
	bool is_partial;     /* some of the trees were not seen */
	uint64_t root_count; /* files of the root that is walked */
	uint64_t seen_count;
	uint64_t gone_count;
	uint64_t counts[VERDICTS];
	uint32_t large_count;	  /* of large files in flight */
	pthread_cond_t has_ended; /* a large one has */
};

static int64_t unix_ns_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* ---- verdicts ---- */

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
static enum verdict compare(const struct scrub_file *known, const struct pinion_scan_file *file)
{
	const struct sum_file *sum = file->user;

	if ((known->flags & SCRUB_HAS_DIGEST) == 0) {
		return VERDICT_NEW;
	}
	if (memcmp(known->digest, sum->digest, sum->algorithm->digest_bytes) == 0) {
		return VERDICT_GOOD;
	}
	return has_times(known, &file->file) && (known->flags & SCRUB_IS_FRESH) == 0 &&
			!has_changed_since(file)
		? VERDICT_ROTTEN
		: VERDICT_CHANGED;
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

static void append_line(
	const struct sum_job *job, struct output_text *text, const char *path, enum verdict verdict)
{
	static const char *const words[VERDICTS] = {
		[VERDICT_NEW] = "NEW", [VERDICT_CHANGED] = "CHANGED", [VERDICT_ROTTEN] = "ROTTEN"};

	if (words[verdict] != NULL && (verdict == VERDICT_ROTTEN || !job->options->is_quiet)) {
		checklist_append_verdict(text, path, words[verdict]);
	}
}

static void put(struct scrub *scrub, struct scrub_file *known, enum verdict verdict,
	const struct sum_file *sum)
{
	struct sum_job *job = scrub->job;
	int rc;

	known->checked_ns = unix_ns_now();
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
	job->has_mismatch = job->has_mismatch || verdict == VERDICT_ROTTEN;
	pthread_mutex_unlock(&job->lock);
}

static void give_verdict(struct sum_job *job, struct output_text *text,
	const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	struct scrub *scrub = job->scrub;
	struct scrub_file *known = &scrub->state.files[scrub->queue[file->sequence]];
	struct sum_file *sum = file->user;
	enum verdict verdict = VERDICT_UNREADABLE;

	known->error = 0;
	if (outcome == PINION_SCAN_DONE) {
		verdict = compare(known, file);
	} else if (error == -ESTALE) {
		verdict = VERDICT_CHANGED; /* in size, while it was read */
		known->flags &= ~(uint32_t)SCRUB_IS_ROTTEN;
	}
	if (verdict == VERDICT_ROTTEN) {
		known->flags |= SCRUB_IS_ROTTEN;
	} else if (outcome == PINION_SCAN_DONE) {
		known->flags = 0;
		learn(known, file);
	} else if (verdict == VERDICT_UNREADABLE) {
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

static const struct sum_mode scrub_mode = {
	.algorithm = algorithm,
	.ended = file_ended,
};

/* ---- the walk ---- */

/* Of STATE, and of the one that is to replace it. */
static bool is_state(const struct scrub *scrub, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash == NULL ? path : slash + 1;
	size_t length = strlen(scrub->state_name);
	struct stat status;

	return strncmp(name, scrub->state_name, length) == 0 && name[length] == '\0' &&
		stat(path, &status) == 0 && status.st_dev == scrub->state_status.st_dev &&
		status.st_ino == scrub->state_status.st_ino;
}

/* Files of a clock that was set back since are due, too. */
static bool is_due(const struct scrub *scrub, const struct scrub_file *file)
{
	int64_t age_ns = scrub->now_ns - file->checked_ns;

	return file->order == 0 || age_ns < 0 ||
		(uint64_t)age_ns >= scrub->job->options->scrub.max_age_ns;
}

static int visit_file(struct scrub *scrub, const char *path)
{
	struct scrub_file *file;
	uint32_t *queue;

	if (is_state(scrub, path)) {
		return 0;
	}
	file = scrub_state_add(&scrub->state, path);
	if (file == NULL) {
		return -ENOMEM;
	}
	scrub->root_count++;
	/* Trees may overlap. */
	if ((file->flags & SCRUB_IS_SEEN) != 0) {
		return 0;
	}
	file->flags |= SCRUB_IS_SEEN;
	scrub->seen_count++;
	if (!is_due(scrub, file)) {
		return 0;
	}
	queue = growing_make_room(
		scrub->queue, scrub->queue_count, &scrub->queue_capacity, sizeof(*queue));
	if (queue == NULL) {
		return -ENOMEM;
	}
	scrub->queue = queue;
	queue[scrub->queue_count++] = (uint32_t)(file - scrub->state.files);
	return 0;
}

static int visit(void *arg, const struct pinion_walk_entry *entry)
{
	struct scrub *scrub = arg;

	if (signals_interrupted()) {
		return -ECANCELED;
	}
	if (entry->kind == PINION_WALK_FILE) {
		return visit_file(scrub, entry->path);
	}
	if (entry->kind == PINION_WALK_ERROR ||
		(entry->kind == PINION_WALK_SPECIAL && entry->root_fd < 0)) {
		report_path(entry->path,
			entry->kind == PINION_WALK_ERROR ? report_reason(entry->error)
							 : "is no file: it has no times");
		sum_trouble(scrub->job);
		scrub->is_partial = true;
	}
	return 0;
}

/* Whether STATE knows files of a tree in which there are none. */
static bool is_missing(const struct scrub *scrub, const char *root)
{
	size_t length = strlen(root);
	bool has_slash = length > 0 && root[length - 1] == '/';

	for (size_t i = 0; i < scrub->state.count && scrub->root_count == 0; i++) {
		const struct scrub_file *file = &scrub->state.files[i];

		if ((file->flags & SCRUB_IS_GONE) == 0 && strncmp(file->path, root, length) == 0 &&
			(has_slash || file->path[length] == '/')) {
			return true;
		}
	}
	return false;
}

/* Returns 0 or a negative errno. */
static int walk(struct scrub *scrub, char *const *paths, int path_count)
{
	const struct pinion_scan_config *scan = &scrub->job->options->scanning.scan;
	struct pinion_walk_config config;
	int error = 0;

	pinion_walk_config_init(&config);
	config.skip_ignored = scan->skip_ignored;
	config.follow_links = scan->follow_links;
	config.filter = scan->filter;
	config.runtime = scrub->job->runtime;
	for (int i = 0; i < path_count && error == 0; i++) {
		scrub->root_count = 0;
		error = pinion_walk_with(paths[i], &config, visit, scrub);
		if (error == 0 && !scrub->is_partial && is_missing(scrub, paths[i])) {
			report_path(paths[i],
				"has no files any more: mount it; once it is to be empty, remove "
				"STATE");
			sum_trouble(scrub->job);
			scrub->is_partial = true;
		}
	}
	if (error != 0 && error != -ECANCELED) {
		report_line("%s", report_reason(error));
		sum_trouble(scrub->job);
	}
	return error;
}

/* Files that the walk has left out are there all the same. */
static int note_gone(struct scrub *scrub)
{
	int error = 0;

	for (size_t i = 0; i < scrub->state.count && error == 0 && !scrub->is_partial; i++) {
		struct scrub_file *file = &scrub->state.files[i];
		struct output_text text = {.bytes = NULL};
		struct stat status;

		if ((file->flags & (SCRUB_IS_SEEN | SCRUB_IS_GONE)) != 0 ||
			lstat(file->path, &status) == 0 || (errno != ENOENT && errno != ENOTDIR)) {
			continue;
		}
		error = scrub_state_put_gone(&scrub->state, file);
		scrub->gone_count++;
		if (!scrub->job->options->is_quiet) {
			checklist_append_verdict(&text, file->path, "GONE");
			output_write(text.bytes, text.length);
			output_text_free(&text);
		}
	}
	return error;
}

/* ---- the run ---- */

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

/* At least one file is begun, so that each run comes further. */
static void feed(struct scrub *scrub, uint64_t began_ns)
{
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

	for (int i = 0; i < VERDICTS; i++) {
		sum += counts[i];
	}
	report_note("%llu files checked: %llu as they were, %llu new, %llu changed, %llu rotten, "
		    "%llu unreadable; %llu gone; %llu left for the next run",
		(unsigned long long)sum, (unsigned long long)counts[VERDICT_GOOD],
		(unsigned long long)counts[VERDICT_NEW],
		(unsigned long long)counts[VERDICT_CHANGED],
		(unsigned long long)counts[VERDICT_ROTTEN],
		(unsigned long long)counts[VERDICT_UNREADABLE],
		(unsigned long long)scrub->gone_count,
		(unsigned long long)(scrub->queue_count - sum));
}

static void run(struct scrub *scrub, char *const *paths, int path_count, uint64_t began_ns)
{
	struct sum_job *job = scrub->job;
	struct scrub_run about = {.began_ns = scrub->now_ns};
	int error;

	if (sum_begin(job) != 0 || walk(scrub, paths, path_count) != 0) {
		return;
	}
	if (scrub->queue_count > 0) {
		qsort_r(scrub->queue, scrub->queue_count, sizeof(*scrub->queue), compare_orders,
			scrub->state.files);
	}
	about.file_count = scrub->seen_count;
	about.due_count = scrub->queue_count;
	error = scrub_state_put_begin(&scrub->state, &about);
	error = error != 0 ? error : note_gone(scrub);
	if (error == 0) {
		feed(scrub, began_ns);
	}
	sum_end(job);
	error = error != 0 || signals_interrupted()
		? error
		: scrub_state_put_end(&scrub->state, unix_ns_now());
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
		scanning->checkpointing.file != NULL || scanning->checkpointing.resumes;
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
			    "--sort, --checkpoint, --resume");
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
		.now_ns = unix_ns_now(),
		.has_ended = PTHREAD_COND_INITIALIZER,
	};
	struct output_text roots = {.bytes = NULL};
	uint64_t began_ns = scanning_ns_now();
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
			run(&scrub, paths, path_count, began_ns);
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

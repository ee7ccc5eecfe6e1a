/* SPDX-License-Identifier: MIT */
/*
 * A job of the lane for each archive.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tools/scan/unpack.h"

#include "tools/report.h"
#include "tools/scan/archive_kind.h"
#include "tools/scan/lane.h"
#include "tools/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ_BYTES = 64 << 10 };

struct unpack {
	struct scan_job *job;
	struct lane *lane;
	locale_t locale;	      /* names of entries are UTF-8 */
	struct scan_worker *spare;    /* [lock] counts where there is no other */
	pthread_mutex_t lock;	      /* of the rest */
	struct archive_counts counts; /* [lock] of archives that have ended */
};

/* One archive. */
struct packed {
	struct unpack *unpack;
	char *path;
	int fd;
	bool is_counted; /* as failed, for a reason of the scan's */
	bool is_cached;	 /* was, before it was unpacked */
	uint64_t sequence;
	struct lane_thread *thread;
	struct archive_counts counts;
	struct ending *ending; /* NULL: no thread waits for it */
};

/* With sorted output a file is reported when it has ended. */
struct ending {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool has_ended; /* [lock] */
};

int unpack_create(struct scan_job *job, struct unpack **out_unpack)
{
	struct unpack *unpack = calloc(1, sizeof(*unpack));
	int error;

	if (unpack == NULL) {
		return -ENOMEM;
	}
	unpack->job = job;
	pthread_mutex_init(&unpack->lock, NULL);
	unpack->locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	unpack->spare = scan_job_add_worker(job);
	error = unpack->spare == NULL ? -ENOMEM
				      : lane_create(job, job->worker_count, &unpack->lane);
	if (error != 0) {
		unpack_destroy(unpack);
		return error;
	}
	*out_unpack = unpack;
	return 0;
}

void unpack_destroy(struct unpack *unpack)
{
	if (unpack == NULL) {
		return;
	}
	lane_destroy(unpack->lane);
	if (unpack->locale != (locale_t)0) {
		freelocale(unpack->locale);
	}
	pthread_mutex_destroy(&unpack->lock);
	free(unpack);
}

void unpack_finish(struct unpack *unpack, struct archive_counts *out_counts)
{
	lane_finish(unpack->lane);
	*out_counts = unpack->counts;
}

/* ---- which files ---- */

/*
 * A descriptor with an offset and flags of its own. Where /proc is missing the
 * reads of both are past the page cache no more.
 */
static int open_again(int fd)
{
	char name[32];
	int again;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	again = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (again < 0) {
		again = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (again >= 0) {
			(void)fcntl(again, F_SETFL, fcntl(again, F_GETFL) & ~O_DIRECT);
		}
	}
	return again;
}

int unpack_claim(const struct pinion_scan_file *file, const struct pinion_window *window)
{
	struct search_file *searched = file->user;
	int fd;

	if (window->index != 0 || window->is_hole ||
		archive_kind_of(window->bytes, window->length_bytes) == ARCHIVE_KIND_NONE) {
		return 0;
	}
	fd = open_again(file->file.fd);
	if (fd < 0) {
		return -errno;
	}
	searched->packed_fd = fd;
	searched->is_packed = true;
	__atomic_store_n(&searched->is_taken, true, __ATOMIC_RELAXED);
	return 1;
}

/* ---- what becomes of their bytes ---- */

static int on_open(void *arg, const char *path, size_t path_bytes)
{
	struct packed *packed = arg;

	return source_open(packed->thread->source, path, path_bytes, NULL);
}

static int on_feed(void *arg, const uint8_t *bytes, size_t length)
{
	struct packed *packed = arg;

	return source_feed(packed->thread->source, bytes, length);
}

static int on_close(void *arg, int error)
{
	struct packed *packed = arg;

	error = source_close(packed->thread->source, error);
	return error == 0 && source_is_binary(packed->thread->source) ? 1 : error;
}

static void on_complain(void *arg, const char *path, const char *reason)
{
	struct packed *packed = arg;
	struct output_text text = {0};

	/* libarchive's words may quote the archive. */
	output_text_escaped(&text, reason, strlen(reason), true);
	output_text_append(&text, "", 1);
	report_path(path, text.failed ? "broken archive" : text.bytes);
	output_text_free(&text);
	packed->thread->worker->has_trouble = true;
}

static bool on_is_stopped(void *arg)
{
	(void)arg;
	return signals_interrupted();
}

static const struct archive_ops packed_ops = {
	.open = on_open,
	.feed = on_feed,
	.close = on_close,
	.complain = on_complain,
	.is_stopped = on_is_stopped,
};

/* Not an entry could be read: its own bytes are searched, as of any file. */
static void search_itself(struct packed *packed)
{
	struct source *source = packed->thread->source;
	uint8_t *bytes = malloc(READ_BYTES);
	off_t at = 0;
	int result = bytes == NULL ? -ENOMEM : 0;

	if (result == 0) {
		result = source_open(source, packed->path, strlen(packed->path), NULL);
	}
	if (result != 0) {
		free(bytes);
		return;
	}
	while (result == 0 && !signals_interrupted()) {
		ssize_t count = pread(packed->fd, bytes, READ_BYTES, at);

		if (count <= 0) {
			break;
		}
		at += count;
		result = source_feed(source, bytes, (size_t)count);
	}
	(void)source_close(source, result < 0 ? result : 0);
	free(bytes);
}

/* ---- jobs ---- */

static uint64_t entries_of(const struct archive_counts *counts)
{
	return counts->scanned + counts->links + counts->encrypted + counts->limited +
		counts->binary + counts->failed;
}

static void add_counts(struct archive_counts *sum, const struct archive_counts *more)
{
	sum->archives += more->archives;
	sum->scanned += more->scanned;
	sum->links += more->links;
	sum->encrypted += more->encrypted;
	sum->limited += more->limited;
	sum->binary += more->binary;
	sum->failed += more->failed;
	sum->bytes += more->bytes;
}

/* Counts the file; `worker` is the calling thread's, or the lock is held. */
static void count_file(const struct packed *packed, struct scan_worker *worker, int error)
{
	const struct pinion_scan_file file = {.path = packed->path};

	if (packed->is_counted) {
		return;
	}
	if (error == 0) {
		tally_add(&worker->tally, &file, PINION_SCAN_DONE, 0);
	} else if (error == -ECANCELED) {
		tally_add(&worker->tally, &file, PINION_SCAN_CANCELLED, error);
		worker->late_cancelled++;
	} else {
		tally_add(&worker->tally, &file, PINION_SCAN_FAILED, error);
		worker->late_failed++;
		worker->has_trouble = true;
	}
}

static void packed_destroy(struct packed *packed)
{
	struct ending *ending = packed->ending;

	if (!packed->is_cached) {
		(void)posix_fadvise(packed->fd, 0, 0, POSIX_FADV_DONTNEED);
	}
	close(packed->fd);
	free(packed->path);
	free(packed);
	if (ending != NULL) {
		pthread_mutex_lock(&ending->lock);
		ending->has_ended = true;
		pthread_cond_signal(&ending->changed);
		pthread_mutex_unlock(&ending->lock);
	}
}

static void await(struct ending *ending)
{
	pthread_mutex_lock(&ending->lock);
	while (!ending->has_ended) {
		pthread_cond_wait(&ending->changed, &ending->lock);
	}
	pthread_mutex_unlock(&ending->lock);
	pthread_cond_destroy(&ending->changed);
	pthread_mutex_destroy(&ending->lock);
}

/* It cannot be unpacked. */
static void give_up(struct packed *packed, int error)
{
	struct unpack *unpack = packed->unpack;

	report_path(packed->path, report_reason(error));
	pthread_mutex_lock(&unpack->lock);
	count_file(packed, unpack->spare, error);
	pthread_mutex_unlock(&unpack->lock);
	packed_destroy(packed);
}

static void run_packed(struct scan_job *job, struct lane_thread *thread, void *arg)
{
	struct packed *packed = arg;
	struct unpack *unpack = packed->unpack;
	locale_t before = (locale_t)0;
	int error;

	if (thread == NULL) {
		give_up(packed, -ENOMEM);
		return;
	}
	packed->thread = thread;
	source_follow(thread->source, &(struct pinion_scan_file){.sequence = packed->sequence});
	if (unpack->locale != (locale_t)0) {
		before = uselocale(unpack->locale);
	}
	error = archive_search(packed->fd, packed->path, &job->options->archives.limits,
		&packed_ops, packed, &packed->counts);
	if (error == -EILSEQ && entries_of(&packed->counts) == 0) {
		search_itself(packed);
	}
	if (before != (locale_t)0) {
		uselocale(before);
	}
	count_file(packed, thread->worker, error);
	pthread_mutex_lock(&unpack->lock);
	add_counts(&unpack->counts, &packed->counts);
	pthread_mutex_unlock(&unpack->lock);
	packed_destroy(packed);
}

/* NULL: no memory. */
static struct packed *packed_create(
	struct unpack *unpack, const struct pinion_scan_file *file, int fd)
{
	struct packed *packed = calloc(1, sizeof(*packed));

	if (packed == NULL) {
		return NULL;
	}
	packed->path = strdup(file->path);
	if (packed->path == NULL) {
		free(packed);
		return NULL;
	}
	packed->unpack = unpack;
	packed->fd = fd;
	packed->sequence = file->sequence;
	packed->is_cached = file->file.cached_percent > 0;
	return packed;
}

int unpack_begin(struct unpack *unpack, const struct pinion_scan_file *file,
	enum pinion_scan_outcome outcome)
{
	const struct search_file *searched = file->user;
	struct ending ending = {
		.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
	bool waits = unpack->job->reporter.sorted != NULL;
	struct packed *packed;
	int error;

	if (searched == NULL || !searched->is_packed) {
		return 0;
	}
	packed = packed_create(unpack, file, searched->packed_fd);
	if (packed == NULL || outcome == PINION_SCAN_CANCELLED) {
		close(searched->packed_fd);
		free(packed != NULL ? packed->path : NULL);
		free(packed);
		return outcome == PINION_SCAN_CANCELLED ? 0 : -ENOMEM;
	}
	packed->is_counted = outcome != PINION_SCAN_DONE;
	packed->ending = waits ? &ending : NULL;
	error = lane_submit(unpack->lane, run_packed, packed);
	if (error != 0) {
		packed->ending = NULL;
		packed_destroy(packed);
		return error;
	}
	if (waits) {
		await(&ending);
	}
	return outcome == PINION_SCAN_DONE ? 1 : 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Findings of a history on their way out: in one order whatever the order in
 * which blobs are searched, and each once.
 *
 * Blobs are sorted by path and age. Findings of a blob are kept until those
 * before it are done. A finding whose fingerprint an older version of its file
 * has already is a repetition, and is not shown: the commit that brought it is.
 *
 * Memory: findings of blobs that are done before their turn, and 24 bytes for
 * each that the file at hand has.
 */
#ifndef PINION_TOOLS_SCAN_GIT_RESULTS_H
#define PINION_TOOLS_SCAN_GIT_RESULTS_H

#include "tools/scan/git/blobs.h"
#include "tools/scan/job.h"

#include <pthread.h>

struct git_kept {
	bool has_print; /* else a note, which is always shown */
	bool is_hidden; /* it makes later ones repetitions, and is not shown */
	struct fingerprint print;
	char *line;
	size_t length;
};

/* What one blob has; empty: zeros. */
struct git_kept_list {
	struct git_kept *items;
	size_t count;
	size_t capacity;
};

struct git_seen; /* a fingerprint of the path at hand */

struct git_results {
	struct scan_job *job;
	const struct git_blobs *blobs;
	struct scan_worker *worker;  /* whose reporter writes */
	pthread_mutex_t lock;	     /* guards what follows */
	struct git_kept_list *lists; /* by place in the order */
	bool *are_done;
	size_t next; /* the first that is not written */
	struct git_seen *seen;
	size_t seen_capacity; /* a power of two */
	size_t seen_count;
	uint32_t seen_path;
	uint32_t generation;
	uint64_t repeated_count;
	bool has_failed; /* output cannot be written, or no memory */
};

/* The blobs are sorted. 0 or -ENOMEM. */
int git_results_init(
	struct git_results *results, struct scan_job *job, const struct git_blobs *blobs);
void git_results_fini(struct git_results *results);

/* A copy of the lines; `finding` NULL: they are notes. 0 or -ENOMEM. */
int git_kept_add(struct git_kept_list *list, const struct finding *finding,
	const struct reporter_worker *lines);

void git_kept_list_free(struct git_kept_list *list);

/*
 * The blob at this place of the order is done: takes over its findings, and
 * writes those whose turn it is. False: there is no point in going on.
 */
bool git_results_put(struct git_results *results, size_t place, struct git_kept_list *list);

#endif

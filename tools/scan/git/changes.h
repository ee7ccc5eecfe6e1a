/* SPDX-License-Identifier: MIT */
/*
 * The changes of commits, or of an index, as git compares trees: which blobs
 * they bring to which paths.
 *
 * To compare takes git most of the time before the search, so that several
 * processes do it at once, each with a thread that reads its answer.
 */
#ifndef PINION_TOOLS_SCAN_GIT_CHANGES_H
#define PINION_TOOLS_SCAN_GIT_CHANGES_H

#include "tools/scan/git/blobs.h"
#include "tools/scan/git/process.h"

#include <pthread.h>

struct git_changes {
	const struct git_place *place;
	struct git_blobs *blobs; /* [lock:lock] but for its commits */
	bool has_bases;		 /* versions from before the changes count, too */
	pthread_mutex_t lock;
};

/*
 * Adds the changes of these commits, from the newest to the oldest: ids, each
 * with a newline after it. False: lines say why it is not all of them.
 */
bool git_changes_of_commits(
	struct git_changes *changes, const char *text, size_t bytes, size_t process_count);

/* Adds those that this process writes, of no commit, and ends it. As above. */
bool git_changes_of_index(struct git_changes *changes, struct git_process *process);

#endif

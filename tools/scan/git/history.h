/* SPDX-License-Identifier: MIT */
/*
 * What a repository has to be searched: the blobs of all its commits, of those
 * since a revision, or of the index.
 *
 * `git rev-list` lists commits, and `git diff-tree` names each blob that a
 * commit has and none of its parents has at that path; so every blob of every
 * commit is named once at least. Refs that lead to trees and blobs are listed
 * apart. The stash is all of its entries, not the last alone.
 */
#ifndef PINION_TOOLS_SCAN_GIT_HISTORY_H
#define PINION_TOOLS_SCAN_GIT_HISTORY_H

#include "tools/scan/git/blobs.h"
#include "tools/scan/git/process.h"

struct git_history {
	const struct git_place *place;
	const char *since;    /* NULL: all commits of all refs, and HEAD */
	size_t process_count; /* that compare commits at once */
	bool is_staged;	      /* blobs of the index that HEAD does not have there */
	/* Set by git_history_read(). */
	bool is_shallow;
	bool is_partial; /* objects may be missing */
	char *head;	 /* the id of the commit; NULL: there is none yet */
	/* The caller's, to be freed: */
	char *folder; /* absolute, without its `.git` */
};

/*
 * Fills in `blobs`, and sorts them. False: some may be missing; lines say why.
 */
bool git_history_read(struct git_history *history, struct git_blobs *blobs);

#endif

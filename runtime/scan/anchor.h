/* SPDX-License-Identifier: MIT */
/*
 * A directory some way down a tree, from which deep entries are opened.
 *
 * The kernel looks up each part of a path that it opens. From the root, that is
 * half the square of the depth for a tree that is one long branch: 25 million
 * parts for 5000 levels, a file in each. So a long path is opened from a
 * directory that is above its end by a few hundred bytes, and that stays open
 * for the entries to come. A walk meets neighbours one after the other, so one
 * such directory is enough; where it is not above an entry, another is opened
 * from the root.
 *
 * It is reached beneath the root, and entries are opened beneath it: no link is
 * followed anywhere in the path. If the tree's owner moves the directory away
 * meanwhile, entries below it are still those of a directory that was beneath
 * the root.
 *
 * Invariant: without a descriptor for it everything is opened from the root.
 * Used by a walker, and by the thread that adds a scan's files.
 * Elsewhere: paths beyond PATH_MAX, host/long_path.c.
 */
#ifndef PIN_SCAN_ANCHOR_H
#define PIN_SCAN_ANCHOR_H

#include "runtime/host/host.h"

#include <stdbool.h>
#include <stddef.h>

/* Zero-initialise. */
struct pin_anchor {
	char *path; /* beneath the root */
	size_t capacity;
	size_t bytes; /* of the path; 0: none is open */
	int fd;
	uint64_t moves; /* times that another one was opened */
};

/*
 * The directory to open `path` from, which has `bytes` bytes and is beneath the
 * root: the root, or the anchor, which may be opened for it. *out_start is
 * where in the path the part begins that is opened there.
 */
int pin_anchor_reach(const struct pin_host *host, struct pin_anchor *anchor, int root_fd,
	const char *path, size_t bytes, size_t *out_start);

/* Closes it, where its descriptor is needed. False: there was none. */
bool pin_anchor_drop(struct pin_anchor *anchor);

void pin_anchor_fini(const struct pin_host *host, struct pin_anchor *anchor);

#endif

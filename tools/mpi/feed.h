/* SPDX-License-Identifier: MIT */
/*
 * Adds the parts of a rank's queue to its scan, and leaves entries of them to
 * others, as parts of the queue again.
 *
 * One at a time in a process. The adding thread calls all but feed_share(),
 * which is a callback of the scan.
 */
#ifndef PINION_TOOLS_MPI_FEED_H
#define PINION_TOOLS_MPI_FEED_H

#include "tools/input.h"
#include "tools/mpi/parts.h"

/* With this queue; NULL: none any more. */
void feed_use(struct parts *parts);

/* As struct distribution has them. */
int feed_add(const struct input *input, struct pinion_scan *scan, const char *path);
int feed_all_parts(const struct input *input, struct pinion_scan *scan);
bool feed_share(void *arg, const char *beneath, size_t beneath_bytes, bool is_directory);

#endif

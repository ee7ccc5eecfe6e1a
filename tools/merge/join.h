/* SPDX-License-Identifier: MIT */
/*
 * The output of all shards together, in the order of paths.
 */
#ifndef PINION_TOOLS_MERGE_JOIN_H
#define PINION_TOOLS_MERGE_JOIN_H

#include "tools/merge/shards.h"

/* What the shards have come to. */
struct join {
	uint64_t file_count;
	uint64_t failed_count;
	uint64_t finding_count;
};

/*
 * Writes it, each path once, and a line on stderr for each that failed. Needs
 * memory for all paths. False: a log cannot be read, two shards say different
 * things of a path, or the output could not be written: that is reported.
 */
bool join_write(const struct shards *shards, struct join *out_join);

#endif

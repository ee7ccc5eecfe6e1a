/* SPDX-License-Identifier: MIT */
/*
 * The logs of the ranks of pinion-mpi. Rank K of a run writes FILE.K, a new one
 * in each run. When a run begins that goes on with others, rank 0 renames their
 * logs to FILE.earlier.J, the latest with the largest J; each rank looks files
 * up in all of these. A run that has done all removes them, as its own logs
 * have all that it has found there.
 *
 * So any number of ranks may go on, and what a shard of N is to `pinion merge`,
 * rank K of N is as well.
 */
#ifndef PINION_TOOLS_MPI_RANK_LOGS_H
#define PINION_TOOLS_MPI_RANK_LOGS_H

#include <pinion/checkpoint.h>
#include <stdbool.h>
#include <stdint.h>

/* Zero-initialise. */
struct rank_logs {
	struct pinion_checkpoint **logs; /* oldest first */
	uint32_t count;
};

/*
 * False, and a line: FILE is below one of the paths, where ranks would read the
 * logs of others, as they grow.
 */
bool rank_logs_are_apart(const char *file, char *const *paths, int path_count);

/* A count that fits the entries of checkpoint_table.c. */
enum { RANK_LOGS_MAX = 65000 };

/*
 * Opens those of earlier runs; with `is_first`, as rank 0, before the others
 * do: finds and renames them. They must have these facts, but for the last.
 * Returns 0; -EEXIST: there are some, and `flags` lacks
 * PINION_CHECKPOINT_RESUME; -ESTALE: one has other facts; -EBUSY: one is being
 * written; -EMFILE: there are more than descriptors; or as
 * pinion_checkpoint_open() with READ and SALVAGE of `flags`. Errors are
 * reported.
 */
int rank_logs_open(struct rank_logs *logs, const char *file, bool is_first, uint32_t flags,
	const struct pinion_checkpoint_fact *facts, uint32_t fact_count);

void rank_logs_close(struct rank_logs *logs);

/*
 * Removes those of earlier runs that the last call with `is_first` has opened.
 * Its FILE must still be there as a string.
 */
void rank_logs_remove_earlier(void);

#endif

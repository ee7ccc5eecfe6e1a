/* SPDX-License-Identifier: MIT */
/*
 * Whether this process is one of several that do one command together: the
 * ranks of pinion-mpi, which sets this up before it runs the command. In pinion
 * itself there is none.
 *
 * A rank reads those parts of the trees that it gets, and notes them in a log
 * of its own, whose name ends with its rank. `pinion merge` joins the logs.
 */
#ifndef PINION_TOOLS_DISTRIBUTION_H
#define PINION_TOOLS_DISTRIBUTION_H

#include "tools/checkpoint_records.h"

#include <pinion/scan.h>
#include <stdbool.h>
#include <stdint.h>

struct input;

struct distribution {
	uint32_t rank;
	uint32_t count;
	/*
	 * The command has read its options, and opened its log. False: another
	 * rank has failed, or the process was stopped.
	 */
	bool (*begin)(void);
	/*
	 * Rank 0's: one of the command's paths, for all ranks. 0, or as
	 * input_add().
	 */
	int (*add)(const struct input *input, struct pinion_scan *scan, const char *path);
	/*
	 * Adds what falls to this rank, until no rank has work. 0, or
	 * -ECANCELED.
	 */
	int (*feed)(const struct input *input, struct pinion_scan *scan);
	/* As of struct pinion_scan_config. */
	bool (*share)(void *arg, const char *beneath, size_t beneath_bytes, bool is_directory);
	/*
	 * All files of this rank are done: what they came to, which becomes
	 * what a shard of them all has to know. Waits for the other ranks.
	 * False: there is none of them any more, this rank has failed before
	 * its parts, or the counts of all do not add up.
	 */
	bool (*end)(struct checkpoint_totals *totals);
	/* The log of this rank has all that it has done, and is closed. */
	void (*note_whole)(void);
};

/* NULL: the process is alone. */
extern const struct distribution *distribution;

/* For a scan of this process. */
void distribution_configure(struct pinion_scan_config *config);

/*
 * Whether an option goes with several ranks, by its name. False: reported.
 */
bool distribution_allows(const char *option);

/* The same of a format of findings, whose parts pinion merge has to join. */
bool distribution_allows_format(const char *name, bool is_document);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The logs of the shards of one run, and the proof that they are all of it.
 * They have the same command, options, rules, roots and number of shards; each
 * shard is there once, at its complete end.
 */
#ifndef PINION_TOOLS_MERGE_SHARDS_H
#define PINION_TOOLS_MERGE_SHARDS_H

#include "tools/checkpoint_records.h"
#include "tools/output_text.h"
#include "tools/sharding.h"

#include <pinion/checkpoint.h>
#include <stdbool.h>
#include <stddef.h>

struct shard {
	const char *path; /* of the log; NULL: there is none of this shard */
	struct pinion_checkpoint *log;
	bool is_complete;
	bool has_end;
	struct checkpoint_end end; /* the last */
};

/* Zero-initialise. */
struct shards {
	struct shard *items; /* by index; `count` of them */
	uint32_t count;	     /* 0: not known yet */
	bool has_trouble;    /* a log could not be taken, which is reported */
	struct pinion_checkpoint *first;
	const char *first_path;
};

/*
 * Opens a log and takes it. What it is, or is not, is reported; a log that is
 * not there only where `has_to_be` is set.
 */
void shards_add(struct shards *shards, const char *path, bool has_to_be);

void shards_fini(struct shards *shards);

/* Those that have to be run again: "2,5-7", empty: none. */
void shards_missing(const struct shards *shards, struct output_text *text);

/* Once all are complete: whether their counts add up; if not, reported. */
bool shards_check_totals(const struct shards *shards);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The records of a command's checkpoint log, as checkpointing.c writes and
 * tools/merge/ reads them. Of a path the last record counts.
 */
#ifndef PINION_TOOLS_CHECKPOINT_RECORDS_H
#define PINION_TOOLS_CHECKPOINT_RECORDS_H

#include <stdint.h>

enum checkpoint_record {
	CHECKPOINT_RECORD_FILE = 1, /* a file has ended: struct checkpoint_file */
	CHECKPOINT_RECORD_GONE = 2, /* the last run has not seen this path */
	CHECKPOINT_RECORD_END = 3,  /* a run has done all: struct checkpoint_end */
	CHECKPOINT_RECORD_PART = 4, /* a file was read up to an offset */
};

enum {
	CHECKPOINT_COUNTS = 3,
	CHECKPOINT_FACTS = 6,
};

/* Facts of the log, by which merged logs belong together; the last differs. */
#define CHECKPOINT_FACT_NAMES \
	{ \
		"command", "version", "options", "rules and baseline", "root", "shard" \
	}

/* The value of a fact that there is none of. */
#define CHECKPOINT_NONE "(none)"

/*
 * Before its path and its output; of a part there follow the offset that it was
 * read up to, 8 bytes, and what the command needs to go on there.
 */
struct checkpoint_file {
	uint64_t inode;
	uint64_t size_bytes;
	int64_t modified_ns;
	int64_t changed_ns;
	uint64_t counts[CHECKPOINT_COUNTS]; /* the command's; the first: findings */
	int32_t error;			    /* negative errno; 0: done */
	uint32_t is_done;		    /* and that is all that there is to say */
	uint64_t path_bytes;
	uint64_t text_bytes;
};

/* Of all paths that a run has seen, by outcome. */
struct checkpoint_totals {
	uint64_t seen;
	uint64_t done;
	uint64_t failed;
	uint64_t skipped;
	uint64_t ignored;     /* other shards' included */
	uint64_t other_shard; /* of those: left to other shards */
};

/* Whether the records have all of the output. */
enum checkpoint_form {
	CHECKPOINT_FORM_LINES = 0,
	CHECKPOINT_FORM_DOCUMENT = 1, /* they are parts of a document */
	CHECKPOINT_FORM_ARCHIVES = 2, /* they lack findings in archives */
};

/* Before what the output begins with, such as the names of columns. */
struct checkpoint_end {
	struct checkpoint_totals totals;
	uint32_t has_trouble; /* the exit status was 2 */
	uint32_t form;	      /* enum checkpoint_form */
	uint64_t head_bytes;
};

#endif

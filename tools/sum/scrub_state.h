/* SPDX-License-Identifier: MIT */
/*
 * STATE of `pinion sum --scrub`: what is known of each file, in a checkpoint
 * log (pinion/checkpoint.h), whose locks, checksums and torn ends are its.
 *
 * The log has a record for each check of a file, a record of each file that is
 * gone, and two of each run. Of a path the last record counts, and the order of
 * these records is the order in which the files were checked, whatever the
 * clock says. A log that consists of other records by more than half is written
 * anew when it is opened, beside it, and replaces it when it is durable.
 *
 * In memory a file takes its path, 88 bytes, and 8 to 16 in the index.
 */
#ifndef PINION_TOOLS_SUM_SCRUB_STATE_H
#define PINION_TOOLS_SUM_SCRUB_STATE_H

#include "tools/sum/digest.h"

#include <pinion/checkpoint.h>
#include <pinion/scan.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum scrub_file_flags {
	SCRUB_HAS_DIGEST = 1 << 0, /* it was read to its end, once */
	SCRUB_IS_ROTTEN = 1 << 1,  /* at its last check; `digest` is the old one */
	/*
	 * It had changed just before it was read: it may have changed again
	 * without another time.
	 */
	SCRUB_IS_FRESH = 1 << 2,
	/* Not in the log: */
	SCRUB_IS_GONE = 1 << 3,	 /* there is no file of that path any more */
	SCRUB_IS_SEEN = 1 << 4,	 /* by this run's walk */
	SCRUB_IS_LARGE = 1 << 5, /* and in flight */
};

struct scrub_file {
	const char *path; /* of the state */
	uint64_t order;	  /* of its last check; 0: it was never checked */
	int64_t checked_ns;
	/* When it was opened for that; times are nanoseconds since 1970. */
	uint64_t size_bytes;
	int64_t modified_ns;
	int64_t changed_ns;
	uint8_t digest[DIGEST_BYTES_MAX];
	int32_t error; /* negative errno of its last check; 0: it was read */
	uint32_t flags;
};

/* Of the last run; zero: there was none. */
struct scrub_run {
	int64_t began_ns;
	int64_t ended_ns; /* 0: it goes on, or was killed */
	uint64_t file_count;
	uint64_t due_count;
	uint64_t checked_count; /* since it began */
};

struct scrub_state {
	struct pinion_checkpoint *log;
	struct scrub_file *files;
	size_t count; /* those that are gone included */
	size_t capacity;
	size_t gone_count;
	uint32_t *index; /* by path: 1 + the number of its file, 0: free */
	size_t index_size;
	struct scrub_texts *texts;
	uint64_t record_count; /* in the log, when it was opened */
	uint64_t run_order;    /* of the last run's record */
	struct scrub_run run;
};

/* What all runs with a STATE have in common. */
struct scrub_state_config {
	const char *path;
	const char *algorithm;
	const char *roots;
	bool salvages; /* damaged records are left out */
	bool is_read;  /* only; the two texts do not count */
};

/*
 * Opens or makes it. False: reported; `state` is empty. scrub_state_close()
 * follows in any case.
 */
bool scrub_state_open(struct scrub_state *state, const struct scrub_state_config *config);

/* Makes all records durable. False: an error, which is reported. */
bool scrub_state_close(struct scrub_state *state);

/* NULL: there is none, or it is gone. */
struct scrub_file *scrub_state_find(const struct scrub_state *state, const char *path);

/* The file of that path, a new one if need be. NULL: no memory. */
struct scrub_file *scrub_state_add(struct scrub_state *state, const char *path);

/*
 * Each appends a record; 0 or a negative errno. The first: what `file` says, of
 * a check that met these gaps; any thread.
 */
int scrub_state_put(struct scrub_state *state, const struct scrub_file *file,
	const struct pinion_gap *gaps, size_t gap_count);
int scrub_state_put_gone(struct scrub_state *state, struct scrub_file *file);
int scrub_state_put_begin(struct scrub_state *state, const struct scrub_run *run);
int scrub_state_put_end(struct scrub_state *state, int64_t ended_ns);

/*
 * The ranges that the last check of a file could not read: malloc'ed; none:
 * NULL, as without memory.
 */
struct pinion_gap *scrub_state_gaps(
	const struct scrub_state *state, const struct scrub_file *file, size_t *out_count);

#endif

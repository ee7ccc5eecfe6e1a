/* SPDX-License-Identifier: MIT */
/*
 * One run of `pinion sum`: hashing paths (hash.c), verifying lists (check.c) or
 * a scrub (scrub.c), over the same scan.
 *
 * Standard input cannot go through a scan, which reads regular files. When it
 * is met, the scan so far is finished, standard input is hashed in place, and
 * what follows starts another scan on the same runtime.
 */
#ifndef PINION_TOOLS_SUM_JOB_H
#define PINION_TOOLS_SUM_JOB_H

#include "tools/gaps.h"
#include "tools/meanwhile.h"
#include "tools/scanning.h"
#include "tools/sum/audit.h"
#include "tools/sum/digest.h"
#include "tools/sum/order.h"
#include "tools/sum/scrub.h"

#include <pinion/scan.h>
#include <pthread.h>
#include <stdbool.h>

struct sum_options {
	const struct digest_algorithm *algorithm; /* NULL: what each line of a list says */
	bool recurse;
	bool is_check;
	bool is_tagged;
	bool is_quiet;
	bool is_status;	      /* without is_check: of a scrub's STATE */
	bool is_strict;	      /* a malformed line is trouble */
	bool ignores_missing; /* a file that is not there is none */
	bool names_bad_lines; /* all of them */
	const char **audited; /* --audit: where files that no list names are looked for */
	uint32_t audited_count;
	struct scrub_options scrub;
	struct scanning_options scanning; /* -0 also ends the lines written */
};

/* A path's digest as far as it got: the scan's memory per file in flight. */
struct sum_file {
	struct digest_state state;
	const struct digest_algorithm *algorithm;
	bool is_hashing; /* the state must be ended */
	bool in_parts;	 /* windows come in any order, on several workers */
	bool has_gap;	 /* some of it could not be read: */
	struct pinion_gap gap;
	const char *writer; /* why it is not hashed: it is written meanwhile */
	bool is_late;	    /* its holes took too long, at late_offset */
	uint64_t late_offset;
	uint64_t hole_ns;    /* spent in holes */
	uint64_t part_bytes; /* of a hole that was given up, hashed before */
	uint8_t digest[DIGEST_BYTES_MAX];
	struct checkpointing_file kept; /* with --checkpoint: as it was opened */
	struct output_text line;	/* of an earlier run, where that is_found */
	uint64_t start_offset;		/* of a file that an earlier run has begun */
	bool is_found;
	/* Where the mode lists them: all of it that could not be read. */
	struct gaps gaps;
	int64_t opened_ns; /* since 1970 */
};

struct sum_job;

/* What differs between hashing and verifying. */
struct sum_mode {
	/* The algorithm for the path of that sequence. */
	const struct digest_algorithm *(*algorithm)(struct sum_job *job, uint64_t sequence);
	/*
	 * Appends the line for a path; `digest` is NULL when it could not be
	 * read. Runs on any thread.
	 */
	void (*line)(struct sum_job *job, struct output_text *text, const char *path,
		uint64_t sequence, const uint8_t *digest);
	/*
	 * NULL, or called in place of `line` for any outcome: says all that
	 * there is to say of the path, and appends its line. The gaps of a file
	 * are listed for it instead of ending the file. Runs on any thread.
	 */
	void (*ended)(struct sum_job *job, struct output_text *text,
		const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error);
};

struct sum_job {
	const struct sum_options *options;
	const struct sum_mode *mode;
	struct pinion_runtime *runtime; /* NULL until a path needs it */
	struct pinion_scan *scan;	/* NULL between two scans */
	struct order order;		/* of the current scan */
	uint64_t next_sequence;		/* of the next path a list names */
	struct pinion_scan_stats totals;
	char *const *paths;
	int path_count;
	struct meanwhile logging; /* opens the log, while is_logging */
	bool is_logging;
	struct checkpointing *checkpointing; /* NULL: no --checkpoint */
	struct audit audit;		     /* the paths of the lists */
	struct scrub *scrub;		     /* NULL: no --scrub */
	uint64_t other_path_count;	     /* not added, as another shard's */
	uint64_t other_entry_count;	     /* [W:any R:end] left out by a walk for that */
	bool has_unread_list;		     /* some of them are not known */

	pthread_mutex_t lock; /* of the counters below, which callbacks change */
	bool has_trouble;
	uint64_t part_bytes;	   /* of the current scan, of holes given up */
	uint64_t mismatch_count;   /* of the current list */
	uint64_t unreadable_count; /* of the current list */
	uint64_t verified_count;   /* of the current list */
	bool has_mismatch;	   /* of any list */
};

/* Waits until the log is open. False: it is refused, which is reported. */
bool sum_has_log(struct sum_job *job);

/* Makes sure that a scan runs. Returns 0, or an errno that is reported. */
int sum_begin(struct sum_job *job);

/* Waits for the scan, writes its last lines and adds up its counts. */
void sum_end(struct sum_job *job);

/* Hashes standard input. Returns 0 or a negative errno, already reported. */
int sum_stdin(struct sum_job *job, const struct digest_algorithm *algorithm, uint8_t *digest);

/* Records an error for the exit status. */
void sum_trouble(struct sum_job *job);

/* The line on stderr for a path that failed. */
void sum_report_failure(const struct sum_job *job, const struct pinion_scan_file *file,
	enum pinion_scan_outcome outcome, int error);

/* Hashes paths[0 … path_count), then what the list of the options names. */
void sum_plain(struct sum_job *job, char *const *paths, int path_count);

/* Verifies the lists in paths[0 … path_count). */
void sum_check(struct sum_job *job, char *const *paths, int path_count);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A run of --scrub while it goes on: scrub.c runs it, scrub_walk.c finds the
 * files that are due, scrub_verdict.c says what each has come to.
 */
#ifndef PINION_TOOLS_SUM_SCRUB_RUN_H
#define PINION_TOOLS_SUM_SCRUB_RUN_H

#include "tools/sum/job.h"
#include "tools/sum/scrub_state.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

enum scrub_verdict {
	SCRUB_VERDICT_GOOD,
	SCRUB_VERDICT_NEW,
	SCRUB_VERDICT_CHANGED,
	SCRUB_VERDICT_ROTTEN,
	SCRUB_VERDICT_UNREADABLE,
	SCRUB_VERDICTS,
};

struct scrub {
	struct sum_job *job;
	struct scrub_state state; /* a file is changed by the worker that reads it */
	struct stat state_status; /* of its file */
	const char *state_name;	  /* without its folder */
	uint32_t *queue;	  /* numbers of files in the state */
	size_t queue_count;
	size_t queue_capacity;
	int64_t now_ns;	     /* since 1970, when the run began */
	bool is_partial;     /* some of the trees were not seen */
	uint64_t root_count; /* files of the root that is walked */
	uint64_t seen_count;
	uint64_t gone_count;
	/* Under the lock of the job: */
	uint64_t counts[SCRUB_VERDICTS];
	uint32_t large_count;	  /* of large files in flight */
	pthread_cond_t has_ended; /* a large one has */
};

/* Nanoseconds since 1970. */
int64_t scrub_unix_ns_now(void);

/*
 * Fills the queue with the files below these roots that are due, in any order.
 * Returns 0 or a negative errno, which is reported.
 */
int scrub_walk(struct scrub *scrub, char *const *paths, int path_count);

/* After it: notes files that are not there any more. 0 or a negative errno. */
int scrub_note_gone(struct scrub *scrub);

/* Of a scan whose files are those of the queue, in its order. */
extern const struct sum_mode scrub_mode;

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A scan under way: what all its workers share, what each has of its own, and
 * what the library calls for each file and window.
 *
 * Each worker has an engine worker, lists and line space of its own; each file
 * in flight has its findings' state in the scan's memory. Lines of a file are
 * written while its lock is held, which keeps them in order.
 */
#ifndef PINION_TOOLS_SCAN_JOB_H
#define PINION_TOOLS_SCAN_JOB_H

#include "tools/meanwhile.h"
#include "tools/scan/archive.h"
#include "tools/scan/reporter.h"
#include "tools/scan/run.h"
#include "tools/scan/search.h"
#include "tools/scan/tally.h"

#include <pinion/runtime.h>
#include <pthread.h>

/* State of one worker, which no other uses while the scan runs. */
struct scan_worker {
	struct scan_worker *next; /* of those that scan_job_add_worker() made */
	struct search_worker search;
	struct reporter_worker reporter;
	struct source *decoded;	  /* for short texts; NULL: there was none yet */
	struct yara_worker *yara; /* NULL: there was no file yet, or no such rule */
	struct tally tally;
	uint64_t hole_bytes; /* searched of the hole that is being searched */
	uint64_t part_bytes; /* of holes that were not searched to their ends */
	/* Counted as done by the library, before they ended otherwise. */
	uint64_t late_failed;
	uint64_t late_cancelled;
	uint64_t late_skipped;
	bool has_trouble;
	/*
	 * NULL: lines are written as they come. Else this takes those of the
	 * reporter, each finding's alone, and with NULL other lines.
	 */
	void (*keep)(
		void *arg, const struct finding *finding, const struct reporter_worker *reporter);
	void *keep_arg;
};

/*
 * The test of the library that searches. It takes some 15 ms, in which the scan
 * already reads: only a line of its output waits until the test has passed.
 */
struct library_test {
	bool compiles;	  /* some rules are not compiled already */
	char reason[320]; /* why the library that searches cannot be trusted */
	struct meanwhile running;
	pthread_mutex_t lock; /* of the end of `running` */
	int error;
	bool has_ended; /* [W:lock holder R:any] then `error` is known */
};

struct unpack;

struct scan_job {
	struct library_test test;
	const struct scan_options *options;
	struct reporter reporter;
	struct search search;
	struct pinion_runtime *runtime;
	struct pinion_scan *scan;
	struct unpack *unpack;		     /* NULL: archives are files like any others */
	struct checkpointing *checkpointing; /* NULL: no --checkpoint */
	struct pinion_scan_stats totals;
	struct archive_counts archives; /* at the end */
	struct sorted_output sorted;	/* with --sort */
	/* One more than workers: the last is the adding thread's. */
	struct scan_worker *workers;
	uint32_t worker_count;
	pthread_mutex_t lock;	    /* of `others` */
	struct scan_worker *others; /* of threads that are no workers of `runtime` */
	bool has_trouble;
	uint64_t other_shard_count; /* of paths that were not added to the scan */
	/* Of a repository: */
	uint64_t repeated_count; /* findings that an older version has, too */
	char *repository;	 /* of reporter.run */
	char *revision;
};

/* Zero-initialise the job; then this. */
void scan_job_init(struct scan_job *job, const struct scan_options *options);

/* The workers' states. Returns 0 or -ENOMEM. */
int scan_job_add_workers(struct scan_job *job);

/*
 * Has the output sorted by `sequence`, of which as many are in flight at once
 * as `config` says then. Returns 0 or -ENOMEM.
 */
int scan_job_sort(struct scan_job *job, struct pinion_scan_config *config);

/*
 * A state for a thread that is no worker of the runtime; it is the job's, which
 * counts it with the others. Any thread. NULL: no memory.
 */
struct scan_worker *scan_job_add_worker(struct scan_job *job);

/* All states, those of scan_job_add_worker() too; accepts a job without any. */
void scan_job_fini(struct scan_job *job);

/* Begins the test of the library, where that searches. */
void scan_job_begin_test(struct scan_job *job, const struct matcher_ops *matcher);

/* Waits for the end of the test. */
bool scan_job_is_sound(struct scan_job *job);

/* What the library calls; its argument is the job. */
extern const struct pinion_scan_ops scan_job_ops;

/* A zero byte is among the first ones, unless they are text as UTF-16. */
bool scan_job_is_binary(const struct scan_options *options, const struct pinion_window *window);

/* The callbacks of these names, for a thread that has `worker`. */
int scan_job_open(struct scan_job *job, struct pinion_scan_file *file);
int scan_job_window(struct scan_job *job, struct scan_worker *worker, struct pinion_scan_file *file,
	const struct pinion_window *window);
/*
 * Shows what YARA has found in all of a file, before its close; `window` has
 * its bytes.
 */
int scan_job_take_whole(struct scan_job *job, struct scan_worker *worker,
	const struct pinion_scan_file *file, const struct pinion_window *window,
	struct candidates *found);

int scan_job_close(
	struct scan_job *job, struct scan_worker *worker, struct pinion_scan_file *file, int error);

#endif

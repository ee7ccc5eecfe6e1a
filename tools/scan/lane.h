/* SPDX-License-Identifier: MIT */
/*
 * A lane for work that blocks or computes for long, beside the workers that
 * read: a thread pool of its own. A job in it has a worker's state (job.h) and
 * a source to search bytes with.
 *
 * A caller waits while LANE_JOBS_MAX jobs wait to begin. That is the back-
 * pressure on the scan: each waiting job may hold a descriptor.
 */
#ifndef PINION_TOOLS_SCAN_LANE_H
#define PINION_TOOLS_SCAN_LANE_H

#include "tools/scan/source.h"

enum { LANE_JOBS_MAX = 64 };

struct lane;

/* What a thread of the lane has, made for its first job. */
struct lane_thread {
	struct scan_worker *worker;
	struct source *source;
};

/* Runs on a thread of the lane; `thread` NULL: no memory. */
typedef void (*lane_run_fn)(struct scan_job *job, struct lane_thread *thread, void *arg);

/*
 * A lane of that number of threads. Returns 0 or an error of
 * pinion_thread_pool_create().
 */
int lane_create(struct scan_job *job, uint32_t thread_count, struct lane **out_lane);

/*
 * Has `run` called with `arg`, once, in any order with others. Waits for room.
 * Any thread but the lane's own. Errors: -ENOMEM; it is not called then.
 */
int lane_submit(struct lane *lane, lane_run_fn run, void *arg);

/* Waits until all jobs have ended. */
void lane_finish(struct lane *lane);

/* After lane_finish(). NULL is accepted. */
void lane_destroy(struct lane *lane);

#endif

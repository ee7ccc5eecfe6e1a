/* SPDX-License-Identifier: MIT */
/*
 * Lanes: how urgent a task is. A worker serves its lanes in order, so that
 * urgent work passes work that can wait.
 *
 * A task goes into the lane that its `flags` name: PINION_TASK_HIGH,
 * PINION_TASK_LOW, or neither for normal. `lanes` of the configuration, and
 * `lane_floor`, `assist` and `low_max_wait_ms` of its tuning, decide which
 * worker runs which lane and when.
 */
#ifndef PINION_LANE_H
#define PINION_LANE_H

#include <pinion/task.h>
#include <stddef.h>

PINION_BEGIN_DECLS

struct pinion_runtime;

enum pinion_lane {
	PINION_LANE_HIGH = 0,	/* a user or caller waits for it */
	PINION_LANE_NORMAL = 1, /* the default */
	PINION_LANE_MEDIUM = PINION_LANE_NORMAL,
	PINION_LANE_LOW = 2, /* no caller waits: batches, cleaning up */
};

/* The number of lanes. */
#define PINION_LANES 3

/*
 * Returns the flags that put a task into a lane; normal has none.
 * Since: 0.1
 */
static inline uint32_t pinion_lane_flags(enum pinion_lane lane)
{
	return lane == PINION_LANE_HIGH	  ? (uint32_t)PINION_TASK_HIGH
		: lane == PINION_LANE_LOW ? (uint32_t)PINION_TASK_LOW
					  : 0;
}

/*
 * Why there is no room for more: in an admission, or for a spawn from outside.
 *
 * Shape: 24 bytes, output.
 * Since: 0.1
 */
struct pinion_full {
	/*
	 * Of an admission: its admitted jobs; of a runtime: the tasks of the
	 * lane in its shared queue, or about to enter it. It may be below `max`
	 * where several ask for room together, or others wait already.
	 */
	uint32_t current;
	uint32_t max; /* of a runtime `injector_tasks`, at most UINT32_MAX */
	/*
	 * Estimate of the time that the jobs in this lane and those above it
	 * will take: their number times the average time of a job (0.1 of the
	 * latest and 0.9 of the mean before it), divided by the jobs that run
	 * at once. 0: no job has ended yet, or the call was a spawn.
	 */
	uint64_t estimated_wait_us;
	uint32_t lane; /* the lane whose limit it is; PINION_LANES: of all */
	uint32_t reserved;
};

/*
 * Queue depth of each lane, and counts since the start.
 *
 * Shape: size-versioned.
 * Units: tasks; the time in microseconds.
 * Since: 0.1
 */
struct pinion_lane_stats {
	/*
	 * Tasks that wait for any worker that serves the lane. Not included:
	 * tasks for one worker alone, and timers that are not due.
	 */
	uint64_t high_queue_depth;
	uint64_t medium_queue_depth;
	uint64_t low_queue_depth;
	uint64_t jobs_completed; /* returned 0 or more */
	uint64_t jobs_failed;	 /* returned a negative value */
	/*
	 * Time that workers spent on tasks, all together. A task is included
	 * when its worker has finished its round, soon after the task's end.
	 */
	uint64_t total_execution_time;
	uint64_t high_jobs_run;
	uint64_t low_jobs_run;
	uint64_t floor_turns; /* turns of a lane that others passed too often */
	uint64_t aged_turns;  /* turns of low work that had waited too long */
	uint64_t assists;     /* tasks run by a worker that does not serve their lane */
};

/*
 * Writes the present counts to *out_stats. The call holds no lock while tasks
 * run; for the depth of normal it walks through the queue that all workers
 * share.
 *
 * Context: any thread.
 * Errors: -ECHILD: the runtime belongs to the process that this one was forked
 * from.
 * Source: the seed's WorkerPoolMetrics; its names of the first six are kept.
 * Since: 0.1
 */
PINION_API int pinion_runtime_get_lane_stats(
	struct pinion_runtime *runtime, struct pinion_lane_stats *out_stats, size_t size);

PINION_END_DECLS

#endif

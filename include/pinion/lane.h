/* SPDX-License-Identifier: MIT */
/*
 * Lanes: how urgent a task is. A worker serves its lanes in their order, so
 * that what somebody waits for passes what nobody does.
 *
 * A task goes into the lane that its `flags` name: PINION_TASK_HIGH,
 * PINION_TASK_LOW, or neither for normal. `lanes`, `lane_floor`, `assist` and
 * `low_max_wait_ms` of the configuration say which worker runs what and when.
 */
#ifndef PINION_LANE_H
#define PINION_LANE_H

#include <pinion/task.h>
#include <stddef.h>

PINION_BEGIN_DECLS

struct pinion_runtime;

enum pinion_lane {
	PINION_LANE_HIGH = 0,	/* somebody waits for it */
	PINION_LANE_NORMAL = 1, /* the default */
	PINION_LANE_MEDIUM = PINION_LANE_NORMAL,
	PINION_LANE_LOW = 2, /* nobody does: batches, cleaning up */
};

/* How many there are. */
#define PINION_LANES 3

/*
 * The flags that put a task into a lane: of normal none.
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
	 * Of an admission the jobs in; of a runtime the tasks of the lane that
	 * wait in its shared queue, or are just being spawned. Below `max`
	 * where several are to come in together, or others wait already.
	 */
	uint32_t current;
	uint32_t max; /* of a runtime `injector_tasks`; UINT32_MAX: that, or more */
	/*
	 * How long the jobs that are in, of this lane and those above it, are
	 * likely to take: so many times what a job takes (0.1 of the latest and
	 * 0.9 of the mean before it), by as many as run at once. 0: none has
	 * ended yet, or it is a spawn's.
	 */
	uint64_t estimated_wait_us;
	uint32_t lane; /* whose limit it is; PINION_LANES: that of all */
	uint32_t reserved;
};

/*
 * How much waits in each lane, and what has been done, since the start.
 *
 * Shape: size-versioned.
 * Units: tasks; the time in microseconds.
 * Since: 0.1
 */
struct pinion_lane_stats {
	/*
	 * Tasks that wait for any worker that serves the lane. Not in it: what
	 * is bound to one worker, and timers that are not due.
	 */
	uint64_t high_queue_depth;
	uint64_t medium_queue_depth;
	uint64_t low_queue_depth;
	uint64_t jobs_completed; /* returned 0 or more */
	uint64_t jobs_failed;	 /* returned a negative value */
	/*
	 * That workers spent on tasks, all together. A task counts when its
	 * worker has made its round, soon after the task's end.
	 */
	uint64_t total_execution_time;
	uint64_t high_jobs_run;
	uint64_t low_jobs_run;
	uint64_t floor_turns; /* given to a lane that was passed by too often */
	uint64_t aged_turns;  /* given to low work that had waited too long */
	uint64_t assists;     /* tasks run by a worker that does not serve their lane */
};

/*
 * The numbers of now. No lock is held while anything runs; a depth of normal
 * walks through what waits in the queue that all share.
 *
 * Context: any thread.
 * Errors: -ECHILD: the runtime is that of the process this one was forked from.
 * Source: the seed's WorkerPoolMetrics; its names of the first six are kept.
 * Since: 0.1
 */
PINION_API int pinion_runtime_get_lane_stats(
	struct pinion_runtime *runtime, struct pinion_lane_stats *out_stats, size_t size);

PINION_END_DECLS

#endif

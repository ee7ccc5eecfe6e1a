/* SPDX-License-Identifier: MIT */
/*
 * How long things take: each worker gathers times in histograms of its own, and
 * moves what it has gathered to those of the runtime every 10 ms.
 *
 * The histograms of the runtime are words that any thread reads by their
 * sequence (observe/seqlock.h). Workers take turns to write them, by a lock
 * that none waits for while it runs tasks: what it could not move it moves the
 * next time.
 *
 * A time stamp for each task would cost more than most tasks. So the loop
 * records from the readings of the clock that it makes anyway: one for a series
 * of short tasks, one for each longer task. A read or write is timed where the
 * search for the device's depth times it. Where nothing is set up, in models
 * and in the simulator, workers record nothing.
 *
 *     what       recorded by                            sampled
 *     QUEUED     pin_metrics_note_series(), lane_wait.h   one of each, or mark
 *     RUN        pin_metrics_note_series()             series of short tasks
 *     REQUEST    pin_metrics_note_request()             8 to 32
 *     READY      the task of such a request             8 to 32
 *     WAKE       pin_metrics_note_wake()                no
 *     BUFFER     worker/buffers.c                       no
 *     TIMER      worker/timer.c                         no
 *
 * The worker itself is unknown here: worker/metrics.c shows its series by
 * value.
 *
 * All of it on the worker, unless said otherwise.
 */
#ifndef PIN_OBSERVE_TIMINGS_H
#define PIN_OBSERVE_TIMINGS_H

#include "runtime/base/atomic.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/host/host.h"
#include "runtime/observe/histogram.h"
#include "runtime/policy/lanes.h"

enum {
	/* The first four of enum pinion_timing have one for each lane. */
	PIN_TIMINGS_LANED = 4,
	PIN_TIMINGS_OF_DEVICES = PIN_TIMINGS_LANED * PIN_LANES + PINION_TIMINGS - PIN_TIMINGS_LANED,
	/* Devices that have a histogram of their own. */
	PIN_TIMED_DEVICES = 4,
	PIN_TIMINGS = PIN_TIMINGS_OF_DEVICES + PIN_TIMED_DEVICES,
	/* Words of a histogram: count, sum, buckets. */
	PIN_TIMING_COUNT = 0,
	PIN_TIMING_SUM = 1,
	PIN_TIMING_BUCKETS = 2,
	PIN_TIMING_WORDS = PIN_TIMING_BUCKETS + PINION_HISTOGRAM_BUCKETS,
	/* One in this number of series of short tasks is recorded, so often. */
	PIN_TIMINGS_SERIES = 32,
	/* A series that takes longer than this for each task has a long one. */
	PIN_TIMINGS_LONG_NS = 2048,
	/* Readings of the clock, with the end of the queue at that time. */
	PIN_TIMINGS_MARKS = 16,
};

/* [own] What a worker has gathered since it last moved it. */
struct pin_gathered {
	uint64_t sum_ns;
	uint32_t rows; /* a bit for each power of two with counts */
	uint32_t buckets[PINION_HISTOGRAM_BUCKETS];
};

/* Tasks before `tail` were in the queue then. */
struct pin_queue_mark {
	uint64_t time_ns;
	uint32_t tail;
};

/* [own] */
struct pin_timings {
	uint32_t dirty;	     /* a bit for each histogram with counts */
	uint32_t seen_first; /* of the queue, at the last series */
	uint32_t mark_count;
	uint64_t seen_runs;
	struct pin_queue_mark marks[PIN_TIMINGS_MARKS];
	struct pin_gathered gathered[PIN_TIMINGS];
};

_Static_assert(PIN_TIMINGS <= 32, "a bit each");

/* The index of a histogram. */
static inline uint32_t pin_timing_of(enum pinion_timing timing, uint32_t lane)
{
	PIN_DCHECK((uint32_t)timing < PINION_TIMINGS && lane < PIN_LANES);
	return (uint32_t)timing < PIN_TIMINGS_LANED
		? (uint32_t)timing * PIN_LANES + lane
		: PIN_TIMINGS_LANED * PIN_LANES + (uint32_t)timing - PIN_TIMINGS_LANED;
}

/* [own] What a worker records and publishes; part of its struct. */
struct pin_observed {
	uint64_t publish_ns;	     /* when it publishes its metrics next */
	uint64_t published_work;     /* what it had done when it published last */
	uint64_t woken_ns;	     /* when it was woken, until that is recorded; 0: it was not */
	uint32_t series_left;	     /* of short tasks, to the next that is recorded */
	struct pin_timings *timings; /* or NULL */
	struct pin_atomic_u64 *slot; /* in the metrics page, or NULL */
};

/* Nothing is set up: it never publishes, and times of series go nowhere. */
static inline void pin_observed_init(struct pin_observed *observed)
{
	observed->publish_ns = PIN_NO_DEADLINE;
	observed->series_left = 1;
}

/* `weight` values of it. Where nothing is set up it does nothing. */
void pin_timings_record(
	struct pin_timings *timings, uint32_t index, uint64_t value_ns, uint32_t weight);

/* Tasks that ran one after the other, and the worker's queue at their end. */
struct pin_series {
	uint64_t elapsed_ns; /* of all */
	uint64_t now_ns;     /* at the end */
	uint64_t usual_ns;   /* what a task of this worker usually takes */
	uint64_t runs;	     /* tasks that the worker has run so far */
	uint32_t tasks;
	uint32_t lane;	  /* of the last */
	uint32_t first;	  /* the place of the queue's first task, */
	uint32_t tail;	  /* and that after the last */
	bool is_in_order; /* the oldest is taken first */
};

/* One more series. True: it is to be recorded. */
static inline bool pin_timings_is_due(
	struct pin_observed *observed, uint64_t elapsed_ns, uint32_t tasks)
{
	PIN_DCHECK(tasks > 0);
	observed->series_left--;
	return PIN_UNLIKELY(
		observed->series_left == 0 || elapsed_ns > (uint64_t)tasks * PIN_TIMINGS_LONG_NS);
}

/* A series that was due; begins to count the next. */
void pin_timings_note_series(struct pin_observed *observed, const struct pin_series *series);

/* The wake of `woken_ns`, once the worker runs. True: it ran late. */
bool pin_timings_note_wake(struct pin_observed *observed, uint64_t now_ns);

/*
 * Adds all that was gathered to `words`, the histograms of the runtime one
 * after the other. By the holder of their lock.
 */
void pin_timings_move(struct pin_timings *timings, struct pin_atomic_u64 *words);

#endif

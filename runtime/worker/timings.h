/* SPDX-License-Identifier: MIT */
/*
 * How long things take: each worker gathers times in histograms of its own, and
 * moves what it has gathered to those of the runtime every 10 ms.
 *
 * The histograms of the runtime are words that any thread reads by their
 * sequence (queue/seqlock.h). Workers take turns to write them, by a lock that
 * none waits for while it runs tasks: what it could not move it moves the next
 * time.
 *
 * A time stamp for each task would cost more than most tasks. So the loop
 * records from the readings of the clock that it makes anyway: one for a row of
 * short tasks, one for each longer task. A read or write is timed where the
 * search for the device's depth times it. Where nothing is set up, in models
 * and in the simulator, workers record nothing.
 *
 *     what       recorded by                            sampled
 *     QUEUED     pin_timings_note_row()                 one of each row
 *     RUN        pin_timings_note_row()                 rows of short tasks
 *     REQUEST    pin_timings_note_request()             8 to 32
 *     READY      the task of such a request             8 to 32
 *     WAKE       pin_timings_note_wake()                no
 *     BUFFER     worker/buffers.c                       no
 *     TIMER      worker/timer.c                         no
 *
 * All of it on the worker, unless said otherwise.
 */
#ifndef PIN_WORKER_TIMINGS_H
#define PIN_WORKER_TIMINGS_H

#include "runtime/base/check.h"
#include "runtime/policy/histogram.h"
#include "runtime/queue/seqlock.h"
#include "runtime/worker/state.h"

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
	/* One in this number of rows of short tasks is recorded, so often. */
	PIN_TIMINGS_ROWS = 16,
	/* A row that takes longer than this for each task has a long one. */
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
	uint32_t seen_first; /* of the queue, at the last row */
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

/* `weight` values of it. Where nothing is set up it does nothing. */
void pin_timings_record(
	struct pin_worker *worker, uint32_t index, uint64_t value_ns, uint32_t weight);

/* A row of tasks that took so long together, up to the worker's `now_ns`. */
void pin_timings_note_row_slowly(struct pin_worker *worker, uint64_t elapsed_ns, uint32_t tasks);

static inline void pin_timings_note_row(
	struct pin_worker *worker, uint64_t elapsed_ns, uint32_t tasks)
{
	PIN_DCHECK(tasks > 0);
	worker->rows_left--;
	if (PIN_UNLIKELY(
		    worker->rows_left == 0 || elapsed_ns > (uint64_t)tasks * PIN_TIMINGS_LONG_NS)) {
		pin_timings_note_row_slowly(worker, elapsed_ns, tasks);
	}
}

/*
 * A read or write that took so long in the device, whose index is given, and is
 * about to be handed over: its task records when it is entered.
 */
void pin_timings_note_request(struct pin_worker *worker, uint32_t device_index,
	struct pinion_request *request, uint64_t now_ns, uint64_t took_ns);

/* A waker, before it ends the sleep of `target`. Any thread. */
static inline void pin_timings_stamp_wake(struct pin_worker *target)
{
	if (target->timings != NULL) {
		/* Relaxed: a figure. */
		pin_store_relaxed_u64(&target->notified_ns, target->shared->host->now_ns());
	}
}

/* Before the worker may be woken: a stamp of an earlier sleep is void. */
static inline void pin_timings_begin_park(struct pin_worker *worker)
{
	if (worker->timings != NULL) {
		pin_store_relaxed_u64(&worker->notified_ns, 0);
	}
}

static inline void pin_timings_end_park(struct pin_worker *worker)
{
	if (worker->timings != NULL) {
		worker->woken_ns = pin_load_relaxed_u64(&worker->notified_ns);
		pin_store_relaxed_u64(&worker->notified_ns, 0);
	}
}

void pin_timings_note_wake_slowly(struct pin_worker *worker);

/* The clock was read for a turn. */
static inline void pin_timings_note_wake(struct pin_worker *worker)
{
	if (PIN_UNLIKELY(worker->woken_ns != 0)) {
		pin_timings_note_wake_slowly(worker);
	}
}

/*
 * Adds all that the worker has gathered to `words`, the histograms of the
 * runtime one after the other. By the holder of their lock.
 */
void pin_timings_move(struct pin_worker *worker, struct pin_atomic_u64 *words);

#endif

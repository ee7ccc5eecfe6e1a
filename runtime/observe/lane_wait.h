/* SPDX-License-Identifier: MIT */
/*
 * How long tasks wait in the queue of a lane that all workers share.
 *
 * A stamp in each task would be another word for the caller, so one mark is on
 * its way through the queue instead: the number of the task that was pushed
 * last, and the time. When that many have been popped it has arrived, and its
 * time in the queue is that of the task before it. Tasks between two marks came
 * between their times, so their waits count as between theirs: they are
 * recorded in equal parts of up to eight steps.
 *
 *     a push     sets a mark where none is on its way, or it has been passed
 *     a pop      takes the mark that has arrived, and sets the next if tasks
 *                are left
 *
 * So the clock is read once or twice for each time that the queue is gone
 * through. Claims that were given back count as popped, and may end a wait too
 * early.
 *
 * In the queue of the normal lane a spawn pays nothing for it. There a worker
 * that has taken a batch and left some sets the mark: at the last task that was
 * pushed by then, as the counts of the queue limit have it. A task that finds
 * the queue empty, or is taken with the first batch, is not measured: it waits
 * for a wake (PINION_TIMING_WAKE), or for a worker's next check. In a worker's
 * inbox no task is: a stamp would be a reading of the clock for each spawn, and
 * the worker takes all of it at the begin of each turn.
 *
 * Any thread. The lock is only tried: a thread that does not get it leaves the
 * mark to the next push or pop. There is no order to be proved: loads without
 * the lock, relaxed, are hints to try it, and are made again under it.
 */
#ifndef PIN_OBSERVE_LANE_WAIT_H
#define PIN_OBSERVE_LANE_WAIT_H

#include "runtime/observe/timings.h"
#include "runtime/queue/lane_queue.h"

struct pin_lane_wait {
	struct pin_lock lock; /* rank 8 */
	/* [W:lock holder R:any] tasks pushed before the mark; 0: none is set */
	struct pin_atomic_u64 end;
	/* [lock:lock] */
	uint64_t since_ns; /* the mark was set */
	uint64_t last_end; /* the mark before, and how long that took */
	uint64_t last_ns;
};

PIN_APART void pin_lane_wait_set(
	struct pin_lane_wait *wait, const struct pin_lane_queue *queue, uint32_t count);

/* By a worker, with its timings and the histogram's index. */
PIN_APART void pin_lane_wait_take(struct pin_lane_wait *wait, const struct pin_lane_queue *queue,
	struct pin_timings *timings, uint32_t index);

/* The mark is set, and not all tasks before it have been popped. Relaxed. */
static inline bool pin_lane_wait_is_under_way(
	const struct pin_lane_wait *wait, const struct pin_lane_queue *queue)
{
	return pin_load_relaxed_u64(&wait->end) > pin_load_relaxed_u64(&queue->popped);
}

/* Before tasks are pushed, of which `count` do not count as pushed yet. */
static inline void pin_lane_wait_note_push(
	struct pin_lane_wait *wait, const struct pin_lane_queue *queue, uint32_t count)
{
	if (!pin_lane_wait_is_under_way(wait, queue)) {
		pin_lane_wait_set(wait, queue, count);
	}
}

/* A task was popped. */
static inline void pin_lane_wait_note_pop(struct pin_lane_wait *wait,
	const struct pin_lane_queue *queue, struct pin_timings *timings, uint32_t index)
{
	if (!pin_lane_wait_is_under_way(wait, queue)) {
		pin_lane_wait_take(wait, queue, timings, index);
	}
}

/* After a batch of the normal lane was popped. */
struct pin_lane_wait_batch {
	uint64_t popped; /* so far */
	uint64_t pushed; /* so far; 0: none is left */
};

/* By a worker, as above. */
PIN_APART void pin_lane_wait_take_batch(struct pin_lane_wait *wait, const struct pin_host *host,
	const struct pin_lane_wait_batch *batch, struct pin_timings *timings, uint32_t index);

/* Whether it has anything to do. Relaxed. */
static inline bool pin_lane_wait_is_batch_due(
	const struct pin_lane_wait *wait, uint64_t popped, bool has_more)
{
	uint64_t end = pin_load_relaxed_u64(&wait->end);

	return end == 0 ? has_more : !has_more || end <= popped;
}

#endif

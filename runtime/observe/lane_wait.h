/* SPDX-License-Identifier: MIT */
/*
 * How long tasks wait in the queue of the high or low lane.
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
 * Any thread. The lock is only tried: a thread that does not get it leaves the
 * mark to the next push or pop.
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

#endif

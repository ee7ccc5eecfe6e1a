/* SPDX-License-Identifier: MIT */
/*
 * Lanes at work: how a task gets into the queue of its lane, and out of it.
 *
 * A task of the normal lane goes where tasks have always gone: to its worker's
 * own queue, or to the injector. Those of the other lanes go into one queue per
 * lane that all workers share (queue/lane_queue.h). A runtime that has never
 * seen such a task, and whose workers all serve all lanes, pays for lanes with
 * one look at `alerts` per task, which is that for a stop as well.
 *
 * A worker that does not serve normal has a deque that is always full, so what
 * it spawns there goes to the injector by itself.
 *
 * Source: docs/decisions/scheduling.md, "The lanes high and low share one queue
 * each".
 */
#ifndef PIN_WORKER_LANE_H
#define PIN_WORKER_LANE_H

#include "runtime/worker/state.h"
#include "runtime/worker/state_task.h"

/* Of a complete plan; before workers are set up. */
void pin_lane_init(struct pin_shared *shared);

/*
 * Queues `count` admitted tasks of one lane and wakes somebody; `waker` is the
 * calling worker or NULL. Any thread.
 */
void pin_lane_push(struct pin_shared *shared, struct pin_worker *waker, enum pinion_lane lane,
	struct pin_list *list, uint32_t count);

/*
 * As pin_lane_push() from outside, of tasks whose places are claimed: those of
 * normal by the gate's end, others by pin_lane_queue_claim().
 */
void pin_lane_push_claimed(struct pin_shared *shared, enum pinion_lane lane, struct pin_list *list);

/* As pin_lane_push(), one task. */
void pin_lane_push_one(
	struct pin_shared *shared, struct pin_worker *waker, struct pinion_task *task);

/*
 * The oldest of a lane that the worker serves or assists with, not to be kept;
 * wakes somebody if there are more. NULL: there is none.
 */
struct pin_link *pin_lane_pop(struct pin_worker *worker, enum pinion_lane lane);

/* At the begin of a round: marks the time, for what waits in the low lane. */
static inline void pin_lane_mark(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;

	if (PIN_UNLIKELY(shared->config.low_max_wait_ms != 0)) {
		pin_lane_queue_mark(&shared->lanes[PINION_LANE_LOW], worker->now_ns,
			(uint64_t)shared->config.low_max_wait_ms * 1000 * 1000);
	}
}

/* Bits of the lanes in which the oldest has waited too long. */
static inline uint32_t pin_lane_overdue(const struct pin_shared *shared)
{
	return shared->config.low_max_wait_ms != 0 &&
			pin_lane_queue_is_overdue(&shared->lanes[PINION_LANE_LOW])
		? PIN_LANE_BIT(PINION_LANE_LOW)
		: 0;
}

/* Says so when a lane has become deep, once. */
void pin_lane_warn(struct pin_shared *shared, enum pinion_lane lane, uint64_t depth);

#endif

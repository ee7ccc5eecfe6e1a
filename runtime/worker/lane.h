/* SPDX-License-Identifier: MIT */
/*
 * Lanes at work: how a task gets into the queue of its lane, and out of it.
 *
 * A task of the normal lane goes to its worker's own queue, or to the injector.
 * Tasks of the other lanes go into one queue per lane that all workers share
 * (queue/lane_queue.h). A runtime that has never had such a task, and whose
 * workers all serve all lanes, pays for lanes with one test of `flags` per
 * task, which is the test for a stop as well.
 *
 * The deque of a worker that does not serve normal is always full, so its
 * spawns into that lane go to the injector by themselves.
 *
 * Source: docs/decisions/scheduling.md, "The lanes high and low share one queue
 * each".
 */
#ifndef PIN_WORKER_LANE_H
#define PIN_WORKER_LANE_H

#include "runtime/base/check.h"
#include "runtime/worker/state.h"

#include <errno.h>
#include <pinion/lane.h>

/* ---- room ---- */

/*
 * Room for work from outside: whether the queue of a lane takes more, and the
 * waiters for room.
 *
 * A spawn is admitted here: normal tasks by the queue limit, tasks of other
 * lanes by claims of places in their queues, then all of them by the gate. A
 * waiter for room is in a queue of waiters, one for each lane, and is admitted
 * by any event that makes room, which then wakes it:
 *
 *     a worker that pops from the lane's queue      pin_room_tell()
 *     a place or an admission given back            pin_room_undo(), and wake
 *     work that has turned out to wait elsewhere    pin_room_note_elsewhere()
 *     the gate's close, which ends all waits        pin_room_close()
 *
 * A worker that pops pays one load for it. Spawns and calls that do not wait
 * take room when they find it, even before waiters.
 *
 * Any thread. Pairs: [WAIT-1], the makers of room against its waiters.
 *
 * Source: docs/decisions/scheduling.md, "Each lane limits the tasks that wait
 * in it".
 */

/* How many tasks of each lane. */
struct pin_room_counts {
	uint32_t of[PIN_LANES];
};

enum {
	PIN_ROOM_ANSWER, /* in a served waiter's value: 0 or -ESHUTDOWN */
};

/*
 * Before anything is admitted; after the gate, queue limit and lanes are set
 * up.
 */
void pin_room_init(struct pin_shared *shared);

/* Of lanes that are not normal. */
static inline uint32_t pin_room_others(const struct pin_room_counts *counts)
{
	return counts->of[PINION_LANE_HIGH] + counts->of[PINION_LANE_LOW];
}

/*
 * Admits tasks, all of them or none. -EAGAIN: a lane is full, counted and, if
 * `out_full` is not NULL, described there. -EINVAL: they never fit. -ESHUTDOWN.
 */
int pin_room_admit_lanes(struct pin_shared *shared, const struct pin_room_counts *counts,
	struct pinion_full *out_full);

/* As that, where the queue limit's end as it was known is reached. */
PIN_APART int pin_room_admit_anew(
	struct pin_shared *shared, uint32_t count, struct pinion_full *out_full);

static PIN_INLINE enum pin_gate_answer pin_room_try(struct pin_shared *shared, uint32_t count)
{
	return pin_gate_admit_until(
		&shared->gate, count, pin_queue_limit_end(&shared->queue_limit));
}

/* As pin_room_admit_lanes(), of the normal lane. */
static PIN_INLINE int pin_room_admit(
	struct pin_shared *shared, uint32_t count, struct pinion_full *out_full)
{
	enum pin_gate_answer answer = pin_room_try(shared, count);

	PIN_DCHECK(count > 0);
	if (PIN_LIKELY(answer == PIN_GATE_ADMITTED)) {
		return 0;
	}
	return answer == PIN_GATE_CLOSED ? -ESHUTDOWN
					 : pin_room_admit_anew(shared, count, out_full);
}

/* Gives back the place of one task that was admitted to a lane, not pushed. */
void pin_room_undo(struct pin_shared *shared, enum pinion_lane lane);

/*
 * `count` admitted tasks will not be undone, and never get into the injector:
 * they take no room of normal.
 */
void pin_room_note_elsewhere(struct pin_shared *shared, uint32_t count);

/* After the gate was closed: ends all waits for room. */
void pin_room_close(struct pin_shared *shared);

/* Admits and wakes those who wait, as far as there is room. */
PIN_APART void pin_room_serve(struct pin_shared *shared, enum pinion_lane lane);

/* After something left the lane's queue, or what takes room in it. */
static inline void pin_room_tell(struct pin_shared *shared, enum pinion_lane lane)
{
	PIN_DCHECK((uint32_t)lane < PIN_LANES);
	if (PIN_UNLIKELY(pin_waiters_any(&shared->rooms[lane].waiters))) { /* [WAIT-1] */
		pin_room_serve(shared, lane);
	}
}

/* ---- lane ---- */

/* Of a complete plan; before workers are set up. */
void pin_lane_init(struct pin_shared *shared);

/*
 * Before a request of the high lane is begun, or queued on a worker. Any
 * thread. A hint: a worker that begins such a request calls it as well.
 */
void pin_lane_note_urgent(struct pin_shared *shared);

/*
 * Queues `count` admitted tasks of one lane and wakes a worker; `waker` is the
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
 * wakes a worker if there are more. NULL: there is none.
 */
struct pin_link *pin_lane_pop(struct pin_worker *worker, enum pinion_lane lane);

/*
 * At the begin of a round: marks the time, for tasks that wait in the low lane.
 */
static inline void pin_lane_mark(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;

	PIN_DCHECK(pin_worker_is_current(worker));
	if (PIN_UNLIKELY(shared->tuning.low_max_wait_ms != 0)) {
		pin_lane_queue_mark(&shared->lanes[PINION_LANE_LOW], worker->now_ns,
			(uint64_t)shared->tuning.low_max_wait_ms * 1000 * 1000);
	}
}

/* Bits of the lanes in which the oldest has waited too long. */
static inline uint32_t pin_lane_overdue(const struct pin_shared *shared)
{
	return shared->tuning.low_max_wait_ms != 0 &&
			pin_lane_queue_is_overdue(&shared->lanes[PINION_LANE_LOW])
		? PIN_LANE_BIT(PINION_LANE_LOW)
		: 0;
}

/* Says so when a lane has become deep, once. */
void pin_lane_warn(struct pin_shared *shared, enum pinion_lane lane, uint64_t depth);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Lanes: which kinds of work a worker runs, and whose turn it is.
 *
 * There are three lanes. Each worker serves some of them in an order of its
 * own; workers with the same lanes in the same order are a class. A worker that
 * found something in a lane begins with its first lane again, so a higher lane
 * waits for one task at most.
 *
 * A lower lane could wait for ever. So each lane that was passed by `floor - 1`
 * times in a row has the next turn: one task in `floor`. With a floor of 0 the
 * order is strict. Tasks for this worker alone (completions,
 * pinion_task_spawn_on) belong to no lane; they come after all lanes and have a
 * floor always, since no other worker could run them.
 *
 * Pure policy: no atomics, no clock. The plan is made once, by the thread that
 * creates the runtime; the turns are each worker's own.
 *
 * Invariants: (1) each lane is served by some class. (2) an order names a lane
 * once. (3) a lane that is due and has work is served next, unless a lane
 * before it in the order is due as well.
 */
#ifndef PIN_POLICY_LANES_H
#define PIN_POLICY_LANES_H

#include "runtime/base/check.h"

#include <pinion/lane.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	PIN_LANES = PINION_LANES,
	PIN_LANE_BOUND = PIN_LANES, /* not a lane: tasks for one worker alone */
	PIN_LANE_SLOTS,
	PIN_LANE_NONE = PIN_LANE_SLOTS,
	PIN_WORKER_CLASSES_MAX = 4,
	/* One task in this number for those bound to a worker. */
	PIN_LANE_BOUND_FLOOR = 16,
};

#define PIN_LANE_BIT(lane) (UINT32_C(1) << (lane))
#define PIN_LANES_ALL (PIN_LANE_BIT(PIN_LANES) - 1)

/* Which lanes, first of all first. */
struct pin_lane_order {
	uint32_t mask;
	uint32_t count;
	uint8_t lanes[PIN_LANES];
};

struct pin_lane_plan {
	uint32_t class_count;
	struct pin_lane_order orders[PIN_WORKER_CLASSES_MAX];
	uint32_t worker_counts
		[PIN_WORKER_CLASSES_MAX]; /* of a worker class; the last's may be 0: the rest */
};

/*
 * Reads "h:1,hn:2,hnl": classes with a comma between them. Each is the first
 * letters of its lanes in their order (m is n) and how many workers it has; the
 * last class may leave that to pin_lane_plan_complete(). NULL or "": all serve
 * all.
 *
 * Returns NULL, or the mistake in the text.
 */
const char *pin_lane_plan_parse(struct pin_lane_plan *out_plan, const char *text);

/*
 * Fits the plan to `worker_count` workers; 0: to as many as it names, and else
 * to `default_count`. Returns their number, 0 when they do not fit.
 */
uint32_t pin_lane_plan_complete(
	struct pin_lane_plan *plan, uint32_t worker_count, uint32_t default_count);

/* The class of a worker; indices count through the classes in their order. */
uint32_t pin_lane_plan_class(const struct pin_lane_plan *plan, uint32_t worker_index);

/* ---- a worker's turns ---- */

struct pin_lane_turns {
	struct pin_lane_order order;		/* [const] */
	uint32_t floors[PIN_LANE_SLOTS];	/* [const] 0: strict */
	uint32_t passed_counts[PIN_LANE_SLOTS]; /* [own] in a row */
};

void pin_lane_turns_init(
	struct pin_lane_turns *turns, const struct pin_lane_order *order, uint32_t floor);

/*
 * Which lane, or PIN_LANE_BOUND, has waited long enough to come first. Of
 * several the first in the order; none: PIN_LANE_NONE. `overdue` are bits of
 * lanes that are due whatever was counted.
 */
uint32_t pin_lane_turns_due(const struct pin_lane_turns *turns, uint32_t overdue);

/* A task of `slot` is run: those after it in the order were passed by. */
void pin_lane_turns_note(struct pin_lane_turns *turns, uint32_t slot);

/*
 * The task of an urgent request is run, whatever lanes the worker serves: all
 * but the high lane were passed by.
 */
void pin_lane_turns_note_urgent(struct pin_lane_turns *turns);

/* It had its turn, and there was nothing. */
static inline void pin_lane_turns_skip(struct pin_lane_turns *turns, uint32_t slot)
{
	PIN_DCHECK(slot < PIN_LANE_SLOTS);
	turns->passed_counts[slot] = 0;
}

#endif

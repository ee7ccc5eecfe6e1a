/* SPDX-License-Identifier: MIT */
/*
 * Lanes in their order, and those that are overdue.
 */
#include "runtime/worker/next_task.h"
#include "runtime/worker/lane.h"
#include "runtime/worker/wake.h"
#include "runtime/worker/worker.h"

static bool poll_lane(struct pin_worker *worker, uint32_t lane)
{
	struct pin_link *link;

	if (lane == PINION_LANE_NORMAL) {
		/* A lower lane waits for what others have queued, too. */
		return pin_poll_near(worker) ||
			(pin_search_sees_work(worker) && pin_poll_others(worker));
	}
	if (lane == PIN_LANE_BOUND) {
		return pin_poll_bound(worker);
	}
	link = pin_lane_pop(worker, lane);
	if (link == NULL) {
		return false;
	}
	pin_store_relaxed_u32(&worker->running_lane, lane);
	pin_run_or_cancel(worker, link);
	return true;
}

/* Of a lane that was passed by too often, or whose oldest waits too long. */
static bool poll_due(struct pin_worker *worker)
{
	uint32_t overdue = pin_lane_overdue(worker->shared);
	uint32_t lane = pin_lane_turns_due(&worker->lanes, overdue);

	if (lane == PIN_LANE_NONE) {
		return false;
	}
	pin_lane_turns_skip(&worker->lanes, lane);
	if (!poll_lane(worker, lane)) {
		return false;
	}
	pin_meter_add((overdue & PIN_LANE_BIT(lane)) != 0 ? &worker->meter.aged_turns
							  : &worker->meter.floor_turns,
		1);
	pin_lane_turns_note(&worker->lanes, lane);
	return true;
}

/* One task of a lane that it does not serve. */
static bool poll_assist(struct pin_worker *worker)
{
	for (uint32_t lane = 0; lane < PIN_LANES; lane++) {
		struct pin_link *link;

		if (pin_worker_serves(worker, lane) || !pin_supply_has_lane(worker->shared, lane)) {
			continue;
		}
		if (!pin_assist_try_leave(worker)) {
			return false;
		}
		link = pin_lane_pop(worker, lane);
		if (link != NULL) {
			pin_meter_add(&worker->meter.assists, 1);
			pin_store_relaxed_u32(&worker->running_lane, lane);
			pin_run_or_cancel(worker, link);
			return true;
		}
		pin_assist_enter(worker);
	}
	return false;
}

static bool poll_lanes_served(struct pin_worker *worker)
{
	const struct pin_lane_order *order = &worker->lanes.order;

	if (poll_due(worker)) {
		return true;
	}
	for (uint32_t i = 0; i < order->count; i++) {
		if (poll_lane(worker, order->lanes[i])) {
			pin_lane_turns_note(&worker->lanes, order->lanes[i]);
			return true;
		}
	}
	return pin_poll_bound(worker) || pin_poll_others(worker);
}

bool pin_poll_lanes(struct pin_worker *worker)
{
	bool assists = pin_assist_is_on(worker->shared);

	/* Relaxed: a name. Until one of another lane is taken. */
	pin_store_relaxed_u32(&worker->running_lane, PINION_LANE_NORMAL);
	if (assists) {
		pin_assist_leave(worker);
	}
	if (poll_lanes_served(worker)) {
		return true;
	}
	if (assists) {
		pin_assist_enter(worker);
		return poll_assist(worker);
	}
	return false;
}

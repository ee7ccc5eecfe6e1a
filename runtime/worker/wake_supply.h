/* SPDX-License-Identifier: MIT */
/*
 * What there is to run, as others than its owner see it: lane by lane, in the
 * queues that all share and in workers' own. All of it is a guess, unless
 * behind a fence: worker/wake.h tells which.
 */
#ifndef PIN_WORKER_WAKE_SUPPLY_H
#define PIN_WORKER_WAKE_SUPPLY_H

#include "runtime/worker/state.h"

/* Whether something waits in the queue of a lane that all share. */
static inline bool pin_supply_has_lane(const struct pin_shared *shared, uint32_t lane)
{
	return lane == PINION_LANE_NORMAL ? !pin_injector_is_empty(&shared->injector)
					  : !pin_lane_queue_is_empty(&shared->lanes[lane]);
}

/*
 * Whether something waits in those of the lanes that the worker serves. Who
 * pushes the first that is not normal sets PIN_ALERT_LANES before its fence, so
 * a worker that parks sees it behind its own: [PARK-1].
 */
static inline bool pin_supply_has_own_lanes(const struct pin_worker *worker)
{
	if (!pin_shared_has_lanes(worker->shared)) { /* [PARK-1] */
		return !pin_injector_is_empty(&worker->shared->injector);
	}
	for (uint32_t lane = 0; lane < PIN_LANES; lane++) {
		if (pin_worker_serves(worker, lane) && pin_supply_has_lane(worker->shared, lane)) {
			return true;
		}
	}
	return false;
}

/* Whether something waits in some worker's own queue, which is of normal. */
static inline bool pin_supply_has_queued(const struct pin_shared *shared)
{
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		if (pin_deque_count(&shared->workers[i].deque) > 0) {
			return true;
		}
	}
	return false;
}

/*
 * Of all that was ever given to the runtime, what is not over, and at least
 * that: what is over is counted first. [END-1]
 */
static inline uint64_t pin_supply_count_left(const struct pin_shared *shared)
{
	uint64_t over = 0;
	uint64_t admitted = 0;

	for (uint32_t i = 0; i < shared->worker_count; i++) {
		const struct pin_meter *meter = &shared->workers[i].meter;

		over += pin_meter_read(&meter->tasks_run) + pin_meter_read(&meter->tasks_cancelled);
	}
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		const struct pin_meter *meter = &shared->workers[i].meter;

		admitted += pin_meter_read(&meter->tasks_spawned) +
			pin_meter_read(&meter->requests_submitted);
	}
	return admitted + pin_gate_admitted(&shared->gate) - over;
}

#endif

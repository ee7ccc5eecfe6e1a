/* SPDX-License-Identifier: MIT */
/*
 * What waits in each lane, and what has been run.
 */
#include "runtime/base/versioned.h"
#include "runtime/worker/lane.h"
#include "runtime/worker/runtime_state.h"

#include <errno.h>
#include <pinion/lane.h>

static uint64_t own_queues_depth(const struct pin_shared *shared)
{
	uint64_t depth = 0;

	for (uint32_t i = 0; i < shared->worker_count; i++) {
		const struct pin_worker *worker = &shared->workers[i];

		depth += pin_deque_count(&worker->deque);
		depth += pin_lifo_is_empty(&worker->lifo) ? 0 : 1;
	}
	return depth;
}

static void add_meters(const struct pin_shared *shared, struct pinion_lane_metrics *sum)
{
	uint64_t busy_ns = 0;

	for (uint32_t i = 0; i < shared->worker_count; i++) {
		const struct pin_meter *meter = &shared->workers[i].meter;
		/*
		 * A failure is counted before its end is, so it is read after
		 * it.
		 */
		uint64_t run = pin_meter_read(&meter->tasks_run);
		uint64_t failed = pin_meter_read(&meter->tasks_failed);

		sum->jobs_failed += failed;
		sum->jobs_completed += run > failed ? run - failed : 0;
		busy_ns += pin_meter_read(&meter->busy_ns);
		sum->high_jobs_run += pin_meter_read(&meter->high_run);
		sum->low_jobs_run += pin_meter_read(&meter->low_run);
		sum->floor_turns += pin_meter_read(&meter->floor_turns);
		sum->aged_turns += pin_meter_read(&meter->aged_turns);
		sum->assists += pin_meter_read(&meter->assists);
	}
	sum->total_execution_time = busy_ns / 1000;
}

int pinion_runtime_lane_metrics(
	struct pinion_runtime *runtime, struct pinion_lane_metrics *out_metrics, size_t size)
{
	struct pin_shared *shared = &runtime->shared;
	struct pinion_lane_metrics sum = {0};

	if (pin_runtime_is_foreign(runtime)) {
		return -ECHILD;
	}
	sum.high_queue_depth = pin_lane_queue_depth(&shared->lanes[PINION_LANE_HIGH]);
	sum.medium_queue_depth = own_queues_depth(shared) + pin_injector_count(&shared->injector);
	sum.low_queue_depth = pin_lane_queue_depth(&shared->lanes[PINION_LANE_LOW]);
	add_meters(shared, &sum);
	pin_sized_give(out_metrics, size, &sum, sizeof(sum));
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Workers without metrics or traces, for models and the simulator: nothing is
 * set up, so nothing is published or timed, and no page adds to the
 * interleavings.
 * tests/model/observe/seqlock.c has the page's protocol.
 */
#include "runtime/api/internal.h"
#include "runtime/worker/metrics.h"

int pin_metrics_start(struct pin_shared *shared)
{
	(void)shared;
	return 0;
}

void pin_metrics_stop(struct pin_shared *shared)
{
	(void)shared;
}

int pin_events_start(struct pin_shared *shared)
{
	(void)shared;
	return 0;
}

void pin_events_stop(struct pin_shared *shared)
{
	(void)shared;
}

void pin_metrics_publish(struct pin_worker *worker)
{
	(void)worker;
}

bool pin_metrics_publish_outside(struct pin_shared *shared, uint64_t now_ns)
{
	(void)shared;
	(void)now_ns;
	return true;
}

void pin_metrics_publish_last(struct pin_worker *worker)
{
	(void)worker;
}

void pin_metrics_show_in_flight(const struct pin_worker *worker)
{
	(void)worker;
}

bool pin_metrics_begin_park(struct pin_worker *worker)
{
	(void)worker;
	return false;
}

void pin_timings_record(
	struct pin_timings *timings, uint32_t index, uint64_t value_ns, uint32_t weight)
{
	(void)timings;
	(void)index;
	(void)value_ns;
	(void)weight;
}

void pin_lane_wait_set(
	struct pin_lane_wait *wait, const struct pin_lane_queue *queue, uint32_t count)
{
	(void)wait;
	(void)queue;
	(void)count;
}

void pin_lane_wait_take(struct pin_lane_wait *wait, const struct pin_lane_queue *queue,
	struct pin_timings *timings, uint32_t index)
{
	(void)wait;
	(void)queue;
	(void)timings;
	(void)index;
}

void pin_metrics_note_batch_slowly(struct pin_worker *worker, bool has_more)
{
	(void)worker;
	(void)has_more;
}

void pin_metrics_note_series_slowly(struct pin_worker *worker, uint64_t elapsed_ns, uint32_t tasks)
{
	(void)elapsed_ns;
	(void)tasks;
	worker->observed.series_left = PIN_TIMINGS_SERIES;
}

void pin_metrics_note_request(struct pin_worker *worker, uint32_t device_index,
	struct pinion_request *request, uint64_t now_ns, uint64_t took_ns)
{
	(void)worker;
	(void)device_index;
	(void)request;
	(void)now_ns;
	(void)took_ns;
}

int pin_metrics_run_ready(struct pinion_task *task)
{
	(void)task;
	return 0;
}

void pin_metrics_note_wake_slowly(struct pin_worker *worker)
{
	worker->observed.woken_ns = 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Sets the mark that measures a lane's queue, and takes it when it arrives.
 *
 * Pushers and the workers that pop call it; lane_wait.h has the idea.
 */
#include "runtime/observe/lane_wait.h"
#include "runtime/base/check.h"

enum { STEPS = 8 };

/* By the holder of the lock. */
static void set(struct pin_lane_wait *wait, uint64_t end, uint64_t now_ns)
{
	wait->since_ns = now_ns;
	pin_store_relaxed_u64(&wait->end, end);
}

PIN_APART void pin_lane_wait_set(
	struct pin_lane_wait *wait, const struct pin_lane_queue *queue, uint32_t count)
{
	const struct pin_host *host = queue->injector.host;

	if (!pin_lock_try(&wait->lock)) {
		return;
	}
	/* Relaxed: figures; another thread may have set it meanwhile. */
	if (!pin_lane_wait_is_under_way(wait, queue)) {
		set(wait, pin_load_relaxed_u64(&queue->pushed) + count, host->now_ns());
	}
	pin_lock_release(&wait->lock, host);
}

/* Those of the mark before and of this, and in equal steps between them. */
static void record(struct pin_lane_wait *wait, struct pin_timings *timings, uint32_t index,
	uint64_t tasks, uint64_t took_ns)
{
	uint64_t steps = pin_min_u64(tasks, STEPS);
	int64_t grown_ns = (int64_t)(took_ns - wait->last_ns);

	for (uint64_t i = 1; i <= steps; i++) {
		uint64_t weight = tasks * i / steps - tasks * (i - 1) / steps;
		uint64_t value_ns = wait->last_ns +
			(uint64_t)(grown_ns / (int64_t)steps * (int64_t)i +
				grown_ns % (int64_t)steps * (int64_t)i / (int64_t)steps);

		pin_timings_record(timings, index, value_ns, (uint32_t)weight);
	}
}

/* The time at which the mark was set is that of the last task before it. */
static void arrive(
	struct pin_lane_wait *wait, uint64_t now_ns, struct pin_timings *timings, uint32_t index)
{
	uint64_t end = pin_load_relaxed_u64(&wait->end);
	uint64_t tasks = end > wait->last_end ? end - wait->last_end : 0;
	/* On another CPU the clock may be read the other way round. */
	uint64_t took_ns = now_ns > wait->since_ns ? now_ns - wait->since_ns : 0;

	PIN_DCHECK(end != 0);
	record(wait, timings, index, pin_min_u64(tasks, UINT32_MAX), took_ns);
	wait->last_end = end;
	wait->last_ns = took_ns;
}

PIN_APART void pin_lane_wait_take(struct pin_lane_wait *wait, const struct pin_lane_queue *queue,
	struct pin_timings *timings, uint32_t index)
{
	const struct pin_host *host = queue->injector.host;
	uint64_t end;

	if (!pin_lock_try(&wait->lock)) {
		return;
	}
	/* Relaxed, all: figures. */
	end = pin_load_relaxed_u64(&wait->end);
	if (end != 0 && !pin_lane_wait_is_under_way(wait, queue)) {
		uint64_t now_ns = host->now_ns();
		uint64_t popped = pin_load_relaxed_u64(&queue->popped);
		uint64_t pushed = pin_load_relaxed_u64(&queue->pushed);

		arrive(wait, now_ns, timings, index);
		set(wait, pushed > popped ? pushed : 0, now_ns);
	}
	pin_lock_release(&wait->lock, host);
}

PIN_APART void pin_lane_wait_take_batch(struct pin_lane_wait *wait, const struct pin_host *host,
	const struct pin_lane_wait_batch *batch, struct pin_timings *timings, uint32_t index)
{
	uint64_t now_ns;
	bool has_more = batch->pushed > batch->popped;

	if (!pin_lock_try(&wait->lock)) {
		return;
	}
	if (pin_lane_wait_is_batch_due(wait, batch->popped, has_more)) {
		now_ns = host->now_ns();
		if (pin_load_relaxed_u64(&wait->end) != 0) {
			arrive(wait, now_ns, timings, index);
		} else {
			/* The first of a burst, which comes at once. */
			wait->last_end = batch->popped;
			wait->last_ns = 0;
		}
		set(wait, has_more ? batch->pushed : 0, now_ns);
	}
	pin_lock_release(&wait->lock, host);
}

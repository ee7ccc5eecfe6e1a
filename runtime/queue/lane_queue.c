/* SPDX-License-Identifier: MIT */
/*
 * The queue of the high or low lane: an injector with counts of its tasks, and
 * marks from which their age is estimated.
 *
 * Any thread pushes; the workers that serve the lane pop one task at a time and
 * write the marks.
 */
#include "runtime/queue/lane_queue.h"
#include "runtime/base/check.h"

void pin_lane_queue_init(struct pin_lane_queue *queue, const struct pin_host *host)
{
	*queue = (struct pin_lane_queue){0};
	pin_injector_init(&queue->injector, host);
}

void pin_lane_queue_push(struct pin_lane_queue *queue, struct pin_list *list, uint32_t count)
{
	PIN_DCHECK(count > 0);
	pin_fetch_add_relaxed_u64(&queue->pushed, count); /* the push releases it: [LANE-1] */
	pin_injector_push(&queue->injector, list);
}

bool pin_lane_queue_claim(
	struct pin_lane_queue *queue, uint32_t count, uint64_t limit, uint64_t *out_waiting)
{
	uint64_t popped;
	uint64_t pushed;

	PIN_CHECK(count <= limit);
	do {
		popped = pin_load_acquire_u64(&queue->popped); /* [LANE-1] */
		pushed = pin_load_acquire_u64(&queue->pushed);
		PIN_CHECK(pushed >= popped);
		if (pushed - popped > limit - count) {
			*out_waiting = pushed - popped;
			return false;
		}
		/* The push releases it, or the undo: [LANE-1]. */
	} while (!pin_cas_seq_cst_u64(&queue->pushed, &pushed, pushed + count));
	return true;
}

struct pin_link *pin_lane_queue_pop(struct pin_lane_queue *queue, bool *out_has_more)
{
	struct pin_list list = {0};

	if (pin_injector_pop(&queue->injector, 1, 1, &list, out_has_more) == 0) {
		return NULL;
	}
	PIN_CHECK(list.head != NULL);
	pin_fetch_add_acq_rel_u64(&queue->popped, 1); /* [LANE-1] */
	return pin_list_pop(&list);
}

uint64_t pin_lane_queue_depth(const struct pin_lane_queue *queue)
{
	uint64_t popped = pin_load_acquire_u64(&queue->popped); /* [LANE-1] */
	uint64_t pushed = pin_load_acquire_u64(&queue->pushed);

	PIN_CHECK(pushed >= popped);
	return pushed - popped;
}

/*
 * At most one worker marks in each period: the compare-and-swap decides which.
 * Marks are estimates, so nothing orders them.
 */
void pin_lane_queue_mark(struct pin_lane_queue *queue, uint64_t now_ns, uint64_t max_wait_ns)
{
	uint64_t last = pin_load_relaxed_u64(&queue->period);
	uint64_t period;
	uint64_t pushed;

	PIN_DCHECK(max_wait_ns >= PIN_LANE_MARKS);
	period = now_ns / (max_wait_ns / PIN_LANE_MARKS);
	if (period <= last || !pin_cas_seq_cst_u64(&queue->period, &last, period)) {
		return;
	}
	/* In periods without a mark, all pushes count as old as this one. */
	pushed = pin_load_relaxed_u64(&queue->marks[last % PIN_LANE_MARKS]);
	if (period - last >= PIN_LANE_MARKS) {
		pin_store_relaxed_u64(&queue->overdue_end, pushed);
		last = period - PIN_LANE_MARKS;
	} else {
		/*
		 * It is at the place of the new mark, and is eight periods old.
		 */
		pin_store_relaxed_u64(&queue->overdue_end,
			pin_load_relaxed_u64(&queue->marks[period % PIN_LANE_MARKS]));
	}
	while (++last < period) {
		pin_store_relaxed_u64(&queue->marks[last % PIN_LANE_MARKS], pushed);
	}
	pin_store_relaxed_u64(
		&queue->marks[period % PIN_LANE_MARKS], pin_load_relaxed_u64(&queue->pushed));
}

bool pin_lane_queue_must_warn(struct pin_atomic_u32 *has_warned, uint64_t depth, uint64_t limit)
{
	uint32_t before = pin_load_relaxed_u32(has_warned);

	if (limit == 0) {
		return false;
	}
	if (before == 0) {
		return depth >= limit && pin_cas_seq_cst_u32(has_warned, &before, 1);
	}
	if (depth <= limit / 2) {
		pin_store_relaxed_u32(has_warned, 0);
	}
	return false;
}

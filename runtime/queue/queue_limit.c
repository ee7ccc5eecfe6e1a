/* SPDX-License-Identifier: MIT */
/*
 * Where the queue limit ends.
 */
#include "runtime/queue/queue_limit.h"

enum {
	/* Looks while a whole limit is admitted. */
	LOOKS = 16,
};

void pin_queue_limit_init(struct pin_queue_limit *queue_limit, uint64_t limit)
{
	*queue_limit = (struct pin_queue_limit){.limit = limit == 0 ? UINT64_MAX : limit};
	/*
	 * Relaxed: no other thread uses it yet. No gate counts as far as the
	 * first of these, and what other lanes add to it does not wrap.
	 */
	pin_store_relaxed_u64(&queue_limit->end, limit == 0 ? UINT64_MAX / PIN_GATE_UNIT : 0);
}

bool pin_queue_limit_renew(struct pin_queue_limit *queue_limit,
	const struct pin_queue_limit_view *view, uint64_t count, uint64_t *out_waiting)
{
	/* Of limit, popped and elsewhere each is part of the new end. */
	uint64_t end = queue_limit->limit + view->popped +
		pin_load_acquire_u64(&queue_limit->elsewhere); /* [QLIMIT-1] */
	uint64_t next;

	end = end > view->pushed_inside ? end - view->pushed_inside : 0;
	if (view->admitted + count > end) {
		*out_waiting = view->admitted + queue_limit->limit - end;
		return false;
	}
	next = view->admitted + count + queue_limit->limit / LOOKS;
	/* Relaxed: whatever end was right once is right. */
	pin_store_relaxed_u64(&queue_limit->end, next < end ? next : end);
	return true;
}

/* SPDX-License-Identifier: MIT */
/*
 * Where the intake ends.
 */
#include "runtime/queue/gate_intake.h"

enum {
	/* Looks while a whole limit is admitted. */
	LOOKS = 16,
};

void pin_intake_init(struct pin_intake *intake, uint64_t limit)
{
	*intake = (struct pin_intake){.limit = limit == 0 ? UINT64_MAX : limit};
	/*
	 * Relaxed: no other thread uses it yet. No gate counts as far as the
	 * first of these, and what other lanes add to it does not wrap.
	 */
	pin_store_relaxed_u64(&intake->end, limit == 0 ? UINT64_MAX / PIN_GATE_UNIT : 0);
}

bool pin_intake_renew(struct pin_intake *intake, const struct pin_intake_view *view, uint64_t count,
	uint64_t *out_waiting)
{
	/* Of limit, popped and elsewhere each is part of the new end. */
	uint64_t end = intake->limit + view->popped +
		pin_load_acquire_u64(&intake->elsewhere); /* [INTAKE-1] */
	uint64_t next;

	end = end > view->pushed_inside ? end - view->pushed_inside : 0;
	if (view->admitted + count > end) {
		*out_waiting = view->admitted + intake->limit - end;
		return false;
	}
	next = view->admitted + count + intake->limit / LOOKS;
	/* Relaxed: whatever end was right once is right. */
	pin_store_relaxed_u64(&intake->end, next < end ? next : end);
	return true;
}

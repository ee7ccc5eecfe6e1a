/* SPDX-License-Identifier: MIT */
/*
 * Into the queue of a worker's offers, and out of it.
 */
#include "runtime/worker/request.h"
#include "runtime/base/check.h"
#include "runtime/worker/wake.h"
#include "runtime/worker/watchdog.h"
#include "runtime/worker/worker.h"

void pin_external_push(struct pin_worker *target, struct pin_list *list)
{
	pin_injector_push(&target->external, list);
	pin_wake_worker(target, NULL);
	if (!pin_parker_is_parked(&target->parker)) {
		pin_fence_seq_cst(); /* [EXTERNAL-1] */
		pin_watchdog_tell_of_other(target->shared);
	}
}

struct pin_link *pin_external_pop(struct pin_worker *target)
{
	struct pin_list list = {0};
	bool has_more;

	return pin_injector_pop(&target->external, 1, 1, &list, &has_more) == 0
		? NULL
		: pin_list_pop(&list);
}

bool pin_external_may_adopt(const struct pin_worker *worker)
{
	return !pin_external_is_empty(worker) &&
		pin_load_acquire_u32(&worker->shared->cancels) == 0 && /* [EXTERNAL-2] */
		!pin_parker_is_parked(&worker->parker) && pin_search_is_stuck(worker);
}

void pin_external_hold(struct pin_shared *shared)
{
	pin_fetch_add_seq_cst_u32(&shared->cancels, 1); /* [EXTERNAL-2] */
}

void pin_external_release(struct pin_shared *shared)
{
	uint32_t before = pin_fetch_sub_seq_cst_u32(&shared->cancels, 1);

	PIN_CHECK(before > 0);
}

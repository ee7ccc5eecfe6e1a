/* SPDX-License-Identifier: MIT */
/*
 * The wake rule and the count of searchers.
 */
#include "runtime/core/wake.h"
#include "runtime/base/check.h"

static void notify(struct pin_worker *target)
{
	if (pin_parker_notify(&target->parker, target->shared->host)) {
		pin_ring_doorbell(&target->ring);
	}
}

/* Takes a parked worker out of the set. */
static struct pin_worker *claim(struct pin_shared *shared)
{
	uint32_t index = pin_idle_claim(&shared->idle);

	return index == PIN_IDLE_NONE ? NULL : &shared->workers[index];
}

void pin_wake_one(struct pin_shared *shared, struct pin_worker *waker)
{
	uint32_t before;

	pin_fence_seq_cst(); /* [PARK-1] [SEARCH-1] */
	do {
		struct pin_worker *target;
		uint32_t nobody = 0;

		if (pin_idle_is_empty(&shared->idle) ||				/* [PARK-1] */
			!pin_cas_seq_cst_u32(&shared->searching, &nobody, 1)) { /* [SEARCH-2] */
			return;
		}
		target = claim(shared);
		if (target != NULL) {
			if (waker != NULL) {
				pin_meter_add(&waker->meter.wakes_sent, 1);
			}
			notify(target);
			return;
		}
		before = pin_fetch_sub_seq_cst_u32(&shared->searching, 1); /* [SEARCH-2] */
	} while (before == 1);
}

void pin_wake_worker(struct pin_worker *target, struct pin_worker *waker)
{
	pin_fence_seq_cst(); /* [PARK-1] */
	if (!pin_parker_is_parked(&target->parker)) {
		return;
	}
	if (waker != NULL) {
		pin_meter_add(&waker->meter.wakes_sent, 1);
	}
	notify(target);
}

void pin_wake_all(struct pin_shared *shared)
{
	pin_fence_seq_cst(); /* [PARK-1] */
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		notify(&shared->workers[i]);
	}
}

bool pin_search_begin(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;

	if (worker->is_searching) {
		return true;
	}
	if (2 * pin_load_relaxed_u32(&shared->searching) >= shared->worker_count) {
		return false;
	}
	pin_fetch_add_seq_cst_u32(&shared->searching, 1);
	worker->is_searching = true;
	return true;
}

void pin_search_succeed(struct pin_worker *worker)
{
	uint32_t before = pin_fetch_sub_seq_cst_u32(&worker->shared->searching, 1);

	PIN_CHECK(before > 0);
	worker->is_searching = false;
	if (before == 1) {
		pin_wake_one(worker->shared, worker);
	}
}

void pin_search_give_up(struct pin_worker *worker)
{
	uint32_t before = pin_fetch_sub_seq_cst_u32(&worker->shared->searching, 1); /* [SEARCH-1] */

	PIN_CHECK(before > 0);
	worker->is_searching = false;
}

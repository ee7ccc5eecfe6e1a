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

static uint32_t claim_lowest(struct pin_shared *shared)
{
	uint32_t rank = pin_idle_claim(&shared->parked[PIN_PARKED_FUTEX]);

	return rank != PIN_IDLE_NONE ? rank : pin_idle_claim(&shared->parked[PIN_PARKED_RING]);
}

/* A near worker in its ring comes before a far one on its futex. */
static uint32_t claim_near(struct pin_shared *shared, const struct pin_worker *waker)
{
	const struct pin_range *ranges = pin_victims_ranges(&shared->victims, waker->index);

	for (int i = PIN_NEAR_L3; i < PIN_NEARNESSES; i++) {
		for (int j = 0; j < PIN_PARKED_SETS; j++) {
			uint32_t rank = pin_idle_claim_in(&shared->parked[j], &ranges[i], 1);

			if (rank != PIN_IDLE_NONE) {
				return rank;
			}
		}
	}
	return PIN_IDLE_NONE;
}

static uint32_t claim_next(struct pin_shared *shared)
{
	uint32_t start = pin_load_relaxed_u32(&shared->wake_start);
	uint32_t rank = pin_idle_claim_from(&shared->parked[PIN_PARKED_FUTEX], start);

	if (rank == PIN_IDLE_NONE) {
		rank = pin_idle_claim_from(&shared->parked[PIN_PARKED_RING], start);
	}
	if (rank != PIN_IDLE_NONE) {
		pin_store_relaxed_u32(&shared->wake_start, rank + 1);
	}
	return rank;
}

/* Takes a parked worker out of its set; outside threads are near to nobody. */
static struct pin_worker *claim(struct pin_shared *shared, const struct pin_worker *waker)
{
	uint32_t rank;

	if (shared->config.wake_policy == PINION_WAKE_ROTATE) {
		rank = claim_next(shared);
	} else if (shared->config.wake_policy == PINION_WAKE_NEAR && waker != NULL) {
		rank = claim_near(shared, waker);
	} else {
		rank = claim_lowest(shared);
	}
	return rank == PIN_IDLE_NONE ? NULL
				     : &shared->workers[pin_victims_index(&shared->victims, rank)];
}

void pin_wake_one(struct pin_shared *shared, struct pin_worker *waker)
{
	uint32_t before;

	pin_fence_seq_cst(); /* [PARK-1] [SEARCH-1] */
	do {
		struct pin_worker *target;
		uint32_t nobody = 0;

		if (!pin_wake_sees_sleeper(shared) ||				/* [PARK-1] */
			!pin_cas_seq_cst_u32(&shared->searching, &nobody, 1)) { /* [SEARCH-2] */
			return;
		}
		target = claim(shared, waker);
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

/* SPDX-License-Identifier: MIT */
/*
 * The count of free workers.
 */
#include "runtime/worker/wake.h"
#include "runtime/base/check.h"

void pin_assist_enter(struct pin_worker *worker)
{
	if (!worker->is_free) {
		pin_fetch_add_seq_cst_u32(&worker->tier->free_count, 1); /* [ASSIST-1] */
		worker->is_free = true;
	}
}

void pin_assist_leave(struct pin_worker *worker)
{
	if (worker->is_free) {
		uint32_t before = pin_fetch_sub_seq_cst_u32(&worker->tier->free_count, 1);

		PIN_CHECK(before > 0);
		worker->is_free = false;
	}
}

bool pin_assist_try_leave(struct pin_worker *worker)
{
	struct pin_atomic_u32 *count = &worker->tier->free_count;
	uint32_t reserve = worker->shared->tuning.assist_reserve;
	uint32_t before = pin_load_acquire_u32(count);

	PIN_CHECK(worker->is_free);
	while (before > reserve) {
		if (pin_cas_seq_cst_u32(count, &before, before - 1)) {
			worker->is_free = false;
			return true;
		}
	}
	return false;
}

bool pin_assist_sees_work(const struct pin_worker *worker)
{
	const struct pin_shared *shared = worker->shared;

	if (!pin_assist_is_on(shared) || !worker->is_free ||
		!pin_assist_has_room(shared, worker->tier)) {
		return false;
	}
	for (uint32_t lane = 0; lane < PIN_LANES; lane++) {
		if (!pin_worker_serves(worker, lane) && pin_runnable_has_lane(shared, lane)) {
			return true;
		}
	}
	return false;
}

/* SPDX-License-Identifier: MIT */
/*
 * The distance to the next check.
 */
#include "runtime/policy/wake_batch.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"

void pin_wake_batch_init(struct pin_wake_batch *wake_batch, uint32_t worth_spawns,
	uint32_t fence_spawns, uint64_t worth_ns)
{
	PIN_CHECK(worth_spawns >= 1 && worth_spawns <= fence_spawns);
	*wake_batch = (struct pin_wake_batch){
		.worth_spawns = worth_spawns,
		.fence_spawns = fence_spawns,
		.worth_ns = worth_ns,
	};
	(void)pin_wake_batch_note_told(wake_batch);
}

uint32_t pin_wake_batch_note_nobody(
	struct pin_wake_batch *wake_batch, uint32_t queued, uint64_t average_ns)
{
	uint32_t count = pin_wake_batch_count(wake_batch);
	uint32_t stride = pin_min_u32(wake_batch->worth_spawns, PIN_WAKE_BATCH_STRIDE_MAX);

	if (count < wake_batch->worth_spawns) {
		stride = pin_min_u32(stride, wake_batch->worth_spawns - count);
	}
	/* No more than makes the queue worth it, without a division. */
	if ((uint64_t)(queued + stride) * average_ns >= wake_batch->worth_ns) {
		stride = 1;
	}
	stride = pin_min_u32(stride, wake_batch->fence_spawns - count);
	if (wake_batch->fence_spawns == PIN_WAKE_BATCH_NEVER) {
		stride = PIN_WAKE_BATCH_NEVER;
	}
	PIN_DCHECK(stride > 0); /* the next look is still to come */
	wake_batch->look_count = count + stride;
	return stride - 1;
}

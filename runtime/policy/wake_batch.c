/* SPDX-License-Identifier: MIT */
/*
 * The distance to the next check.
 */
#include "runtime/policy/wake_batch.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"

void pin_hoard_init(
	struct pin_hoard *hoard, uint32_t worth_spawns, uint32_t fence_spawns, uint64_t worth_ns)
{
	PIN_CHECK(worth_spawns >= 1 && worth_spawns <= fence_spawns);
	*hoard = (struct pin_hoard){
		.worth_spawns = worth_spawns,
		.fence_spawns = fence_spawns,
		.worth_ns = worth_ns,
	};
	(void)pin_hoard_note_told(hoard);
}

uint32_t pin_hoard_note_nobody(struct pin_hoard *hoard, uint32_t queued, uint64_t average_ns)
{
	uint32_t count = pin_hoard_count(hoard);
	uint32_t stride = pin_min_u32(hoard->worth_spawns, PIN_HOARD_STRIDE_MAX);

	if (count < hoard->worth_spawns) {
		stride = pin_min_u32(stride, hoard->worth_spawns - count);
	}
	/* No more than makes the queue worth it, without a division. */
	if ((uint64_t)(queued + stride) * average_ns >= hoard->worth_ns) {
		stride = 1;
	}
	stride = pin_min_u32(stride, hoard->fence_spawns - count);
	if (hoard->fence_spawns == PIN_HOARD_NEVER) {
		stride = PIN_HOARD_NEVER;
	}
	PIN_DCHECK(stride > 0); /* the next look is still to come */
	hoard->look_count = count + stride;
	return stride - 1;
}

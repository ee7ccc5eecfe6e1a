/* SPDX-License-Identifier: MIT */
/*
 * The real worker/lane.c, with calls that a mutant may leave out.
 */
#include "runtime/worker/lane.h"
#include "runtime/base/check.h"
#include "runtime/worker/wake.h"
#include "tests/model/explorer.h"

#define pin_wake_lane(shared, waker, lane) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_wake_lane") \
			? (void)0 \
			: (pin_wake_lane)(shared, waker, lane))

/* SKIP: threads that wait for room are not notified. */
#define pin_room_tell(shared, lane) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_room_tell") ? (void)0 \
								: (pin_room_tell)(shared, lane))

/*
 * SKIP: claimed room stays claimed; tasks that wait elsewhere take room here.
 */
#define pin_lane_queue_undo(queue, count) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_lane_queue_undo") \
			? (void)0 \
			: (pin_lane_queue_undo)(queue, count))
#define pin_queue_limit_note_elsewhere(queue_limit, count) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_queue_limit_note_elsewhere") \
			? (void)0 \
			: (pin_queue_limit_note_elsewhere)(queue_limit, count))

#include "runtime/worker/lane.c"

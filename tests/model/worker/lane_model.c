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

#define pin_room_tell(shared, lane) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_room_tell") ? (void)0 \
								: (pin_room_tell)(shared, lane))

#include "runtime/worker/lane.c"

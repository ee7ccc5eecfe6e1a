/* SPDX-License-Identifier: MIT */
/*
 * The real core/disk.c and sched/limiter.c, with steps that a twin may leave
 * out.
 */
#include "runtime/base/check.h"
#include "runtime/core/disk.h"
#include "tests/model/explorer.h"

#define pin_limiter_begin_epoch(limiter) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_limiter_begin_epoch") \
			? (void)0 \
			: pin_limiter_begin_epoch(limiter))

#include "runtime/core/disk.c"
#include "runtime/sched/limiter.c"

/* SPDX-License-Identifier: MIT */
/*
 * The real io/device.c and io/rate_limit.c, with steps that a mutant may leave
 * out.
 */
#include "runtime/io/device.h"
#include "runtime/base/check.h"
#include "tests/model/explorer.h"

#define pin_limiter_begin_epoch(limiter) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_limiter_begin_epoch") \
			? (void)0 \
			: pin_limiter_begin_epoch(limiter))

#define pin_rate_take(rate, cost_ns) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_rate_take") ? (void)0 \
								: pin_rate_take(rate, cost_ns))
#define pin_rate_give_back(rate, unused_ns) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_rate_give_back") \
			? (void)0 \
			: pin_rate_give_back(rate, unused_ns))

#include "runtime/io/device.c"
#include "runtime/io/rate_limit.c"

/* SPDX-License-Identifier: MIT */
/*
 * The real worker/wait.c, with calls that a mutant may leave out.
 */
#include "runtime/worker/wait.h"
#include "runtime/base/check.h"
#include "runtime/worker/state.h"
#include "runtime/worker/wake.h"
#include "tests/model/explorer.h"

#include <errno.h>

#define pin_wake_worker(target, waker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_wake_worker") \
			? (void)0 \
			: (pin_wake_worker)(target, waker))
/* Ends it whether it was served or not. */
#define pin_waiter_withdraw(waiter) \
	((pin_waiter_withdraw)(waiter) || \
		model_is_spoilt(MODEL_SKIP, __func__, "pin_waiter_withdraw"))
#define pin_waiter_withdraw_from(waiters, waiter) \
	((pin_waiter_withdraw_from)(waiters, waiter) || \
		model_is_spoilt(MODEL_SKIP, __func__, "pin_waiter_withdraw_from"))
/* SKIP: the queue of a wait that is over is found still. */
#undef pin_store_relaxed_u64
#define pin_store_relaxed_u64(atomic, value) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_store_relaxed_u64") \
			? (void)0 \
			: model_store_u64(atomic, value, MODEL_ORDER_RELAXED, __func__))
#undef pin_load_acquire_u32
#define pin_load_acquire_u32(atomic) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_load_acquire_u32") \
			? 0 \
			: model_load_u32(atomic, MODEL_ORDER_ACQUIRE, __func__))

#include "runtime/worker/wait.c"

/* SPDX-License-Identifier: MIT */
/*
 * The real worker/watchdog.c, with calls that a mutant may spoil.
 */
#include "runtime/worker/watchdog.h"
#include "runtime/worker/request.h"
#include "runtime/worker/ring_lock.h"
#include "runtime/worker/timer.h"
#include "runtime/worker/wake.h"
#include "tests/model/explorer.h"

/* SKIP: all seem to sleep; LATE: all seem to be awake still. */
#define pin_parker_is_parked(parker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_parker_is_parked") || \
		(!model_is_spoilt(MODEL_LATE, __func__, "pin_parker_is_parked") && \
			pin_parker_is_parked(parker)))
#define pin_remote_reap_is_wanted(worker) \
	(!model_is_spoilt(MODEL_SKIP, __func__, "pin_remote_reap_is_wanted") && \
		pin_remote_reap_is_wanted(worker))
#define pin_lifo_is_empty(lifo) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_lifo_is_empty") || pin_lifo_is_empty(lifo))
#define pin_external_is_empty(worker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_external_is_empty") || \
		(model_is_spoilt(MODEL_SKIP, __func__, "external_urgent") \
				? pin_injector_is_empty(&(worker)->external) \
				: pin_external_is_empty(worker)))
/* SKIP: of timers it sees only those that are late. */
#define pin_timer_needs_help(worker, now_ns) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_timer_needs_help") \
			? pin_timer_is_late(worker, now_ns) \
			: pin_timer_needs_help(worker, now_ns))
#define pin_wake_one(shared, waker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_wake_one") ? (void)0 \
							       : pin_wake_one(shared, waker))

#include "runtime/worker/watchdog.c"

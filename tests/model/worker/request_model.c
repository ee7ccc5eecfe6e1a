/* SPDX-License-Identifier: MIT */
/*
 * The sources of requests in worker/, with steps that a mutant may leave out.
 */
#include "runtime/worker/request.h"
#include "runtime/base/check.h"
#include "runtime/queue/biased_lock.h"
#include "runtime/worker/ring_lock.h"
#include "runtime/worker/spawn.h"
#include "runtime/worker/state.h"
#include "runtime/worker/wake.h"
#include "runtime/worker/watchdog.h"
#include "runtime/worker/worker.h"
#include "tests/model/explorer.h"

#define pin_wake_worker(target, waker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_wake_worker") \
			? (void)0 \
			: (pin_wake_worker)(target, waker))

#define pin_watchdog_tell_of_other(shared) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_watchdog_tell_of_other") \
			? (void)0 \
			: (pin_watchdog_tell_of_other)(shared))

/* SKIP: a cancel of many is not counted. */
#define pin_external_hold(shared) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_external_hold") ? (void)0 \
								    : (pin_external_hold)(shared))
#define pin_external_release(shared) \
	(model_is_spoilt(MODEL_SKIP, "post_cancel", "pin_external_hold") \
			? (void)0 \
			: (pin_external_release)(shared))

#define pin_remote_reap_enter(worker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_remote_reap_enter") \
			? (void)0 \
			: pin_remote_reap_enter(worker))
#define pin_remote_reap_take(worker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_remote_reap_take") || \
		pin_remote_reap_take(worker))
#define pin_watchdog_note_kept(worker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_watchdog_note_kept") \
			? (void)0 \
			: pin_watchdog_note_kept(worker))

/* SKIP: an end does not exclude a cancel. */
#define pin_biased_enter(owned, host) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_biased_enter") \
			? (void)0 \
			: (pin_biased_enter)(owned, host))

/* SKIP: nor does a cancel exclude the end. */
#define pin_biased_take(owned, host) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_biased_take") || (pin_biased_take)(owned, host))

/* SKIP: credit that comes too late, or at all, stays where it is. */
#define pin_credit_collect(holding) \
	(!model_is_spoilt(MODEL_SKIP, __func__, "pin_credit_collect") && \
		pin_credit_collect(holding))
#define pin_device_queue_has_news(worker) \
	(!model_is_spoilt(MODEL_SKIP, __func__, "pin_device_queue_has_news") && \
		pin_device_queue_has_news(worker))

/* SKIP: a long one pays for its first part alone. */
#define pin_device_queue_owes_part(worker, request) \
	(!model_is_spoilt(MODEL_SKIP, __func__, "pin_device_queue_owes_part") && \
		pin_device_queue_owes_part(worker, request))

/* SKIP: a part that goes on after it was taken in is not submitted. */
#define pin_ring_unsubmitted(ring) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_ring_unsubmitted") \
			? 0 \
			: pin_ring_unsubmitted(ring))

#include "runtime/worker/cancel.c"
#include "runtime/worker/complete.c"
#include "runtime/worker/extra_rings.c"
#include "runtime/worker/request_external.c"
#include "runtime/worker/submit.c"
#undef pin_device_queue_owes_part
/* SKIP: credit stays with a worker that cannot use it. */
#define pin_credit_end(...) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_credit_end") ? (void)0 \
								 : pin_credit_end(__VA_ARGS__))
/* SKIP: an urgent request leaves as one of the others. */
#define pin_device_waiters_note_left(waiters, request) \
	do { \
		if (model_is_spoilt(MODEL_SKIP, __func__, "is_urgent")) { \
			pin_request_of(request)->cost.is_urgent = false; \
		} \
		(pin_device_waiters_note_left)(waiters, request); \
	} while (0)
/* SKIP: an urgent request waits for its turn as any other. */
#define pin_device_waiters_push(waiters, lines, request) \
	do { \
		if (model_is_spoilt(MODEL_SKIP, __func__, "is_urgent")) { \
			pin_request_of(request)->cost.is_urgent = false; \
		} \
		(pin_device_waiters_push)(waiters, lines, request); \
	} while (0)
#include "runtime/worker/device_account.c"
#include "runtime/worker/device_queue.c"

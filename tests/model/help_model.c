/* SPDX-License-Identifier: MIT */
/*
 * The real core/help.c and core/knot.c, with calls that a twin may leave out.
 */
#include "runtime/core/help.h"
#include "runtime/base/check.h"
#include "runtime/core/assist.h"
#include "runtime/core/fault.h"
#include "runtime/core/knot.h"
#include "runtime/core/step.h"
#include "runtime/core/supply.h"
#include "runtime/core/wake.h"
#include "tests/model/explorer.h"

#include <errno.h>

/* SKIP: a wake that came above the task is told to nobody. */
#define pin_search_succeed(worker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_search_succeed") ? pin_search_give_up(worker) \
								     : pin_search_succeed(worker))
static enum pin_step sleep_for_good(struct pin_worker *worker)
{
	static struct pin_atomic_u32 word;

	worker->shared->host->futex_wait(&word, 0, PIN_NO_DEADLINE);
	return PIN_STEP_RAN;
}

/* SKIP: its worker runs nothing else. */
#define pin_worker_step(worker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_worker_step") ? sleep_for_good(worker) \
								  : pin_worker_step(worker))
#include "runtime/core/help.c"

/* SKIP: nothing seems left to run. */
#define pin_supply_count_left(shared) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_supply_count_left") \
			? 0 \
			: pin_supply_count_left(shared))
/* SKIP: who has been served counts as one that waits. */
#define pin_waiter_is_queued(waiter) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_waiter_is_queued") || \
		pin_waiter_is_queued(waiter))
/* SKIP: who is about to leave seems to have left. */
#define pin_worker_is_leaving(worker) \
	(!model_is_spoilt(MODEL_SKIP, __func__, "pin_worker_is_leaving") && \
		pin_worker_is_leaving(worker))
/* Ends it whether it was served or not. */
#define pin_waiter_withdraw(waiter) \
	((pin_waiter_withdraw)(waiter) || \
		model_is_spoilt(MODEL_SKIP, __func__, "pin_waiter_withdraw"))
/* SKIP: who is taken out of a knot does not get to know. */
#define pin_waiters_tell(host, served) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_waiters_tell") \
			? 0 \
			: pin_waiters_tell(host, served))
#include "runtime/core/knot.c"

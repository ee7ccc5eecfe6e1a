/* SPDX-License-Identifier: MIT */
/*
 * The real worker/timer.c, with a step that a mutant may leave out.
 */
#include "runtime/worker/timer.h"
#include "runtime/base/check.h"
#include "runtime/queue/biased_lock.h"
#include "runtime/worker/state.h"
#include "tests/model/explorer.h"

/* By each thread, in a wheel's lock: it publishes nothing. */
static bool is_kept_secret[MODEL_THREADS_MAX];

static void enter_wheel(struct pin_biased_lock *owned, const struct pin_host *host)
{
	pin_biased_enter(owned, host);
	is_kept_secret[model_thread_current()] = false;
}

static bool take_wheel(struct pin_biased_lock *owned, const struct pin_host *host, const char *site)
{
	bool is_taken = pin_biased_take(owned, host);

	is_kept_secret[model_thread_current()] =
		is_taken && model_is_spoilt(MODEL_SKIP, site, "publish");
	return is_taken;
}

#define pin_biased_enter(owned, host) enter_wheel(owned, host)
#define pin_biased_take(owned, host) take_wheel(owned, host, __func__)
/* SKIP, of "publish": the owner still sleeps until the old deadline. */
#undef pin_store_relaxed_u64
#define pin_store_relaxed_u64(atomic, value) \
	(is_kept_secret[model_thread_current()] \
			? (void)0 \
			: model_store_u64(atomic, value, MODEL_ORDER_RELAXED, __func__))
#include "runtime/worker/timer.c"

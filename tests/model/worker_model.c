/* SPDX-License-Identifier: MIT */
/*
 * The real core/worker.c and core/wake.c, with calls that a twin may leave out,
 * and with its thread-local variable told to the explorer.
 */
#include "runtime/core/worker.h"
#include "runtime/base/check.h"
#include "runtime/core/io.h"
#include "runtime/core/park.h"
#include "runtime/core/search.h"
#include "runtime/core/spawn.h"
#include "runtime/core/step.h"
#include "runtime/core/timer.h"
#include "runtime/core/wake.h"
#include "tests/model/explorer.h"
#include "tests/model/runtime_model.h"

#define pin_injector_is_empty(injector) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_injector_is_empty") || \
		pin_injector_is_empty(injector))
#define pin_ring_doorbell(ring) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_ring_doorbell") ? (void)0 \
								    : pin_ring_doorbell(ring))
#define pin_idle_publish(idle, worker_index) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_idle_publish") \
			? (void)0 \
			: pin_idle_publish(idle, worker_index))

#define pin_search_sees_work(worker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_search_sees_work") \
			? false \
			: pin_search_sees_work(worker))
#include "runtime/core/wake.c"

#define pin_wake_all(shared) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_wake_all") ? (void)0 : (pin_wake_all)(shared))

#include "runtime/core/io.c"
#include "runtime/core/park.c"
#include "runtime/core/spawn.c"
#include "runtime/core/step.c"
#include "runtime/core/worker.c"

void model_worker_register(void)
{
	model_thread_local(&pin_worker_self, sizeof(pin_worker_self));
}

/* SPDX-License-Identifier: MIT */
/*
 * The real core/worker.c, with calls that a defect may spoil, and with its
 * thread-local variable told to the world.
 */
#include "tests/sim/product.h"
#include "runtime/base/check.h"
#include "runtime/core/fault.h"
#include "runtime/core/flight.h"
#include "runtime/core/flight_cancel.h"
#include "runtime/core/flight_end.h"
#include "runtime/core/flight_message.h"
#include "runtime/core/flight_start.h"
#include "runtime/core/io.h"
#include "runtime/core/park.h"
#include "runtime/core/relief.h"
#include "runtime/core/search.h"
#include "runtime/core/sentry.h"
#include "runtime/core/spawn.h"
#include "runtime/core/step.h"
#include "runtime/core/supply.h"
#include "runtime/core/throttle.h"
#include "runtime/core/timer.h"
#include "runtime/core/wake.h"
#include "runtime/core/worker.h"
#include "tests/sim/defect.h"
#include "tests/sim/world.h"

#include <string.h>

enum { CREDIT_FACTOR = 16 };

static int init_ring(struct pin_ring *ring, const struct pin_host *host, struct pin_meter *meter,
	const struct pin_ring_options *options, const struct pin_log *log)
{
	int rc = pin_ring_init(ring, host, meter, options, log);

	if (rc == 0 && !ring->is_fallback && defect_is(DEFECT_CREDIT_UNBOUNDED)) {
		ring->credit *= CREDIT_FACTOR;
	}
	return rc;
}

static uint64_t counted(const char *counter, uint64_t amount)
{
	bool is_completion = strstr(counter, "requests_completed") != NULL;

	return is_completion && defect_strikes(DEFECT_COMPLETION_MISCOUNTED, 8) ? amount + 1
										: amount;
}

static uint32_t pop_shared(struct pin_injector *injector, uint32_t share_count, uint32_t room,
	struct pin_list *out_list, bool *out_has_more)
{
	if (defect_is(DEFECT_SHARED_QUEUE_STARVES) &&
		!defect_strikes(DEFECT_SHARED_QUEUE_STARVES, 20000)) {
		*out_has_more = false;
		return 0;
	}
	return pin_injector_pop(injector, share_count, room, out_list, out_has_more);
}

#define pin_parker_notify(...) \
	(defect_strikes(DEFECT_WAKE_SKIPPED, 8) ? false : pin_parker_notify(__VA_ARGS__))
#define pin_supply_has_own_lanes(...) \
	(!defect_is(DEFECT_NO_RECHECK) && pin_supply_has_own_lanes(__VA_ARGS__))
#define pin_injector_pop pop_shared
#define pin_request_complete(...) \
	(defect_strikes(DEFECT_COMPLETION_LOST, 16) ? NULL : pin_request_complete(__VA_ARGS__))
#define pin_ring_prepare_wait(...) \
	(defect_is(DEFECT_DOORBELL_NOT_ARMED) ? (void)0 : pin_ring_prepare_wait(__VA_ARGS__))
#define pin_ring_fini(...) (defect_is(DEFECT_RING_LEAKS) ? (void)0 : pin_ring_fini(__VA_ARGS__))
#define pin_sentry_note_kept(...) \
	(defect_is(DEFECT_SENTRY_UNTOLD) ? (void)0 : pin_sentry_note_kept(__VA_ARGS__))
#define pin_ring_init init_ring
#define pin_meter_add(counter, amount) (pin_meter_add)(counter, counted(#counter, amount))

#include "runtime/core/flight.c"
#include "runtime/core/flight_cancel.c"
#include "runtime/core/flight_end.c"
#include "runtime/core/flight_message.c"
#include "runtime/core/flight_start.c"
#include "runtime/core/throttle.c"

#define pin_flight_take(...) \
	(defect_strikes(DEFECT_MESSAGE_LOST, 8) ? (void)0 : pin_flight_take(__VA_ARGS__))
#define pin_timers_next_ns(wheel) \
	(defect_is(DEFECT_DEADLINE_NOT_AWAITED) && (wheel) == &worker->deadlines \
			? PIN_NO_DEADLINE \
			: pin_timers_next_ns(wheel))

#include "runtime/core/fault.c"
#include "runtime/core/io.c"
#include "runtime/core/park.c"
#include "runtime/core/spawn.c"
#include "runtime/core/step.c"
#include "runtime/core/wake.c"
#include "runtime/core/worker.c"

void product_register(void)
{
	world_thread_local(&pin_worker_self, sizeof(pin_worker_self));
}

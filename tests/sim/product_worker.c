/* SPDX-License-Identifier: MIT */
/*
 * The real loop/thread.c, with calls that a defect may spoil, and with its
 * thread-local variable visible to the world.
 */
#include "tests/sim/product.h"
#include "runtime/base/check.h"
#include "runtime/io/in_flight.h"
#include "runtime/loop/next_task.h"
#include "runtime/worker/events.h"
#include "runtime/worker/lane.h"
#include "runtime/worker/request.h"
#include "runtime/worker/ring_lock.h"
#include "runtime/worker/spawn.h"
#include "runtime/worker/state.h"
#include "runtime/worker/timer.h"
#include "runtime/worker/wake.h"
#include "runtime/worker/watchdog.h"
#include "runtime/worker/worker.h"
#include "tests/sim/defect.h"
#include "tests/sim/workload.h"
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
	struct pin_deque *to, struct pin_link **out_first, bool *out_has_more)
{
	if (defect_is(DEFECT_SHARED_QUEUE_STARVES) &&
		!defect_strikes(DEFECT_SHARED_QUEUE_STARVES, 20000)) {
		*out_has_more = false;
		return 0;
	}
	return pin_injector_pop_into(injector, share_count, room, to, out_first, out_has_more);
}

/* From here on it is the worker's that has taken it. */
static struct pin_link *begun(struct pin_link *link)
{
	if (link != NULL) {
		workload_request_starts((uint64_t)(uintptr_t)pin_task_of(link));
	}
	return link;
}

/* By wake.c, of its target: whether it is in neither set. */
static bool is_claimed(const struct pin_worker *target)
{
	uint32_t rank = pin_victims_rank(&target->shared->victims, target->index);

	return pin_parker_is_parked(&target->parker) &&
		!pin_idle_holds(&target->worker_class->parked[PIN_PARKED_FUTEX], rank) &&
		!pin_idle_holds(&target->worker_class->parked[PIN_PARKED_RING], rank);
}

/* Not that of all at the end: without it nothing is left to go wrong. */
#define pin_parker_notify(...) \
	(target->shared->has_ended.value == 0 && \
				(defect_strikes(DEFECT_WAKE_SKIPPED, 8) || \
					(defect_is(DEFECT_CLAIM_UNTOLD) && is_claimed(target) && \
						defect_strikes(DEFECT_CLAIM_UNTOLD, 4))) \
			? false \
			: pin_parker_notify(__VA_ARGS__))
#define pin_runnable_has_own_lanes(...) \
	(!defect_is(DEFECT_NO_RECHECK) && pin_runnable_has_own_lanes(__VA_ARGS__))
#define pin_injector_pop_into pop_shared
#define pin_request_complete(...) \
	(defect_strikes(DEFECT_COMPLETION_LOST, 16) ? NULL : pin_request_complete(__VA_ARGS__))
#define pin_ring_prepare_wait(...) \
	(defect_is(DEFECT_DOORBELL_NOT_ARMED) || \
				(defect_is(DEFECT_DOORBELL_NOT_REARMED) && \
					strcmp(__func__, "sleep_in_ring") == 0) \
			? (void)0 \
			: pin_ring_prepare_wait(__VA_ARGS__))
#define pin_ring_fini(...) (defect_is(DEFECT_RING_LEAKS) ? (void)0 : pin_ring_fini(__VA_ARGS__))
#define pin_watchdog_note_kept(...) \
	(defect_is(DEFECT_WATCHDOG_UNTOLD) ? (void)0 : pin_watchdog_note_kept(__VA_ARGS__))
#define pin_watchdog_note_awake(...) \
	(defect_is(DEFECT_STALL_UNSEEN) ? (void)0 : pin_watchdog_note_awake(__VA_ARGS__))
#define pin_ring_init init_ring
#define pin_meter_add(counter, amount) (pin_meter_add)(counter, counted(#counter, amount))

#define pin_credit_leave(...) \
	(defect_is(DEFECT_CREDIT_KEPT) && strcmp(__func__, "collect") == 0 \
			? (void)0 \
			: pin_credit_leave(__VA_ARGS__))

#include "runtime/worker/cancel.c"
/* Its only list there: of the one request that it pops. */
#define pin_list_pop(list) begun((pin_list_pop)(list))
#include "runtime/worker/request_external.c"
#undef pin_list_pop
#define pin_external_may_adopt(...) \
	(!defect_is(DEFECT_EXTERNAL_LEFT) && pin_external_may_adopt(__VA_ARGS__))
#define pin_request_abandon(...) \
	(defect_is(DEFECT_CANCEL_NOT_REPEATED) && strcmp(__func__, "ask_again") == 0 \
			? (void)0 \
			: pin_request_abandon(__VA_ARGS__))
#define pin_search_succeed(worker) \
	(defect_is(DEFECT_CALL_WHILE_SEARCHING) && strcmp(__func__, "pin_requests_carry_out") == 0 \
			? (void)0 \
			: pin_search_succeed(worker))
#define pin_list_push(list, link) \
	(pin_list_push)(defect_is(DEFECT_URGENT_LAST) && (list) == &worker->urgent \
			? &worker->ready \
			: (list), \
		link)
#pragma push_macro("PIN_TRACE3")
#undef PIN_TRACE3
/* Its only probe there: a request is handed over. */
#define PIN_TRACE3(name, index, request, result) \
	workload_request_is_over((uint64_t)(uintptr_t)(request))
#include "runtime/worker/complete.c"
#pragma pop_macro("PIN_TRACE3")
#undef pin_list_push
#undef pin_request_abandon
#undef pin_search_succeed
#include "runtime/worker/submit.c"
#define pin_request_submit(...) \
	((defect_is(DEFECT_POLLED_REFUSAL_LOST) && strcmp(__func__, "go_on_unpolled") == 0) || \
		pin_request_submit(__VA_ARGS__))
/* As in product_ring.c: what the kernel writes here is no touch. */
#define pin_in_flight_end(request) ((void)(request))
#define pin_requests_carry_out(...) \
	(defect_is(DEFECT_COMMAND_REFUSAL_LOST) && strcmp(__func__, "go_on_by_call") == 0 \
			? (void)0 \
			: pin_requests_carry_out(__VA_ARGS__))
#define pin_request_complete_command(ring, user_data, result) \
	pin_request_complete_command( \
		ring, user_data, defect_is(DEFECT_COMMAND_STATUS_IGNORED) ? 0 : (result))
#include "runtime/worker/extra_rings.c"
#undef pin_request_submit
#undef pin_requests_carry_out
#undef pin_in_flight_end
#include "runtime/worker/device_account.c"
#include "runtime/worker/device_queue.c"

#define pin_request_take(...) \
	(defect_strikes(DEFECT_MESSAGE_LOST, 8) ? (void)0 : pin_request_take(__VA_ARGS__))
#define pin_timers_next_ns(wheel) \
	(defect_is(DEFECT_DEADLINE_NOT_AWAITED) && (wheel) == &worker->deadlines \
			? PIN_NO_DEADLINE \
			: pin_timers_next_ns(wheel))

#define pin_parker_prepare(parker, mode) \
	pin_parker_prepare(parker, \
		defect_is(DEFECT_PARKS_IN_NO_RING) && worker->ring.in_flight > 0 ? PIN_PARK_RING \
										 : (mode))
#define pin_assist_sees_work(...) \
	(!defect_is(DEFECT_ASSIST_BLIND) && pin_assist_sees_work(__VA_ARGS__))
#define pin_lane_overdue(...) (defect_is(DEFECT_AGING_LOST) ? 0 : pin_lane_overdue(__VA_ARGS__))
#define pin_lane_turns_due(turns, overdue) \
	(defect_is(DEFECT_FLOOR_LOST) ? PIN_LANE_NONE : pin_lane_turns_due(turns, overdue))
#define pin_requests_reap_remote(...) \
	(!defect_is(DEFECT_REMOTE_REAP_LOST) && pin_requests_reap_remote(__VA_ARGS__))

#define pin_commands_watch(worker) \
	(defect_is(DEFECT_COMMANDS_UNWATCHED) ? (void)0 : pin_commands_watch(worker))

#define pin_ring_shrink(...) \
	(defect_is(DEFECT_GIVES_BACK_REGISTERED) ? (void)0 : pin_ring_shrink(__VA_ARGS__))
#include "runtime/worker/arena_growth.c"
#undef pin_ring_shrink
#include "runtime/loop/expire.c"
#include "runtime/worker/buffers.c"
#include "runtime/worker/fault.c"
#define pin_lane_turns_note_urgent(turns) \
	(defect_is(DEFECT_URGENT_UNBOUNDED) ? (void)0 : pin_lane_turns_note_urgent(turns))
#include "runtime/loop/next_task.c"
#undef pin_lane_turns_note_urgent
#include "runtime/loop/park.c"

#define pin_search_succeed(worker) \
	(defect_is(DEFECT_LEAVES_WITH_WAKE) ? pin_search_give_up(worker) \
					    : pin_search_succeed(worker))
#define pin_injector_push(...) \
	(defect_is(DEFECT_LEAVES_WITH_TASKS) ? (void)0 : pin_injector_push(__VA_ARGS__))
#include "runtime/loop/retire.c"
#undef pin_search_succeed
#undef pin_injector_push

#define pin_wake_one(...) \
	(defect_is(DEFECT_SPAWN_UNTOLD) && strcmp(__func__, "tell") == 0 \
			? (void)0 \
			: pin_wake_one(__VA_ARGS__))
#include "runtime/worker/spawn.c"
#undef pin_wake_one
#define pin_polled_is_busy(worker) \
	(!(defect_is(DEFECT_POLLED_NOT_ASKED) && strcmp(__func__, "pin_worker_step") == 0) && \
		pin_polled_is_busy(worker))
#define pin_queue_interval_record(queue_interval, ...) \
	((pin_queue_interval_record)(queue_interval, __VA_ARGS__), \
		defect_is(DEFECT_INTERVAL_UNBOUNDED) \
			? (void)((queue_interval)->interval = \
					  (queue_interval)->options.interval_max + 1) \
			: (void)0)
#include "runtime/loop/loop.c"
#define pin_runnable_has_lane(...) \
	(!(defect_is(DEFECT_SUCCESSOR_UNTOLD) && strcmp(__func__, "filled") == 0) && \
		pin_runnable_has_lane(__VA_ARGS__))
#define pin_assist_has_room(...) \
	(!(defect_is(DEFECT_ASSIST_UNASKED) && strcmp(__func__, "wake_for_lane") == 0) && \
		pin_assist_has_room(__VA_ARGS__))
#undef pin_assist_sees_work
#include "runtime/loop/driven.c"
#include "runtime/loop/thread.c"
#include "runtime/worker/wake.c"

void product_register(void)
{
	world_thread_local(&pin_worker_self, sizeof(pin_worker_self));
}

/* SPDX-License-Identifier: MIT */
/*
 * The real loop/thread.c and worker/wake.c, with calls that a mutant may
 * leave out, and with its thread-local variable visible to the explorer.
 */
#include "runtime/base/check.h"
#include "runtime/loop/next_task.h"
#include "runtime/worker/lane.h"
#include "runtime/worker/request.h"
#include "runtime/worker/ring_lock.h"
#include "runtime/worker/spawn.h"
#include "runtime/worker/timer.h"
#include "runtime/worker/wake.h"
#include "runtime/worker/watchdog.h"
#include "runtime/worker/worker.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"

#define pin_runnable_has_own_lanes(worker) \
	(!model_is_spoilt(MODEL_SKIP, __func__, "pin_runnable_has_own_lanes") && \
		pin_runnable_has_own_lanes(worker))
#define pin_ring_doorbell(ring) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_ring_doorbell") ? (void)0 \
								    : pin_ring_doorbell(ring))
#define pin_idle_publish(idle, worker_index) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_idle_publish") \
			? false \
			: pin_idle_publish(idle, worker_index))

#define pin_search_sees_slot(worker) \
	(!model_is_spoilt(MODEL_SKIP, __func__, "pin_search_sees_slot") && \
		pin_search_sees_slot(worker))
#define pin_spawn_set_announce_all(worker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_spawn_set_announce_all") \
			? (void)0 \
			: pin_spawn_set_announce_all(worker))
#define pin_search_sees_work(worker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_search_sees_work") \
			? false \
			: pin_search_sees_work(worker))

/* EARLY: the value of a while ago, as if it still held. */
#define pin_runnable_has_lane(shared, lane) \
	(!model_is_spoilt(MODEL_SKIP, __func__, "pin_runnable_has_lane") && \
		(model_is_spoilt(MODEL_EARLY, __func__, "pin_runnable_has_lane") || \
			pin_runnable_has_lane(shared, lane)))
#define pin_assist_has_room(shared, worker_class) \
	(!model_is_spoilt(MODEL_SKIP, __func__, "pin_assist_has_room") && \
		pin_assist_has_room(shared, worker_class))

/* Whether one has left, as it was before its inbox was taken. */
static uint32_t early_service[MODEL_THREADS_MAX];

/* SKIP: no worker has come in its place; EARLY: none had before the take. */
static uint32_t read_service(const struct pin_atomic_u32 *service, const char *site)
{
	if (model_is_spoilt(MODEL_SKIP, site, "pin_load_acquire_u32")) {
		return PIN_SERVICE_OUT;
	}
	if (model_is_spoilt(MODEL_EARLY, site, "pin_load_acquire_u32")) {
		return early_service[model_thread_current()];
	}
	return model_load_u32(service, MODEL_ORDER_ACQUIRE, site);
}

/* SKIP: the inbox of a former worker keeps its messages. */
static void take_of(const struct pin_worker *gone, struct pin_inbox *inbox,
	struct pin_list *out_list, const char *site)
{
	if (model_is_spoilt(MODEL_EARLY, site, "pin_load_acquire_u32")) {
		early_service[model_thread_current()] =
			model_load_u32(&gone->service, MODEL_ORDER_ACQUIRE, site);
	}
	if (!model_is_spoilt(MODEL_SKIP, site, "pin_inbox_take")) {
		pin_inbox_take(inbox, out_list);
	}
}

/*
 * EARLY: the inbox goes to the fallback worker before the external submissions
 * do.
 */
static void forward_early(struct pin_worker *gone, const char *site)
{
	struct pin_list list = {0};
	struct pin_link *link;

	if (!model_is_spoilt(MODEL_EARLY, site, "pin_inbox_take")) {
		return;
	}
	pin_inbox_take(&gone->inbox, &list);
	while ((link = pin_list_pop(&list)) != NULL) {
		pin_inbox_push(&gone->shared->fallback->inbox, link);
	}
	pin_wake_worker(gone->shared->fallback, NULL);
}

/* SKIP: a thread that forwards submissions does not exclude others. */
#define pin_lock_acquire(lock, host) \
	(forward_early(gone, __func__), \
		model_is_spoilt(MODEL_SKIP, __func__, "pin_lock_acquire") \
			? (void)0 \
			: pin_lock_acquire(lock, host))
#define pin_lock_release(lock, host) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_lock_acquire") ? (void)0 \
								   : pin_lock_release(lock, host))

#pragma push_macro("pin_load_acquire_u32")
#undef pin_load_acquire_u32
#define pin_load_acquire_u32(atomic) read_service(atomic, __func__)
#define pin_inbox_take(inbox, out_list) take_of(gone, inbox, out_list, __func__)

/* SKIP, of "again": a waker that counts back does not look once more. */
static uint32_t count_back(uint32_t before, const char *site)
{
	return model_is_spoilt(MODEL_SKIP, site, "again") ? before + 1 : before;
}

#pragma push_macro("pin_fetch_sub_seq_cst_u32")
#undef pin_fetch_sub_seq_cst_u32
#define pin_fetch_sub_seq_cst_u32(atomic, value) \
	count_back(model_update_u32(atomic, MODEL_SUB, value, MODEL_ORDER_SEQ_CST, __func__), \
		__func__)
/* SKIP: submissions stay with a worker that has left. */
#define pin_injector_pop(...) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_injector_pop") \
			? 0 \
			: pin_injector_pop(__VA_ARGS__))
#include "runtime/worker/wake.c"
#undef pin_injector_pop
#pragma pop_macro("pin_fetch_sub_seq_cst_u32")
#undef pin_lock_release
#undef pin_lock_acquire
#undef pin_inbox_take
#pragma pop_macro("pin_load_acquire_u32")
#define pin_assist_sees_work(worker) \
	(!model_is_spoilt(MODEL_SKIP, __func__, "pin_assist_sees_work") && \
		pin_assist_sees_work(worker))

#define pin_wake_all(shared) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_wake_all") ? (void)0 : (pin_wake_all)(shared))

/* By the worker that reports the end. */
#define pin_wake_destroy_waiters(shared) \
	(model_note_end(shared), \
		model_is_spoilt(MODEL_SKIP, __func__, "pin_wake_destroy_waiters") \
			? (void)0 \
			: (pin_wake_destroy_waiters)(shared))

#define pin_watchdog_note_kept(worker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_watchdog_note_kept") \
			? (void)0 \
			: pin_watchdog_note_kept(worker))
/* EARLY: while the worker still seems to sleep. */
#define pin_watchdog_note_awake(worker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_watchdog_note_awake") || \
				model_is_spoilt(MODEL_EARLY, __func__, "pin_watchdog_note_awake") \
			? (void)0 \
			: pin_watchdog_note_awake(worker))
#define pin_parker_finish(parker) \
	((model_is_spoilt(MODEL_EARLY, __func__, "pin_watchdog_note_awake") \
			 ? (pin_watchdog_note_awake)(worker) \
			 : (void)0), \
		(pin_parker_finish)(parker))

#define pin_search_resume(worker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_search_resume") ? (void)0 \
								    : pin_search_resume(worker))

/* Of the ring's lock: without the check whether a doorbell has rung. */
#define pin_parker_is_parked(parker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_parker_is_parked") || \
		pin_parker_is_parked(parker))
#define pin_requests_reap_remote(worker, taker) \
	(!model_is_spoilt(MODEL_SKIP, __func__, "pin_requests_reap_remote") && \
		pin_requests_reap_remote(worker, taker))
#define pin_external_may_adopt(worker) \
	(!model_is_spoilt(MODEL_SKIP, __func__, "pin_external_may_adopt") && \
		pin_external_may_adopt(worker))
#include "runtime/worker/fault.c"

/*
 * SKIP: the batch of messages is lost, as a local variable in a frame would be.
 */
static void recover(struct pin_worker *worker, const char *site)
{
	if (model_is_spoilt(MODEL_SKIP, site, "cancelled_timers")) {
		worker->cancelled_timers = (struct pin_list){0};
	}
	pin_fault_recover(worker);
}

#define pin_fault_recover(worker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_fault_recover") \
			? (void)((worker)->unwind_result = PIN_UNWIND_RETURNED) \
			: recover(worker, __func__))

#define pin_device_queue_has_news(worker) \
	(!model_is_spoilt(MODEL_SKIP, __func__, "pin_device_queue_has_news") && \
		pin_device_queue_has_news(worker))

#define pin_search_give_up(worker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_search_give_up") ? (void)0 \
								     : pin_search_give_up(worker))
#define pin_remote_reap_has_room_for_more(worker) \
	(!model_is_spoilt(MODEL_SKIP, __func__, "pin_remote_reap_has_room_for_more") && \
		pin_remote_reap_has_room_for_more(worker))

#define pin_timer_drop_told(worker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_timer_drop_told") \
			? (void)0 \
			: pin_timer_drop_told(worker))
#include "runtime/loop/expire.c"

/* SKIP: a thread that searches pools does not delay their end. */
#define pin_biased_enter(owned, host) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_biased_enter") \
			? (void)0 \
			: (pin_biased_enter)(owned, host))
#pragma push_macro("pin_fetch_add_relaxed_u32")
#pragma push_macro("pin_fetch_sub_acq_rel_u32")
#undef pin_fetch_add_relaxed_u32
#undef pin_fetch_sub_acq_rel_u32
#define pin_fetch_add_relaxed_u32(atomic, value) \
	(model_is_spoilt(MODEL_SKIP, __func__, "count") \
			? 0 \
			: model_update_u32( \
				  atomic, MODEL_ADD, value, MODEL_ORDER_RELAXED, __func__))
#define pin_fetch_sub_acq_rel_u32(atomic, value) \
	(model_is_spoilt(MODEL_SKIP, __func__, "count") \
			? 0 \
			: model_update_u32( \
				  atomic, MODEL_SUB, value, MODEL_ORDER_ACQ_REL, __func__))
#include "runtime/worker/buffers.c"
#pragma pop_macro("pin_fetch_sub_acq_rel_u32")
#pragma pop_macro("pin_fetch_add_relaxed_u32")
#undef pin_biased_enter

/* SKIP: the secondary ring is not checked, or not watched. */
#define pin_commands_is_busy(worker) \
	(!model_is_spoilt(MODEL_SKIP, __func__, "pin_commands_is_busy") && \
		pin_commands_is_busy(worker))
#define pin_commands_has_work(worker) \
	(!model_is_spoilt(MODEL_SKIP, __func__, "pin_commands_has_work") && \
		pin_commands_has_work(worker))
#define pin_commands_watch(worker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_commands_watch") ? (void)0 \
								     : pin_commands_watch(worker))
#define pin_room_tell(shared, lane) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_room_tell") ? (void)0 \
								: (pin_room_tell)(shared, lane))
#include "runtime/loop/next_task.c"
/* SKIP: a sleep is blind to urgent requests from outside. */
#define pin_external_is_empty(worker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "external_urgent") \
			? pin_injector_is_empty(&(worker)->external) \
			: pin_external_is_empty(worker))
/* SKIP: the doorbell is never cleared; LATE: after the looks. */
#define pin_ring_clear_doorbell(ring) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_ring_clear_doorbell") || \
				model_is_spoilt(MODEL_LATE, __func__, "pin_ring_clear_doorbell") \
			? (void)0 \
			: (pin_ring_clear_doorbell)(ring))
#define pin_wake_set_arm(set, deadline_ns) \
	((model_is_spoilt(MODEL_LATE, "pin_park_get_up", "pin_ring_clear_doorbell") \
			 ? (pin_ring_clear_doorbell)(&worker->ring) \
			 : (void)0), \
		(pin_wake_set_arm)(set, deadline_ns))
#include "runtime/loop/park.c"
#undef pin_external_is_empty
#undef pin_wake_set_arm
#undef pin_spawn_set_announce_all

#define pin_injector_push(injector, list) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_injector_push") \
			? (void)0 \
			: pin_injector_push(injector, list))
#define pin_lifo_take(lifo) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_lifo_take") ? NULL : pin_lifo_take(lifo))
#define pin_timer_give_up(worker, out_list) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_timer_give_up") \
			? (void)0 \
			: pin_timer_give_up(worker, out_list))
/* SKIP: the end of a search that its wake began is not reported. */
#define pin_search_succeed(worker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_search_succeed") ? pin_search_give_up(worker) \
								     : pin_search_succeed(worker))
#define pin_wake_forward(gone, waker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_wake_forward") \
			? (void)0 \
			: pin_wake_forward(gone, waker))
#define pin_park_look_for_end(shared) \
	(!model_is_spoilt(MODEL_SKIP, __func__, "pin_park_look_for_end") && \
		pin_park_look_for_end(shared))
/* SKIP: it keeps credit granted too late. */
#define pin_device_queue_give_up(worker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_device_queue_give_up") || \
		pin_device_queue_give_up(worker))
/* SKIP: what it has in flight does not keep it. */
#define pin_request_is_over(worker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_request_is_over") || \
		pin_request_is_over(worker))
/* SKIP: it goes to sleep on its futex, whatever is in flight. */
static bool choose_mode(struct pin_worker *worker, enum pin_park_state *out_mode, const char *site)
{
	bool may_park = pin_park_choose_mode(worker, out_mode);

	if (model_is_spoilt(MODEL_SKIP, site, "pin_park_choose_mode")) {
		*out_mode = PIN_PARK_FUTEX;
	}
	return may_park;
}
#define pin_park_choose_mode(worker, out_mode) choose_mode(worker, out_mode, __func__)
#include "runtime/loop/retire.c"
#undef pin_park_choose_mode
#undef pin_request_is_over
#undef pin_injector_push
#undef pin_lifo_take

#define pin_timer_take_off(worker, timer) \
	(!model_is_spoilt(MODEL_SKIP, __func__, "pin_timer_take_off") && \
		pin_timer_take_off(worker, timer))
#define pin_wake_one(shared, waker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_wake_one") ? (void)0 \
							       : pin_wake_one(shared, waker))
#define pin_watchdog_tell_of_other(shared) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_watchdog_tell_of_other") \
			? (void)0 \
			: pin_watchdog_tell_of_other(shared))
/* EARLY: whether it sleeps is looked at before there is anything to find. */
#define pin_inbox_push(inbox, link) \
	do { \
		if (model_is_spoilt(MODEL_EARLY, __func__, "pin_wake_worker")) { \
			(pin_wake_worker)(target, worker); \
		} \
		(pin_inbox_push)(inbox, link); \
	} while (0)
#define pin_wake_worker(target, waker) \
	(model_is_spoilt(MODEL_EARLY, __func__, "pin_wake_worker") \
			? (void)0 \
			: pin_wake_worker(target, waker))
#include "runtime/worker/spawn.c"
#undef pin_inbox_push
#undef pin_wake_worker
#undef pin_wake_one
#undef pin_watchdog_tell_of_other
/* SKIP: a device is not asked, or does not keep its worker awake. */
#define pin_polled_is_busy(worker) \
	(!model_is_spoilt(MODEL_SKIP, __func__, "pin_polled_is_busy") && pin_polled_is_busy(worker))
/* SKIP: a task stolen by a worker that waits awake is not run. */
#define pin_run_or_cancel(worker, link, source) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_run_or_cancel") \
			? (void)0 \
			: pin_run_or_cancel(worker, link, source))
/* SKIP: a worker does not heed a drain. */
#define pin_requests_drain(worker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_requests_drain") ? (void)0 \
								     : pin_requests_drain(worker))
#include "runtime/loop/loop.c"
#undef pin_requests_drain
#undef pin_run_or_cancel
/* SKIP: a ring goes although its doorbell has yet to ring. */
#define pin_retire_has_rung(worker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_retire_has_rung") || \
		pin_retire_has_rung(worker))
#include "runtime/loop/driven.c"
#include "runtime/loop/thread.c"

void model_worker_register(void)
{
	model_thread_local(&pin_worker_self, sizeof(pin_worker_self));
}

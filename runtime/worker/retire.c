/* SPDX-License-Identifier: MIT */
/*
 * How a worker leaves a runtime that goes on, when a thread pool becomes
 * smaller.
 *
 * The loop calls these on the worker that was asked to leave; worker.h,
 * "leaving", has the protocol.
 *
 * Invariant: a task, timer or message that reaches the worker after it left is
 * forwarded to the fallback worker by the thread that brings it.
 */
#include "runtime/base/check.h"
#include "runtime/worker/request.h"
#include "runtime/worker/ring_lock.h"
#include "runtime/worker/timer.h"
#include "runtime/worker/wake.h"
#include "runtime/worker/worker.h"

/*
 * Empties slot and deque into the injector. A thief may be inside the slot, so
 * it is asked again until the thief has left.
 */
static void hand_over_tasks(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;
	struct pin_list list = {0};
	struct pin_link *link;
	uint32_t count = 0;

	while (!pin_lifo_is_empty(&worker->lifo)) {
		link = pin_lifo_take(&worker->lifo);
		if (link == NULL) {
			/* A thief is in it, and will be out in a moment. */
			shared->host->yield();
			continue;
		}
		pin_list_push(&list, link);
		count++;
	}
	while ((link = pin_deque_pop(&worker->deque)) != NULL) {
		pin_list_push(&list, link);
		count++;
	}
	if (count > 0) {
		pin_meter_add(&worker->meter.tasks_shared, count); /* [QLIMIT-1] */
		pin_injector_push(&shared->injector, &list);
		pin_wake_one(shared, worker);
	}
}

static void hand_over_timers(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;
	struct pin_list list = {0};
	struct pin_link *link;

	pin_timer_give_up(worker, &list);
	if (pin_list_is_empty(&list)) {
		return;
	}
	while ((link = pin_list_pop(&list)) != NULL) {
		pin_inbox_push(&shared->timer_inbox, link);
	}
	/* Any worker arms or ends them, and its sleep has to be shortened. */
	pin_wake_one(shared, worker);
}

void pin_retire_hand_over(struct pin_worker *worker)
{
	hand_over_tasks(worker);
	hand_over_timers(worker);
	if (worker->is_searching) {
		pin_search_succeed(worker); /* [SEARCH-1] */
	}
	pin_assist_leave(worker);
	PIN_DCHECK(!worker->is_searching && !worker->is_free);
}

static bool has_bound(const struct pin_worker *worker)
{
	return worker->waits != NULL || !pin_list_is_empty(&worker->ready) ||
		!pin_list_is_empty(&worker->urgent) || !pin_list_is_empty(&worker->posted) ||
		!pin_request_is_over(worker) || pin_timers_count(&worker->deadlines) > 0 ||
		worker->device_queue.lined_up > 0 || pin_device_queue_has_news(worker) ||
		!pin_list_is_empty(&worker->buffer_queue) ||
		!pin_list_is_empty(&worker->small_buffer_queue);
}

bool pin_retire_try_leave(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;

	PIN_CHECK(worker != shared->fallback); /* it gets what the others leave */
	/* Granted credit comes with a kick, and is then passed on. */
	if (has_bound(worker) || !pin_device_queue_give_up(worker)) {
		return false;
	}
	PIN_CHECK(pin_lifo_is_empty(&worker->lifo));
	PIN_CHECK(pin_deque_count(&worker->deque) == 0);
	PIN_CHECK(!worker->has_timers);
	PIN_CHECK(!worker->is_searching);
	PIN_CHECK(worker->secondary_count == 0 && worker->ring.in_flight == 0);
	pin_store_release_u32(&worker->service, PIN_SERVICE_OUT); /* [RETIRE-1] */
	pin_fence_seq_cst();					  /* [RETIRE-1] [END-1] */
	pin_wake_forward(worker, worker);
	(void)pin_park_look_for_end(shared);
	return true;
}

static bool must_stay_awake(const struct pin_worker *worker)
{
	const struct pin_shared *shared = worker->shared;

	return !pin_list_is_empty(&worker->ready) || !pin_list_is_empty(&worker->urgent) ||
		!pin_list_is_empty(&worker->posted) || !pin_inbox_is_empty(&worker->inbox) ||
		!pin_external_is_empty(worker) || !pin_inbox_is_empty(&worker->timer_cancels) ||
		pin_remote_reap_has_work(worker) || pin_commands_has_work(worker) ||
		pin_device_queue_has_news(worker) || /* [DEVICE-1] */
		pin_load_acquire_u32(&shared->has_ended) != 0 ||
		(pin_shared_is_stopping(shared) && !worker->cancel_sent);
}

/*
 * Sleeps outside the parked set: only work that is bound to this worker may
 * wake it, such as the end of one of its requests.
 */
void pin_retire_sleep(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;
	enum pin_park_state mode;

	PIN_DCHECK(!worker->is_searching && !worker->is_free);
	if (pin_polled_is_busy(worker)) {
		/* Only its own polling ends requests there. */
		pin_park_undo(worker);
		return;
	}
	if (!pin_park_choose_mode(worker, &mode) || !pin_parker_prepare(&worker->parker, mode)) {
		return;
	}
	pin_fence_seq_cst(); /* [PARK-1] [END-1] */
	if (!pin_park_look_for_end(shared) && !must_stay_awake(worker)) {
		pin_meter_add(mode == PIN_PARK_RING ? &worker->meter.parks_ring
						    : &worker->meter.parks_futex,
			1);
		pin_park_sleep_until(worker, mode, pin_timers_next_ns(&worker->deadlines));
	}
	pin_park_finish(worker);
}

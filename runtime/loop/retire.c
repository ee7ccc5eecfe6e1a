/* SPDX-License-Identifier: MIT */
/*
 * How a worker leaves a runtime that goes on, when a thread pool becomes
 * smaller. The loop calls these on the worker that was asked to leave.
 *
 * A worker that is asked to leave takes nothing more of what others may run as
 * well. What it has of that, in its LIFO slot, its deque, on its wheel of
 * timers, it gives to all, and a wake that was meant for it to another. Tasks
 * bound to it, waits that its tasks have begun, requests, tasks in its inbox,
 * and credit that is being granted to it, it brings to an end; it sleeps for
 * that without being in the parked set, in its ring if anything is in flight
 * there. When nothing is left it gives back the credit that it kept and goes
 * OUT, and its thread ends.
 *
 *     IN       it serves its lanes
 *     LEAVING  asked to go; it runs tasks bound to it
 *     OUT      gone; its place may be taken by another thread
 *
 * Its inbox and its external queue stay, since others may have found the worker
 * before. A thread that leaves something there and finds it OUT takes all of it
 * and gives it to the fallback worker, which never leaves. (If it then finds
 * that another thread has come in the meantime, it gives back the messages of
 * the inbox: some of them may be bound to the new thread.)
 *
 *     pusher                           worker
 *     a  push into the inbox           1  service := OUT
 *     b  seq_cst fence                 2  seq_cst fence
 *     c  service is OUT: forward       3  forward
 *
 * [RETIRE-1] a-b-c against 1-2-3: of two fences one is first; either the pusher
 * sees OUT or the worker sees the push. Without either, it would stay there
 * until a next worker comes. Both may take: the inbox is taken as a whole.
 * [RETIRE-2] the resizer: service := LEAVING, then a wake, as for any work:
 * [PARK-1], [PARK-2].
 *
 * Its rings go as well: the next thread makes its own, as a ring is its
 * thread's. Others may still use them then, a waker that has yet to ring the
 * doorbell, and the watchdog. So the resizer joins the thread and waits for
 * them:
 *
 *     worker                     waker                 resizer
 *     PARK_RING                  sets NOTIFIED there
 *     1  finds NOTIFIED:         a  rings the          i   joins the thread
 *          rings_due += 1              doorbell        ii  rung = rings_due
 *        …, OUT, thread ends     b  rung += 1          iii frees the ring
 *
 * [RETIRE-3] of those that notify a sleeper in its ring one finds it so, and
 * rings; the worker counts that when it is up (1), the waker when it has rung
 * (b, release), and ii (acquire) waits for all that rang. Else a doorbell would
 * ring in another's file descriptor. The watchdog looks at rings under a lock
 * (`rings_lock`), as far as they are open, and they are closed under it.
 *
 * What stays with the place is the arena, as pools may be in it, and its CPU.
 *
 * Two things a worker does as the last of several, and so once more on its way
 * out: it hands on a wake by which it was counted as a searcher [SEARCH-1], and
 * it looks whether all is over [END-1], as its last task may have been the last
 * of all, with the others asleep.
 *
 * Invariant: a task, timer or message that reaches the worker after it left is
 * forwarded to the fallback worker by the thread that brings it.
 */
#include "runtime/base/check.h"
#include "runtime/loop/loop.h"
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
		worker->device_queue.queued > 0 || pin_device_queue_has_news(worker) ||
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
		pin_load_acquire_u32(&shared->has_ended) != 0 || pin_requests_owe_ends(worker);
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

/* SPDX-License-Identifier: MIT */
/*
 * The way of a request back, from its completion to its task.
 *
 *     reap       a poll of the ring delivers each completion (io/ring.c)
 *     complete   that was its end, or its rest is submitted (io/request.c)
 *     give back  its buffer, its credit with the device
 *     unlink     it is out of the list of requests in flight
 *     leave      it is its caller's again; while a cancel of it is under way,
 *                that is left to the worker that takes the cancel
 *     hand over  its task is in the worker's ready list
 *
 * pin_requests_poll() has the first two, end() the others, which are functions
 * in this order. Every request ends by end(), also a request that never came
 * into the ring. The loop takes the task from the list and runs it
 * (loop/next_task.h).
 *
 * After the way come its rare sides: early ends, parts of long transfers,
 * another worker that reaps for a stalled one.
 */
#include "runtime/base/check.h"
#include "runtime/io/file.h"
#include "runtime/io/request.h"
#include "runtime/worker/events.h"
#include "runtime/worker/metrics.h"
#include "runtime/worker/request.h"
#include "runtime/worker/ring_lock.h"
#include "runtime/worker/spawn.h"
#include "runtime/worker/state.h"
#include "runtime/worker/wake.h"
#include "runtime/worker/watchdog.h"
#include "runtime/worker/worker.h"

#include <errno.h>

enum {
	/*
	 * Until the kernel is asked for an end once more; twice that the next
	 * time, and this number of times.
	 */
	ASK_AGAIN_NS = 10 * 1000 * 1000,
	ASK_AGAIN_TIMES = 8,
	/* Such cancels under way, for which completion queues have room. */
	ASKED_AGAIN_MAX = 8,
};

/* Rare sides of the way. */
static PIN_APART bool hand_over_sorted(
	struct pin_worker *worker, struct pin_worker *taker, struct pinion_request *request);
static PIN_COLD _Noreturn void report_changed(struct pin_request *private);
static PIN_APART void note_missed(struct pin_worker *worker);
static void hand_to_any(struct pin_worker *taker, struct pinion_request *request);
static void hand_back(
	struct pin_worker *worker, struct pin_worker *taker, struct pinion_request *request);
static int look_at_file(struct pinion_task *task);

/* ---- give back ---- */

/* Its buffer can be released again, and others get its credit. */
static PIN_APART void give_back(
	struct pin_worker *worker, struct pin_worker *taker, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);

	if (private->borrowed != NULL) {
		if (PIN_LIKELY(private->is_borrowed_own)) {
			pin_pool_end_own_borrow(private->borrowed);
		} else {
			pin_pool_end_borrow(private->borrowed);
		}
		private->borrowed = NULL;
	}
	if (PIN_LIKELY(private->cost.account_place != 0)) {
		pin_device_queue_end(worker, taker, request);
	}
}

/* ---- unlink ---- */

static void count_end(struct pin_worker *worker, int64_t result)
{
	if (result == -ECANCELED) {
		pin_meter_add(&worker->meter.requests_cancelled, 1);
	} else if (result == -ETIME) {
		pin_meter_add(&worker->meter.requests_timed_out, 1);
	}
}

static PIN_INLINE void unlink_ended(struct pin_worker *worker, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);

	PIN_DCHECK(private->link.next != NULL); /* in one of its worker's lists */
	pin_request_list_remove(&private->link);
	if (PIN_UNLIKELY(private->is_timed)) {
		/* No longer armed if it was the deadline that came. */
		pin_timers_cancel(&worker->deadlines, &private->deadline);
	}
	if (PIN_UNLIKELY(request->result < 0)) {
		count_end(worker, request->result);
	}
}

/* ---- leave ---- */

static PIN_INLINE bool leave_locked(struct pin_request *private)
{
	enum pin_request_state state = pin_request_state_of(pin_load_relaxed_u32(&private->word));

	/* One comparison for most. */
	if (PIN_UNLIKELY(state != PIN_REQUEST_IN_FLIGHT)) {
		if (state == PIN_REQUEST_CANCELLED) {
			return false;
		}
		if (state != PIN_REQUEST_ENDING) {
			report_changed(private);
		}
	}
	pin_request_set(private, PIN_REQUEST_IDLE);
	return true;
}

/*
 * Makes it the caller's again; false while a cancel of it is under way. On
 * `taker`, which has the ring's lock if it is not the worker.
 */
static PIN_INLINE bool leave_flight(
	struct pin_worker *worker, struct pin_worker *taker, struct pin_request *private)
{
	bool has_left;

	PIN_DCHECK(pin_worker_is_current(taker));
	if (PIN_LIKELY(taker == worker)) {
		pin_biased_enter(&worker->cancels, worker->shared->host);
		has_left = leave_locked(private);
		pin_biased_leave(&worker->cancels);
	} else {
		pin_requests_lock_cancels(worker);
		has_left = leave_locked(private);
		pin_biased_release(&worker->cancels);
	}
	return has_left;
}

/* ---- hand over ---- */

/*
 * Chooses the queue for the request's task: the worker's ready list, its list
 * of urgent ones, any worker's queue if the task may move, or the owner's inbox
 * if a taker reaped it. An open gets its checks of the new file first.
 */
static PIN_INLINE void hand_over(
	struct pin_worker *worker, struct pin_worker *taker, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);

	PIN_DCHECK(private->link.next == NULL); /* in no list of its worker's */
	PIN_DCHECK(!private->has_ended && pin_task_kind(&request->task) == PIN_TASK_PLAIN);
	PIN_TRACE3(request_complete, worker->index, request, request->result);
	pin_meter_add(&worker->meter.requests_completed, 1);
	if (PIN_UNLIKELY(worker->sorts_ends) && hand_over_sorted(worker, taker, request)) {
		return;
	}
	if (pin_request_has(request, PIN_OP_OPENS)) {
		if (request->result >= 0) {
			private->run = request->task.run;
			private->devices = &worker->devices;
			request->task.run = look_at_file;
		} else {
			/* For callers who close it all the same. */
			request->file->fd = -1;
		}
	}
	if (PIN_UNLIKELY(taker != worker)) {
		hand_back(worker, taker, request);
		return;
	}
	pin_list_push(&worker->ready, pin_task_link(&request->task));
}

/* ---- the way ---- */

/*
 * Everything that the request held is given back before its task is queued:
 * credit, buffer, list, deadline.
 */
static PIN_INLINE void end(
	struct pin_worker *worker, struct pin_worker *taker, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);

	PIN_DCHECK(!private->has_ended); /* a request ends once */
	PIN_DCHECK(!private->is_secondary);
	if (pin_request_moves_bytes(request)) {
		give_back(worker, taker, request);
	}
	unlink_ended(worker, request);
	if (PIN_LIKELY(leave_flight(worker, taker, private))) {
		hand_over(worker, taker, request);
	} else {
		private->has_ended = true;
	}
}

static void land(void *arg, uint64_t user_data, int32_t result)
{
	struct pin_worker *worker = arg;
	struct pinion_request *request = pin_request_complete(&worker->ring, user_data, result);

	if (PIN_LIKELY(request != NULL)) {
		end(worker, worker, request);
	}
}

uint32_t pin_requests_poll(struct pin_worker *worker)
{
	uint32_t count;

	pin_remote_reap_enter(worker);
	count = pin_ring_poll(&worker->ring, land, worker);
	if (PIN_UNLIKELY(worker->ring.has_missed)) {
		note_missed(worker);
	}
	pin_remote_reap_leave(worker);
	return count;
}

/* ---- other ends ---- */

void pin_request_end(
	struct pin_worker *worker, struct pin_worker *taker, struct pinion_request *request)
{
	end(worker, taker, request);
}

void pin_request_end_with(struct pin_worker *worker, struct pinion_request *request, int32_t result)
{
	request->result = result;
	pin_request_end(worker, worker, request);
}

void pin_request_hand_over(
	struct pin_worker *worker, struct pin_worker *taker, struct pinion_request *request)
{
	hand_over(worker, taker, request);
}

static PIN_COLD _Noreturn void report_changed(struct pin_request *private)
{
	pin_check_misused(&pin_worker_current()->shared->log, PIN_REQUEST_CHANGED,
		(const void *)pin_request_of_link(private));
}

/* ---- other ways to the task ---- */

/* An open's task, when the descriptor is there: first looks at the file. */
static int look_at_file(struct pinion_task *task)
{
	struct pinion_request *request = PIN_CONTAINER_OF(task, struct pinion_request, task);
	struct pin_request *private = pin_request_of(request);
	struct pinion_file_options options;

	PIN_DCHECK(private->run != NULL && private->run != look_at_file);
	PIN_DCHECK(request->op == PINION_OP_OPEN && request->result >= 0);
	task->run = private->run;
	if (pin_file_options_accept(&options, request->options, NULL) != 0) {
		pin_check_misused(&pin_worker_current()->shared->log, PIN_REQUEST_OPTIONS_CHANGED,
			(const void *)request);
	}
	request->result = pin_file_adopt_with(
		request->file, (int)request->result, &options, private->devices);
	return task->run(task);
}

/* For a request that any worker may run, on whichever does. */
static int run_completed(struct pinion_task *task)
{
	struct pinion_request *request = PIN_CONTAINER_OF(task, struct pinion_request, task);
	struct pin_request *private = pin_request_of(request);

	if (pin_request_has(request, PIN_OP_OPENS)) {
		if (request->result >= 0) {
			private->devices = &pin_worker_current()->devices;
			return look_at_file(task);
		}
		request->file->fd = -1;
	}
	PIN_DCHECK(private->run != NULL && private->run != run_completed);
	task->run = private->run;
	return task->run(task);
}

/*
 * A request that uses memory of its worker has to give it back there. Only the
 * scanner opens without checks, and its tasks rely on staying here.
 */
static inline bool may_move(const struct pin_worker *worker, const struct pinion_request *request)
{
	const struct pin_request *private = (const void *)request->private_;

	return worker->shares_ring && !private->uses_own_buffer &&
		!pin_request_has(request, PIN_OP_STAYS);
}

/* Only of transfers is it known. */
static inline bool is_urgent(struct pinion_request *request)
{
	return pin_request_moves_bytes(request) && pin_request_of(request)->cost.is_urgent;
}

/* Its descriptor, or -1; an open's is what it results in. */
static int32_t descriptor_of(const struct pinion_request *request)
{
	if (pin_event_opens(request->op)) {
		return request->result >= 0 ? (int32_t)request->result : -1;
	}
	return request->file != NULL ? request->file->fd : -1;
}

/* What a request was submitted to enter. */
uint64_t pin_request_run_of(struct pinion_task *task)
{
	struct pinion_request *request = PIN_CONTAINER_OF(task, struct pinion_request, task);

	if (task->run == look_at_file || task->run == run_completed ||
		task->run == pin_metrics_run_ready) {
		return (uintptr_t)pin_request_of(request)->run;
	}
	return (uintptr_t)task->run;
}

static PIN_APART void note_completed(struct pin_worker *taker, struct pinion_request *request)
{
	int64_t result = request->result;

	result = result > INT32_MAX ? INT32_MAX : result;
	pin_event_note_request(
		taker, PIN_TRACE_COMPLETE, request, result, (uint32_t)descriptor_of(request));
}

/* Where not all go to the ready list. False: this one does, or to the inbox. */
static PIN_APART bool hand_over_sorted(
	struct pin_worker *worker, struct pin_worker *taker, struct pinion_request *request)
{
	if (taker->is_traced) {
		note_completed(taker, request);
	}
	if (may_move(worker, request)) {
		pin_meter_add(&taker->meter.tasks_stolen, taker != worker);
		hand_to_any(taker, request);
		return true;
	}
	if (taker == worker && is_urgent(request)) {
		pin_list_push(&worker->urgent, pin_task_link(&request->task));
		return true;
	}
	return false;
}

/* To a queue that others steal from. */
static void hand_to_any(struct pin_worker *taker, struct pinion_request *request)
{
	PIN_DCHECK(request->task.run != run_completed);
	pin_request_of(request)->run = request->task.run;
	request->task.run = run_completed;
	pin_task_set_kind(&request->task, PIN_TASK_COMPLETED);
	pin_watchdog_note_kept(taker);
	pin_spawn_enqueue(taker, pin_task_link(&request->task));
}

/* Home: to a busy worker, from the worker that reaps for it. */
static void hand_back(
	struct pin_worker *worker, struct pin_worker *taker, struct pinion_request *request)
{
	pin_task_set_kind(&request->task, PIN_TASK_COMPLETED);
	pin_inbox_push(&worker->inbox, pin_task_link(&request->task));
	pin_wake_worker(worker, taker);
}

/* ---- early ends ---- */

/*
 * Of deadline and cancel the first one counts; the kernel's completion then
 * decides the result.
 */
void pin_request_abandon_in_flight(
	struct pin_worker *worker, struct pinion_request *request, int32_t error)
{
	struct pin_request *private = pin_request_of(request);

	if (private->ended_by != 0) {
		return;
	}
	PIN_DCHECK(error == -ECANCELED || error == -ETIME);
	private->ended_by = (int16_t)error;
	if (PIN_UNLIKELY(private->is_secondary)) {
		/* Its ring takes no cancels: the device ends it. */
		return;
	}
	if (private->is_waiting || pin_request_has(request, PIN_OP_WAITS)) {
		pin_request_end_with(worker, request, error);
	} else {
		pin_request_abandon(&worker->ring, request);
	}
}

static void arm_again(struct pin_worker *worker, struct pin_request *private, uint64_t now_ns)
{
	PIN_DCHECK(private->asked_again >= 1 && private->asked_again <= ASK_AGAIN_TIMES);
	PIN_DCHECK(private->ended_by != 0);
	PIN_DCHECK(!pin_timer_is_armed(&private->deadline));
	pin_timers_insert(&worker->deadlines, &private->deadline,
		now_ns + ((uint64_t)ASK_AGAIN_NS << (private->asked_again - 1)));
}

/*
 * A cancel found nothing to end. Most often the operation has ended, or cannot
 * be ended now; but the kernel also misses an operation that passes from one of
 * its threads to another (Linux 6.1: -ENOENT for the read of a pipe, which then
 * stays). So a request that is still here is cancelled again, ever less often.
 */
static PIN_APART void note_missed(struct pin_worker *worker)
{
	uint64_t now_ns = worker->shared->host->now_ns();

	worker->ring.has_missed = false;
	for (struct pin_request_link *link = worker->in_flight.next; link != &worker->in_flight;
		link = link->next) {
		struct pin_request *private = PIN_CONTAINER_OF(link, struct pin_request, link);

		if (private->ended_by != 0 && !private->is_secondary && private->asked_again == 0) {
			pin_timers_cancel(&worker->deadlines, &private->deadline);
			private->is_timed = true;
			private->asked_again = 1;
			arm_again(worker, private, now_ns);
		}
	}
}

static PIN_APART void ask_again(struct pin_worker *worker, struct pin_request *private)
{
	if (worker->ring.cancelling < ASKED_AGAIN_MAX) {
		pin_request_abandon(&worker->ring, pin_request_of_link(private));
		if (private->asked_again < ASK_AGAIN_TIMES) {
			private->asked_again++;
		}
	}
	arm_again(worker, private, worker->shared->host->now_ns());
}

void pin_requests_expire(struct pin_worker *worker, struct pin_timer *timer)
{
	struct pin_request *private = PIN_CONTAINER_OF(timer, struct pin_request, deadline);

	PIN_DCHECK(!pin_timer_is_armed(timer)); /* it was popped as due */
	if (timer->owner_kind == PIN_TASK_DEVICE_QUEUE) {
		pin_device_queue_expire(worker, timer);
		return;
	}
	if (private->asked_again != 0) {
		ask_again(worker, private);
	} else {
		pin_request_abandon_in_flight(worker, pin_request_of_link(private), -ETIME);
	}
}

/* ---- the parts of long transfers ---- */

/*
 * For the ring that has it, by its holder: the worker or another that reaps for
 * it.
 */
static bool ask_part(void *arg, struct pinion_request *request)
{
	struct pin_worker *worker = arg;
	struct pin_request *private = pin_request_of(request);

	if (PIN_LIKELY(!pin_device_queue_owes_part(worker, request))) {
		private->cost.part_cut = 0; /* no rate is kept any more */
		return true;
	}
	if (private->is_secondary) {
		pin_secondary_leave(worker, private);
	}
	pin_request_list_remove(&private->link);
	pin_device_queue_defer_part(worker, pin_worker_current(), request);
	return false;
}

void pin_request_ask_parts(struct pin_worker *worker, struct pin_ring *ring)
{
	ring->ask_part = ask_part;
	ring->ask_arg = worker;
}

void pin_requests_carry_out(struct pin_worker *worker, struct pinion_request *request)
{
	pin_fault_fn before = pin_running_of(worker);

	/* A worker that relied on its search would wait for the device. */
	if (worker->is_searching) {
		pin_search_succeed(worker);
	}
	PIN_DCHECK(pin_worker_is_current(worker));
	PIN_DCHECK(pin_request_of(request)->link.next != NULL);
	/* Whose call a worker is in that seems stalled: stall.c. */
	pin_running_enter(worker, (pin_fault_fn)request->task.run);
	while (!pin_request_carry_out(&worker->ring, request)) {
		if (!ask_part(worker, request)) {
			pin_running_enter(worker, before);
			return;
		}
	}
	pin_running_enter(worker, before);
	pin_request_end(worker, worker, request);
}

/* ---- by another worker ---- */

struct unwind_result {
	struct pin_worker *worker; /* whose ring it is */
	struct pin_worker *taker;  /* the thread that reaps it */
};

static void land_for_other(void *arg, uint64_t user_data, int32_t result)
{
	const struct unwind_result *unwind_result = arg;
	struct pinion_request *request =
		pin_request_complete(&unwind_result->worker->ring, user_data, result);

	if (request != NULL) {
		pin_request_end(unwind_result->worker, unwind_result->taker, request);
	}
}

/*
 * By a searching worker that found nothing else: reaps a stalled worker's ring
 * under its lock, and tries that lock only.
 */
bool pin_requests_reap_remote(struct pin_worker *worker, struct pin_worker *taker)
{
	struct unwind_result unwind_result = {.worker = worker, .taker = taker};
	uint32_t count;

	PIN_DCHECK(worker != taker && pin_worker_is_current(taker));
	if (!pin_remote_reap_is_wanted(worker) || pin_parker_is_parked(&worker->parker) ||
		!pin_search_is_stalled(worker) || !pin_remote_reap_take(worker)) {
		return false;
	}
	count = pin_ring_poll(&worker->ring, land_for_other, &unwind_result);
	/*
	 * Requests that go on from here: the watchdog may be the next to come.
	 */
	if (pin_ring_unsubmitted(&worker->ring) > 0) {
		count += pin_ring_poll(&worker->ring, land_for_other, &unwind_result);
	}
	pin_remote_reap_release(worker);
	pin_meter_add(&taker->meter.steals, count > 0);
	return true;
}

/* ---- what both ways have in common ---- */

void pin_requests_init(struct pin_worker *worker)
{
	pin_request_list_init(&worker->in_flight);
	pin_request_list_init(&worker->waiting);
	pin_device_queue_init(worker);
	worker->cancels.is_fenced = !worker->shared->has_fence_all;
	pin_timers_init(&worker->deadlines, worker->shared->host->now_ns());
}

void pin_requests_lock_cancels(struct pin_worker *owner)
{
	const struct pin_host *host = owner->shared->host;

	while (!pin_biased_take(&owner->cancels, host)) {
		host->yield();
	}
}

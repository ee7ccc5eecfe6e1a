/* SPDX-License-Identifier: MIT */
/*
 * Ends requests early: one request from any thread, all of a file, all of a
 * worker, or all of a runtime that stops.
 *
 * Callers are pinion_request_cancel() on any thread, and on the worker: the
 * inbox (a cancel that another thread has posted: request_external.c),
 * PINION_OP_CANCEL, and the stop. request.h has the states.
 *
 * Invariant: of a request's end and its cancels exactly one leaves the state
 * "in flight", and only the holder of the ring's lock asks the kernel to end an
 * operation; another thread sends the owner a message.
 */
#include "runtime/base/check.h"
#include "runtime/worker/request.h"
#include "runtime/worker/ring_lock.h"
#include "runtime/worker/wake.h"

#include <errno.h>

/* By the worker itself, of one of its own; false: another was first. */
static bool pin_request_cancel_own(struct pin_worker *worker, struct pin_request *private)
{
	bool is_in_flight;

	PIN_DCHECK(pin_worker_is_current(worker));
	pin_biased_enter(&worker->cancels, worker->shared->host);
	is_in_flight = pin_load_relaxed_u32(&private->word) ==
		pin_request_word(worker, PIN_REQUEST_IN_FLIGHT);
	if (is_in_flight) {
		pin_request_set(private, pin_request_word(worker, PIN_REQUEST_ENDING));
	}
	pin_biased_leave(&worker->cancels);
	return is_in_flight;
}

/* By any other thread. */
static bool cancel_other(struct pin_worker *owner, struct pin_request *private)
{
	bool is_in_flight;

	PIN_DCHECK(!pin_worker_is_current(owner));
	pin_requests_lock_cancels(owner);
	is_in_flight = pin_load_relaxed_u32(&private->word) ==
		pin_request_word(owner, PIN_REQUEST_IN_FLIGHT);
	if (is_in_flight) {
		pin_request_set(private, pin_request_word(owner, PIN_REQUEST_CANCELLED));
	}
	pin_biased_release(&owner->cancels);
	return is_in_flight;
}

/* Not begun yet, whichever worker will take it. */
static bool change_to_cancelled(struct pin_request *private, uint32_t word)
{
	PIN_DCHECK(pin_request_state_of(word) == PIN_REQUEST_POSTED);
	return pin_request_change(
		private, word, (word & ~(uint32_t)PIN_REQUEST_STATE_MASK) | PIN_REQUEST_CANCELLED);
}

/*
 * Moves the request to "cancelled", or reports that its end came first. A
 * posted request needs no message, as its taker finds the new state; one in
 * flight on another worker does.
 */
static int cancel(struct pin_shared *shared, struct pin_worker *worker,
	struct pinion_request *request, bool *out_must_post, uint32_t *out_index)
{
	struct pin_request *private = pin_request_of(request);
	uint32_t word = pin_load_acquire_u32(&private->word); /* [REQUEST-1] */
	uint32_t index;

	*out_must_post = false;
	if (pin_request_has(request, PIN_OP_TRAVELS)) {
		return -EALREADY;
	}
	if (pin_request_state_of(word) == PIN_REQUEST_POSTED) {
		if (change_to_cancelled(private, word)) {
			return 0;
		}
		/* Its worker took it over, or it was cancelled. */
		word = pin_load_acquire_u32(&private->word); /* [REQUEST-1] */
	}
	index = word >> PIN_REQUEST_WORKER_SHIFT;
	if (pin_request_state_of(word) != PIN_REQUEST_IN_FLIGHT || index >= shared->worker_count) {
		return -EALREADY;
	}
	if (worker == &shared->workers[index]) {
		if (!pin_request_cancel_own(worker, private)) {
			return -EALREADY;
		}
		pin_request_abandon_in_flight(worker, request, -ECANCELED);
		return 0;
	}
	if (!cancel_other(&shared->workers[index], private)) {
		return -EALREADY;
	}
	pin_task_set_kind(&request->task, PIN_TASK_REQUEST);
	*out_must_post = true;
	*out_index = index;
	return 0;
}

int pin_request_cancel(struct pin_shared *shared, struct pin_worker *worker,
	struct pinion_request *request, bool *out_must_post, uint32_t *out_index)
{
	int rc;

	PIN_DCHECK(pin_worker_is_caller(shared, worker));
	if (worker == NULL) {
		return cancel(shared, NULL, request, out_must_post, out_index);
	}
	/*
	 * No other thread may end a request of its own between the change and
	 * the rest.
	 */
	pin_remote_reap_enter(worker);
	rc = cancel(shared, worker, request, out_must_post, out_index);
	pin_remote_reap_leave(worker);
	return rc;
}

/* Requests on structs in a range of memory. */
struct among {
	uintptr_t begin;
	uintptr_t end;
	bool is_drain; /* only those that might wait for ever */
};

/*
 * A drain ends it: the kernel has tried it, and waits. With a deadline it would
 * end anyway; a request that waits for room has yet to be tried.
 */
static bool is_endless(const struct pin_worker *worker, const struct pinion_request *request)
{
	const struct pin_request *private = (const void *)request->private_;

	return pin_request_has(request, PIN_OP_WAITS_FOR_PEER) && request->deadline_ns == 0 &&
		!private->is_waiting &&
		(!worker->ring.is_fallback ||
			pin_sync_waits_hold(&worker->ring, (uintptr_t)request));
}

/* Those without a file: only where the range is all there is. */
static bool is_among(const struct pin_worker *worker, const struct pinion_request *request,
	const struct among *among)
{
	uintptr_t place = (uintptr_t)request->file;

	if (among->is_drain && !is_endless(worker, request)) {
		return false;
	}
	return place >= among->begin && place < among->end;
}

/* Takes the next link first: ending a request removes it from the list. */
static uint32_t abandon_list(
	struct pin_worker *worker, struct pin_request_link *list, const struct among *among)
{
	struct pin_request_link *next;
	uint32_t count = 0;

	for (struct pin_request_link *link = list->next; link != list; link = next) {
		struct pin_request *private = PIN_CONTAINER_OF(link, struct pin_request, link);
		struct pinion_request *request = pin_request_of_link(private);

		next = link->next;
		if (is_among(worker, request, among) && pin_request_cancel_own(worker, private)) {
			pin_request_abandon_in_flight(worker, request, -ECANCELED);
			count++;
		}
	}
	return count;
}

static uint32_t abandon_circle(
	struct pin_worker *worker, const struct pin_line_circle *circle, const struct among *among)
{
	struct pin_line *line = circle->last;
	uint32_t count = 0;

	if (line == NULL) {
		return 0;
	}
	do {
		count += abandon_list(worker, &line->requests, among);
		line = line->next;
	} while (line != circle->last);
	return count;
}

/* Those that have queued for their device. */
static uint32_t abandon_queued(struct pin_worker *worker, const struct among *among)
{
	struct pin_device_queue *device_queue = &worker->device_queue;
	uint32_t count = 0;

	for (uint32_t i = 0; i < device_queue->account_count; i++) {
		const struct pin_device_waiters *device_waiters =
			&device_queue->accounts[i].device_waiters;

		count += abandon_circle(worker, &device_waiters->urgent, among);
		count += abandon_circle(worker, &device_waiters->others, among);
	}
	return count;
}

static uint32_t abandon(struct pin_worker *worker, const struct among *among)
{
	return abandon_queued(worker, among) + abandon_list(worker, &worker->waiting, among) +
		abandon_list(worker, &worker->in_flight, among);
}

uint32_t pin_requests_abandon_all(struct pin_worker *worker, const struct pinion_file *file)
{
	struct among among = {.end = UINTPTR_MAX};

	if (file != NULL) {
		among = (struct among){.begin = (uintptr_t)file, .end = (uintptr_t)(file + 1)};
	}
	return abandon(worker, &among);
}

void pin_requests_abandon_among(struct pin_worker *worker, const void *memory, size_t bytes)
{
	struct among among = {.begin = (uintptr_t)memory, .end = (uintptr_t)memory + bytes};

	pin_remote_reap_enter(worker);
	abandon(worker, &among);
	pin_remote_reap_leave(worker);
}

void pin_requests_stop(struct pin_worker *worker)
{
	PIN_DCHECK(!worker->cancel_sent); /* once */
	pin_remote_reap_enter(worker);
	worker->cancel_sent = true;
	pin_requests_abandon_all(worker, NULL);
	pin_remote_reap_leave(worker);
}

/*
 * The kernel takes entries in their order: it tries a request that was
 * submitted just before this, and its cancel comes after that.
 */
void pin_requests_drain(struct pin_worker *worker)
{
	struct among among = {.end = UINTPTR_MAX, .is_drain = true};

	pin_remote_reap_enter(worker);
	worker->drained_moves = pin_requests_moves(worker);
	(void)abandon_list(worker, &worker->in_flight, &among);
	pin_remote_reap_leave(worker);
}

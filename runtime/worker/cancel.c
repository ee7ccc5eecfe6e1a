/* SPDX-License-Identifier: MIT */
/*
 * Ending requests early, one or many.
 */
#include "runtime/worker/request.h"
#include "runtime/worker/ring_lock.h"

#include <errno.h>

/* By the worker itself, of one of its own; false: another was first. */
static bool pin_flight_cancel_own(struct pin_worker *worker, struct pin_request *private)
{
	bool is_flying;

	pin_owned_enter(&worker->cancels, worker->shared->host);
	is_flying =
		pin_load_relaxed_u32(&private->word) == pin_flight_word(worker, PIN_FLIGHT_FLYING);
	if (is_flying) {
		pin_flight_set(private, pin_flight_word(worker, PIN_FLIGHT_ENDING));
	}
	pin_owned_leave(&worker->cancels);
	return is_flying;
}

/* By anyone else. */
static bool cancel_other(struct pin_worker *owner, struct pin_request *private)
{
	bool is_flying;

	pin_flight_lock_cancels(owner);
	is_flying =
		pin_load_relaxed_u32(&private->word) == pin_flight_word(owner, PIN_FLIGHT_FLYING);
	if (is_flying) {
		pin_flight_set(private, pin_flight_word(owner, PIN_FLIGHT_CANCELLED));
	}
	pin_owned_release(&owner->cancels);
	return is_flying;
}

/* Not begun yet, whoever will take it. */
static bool change_to_cancelled(struct pin_request *private, uint32_t word)
{
	return pin_flight_change(
		private, word, (word & ~(uint32_t)PIN_FLIGHT_STATE_MASK) | PIN_FLIGHT_CANCELLED);
}

static int cancel(struct pin_shared *shared, struct pin_worker *worker,
	struct pinion_request *request, bool *out_must_post, uint32_t *out_index)
{
	struct pin_request *private = pin_request_of(request);
	uint32_t word = pin_load_acquire_u32(&private->word); /* [FLIGHT-1] */
	uint32_t index;

	*out_must_post = false;
	if (request->op == PINION_OP_CANCEL) {
		return -EALREADY;
	}
	if (pin_flight_state_of(word) == PIN_FLIGHT_POSTED) {
		if (change_to_cancelled(private, word)) {
			return 0;
		}
		/* Its worker took it over, or it was cancelled. */
		word = pin_load_acquire_u32(&private->word); /* [FLIGHT-1] */
	}
	index = word >> PIN_FLIGHT_WORKER_SHIFT;
	if (pin_flight_state_of(word) != PIN_FLIGHT_FLYING || index >= shared->worker_count) {
		return -EALREADY;
	}
	if (worker == &shared->workers[index]) {
		if (!pin_flight_cancel_own(worker, private)) {
			return -EALREADY;
		}
		pin_flight_abandon(worker, request, -ECANCELED);
		return 0;
	}
	if (!cancel_other(&shared->workers[index], private)) {
		return -EALREADY;
	}
	request->task.private_kind = PIN_TASK_REQUEST;
	*out_must_post = true;
	*out_index = index;
	return 0;
}

int pin_flight_cancel(struct pin_shared *shared, struct pin_worker *worker,
	struct pinion_request *request, bool *out_must_post, uint32_t *out_index)
{
	int rc;

	if (worker == NULL) {
		return cancel(shared, NULL, request, out_must_post, out_index);
	}
	/* Of its own, nobody may end it between the change and the rest. */
	pin_relief_enter(worker);
	rc = cancel(shared, worker, request, out_must_post, out_index);
	pin_relief_leave(worker);
	return rc;
}

/* Requests on structs that lie in a range of memory. */
struct among {
	uintptr_t begin;
	uintptr_t end;
};

/* Those without a file: only where the range is all there is. */
static bool is_among(const struct pinion_request *request, const struct among *among)
{
	uintptr_t place = (uintptr_t)request->file;

	return place >= among->begin && place < among->end;
}

static uint32_t abandon_list(
	struct pin_worker *worker, struct pin_flight_link *list, const struct among *among)
{
	struct pin_flight_link *next;
	uint32_t count = 0;

	for (struct pin_flight_link *link = list->next; link != list; link = next) {
		struct pin_request *private = PIN_CONTAINER_OF(link, struct pin_request, link);
		struct pinion_request *request = pin_flight_request(private);

		next = link->next;
		if (is_among(request, among) && pin_flight_cancel_own(worker, private)) {
			pin_flight_abandon(worker, request, -ECANCELED);
			count++;
		}
	}
	return count;
}

/* Those that have lined up for their device. */
static uint32_t abandon_lined_up(struct pin_worker *worker, const struct among *among)
{
	struct pin_throttle *throttle = &worker->throttle;
	uint32_t count = 0;

	for (uint32_t i = 0; i < throttle->ledger_count; i++) {
		struct pin_lineup *lineup = &throttle->ledgers[i].lineup;
		struct pin_line *line = lineup->last;

		if (line == NULL) {
			continue;
		}
		do {
			count += abandon_list(worker, &line->requests, among);
			line = line->next;
		} while (line != lineup->last);
	}
	return count;
}

static uint32_t abandon(struct pin_worker *worker, const struct among *among)
{
	return abandon_lined_up(worker, among) + abandon_list(worker, &worker->waiting, among) +
		abandon_list(worker, &worker->flying, among);
}

uint32_t pin_flight_abandon_all(struct pin_worker *worker, const struct pinion_file *file)
{
	struct among among = {0, UINTPTR_MAX};

	if (file != NULL) {
		among = (struct among){(uintptr_t)file, (uintptr_t)(file + 1)};
	}
	return abandon(worker, &among);
}

void pin_flight_abandon_among(struct pin_worker *worker, const void *memory, size_t bytes)
{
	struct among among = {(uintptr_t)memory, (uintptr_t)memory + bytes};

	pin_relief_enter(worker);
	abandon(worker, &among);
	pin_relief_leave(worker);
}

void pin_flight_stop(struct pin_worker *worker)
{
	pin_relief_enter(worker);
	worker->cancel_sent = true;
	pin_flight_abandon_all(worker, NULL);
	pin_relief_leave(worker);
}

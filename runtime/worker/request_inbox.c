/* SPDX-License-Identifier: MIT */
/*
 * What the messages of requests have their worker do.
 */
#include "runtime/worker/request.h"
#include "runtime/base/check.h"
#include "runtime/worker/ring_lock.h"
#include "runtime/worker/wake.h"

#include <errno.h>

/* ---- what was posted ---- */

static void note_posted(struct pin_worker *worker, struct pin_request *private)
{
	if (private->is_from_outside) {
		private->is_from_outside = false;
		pin_meter_add(&worker->meter.requests_posted, 1);
	}
}

static void take_over(struct pin_worker *worker, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);

	request->task.private_kind = PIN_TASK_PLAIN;
	if (pin_flight_change_own(worker, private, PIN_FLIGHT_POSTED, PIN_FLIGHT_FLYING)) {
		pin_flight_begin(worker, request);
		return;
	}
	/* Cancelled on its way here. */
	PIN_CHECK(pin_flight_change_own(worker, private, PIN_FLIGHT_CANCELLED, PIN_FLIGHT_ENDING));
	pin_flight_prepare(worker, request);
	pin_flight_list_push(&worker->flying, &private->link);
	pin_flight_end_with(worker, request, -ECANCELED);
}

static void take_offer(struct pin_worker *worker, struct pinion_request *request)
{
	note_posted(worker, pin_request_of(request));
	take_over(worker, request);
}

static struct pinion_request *offered(struct pin_worker *worker)
{
	struct pin_link *link = pin_offers_pop(worker);

	return link == NULL ? NULL
			    : PIN_CONTAINER_OF(pin_task_of(link), struct pinion_request, task);
}

/* All of them. */
static void take_offers(struct pin_worker *worker)
{
	struct pinion_request *request;

	while ((request = offered(worker)) != NULL) {
		take_offer(worker, request);
	}
}

uint32_t pin_flight_take_offers(struct pin_worker *worker, struct pin_worker *owner, uint32_t max)
{
	struct pinion_request *request;
	uint32_t count = 0;

	while (count < max && (request = offered(owner)) != NULL) {
		pin_relief_enter(worker);
		take_offer(worker, request);
		pin_relief_leave(worker);
		count++;
	}
	return count;
}

/* ---- messages ---- */

static void visit(struct pin_worker *worker, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);
	struct pin_shared *shared = worker->shared;
	/* Of whom it was for, who may have left. */
	uint32_t index = pin_load_acquire_u32(&private->word) >> PIN_FLIGHT_WORKER_SHIFT;
	struct pin_worker *next = &shared->workers[(index + 1) % shared->worker_count];

	take_offers(worker);
	request->result += (int64_t)pin_flight_abandon_all(worker, request->file);
	private->hops_left--;
	if (private->hops_left > 0) {
		pin_flight_set(private, pin_flight_word(next, PIN_FLIGHT_POSTED));
		pin_inbox_push(&next->inbox, pin_task_link(&request->task));
		pin_wake_worker(next, worker);
		return;
	}
	pin_offers_release(shared);
	request->task.private_kind = PIN_TASK_PLAIN;
	pin_flight_set(private, PIN_FLIGHT_IDLE);
	pin_flight_hand_over(worker, worker, request);
}

static void take(struct pin_worker *worker, struct pinion_task *task)
{
	struct pinion_request *request = PIN_CONTAINER_OF(task, struct pinion_request, task);
	struct pin_request *private = pin_request_of(request);

	note_posted(worker, private);
	if (request->op == PINION_OP_CANCEL) {
		visit(worker, request);
		return;
	}
	task->private_kind = PIN_TASK_PLAIN;
	PIN_CHECK(pin_flight_change_own(worker, private, PIN_FLIGHT_CANCELLED, PIN_FLIGHT_ENDING));
	if (private->has_ended) {
		private->has_ended = false;
		pin_flight_set(private, PIN_FLIGHT_IDLE);
		pin_flight_hand_over(worker, worker, request);
	} else {
		pin_flight_abandon(worker, request, -ECANCELED);
	}
}

void pin_flight_take(struct pin_worker *worker, struct pinion_task *task)
{
	pin_relief_enter(worker);
	take(worker, task);
	pin_relief_leave(worker);
}

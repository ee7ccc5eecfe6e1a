/* SPDX-License-Identifier: MIT */
/*
 * Messages of requests: what reaches a worker as an offer, a request that was
 * submitted elsewhere; and in its inbox, one to be cancelled, or a cancel of
 * many on its way through all workers. See request.h.
 */
#ifndef PIN_WORKER_REQUEST_INBOX_H
#define PIN_WORKER_REQUEST_INBOX_H

#include "runtime/worker/request.h"

/* Whether `task` is a request's message rather than a task to be run. */
static inline bool pin_flight_is_message(const struct pinion_task *task)
{
	return task->private_kind == PIN_TASK_REQUEST;
}

/*
 * On the worker: begins up to `count_max` of those that were posted to `owner`,
 * itself or another (request_offers.h); how many.
 */
uint32_t pin_flight_take_offers(
	struct pin_worker *worker, struct pin_worker *owner, uint32_t count_max);

/* On the worker, from its inbox: does what the message says. */
void pin_flight_take(struct pin_worker *worker, struct pinion_task *task);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The start of requests: checking them, and handing them to the ring or putting
 * them in the line of those that wait for room in it. See request.h.
 */
#ifndef PIN_WORKER_SUBMIT_H
#define PIN_WORKER_SUBMIT_H

#include "runtime/worker/device_queue.h"
#include "runtime/worker/request.h"

/* On the worker: starts a request. Errors as pinion_request_submit(). */
int pin_worker_submit_one(struct pin_worker *worker, struct pinion_request *request);

/* The same for `count` of them, all or none. */
int pin_worker_submit(
	struct pin_worker *worker, struct pinion_request *const *requests, uint32_t count);

/*
 * Says to the log, at debug level, which of the requests was refused, and why:
 * which field, which value. Says nothing where none is (-EBUSY). Returns `rc`.
 */
int pin_flight_explain(const struct pin_shared *shared, struct pinion_request *const *requests,
	uint32_t count, int rc);

/*
 * Elsewhere: 0 if all can be submitted, and then they are the library's. Takes
 * back what it did if one cannot.
 */
int pin_flight_claim(struct pinion_request *const *requests, uint32_t count);
void pin_flight_disclaim(struct pinion_request *const *requests, uint32_t count);

/*
 * Sends claimed ones, which were admitted, to `target`, in order. A pool's
 * buffer is lent from here on.
 */
void pin_flight_post(
	struct pin_worker *target, struct pinion_request *const *requests, uint32_t count);

/* Submits what waits for room, in order, as far as there is some. */
void pin_flight_resume(struct pin_worker *worker);

/* Whether that might find something. Loads only. */
static inline bool pin_flight_may_resume(const struct pin_worker *worker)
{
	return !pin_flight_list_is_empty(&worker->waiting) || pin_throttle_has_news(worker);
}

/* Begins a posted one that is FLYING now, in no list; in the ring's lock. */
void pin_flight_begin(struct pin_worker *worker, struct pinion_request *request);

/* The first part of that, for one that ends at once. */
void pin_flight_prepare(struct pin_worker *worker, struct pinion_request *request);

#endif

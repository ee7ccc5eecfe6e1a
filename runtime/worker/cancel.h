/* SPDX-License-Identifier: MIT */
/*
 * Ending requests early: one from anywhere, all of a worker, all at a stop. See
 * request.h.
 */
#ifndef PIN_WORKER_CANCEL_H
#define PIN_WORKER_CANCEL_H

#include "runtime/worker/request.h"

/*
 * Any thread: 0, or -EALREADY. *out_must_post: the caller must put it on the
 * inbox of worker *out_index. `worker` is the calling one or NULL.
 */
int pin_flight_cancel(struct pin_shared *shared, struct pin_worker *worker,
	struct pinion_request *request, bool *out_must_post, uint32_t *out_index);

/*
 * On the worker, in the ring's lock: asks for the end of all that are on it, or
 * of those of one file; how many those were.
 */
uint32_t pin_flight_abandon_all(struct pin_worker *worker, const struct pinion_file *file);

/*
 * On the worker: asks for the end of those whose file's struct lies in a range
 * of memory.
 */
void pin_flight_abandon_among(struct pin_worker *worker, const void *memory, size_t bytes);

/* Asks for the end of all there is; nothing starts any more. */
void pin_flight_stop(struct pin_worker *worker);

#endif

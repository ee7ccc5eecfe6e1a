/* SPDX-License-Identifier: MIT */
/*
 * Requests and buffers of a worker, for code that runs on it.
 *
 * Buffers are the worker's own, so taking and giving back one is a few plain
 * instructions. Who finds none waits in a queue, in order, and gets the next
 * one that comes back handed over with its task.
 */
#ifndef PIN_CORE_IO_H
#define PIN_CORE_IO_H

#include "runtime/core/worker_state.h"

/* As pinion_read_submit(), on the calling worker. */
int pin_worker_read(struct pin_worker *worker, struct pinion_request *request);
int pin_worker_open(struct pin_worker *worker, struct pin_open *open);

/* NULL when none is free; `bytes` at most the configuration's buffer_bytes. */
uint8_t *pin_worker_buffer_acquire(struct pin_worker *worker, size_t bytes, uint32_t *out_index);

/*
 * As above, but when none is free `waiter` joins the queue: the first buffer
 * released while it is at the front is its own, and its task runs. False: it
 * waits; it must stay in place.
 */
bool pin_worker_buffer_await(
	struct pin_worker *worker, size_t bytes, struct pin_buffer_waiter *waiter);

/*
 * Gives a buffer to the first in the queue for its size, or back to the pool.
 */
void pin_worker_buffer_release(struct pin_worker *worker, uint8_t *bytes, uint32_t index);

#endif

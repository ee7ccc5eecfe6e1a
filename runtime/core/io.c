/* SPDX-License-Identifier: MIT */
/*
 * A worker's requests and buffers, on the worker itself.
 */
#include "runtime/core/io.h"
#include "runtime/base/check.h"
#include "runtime/core/spawn.h"

#include <errno.h>

enum {
	/* Marks the index of a small buffer. */
	SMALL_BUFFER = 1u << 31,
};

int pin_worker_read(struct pin_worker *worker, struct pinion_request *request)
{
	int rc = pin_shared_is_stopping(worker->shared)
		? -ESHUTDOWN
		: pin_request_submit(&worker->ring, request);

	if (rc == 0) {
		pin_meter_add(&worker->meter.requests_submitted, 1);
	}
	return rc;
}

int pin_worker_open(struct pin_worker *worker, struct pin_open *open)
{
	int rc = pin_shared_is_stopping(worker->shared) ? -ESHUTDOWN
							: pin_open_submit(&worker->ring, open);

	if (rc == 0) {
		pin_meter_add(&worker->meter.requests_submitted, 1);
	}
	return rc;
}

uint8_t *pin_worker_buffer_acquire(struct pin_worker *worker, size_t bytes, uint32_t *out_index)
{
	uint8_t *buffer;

	if (bytes > worker->small_buffers.buffer_bytes) {
		PIN_CHECK(bytes <= worker->buffers.buffer_bytes);
		return pin_pool_acquire(&worker->buffers, out_index);
	}
	buffer = pin_pool_acquire(&worker->small_buffers, out_index);
	if (buffer != NULL) {
		*out_index |= SMALL_BUFFER;
	}
	return buffer;
}

bool pin_worker_buffer_await(
	struct pin_worker *worker, size_t bytes, struct pin_buffer_waiter *waiter)
{
	waiter->bytes = pin_worker_buffer_acquire(worker, bytes, &waiter->index);
	if (waiter->bytes != NULL) {
		return true;
	}
	pin_list_push(bytes > worker->small_buffers.buffer_bytes ? &worker->buffer_queue
								 : &worker->small_buffer_queue,
		&waiter->link);
	return false;
}

void pin_worker_buffer_release(struct pin_worker *worker, uint8_t *bytes, uint32_t index)
{
	bool is_small = (index & SMALL_BUFFER) != 0;
	struct pin_link *first =
		pin_list_pop(is_small ? &worker->small_buffer_queue : &worker->buffer_queue);

	if (first != NULL) {
		struct pin_buffer_waiter *waiter =
			PIN_CONTAINER_OF(first, struct pin_buffer_waiter, link);

		waiter->bytes = bytes;
		waiter->index = index;
		pin_worker_spawn_bound(worker, waiter->task);
	} else if (is_small) {
		pin_pool_release(&worker->small_buffers, bytes, index & ~(uint32_t)SMALL_BUFFER);
	} else {
		pin_pool_release(&worker->buffers, bytes, index);
	}
}

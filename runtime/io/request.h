/* SPDX-License-Identifier: MIT */
/*
 * Requests between their owner and the ring: turning one into a submission
 * entry, and deciding at each completion whether it is done or must go on.
 *
 * Called by the worker whose ring it is. Who calls the callback, and when, is
 * the worker's business.
 */
#ifndef PIN_IO_REQUEST_H
#define PIN_IO_REQUEST_H

#include "runtime/io/ring.h"

#include <pinion/request.h>

/* Opening a file by way of the ring; like a request, it embeds its task. */
struct pin_open {
	struct pinion_task task;
	const char *path; /* shorter than PATH_MAX; stays in place until done */
	int flags;
	int32_t result; /* a descriptor or a negative errno */
	uint32_t stall_count;
};

/* -EINVAL, -EAGAIN as pinion_read_submit(). */
int pin_request_submit(struct pin_ring *ring, struct pinion_request *request);

/* -EAGAIN: no credit left. */
int pin_open_submit(struct pin_ring *ring, struct pin_open *open);

/*
 * Takes one completion's user_data and result. Returns the task that became
 * ready, or NULL when what it belonged to was submitted anew.
 */
struct pinion_task *pin_request_complete(struct pin_ring *ring, uint64_t user_data, int32_t result);

#endif

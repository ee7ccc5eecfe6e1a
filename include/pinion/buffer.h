/* SPDX-License-Identifier: MIT */
/*
 * Buffers cut from the current worker's arena: page-aligned, on the worker's
 * NUMA node, on huge pages and registered with its ring where the machine
 * allows. All memory is set aside at creation; acquiring never allocates.
 */
#ifndef PINION_BUFFER_H
#define PINION_BUFFER_H

#include <pinion/runtime.h>

PINION_BEGIN_DECLS

/*
 * A handle: the right to use one buffer, until it is given back.
 *
 * Shape: 16 bytes; `bytes` is aligned to 4096. The other fields tell the buffer
 * and which of its uses this is: a handle whose buffer was given back is stale
 * for ever, and recognised as such.
 * Owns: whoever acquired it, until release; copies stand for the same right.
 * While a request into it is in flight it belongs to the kernel.
 * Since: 0.1
 */
struct pinion_buffer {
	uint8_t *bytes;
	uint32_t index;
	uint32_t generation;
};

/*
 * Takes a buffer of at least `min_bytes` from the current worker's arena: one
 * of `small_buffer_bytes` of the configuration if that is enough, else one of
 * `buffer_bytes`.
 *
 * Context: a task on a worker of `runtime`; never blocks or enters the kernel.
 * Errors: -EAGAIN: all are in use, release one or respawn and try again.
 * -EINVAL: larger than the configuration's `buffer_bytes`. -EPERM: not on a
 * worker of this runtime.
 * Since: 0.1
 */
PINION_API int pinion_buffer_acquire(
	struct pinion_runtime *runtime, size_t min_bytes, struct pinion_buffer *out_buffer);

/*
 * Gives a buffer back to the arena it came from and clears the handle.
 *
 * Context: a task on the worker that acquired it. A release elsewhere, of a
 * stale handle, or while a request uses the buffer, on whatever worker, is a
 * broken invariant and aborts with a message.
 * Since: 0.1
 */
PINION_API void pinion_buffer_release(struct pinion_runtime *runtime, struct pinion_buffer *buffer);

PINION_END_DECLS

#endif

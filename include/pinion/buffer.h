/* SPDX-License-Identifier: MIT */
/*
 * Buffers cut from the current worker's arena: page-aligned, on the worker's
 * NUMA node, on huge pages and registered with its ring where the machine
 * allows. Memory is taken in steps, by an acquire that finds no free buffer,
 * and given back after rest; with `buffer_rest_ms` 0 of the tuning at creation.
 */
#ifndef PINION_BUFFER_H
#define PINION_BUFFER_H

#include <pinion/runtime.h>

PINION_BEGIN_DECLS

/*
 * A handle: the right to use one buffer, until it is released.
 *
 * Shape: 16 bytes; `bytes` is aligned to 4096. The other fields identify the
 * buffer and this use of it: after the release the handle is stale for ever,
 * and recognised as such.
 * Owns: the thread or task that acquired it, until release; copies are the same
 * right. While a request into the buffer is in flight, the buffer belongs to
 * the kernel.
 * Since: 0.1
 */
struct pinion_buffer {
	uint8_t *bytes;
	uint32_t index;
	uint32_t generation;
};

/*
 * Takes a buffer of at least `min_bytes` from the current worker's arena: one
 * of `small_buffer_bytes` of the configuration if that is enough, otherwise one
 * of `buffer_bytes`.
 *
 * Context: a task on a worker of `runtime`; never blocks. Enters the kernel
 * only for a step of memory.
 * Errors: -EAGAIN: all are in use; release a buffer, or respawn and try again.
 * -ENOMEM: none is in use, and there is no memory for the first; try again.
 * -EINVAL: larger than the configuration's `buffer_bytes`. -EPERM: not on a
 * worker of this runtime.
 * Since: 0.1
 */
PINION_API int pinion_buffer_acquire(
	struct pinion_runtime *runtime, size_t min_bytes, struct pinion_buffer *out_buffer);

/*
 * Gives a buffer back to its arena and clears the handle.
 *
 * Context: a task on the worker that acquired it. A release elsewhere, of a
 * stale handle, or while a request on any worker uses the buffer, is a broken
 * invariant and aborts with a message.
 * Since: 0.1
 */
PINION_API void pinion_buffer_release(struct pinion_runtime *runtime, struct pinion_buffer *buffer);

PINION_END_DECLS

#endif

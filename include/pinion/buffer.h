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
 * Shape: 16 bytes; `bytes` is aligned to 4096.
 * Owns: whoever acquired it, until release. While a request into it is in
 * flight it belongs to the kernel.
 * Since: 0.1
 */
struct pinion_buffer {
	uint8_t *bytes;
	uint32_t size_bytes;
	uint32_t index;
};

/*
 * Takes a buffer of at least `min_bytes` from the current worker's arena.
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
 * Context: a task on the worker that acquired it. A release elsewhere, or of a
 * buffer that is free already, is a broken invariant and aborts with a message.
 * Since: 0.1
 */
PINION_API void pinion_buffer_release(struct pinion_runtime *runtime, struct pinion_buffer *buffer);

PINION_END_DECLS

#endif

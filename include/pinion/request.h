/* SPDX-License-Identifier: MIT */
/*
 * A read: a struct in the caller's memory that embeds a task. Its completion
 * is that task becoming ready, so it runs where and when tasks run.
 */
#ifndef PINION_REQUEST_H
#define PINION_REQUEST_H

#include <pinion/buffer.h>
#include <pinion/file.h>

PINION_BEGIN_DECLS

/*
 * Shape: embeddable; set `task.run` and the inputs, zero the rest.
 * Owns: the caller's memory; struct, file and memory must stay in place from
 * submit until `task.run` is entered, which happens exactly once, also when
 * the runtime is stopped.
 * Since: 0.1
 */
struct pinion_request {
	struct pinion_task task;
	/* Inputs. */
	struct pinion_file *file;
	uint8_t *bytes;	       /* where the data goes, aligned as the file asks */
	uint64_t offset_bytes; /* a multiple of the file's offset alignment */
	uint32_t length_bytes; /* likewise, 1 … 0x7ffff000 */
	/*
	 * Output: bytes read, less than asked only where the file ends, or a
	 * negative errno. Valid from the entry of `task.run`.
	 */
	int32_t result;
	uint64_t private_[6];
};

/*
 * Starts a read. Interrupted and short reads are continued by the library;
 * any other error of the kernel is passed through in `result`. The submission
 * reaches the kernel at the end of the worker's loop, together with others.
 *
 * Context: a task on a worker of `runtime`; never blocks or allocates.
 * Errors: -EINVAL: misaligned for this file, or a length out of range.
 * -EAGAIN: the ring holds as many as it may, wait for a completion and try
 * again. -EPERM: not on a worker of this runtime. -ESHUTDOWN: stopped.
 * Since: 0.1
 */
PINION_API int pinion_read_submit(struct pinion_runtime *runtime, struct pinion_request *request);

PINION_END_DECLS

#endif

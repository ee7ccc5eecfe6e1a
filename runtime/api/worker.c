/* SPDX-License-Identifier: MIT */
/*
 * The public calls for code that runs on a worker: which worker it is, what the
 * embedder has given it, whether to yield, and the buffers of its arena.
 *
 * Each finds out whether the calling thread is a worker of this runtime, and
 * refuses any other.
 */
#include "runtime/worker/worker.h"
#include "runtime/base/check.h"
#include "runtime/loop/loop.h"
#include "runtime/task/entry.h"

#include <errno.h>
#include <pinion/buffer.h>
#include <pinion/runtime.h>

int pinion_worker_index(const struct pinion_runtime *runtime)
{
	const struct pin_worker *worker = pin_runtime_own_thread(runtime);

	PIN_DCHECK(worker == NULL || worker->index < runtime->shared.worker_count);
	return worker != NULL && !pin_runtime_is_foreign(runtime) ? (int)worker->index : -ENOENT;
}

int pinion_worker_context(const struct pinion_runtime *runtime, void **out_context)
{
	const struct pin_worker *worker = pin_runtime_own_thread(runtime);

	if (pin_runtime_is_foreign(runtime)) {
		return -ECHILD;
	}
	if (worker == NULL) {
		return -ENOENT;
	}
	*out_context = worker->context;
	return 0;
}

bool pinion_worker_should_yield(struct pinion_runtime *runtime)
{
	struct pin_worker *worker = pin_runtime_own_worker(runtime);

	return worker != NULL && !pin_runtime_is_foreign(runtime) &&
		pin_worker_should_yield(worker);
}

/*
 * Buffers of a worker's arena are for code on that worker; every other thread
 * needs a pool.
 */
int pinion_buffer_acquire(
	struct pinion_runtime *runtime, size_t min_bytes, struct pinion_buffer *out_buffer)
{
	struct pin_worker *worker = pin_runtime_own_worker(runtime);
	const struct pinion_config *config = &runtime->shared.config;

	if (pin_runtime_is_foreign(runtime)) {
		return -ECHILD;
	}
	if (worker == NULL) {
		return -EPERM;
	}
	if (min_bytes > config->buffer_bytes) {
		return -EINVAL;
	}
	return pin_worker_buffer_acquire(worker, min_bytes, out_buffer);
}

void pinion_buffer_release(struct pinion_runtime *runtime, struct pinion_buffer *buffer)
{
	struct pin_worker *worker = pin_runtime_own_worker(runtime);

	if (worker == NULL) {
		pin_check_misused(pin_runtime_log(runtime),
			"pinion_buffer_release() on a thread that is no worker of the buffer's "
			"runtime: release it in a task there, or take buffers of a pinion_pool");
	}
	pin_worker_buffer_release(worker, buffer);
	*buffer = (struct pinion_buffer){0};
}

/* SPDX-License-Identifier: MIT */
/*
 * A future: a place for one result that is not there yet. Whoever has it sets
 * it, once; tasks await it, threads wait for it, or a callback is called. It
 * lies in the caller's memory and allocates nothing.
 */
#ifndef PINION_FUTURE_H
#define PINION_FUTURE_H

#include <pinion/wait.h>
#include <stdbool.h>
#include <stddef.h>

PINION_BEGIN_DECLS

enum {
	PINION_FUTURE_BYTES = 32, /* of a value, at most; kept in place */
};

/*
 * Shape: 128 bytes, embeddable; pinion_future_init() sets all of it.
 * Owns: the caller's memory. It must stay in place until it is done and all
 * that wait for it are over; nothing touches it from then on, though the call
 * that set it may not yet have returned.
 * Since: 0.1
 */
struct pinion_future {
	uint64_t private_[16];
};

/*
 * Makes it one that is not done. `runtime` is the one whose tasks are going to
 * set it, or NULL: its own workers are refused the calls that would block them.
 *
 * Context: any thread, while nobody else uses it.
 * Since: 0.1
 */
PINION_API void pinion_future_init(struct pinion_future *future, struct pinion_runtime *runtime);

/*
 * Makes it done with a value, a copy of the `size_bytes` at `value`, or with a
 * failure, a negative errno; serves everybody who waits for it. What was
 * written before is seen by those who learn that it is done.
 *
 * Units: 0 … PINION_FUTURE_BYTES; with 0 `value` may be NULL.
 * Context: any thread; never allocates; may wait for another thread that is
 * just using the same future. Callbacks are called here.
 * Errors: -EALREADY: it is done, and stays as it is. -EINVAL: too many bytes;
 * not negative.
 * Since: 0.1
 */
PINION_API int pinion_future_set(
	struct pinion_future *future, const void *value, size_t size_bytes);
PINION_API int pinion_future_fail(struct pinion_future *future, int error);

/*
 * Copies the value, of `size_bytes` at most; what the value was shorter is
 * zeroed.
 *
 * Context: any thread; as pinion_future_set().
 * Errors: -EAGAIN: it is not done. The error of pinion_future_fail(), and then
 * nothing is copied.
 * Since: 0.1
 */
PINION_API int pinion_future_get(struct pinion_future *future, void *out_value, size_t size_bytes);

/*
 * Sleeps until it is done, at most until `deadline_ns`, as in struct
 * pinion_wait. 0: it is done; pinion_future_get() tells how.
 *
 * Context: a thread that is no worker of any runtime.
 * Errors: -ETIME. -EDEADLK: it is not done, and this is a worker thread of any
 * runtime: use pinion_future_wait_async(). -ECHILD: as pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_future_wait(struct pinion_future *future, uint64_t deadline_ns);

/*
 * Begins to wait for it in a task: `wait->task` runs when it is done, with a
 * result of 0; pinion_future_get() tells how. See pinion_wait(3).
 *
 * Context: a task on a worker of `runtime`, which need not be the future's.
 * Errors: -EPERM: not on such a worker. -EBUSY: the wait is under way already.
 * -EINVAL: no `run`, flags, or `reserved` is not 0. -ESHUTDOWN, -ECHILD: as
 * pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_future_wait_async(
	struct pinion_runtime *runtime, struct pinion_future *future, struct pinion_wait *wait);

struct pinion_future_callback;

/*
 * Context: the thread that set the future, inside of that call, or the one that
 * asked to be called if it was done by then. It has to be short there. Struct
 * and, if nobody else waits, future may be freed here.
 * Since: 0.1
 */
typedef void (*pinion_future_fn)(struct pinion_future_callback *callback);

/*
 * Shape: 96 bytes, embeddable; set `done` and `future`, the rest is set.
 * Owns: the caller's memory, to stay in place until `done` is entered.
 * Since: 0.1
 */
struct pinion_future_callback {
	pinion_future_fn done;
	struct pinion_future *future;
	uint64_t private_[10];
};

/*
 * Has `callback->done` called, once, when the future is done; at once if it is.
 *
 * Context: any thread; as pinion_future_set().
 * Errors: -EINVAL: no `done` or no future.
 * Since: 0.1
 */
PINION_API int pinion_future_call(struct pinion_future_callback *callback);

typedef void (*pinion_future_release_fn)(struct pinion_future *future);

/*
 * For whoever is no longer interested: `release` is called when the future is
 * done, as the last thing that happens to it, to free it; at once if it is.
 *
 * Context: any thread; nobody waits for it, nor begins to. `release`: as
 * pinion_future_fn.
 * Errors: -EBUSY: somebody waits. -EALREADY: it is detached. -EINVAL: NULL.
 * Since: 0.1
 */
PINION_API int pinion_future_detach(struct pinion_future *future, pinion_future_release_fn release);

PINION_END_DECLS

#endif

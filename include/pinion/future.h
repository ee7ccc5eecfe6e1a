/* SPDX-License-Identifier: MIT */
/*
 * A future: a place for one result that comes later. The producer sets it,
 * once; tasks and threads wait for it, or have a callback called. It is in the
 * caller's memory and allocates nothing.
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
 * waits for it are over; the library does not touch it from then on, though the
 * call that set it may not yet have returned.
 * Since: 0.1
 */
struct pinion_future {
	uint64_t private_[16];
};

/*
 * Initialises a future that is not done. `runtime` is the runtime whose tasks
 * will set it, or NULL; its workers get -EDEADLK from calls that would block.
 *
 * Context: any thread, while no other call uses the future.
 * Since: 0.1
 */
PINION_API void pinion_future_init(struct pinion_future *future, struct pinion_runtime *runtime);

/*
 * Sets the result: a value, a copy of the `size_bytes` at `value`, or a
 * failure, a negative errno. The future is done then, and all its waits end.
 * Writes of the caller before this call are visible to every thread that learns
 * that the future is done.
 *
 * Units: 0 … PINION_FUTURE_BYTES; with 0 `value` may be NULL.
 * Context: any thread; never allocates; may wait for another thread that uses
 * the same future at that moment. Callbacks are called here.
 * Errors: -EALREADY: the future is done, and keeps its result. -EINVAL: too
 * many bytes; not negative.
 * Since: 0.1
 */
PINION_API int pinion_future_set(
	struct pinion_future *future, const void *value, size_t size_bytes);
PINION_API int pinion_future_fail(struct pinion_future *future, int error);

/*
 * Copies the value, at most `size_bytes` of it; bytes beyond a shorter value
 * are zeroed.
 *
 * Context: any thread; as pinion_future_set().
 * Errors: -EAGAIN: the future is not done. The error of pinion_future_fail();
 * then no value is copied.
 * Since: 0.1
 */
PINION_API int pinion_future_get(struct pinion_future *future, void *out_value, size_t size_bytes);

/*
 * Sleeps until the future is done, at most until `deadline_ns`, as in struct
 * pinion_wait. 0: it is done; pinion_future_get() returns the result.
 *
 * Context: a thread that is no worker of any runtime.
 * Errors: -ETIME. -EDEADLK: the future is not done, and this is a worker thread
 * of any runtime: use pinion_future_wait_async(). -ECHILD: as
 * pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_future_wait(struct pinion_future *future, uint64_t deadline_ns);

/*
 * Waits for a future in a task: `wait->task` runs when the future is done, with
 * a result of 0; pinion_future_get() then returns the value or error. See
 * pinion_wait(3).
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
 * Called when a future is done.
 *
 * Context: the thread that set the future, inside of that call; or the thread
 * that asked for the callback, if the future was done by then. Keep it short.
 * The struct may be freed here and, if there are no other waits, the future.
 * Since: 0.1
 */
typedef void (*pinion_future_fn)(struct pinion_future_callback *callback);

/*
 * Shape: 96 bytes, embeddable; set `done` and `future`, the library sets the
 * rest.
 * Owns: the caller's memory, to stay in place until `done` is entered.
 * Since: 0.1
 */
struct pinion_future_callback {
	pinion_future_fn done;
	struct pinion_future *future;
	uint64_t private_[10];
};

/*
 * Has `callback->done` called, once, when the future is done; at once if it is
 * done already.
 *
 * Context: any thread; as pinion_future_set().
 * Errors: -EINVAL: no `done` or no future.
 * Since: 0.1
 */
PINION_API int pinion_future_call(struct pinion_future_callback *callback);

typedef void (*pinion_future_release_fn)(struct pinion_future *future);

/*
 * Gives up interest in a future: `release` is called when the future is done,
 * as its last event, to free it; at once if it is done already.
 *
 * Context: any thread, while no wait for it is under way or begins. `release`:
 * as pinion_future_fn.
 * Errors: -EBUSY: a wait is under way. -EALREADY: the future is detached.
 * -EINVAL: NULL.
 * Since: 0.1
 */
PINION_API int pinion_future_detach(struct pinion_future *future, pinion_future_release_fn release);

PINION_END_DECLS

#endif

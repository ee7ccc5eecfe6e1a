/* SPDX-License-Identifier: MIT */
/*
 * Calls into another runtime: a function runs there, and its caller, a thread
 * or a task of some other runtime, goes on when it has returned. So long or
 * blocking work has a runtime of its own, apart from that which does I/O.
 */
#ifndef PINION_CALL_H
#define PINION_CALL_H

#include <pinion/future.h>

PINION_BEGIN_DECLS

/*
 * What is called. A negative errno counts as a failure of the runtime it runs
 * on, as a task's.
 *
 * Context: a worker thread, as for tasks; it may block there.
 * Since: 0.1
 */
typedef int (*pinion_call_fn)(void *arg);

/*
 * Shape: 192 bytes, embeddable; set `run`, `arg` and `task.flags`, zero the
 * rest.
 * Owns: the caller's memory, to stay in place from a successful start until
 * `done` is; from there on it may be freed or started anew.
 * Since: 0.1
 */
struct pinion_call {
	struct pinion_task task; /* the library's, but for `flags` */
	pinion_call_fn run;
	void *arg;
	/*
	 * Output, valid when it is done: what `run` returned, or -ECANCELED, if
	 * the runtime was stopped first.
	 */
	int32_t result;
	uint32_t reserved; /* 0 */
	/* To wait for the call, in any of the ways of pinion_future(3). */
	struct pinion_future done;
	uint64_t private_;
};

/*
 * Has `call->run` called on a worker of `runtime`.
 *
 * Context: any thread; as pinion_task_spawn().
 * Errors: as pinion_task_spawn(), -EBUSY too: the call has not begun to run
 * since it was started last. -EINVAL also: `reserved` is not 0. -EAGAIN: from
 * outside, which a worker of another runtime is too, while `injector_tasks`
 * wait in the lane of its flags; start it again when some have run.
 * pinion_runtime_get_lane_stats() tells how many wait, `spawns_refused` of the
 * counters how many were refused.
 * Since: 0.1
 */
PINION_API int pinion_call_start(struct pinion_runtime *runtime, struct pinion_call *call);

/*
 * As pinion_call_start(), but sleeps until there is room, at most until
 * `deadline_ns`, as in struct pinion_wait. Those who wait for one lane are
 * served in the order of their coming; spawns and calls that do not wait may
 * take room before them.
 *
 * Context: as pinion_future_wait(); never allocates. On a worker of `runtime`
 * there is room always.
 * Errors: as pinion_call_start(), but for -EAGAIN. -ESHUTDOWN also if the
 * runtime is drained or stopped meanwhile. -ETIME: there was no room, nothing
 * was started. -EDEADLK: a worker thread of any runtime, and there is no room.
 * Since: 0.1
 */
PINION_API int pinion_call_start_wait(
	struct pinion_runtime *runtime, struct pinion_call *call, uint64_t deadline_ns);

/*
 * Begins to wait for that in a task of the caller's own runtime: `wait->task`
 * runs on the calling worker when the call is started, with a result of 0; with
 * any other it is not. Besides those of pinion_wait(3) there is -ESHUTDOWN:
 * `runtime` was drained or stopped meanwhile. `call->done` tells its end.
 *
 * Owns: the call stays in place as after pinion_call_start(), and until
 * `wait->task` is entered; so does `runtime`, which is not destroyed before.
 * Context: a task on a worker of `own`, which may be the same as `runtime`.
 * Errors: as pinion_future_wait_async(); -EINVAL, -EBUSY, -ECHILD: as
 * pinion_call_start(). Nothing has begun then.
 * Since: 0.1
 */
PINION_API int pinion_call_start_async(struct pinion_runtime *runtime, struct pinion_call *call,
	struct pinion_runtime *own, struct pinion_wait *wait);

/*
 * Likewise, and begins to wait for it in a task of the caller's own runtime:
 * `wait->task` runs on the calling worker when the call is done, with a result
 * of 0. If the wait ends early, by its deadline or a cancel, the call goes on;
 * pinion_future_wait_async() of `call->done` waits for it once more.
 *
 * Context: a task on a worker of `own`, which may be the same as `runtime`.
 * Errors: as pinion_call_start() and pinion_future_wait_async(); nothing has
 * begun then.
 * Since: 0.1
 */
PINION_API int pinion_call_run_async(struct pinion_runtime *runtime, struct pinion_call *call,
	struct pinion_runtime *own, struct pinion_wait *wait);

/*
 * Calls `run` with `arg` on a worker of `runtime` and sleeps until it has
 * returned; what it returned is in *out_result, or -ECANCELED.
 *
 * Context: a thread that is no worker of any runtime; never allocates. A task
 * calls pinion_call_run_async().
 * Errors: as pinion_call_start(), also -EAGAIN: it does not wait for room.
 * -EDEADLK: on a worker thread of any runtime. It was not called.
 * Since: 0.1
 */
PINION_API int pinion_call_run(
	struct pinion_runtime *runtime, pinion_call_fn run, void *arg, int *out_result);

/*
 * As pinion_call_run(), but waits for room, at most until `deadline_ns`, as in
 * struct pinion_wait. A call that has been started is waited for however long
 * it takes, as its caller's frame holds it.
 *
 * Context: as pinion_call_run().
 * Errors: as pinion_call_start_wait(); -EDEADLK: on a worker thread of any
 * runtime. It was not called.
 * Since: 0.1
 */
PINION_API int pinion_call_run_wait(struct pinion_runtime *runtime, pinion_call_fn run, void *arg,
	uint64_t deadline_ns, int *out_result);

PINION_END_DECLS

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Calls into another runtime: a function runs there, and its caller, a thread
 * or a task of some other runtime, continues when it has returned. So long or
 * blocking work can have a runtime of its own, apart from the runtime that does
 * I/O.
 */
#ifndef PINION_CALL_H
#define PINION_CALL_H

#include <pinion/future.h>

PINION_BEGIN_DECLS

/*
 * The function that is called. A negative errno counts as a failure of the
 * runtime that runs it, as a task's.
 *
 * Context: a worker thread, as for tasks; it may block there.
 * Since: 0.1
 */
typedef int (*pinion_call_fn)(void *arg);

/*
 * Shape: 192 bytes, embeddable; set `run`, `arg` and `task.flags`, zero the
 * rest.
 * Owns: the caller's memory, to stay in place from a successful start until
 * `done` is done; from then on it may be freed or started anew.
 * Since: 0.1
 */
struct pinion_call {
	struct pinion_task task; /* the library's, but for `flags` */
	pinion_call_fn run;
	void *arg;
	/*
	 * Output, valid when the call is done: the return value of `run`, or
	 * -ECANCELED if the runtime was stopped first.
	 */
	int32_t result;
	uint32_t reserved; /* 0 */
	/* To wait for the call, in any of the ways of pinion_future(3). */
	struct pinion_future done;
	uint64_t private_;
};

/*
 * Starts a call: a worker of `runtime` calls `call->run`.
 *
 * Context: any thread; as pinion_task_spawn().
 * Errors: as pinion_task_spawn(). -EBUSY: also while the call, started before,
 * has not begun to run. -EINVAL: also if `reserved` is not 0. -EAGAIN: from
 * outside, as a worker of another runtime is too, while `injector_tasks` wait
 * in the lane of its flags; start it again when some have run.
 * pinion_runtime_get_lane_stats() has how many wait, `spawns_refused` of struct
 * pinion_runtime_stats how many were refused.
 * Since: 0.1
 */
PINION_API int pinion_call_start(struct pinion_runtime *runtime, struct pinion_call *call);

/*
 * Starts a call as pinion_call_start(), but sleeps until there is room, at most
 * until `deadline_ns`, as in struct pinion_wait. Waits for one lane are served
 * in the order in which they began; spawns and calls that do not wait may take
 * room before them.
 *
 * Context: as pinion_future_wait(); never allocates. On a worker of `runtime`
 * there is always room.
 * Errors: as pinion_call_start(), except -EAGAIN. -ESHUTDOWN: also if the
 * runtime is drained or stopped meanwhile. -ETIME: there was no room; the call
 * was not started. -EDEADLK: on a worker thread of another runtime, and there
 * is no room.
 * Since: 0.1
 */
PINION_API int pinion_call_start_wait(
	struct pinion_runtime *runtime, struct pinion_call *call, uint64_t deadline_ns);

/*
 * Waits in a task of the caller's own runtime for room to start a call:
 * `wait->task` runs on the calling worker, with a result of 0 when the call is
 * started; with any other result it is not. Besides the results of
 * pinion_wait(3) there is -ESHUTDOWN: `runtime` was drained or stopped
 * meanwhile. Wait on `call->done` for the end of the call.
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
 * Starts a call as pinion_call_start(), and waits for its end in a task of the
 * caller's own runtime: `wait->task` runs on the calling worker when the call
 * is done, with a result of 0. If the wait ends early, by its deadline or a
 * cancel, the call goes on; pinion_future_wait_async() of `call->done` waits
 * for it once more.
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
 * returned; its return value is in *out_result, or -ECANCELED.
 *
 * Context: a thread that is no worker of any runtime; never allocates. A task
 * calls pinion_call_run_async().
 * Errors: as pinion_call_start(), also -EAGAIN: it does not wait for room.
 * -EDEADLK: on a worker thread of any runtime; `run` was not called.
 * Since: 0.1
 */
PINION_API int pinion_call_run(
	struct pinion_runtime *runtime, pinion_call_fn run, void *arg, int *out_result);

/*
 * Calls as pinion_call_run(), but waits for room, at most until `deadline_ns`,
 * as in struct pinion_wait. Once the call has started, this waits for its end
 * however long that takes, since the call is in the caller's frame.
 *
 * Context: as pinion_call_run().
 * Errors: as pinion_call_start_wait(); -EDEADLK: on a worker thread of any
 * runtime; `run` was not called.
 * Since: 0.1
 */
PINION_API int pinion_call_run_wait(struct pinion_runtime *runtime, pinion_call_fn run, void *arg,
	uint64_t deadline_ns, int *out_result);

PINION_END_DECLS

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A wait: a struct in the caller's memory that embeds a task, as a request
 * does. When the wait ends, that task becomes ready. So a task waits for
 * something that others give, a buffer, the value of a future, room in a
 * channel, without blocking its worker. Waits are served in the order in which
 * they began.
 */
#ifndef PINION_WAIT_H
#define PINION_WAIT_H

#include <pinion/runtime.h>

PINION_BEGIN_DECLS

/*
 * Shape: 192 bytes, embeddable; set `task.run` and `deadline_ns`, zero the
 * rest. `task.cancel` is not used.
 * Owns: the caller's memory. The struct, and the object that it waits for, must
 * stay in place from a successful call that begins the wait until `task.run` is
 * entered, on the worker that began it. That happens exactly once, whatever the
 * result, also when the runtime is stopped; from then on the struct may be
 * freed or used anew. pinion_runtime_drain() waits for it as for all other
 * work.
 * Since: 0.1
 */
struct pinion_wait {
	struct pinion_task task;
	/*
	 * Input, by the clock of pinion_clock_now_ns(). UINT64_MAX: none. 0 or
	 * a time that has passed: the wait succeeds only if it can at once.
	 */
	uint64_t deadline_ns;
	/*
	 * Output, valid from the entry of `task.run`: 0: served; -ETIME: not by
	 * the deadline; -ECANCELED: pinion_wait_cancel() was called, or the
	 * runtime stopped; or another result that the call which began the wait
	 * documents.
	 */
	int32_t result;
	uint32_t reserved; /* 0 */
	uint64_t private_[18];
};

/*
 * Ends a wait early: `task.run` is entered with -ECANCELED, soon, on the worker
 * that began it.
 *
 * The call may come at any time, also while the call that begins the wait has
 * not returned yet: it ends the wait, or finds that the wait has not begun, and
 * then does nothing.
 *
 * Owns: the wait is still the runtime's until `task.run` is entered. The caller
 * makes sure that, until this returns, neither the wait nor its object is
 * freed, and that the wait is not begun anew.
 * Context: any thread; never allocates; may wait for another thread that serves
 * the same waiters at that moment.
 * Errors: -EALREADY: the wait is over, or about to be, or has not begun.
 * -ECHILD: as pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_wait_cancel(struct pinion_runtime *runtime, struct pinion_wait *wait);

PINION_END_DECLS

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A wait: a struct in the caller's memory that embeds a task, as a request
 * does. Its end is that task becoming ready, so a worker waits for what others
 * give, a buffer, the value of a future, room in a channel, without holding up
 * anything. Whoever waits is served in the order in which the waits began.
 */
#ifndef PINION_WAIT_H
#define PINION_WAIT_H

#include <pinion/runtime.h>

PINION_BEGIN_DECLS

/*
 * Shape: 192 bytes, embeddable; set `task.run` and `deadline_ns`, zero the
 * rest. `task.cancel` is not used.
 * Owns: the caller's memory. It must stay in place, and so must what is waited
 * for, from a successful call that begins the wait until `task.run` is entered,
 * on the worker that began it. That happens exactly once, whatever the result,
 * also when the runtime is stopped; from there on it may be freed or used anew.
 * pinion_runtime_drain() waits for it as for all other work.
 * Since: 0.1
 */
struct pinion_wait {
	struct pinion_task task;
	/*
	 * Input, by the clock of pinion_clock_now_ns(). UINT64_MAX: none. 0 or
	 * a time that has passed: only what can be had at once.
	 */
	uint64_t deadline_ns;
	/*
	 * Output, valid from the entry of `task.run`: 0, it was served; -ETIME,
	 * not until the deadline; -ECANCELED, by pinion_wait_cancel() or as the
	 * runtime was stopped; or what the call that began it names besides.
	 */
	int32_t result;
	uint32_t reserved; /* 0 */
	uint64_t private_[18];
};

/*
 * Ends a wait early: `task.run` is entered with -ECANCELED, soon, on the worker
 * that began it.
 *
 * May come at any time, also while the call that begins the wait has not
 * returned yet: it ends the wait, or finds that it has not begun, and then does
 * nothing.
 *
 * Owns: the wait is still the runtime's until then. The caller makes sure that,
 * until this returns, neither it nor what it waits for is freed, and that it is
 * not begun anew.
 * Context: any thread; never allocates; may wait for another thread that is
 * just serving the same waiters.
 * Errors: -EALREADY: it is over, or about to be, or has not begun. -ECHILD: as
 * pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_wait_cancel(struct pinion_runtime *runtime, struct pinion_wait *wait);

PINION_END_DECLS

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A timer: a task that becomes ready at a given time.
 */
#ifndef PINION_TIMER_H
#define PINION_TIMER_H

#include <pinion/runtime.h>

PINION_BEGIN_DECLS

/*
 * Shape: embeddable; set `task.run` and `task.cancel`, zero the rest.
 * Owns: the caller's memory. It must stay in place from pinion_timer_start()
 * until `task.run` or `task.cancel` is entered, of which exactly one is; from
 * there on it may be freed or started anew.
 * Since: 0.1
 */
struct pinion_timer {
	struct pinion_task task;
	uint64_t private_[6];
};

/*
 * Returns the time on the clock of all deadlines: CLOCK_MONOTONIC in
 * nanoseconds.
 *
 * Context: any thread.
 * Since: 0.1
 */
PINION_API uint64_t pinion_clock_now_ns(void);

/*
 * Runs the task when `deadline_ns` has come, never earlier. It is late by as
 * long as its worker is busy with another task then, but not much longer than
 * `watchdog_us` of the tuning while another worker sleeps. 0 or a time that has
 * passed: as soon as possible. UINT64_MAX: never. pinion_runtime_drain() waits
 * for timers as for all other work; pinion_runtime_stop() gives them to their
 * `cancel`.
 *
 * A timer started on a worker waits there; a timer started elsewhere waits on
 * any worker.
 *
 * Context: any thread; never blocks or allocates; O(1).
 * Errors: as pinion_task_spawn(); -EBUSY: the timer is started and not over, or
 * its task was spawned and waits to be run.
 * Since: 0.1
 */
PINION_API int pinion_timer_start(
	struct pinion_runtime *runtime, struct pinion_timer *timer, uint64_t deadline_ns);

/*
 * Ends a timer early: `task.cancel` is called instead of `task.run`, soon, on
 * the worker where the timer waits, after the task that runs there; or on
 * another worker when that is a long task, which may be the caller's own.
 *
 * Owns: the timer is still the runtime's until then. The caller makes sure that
 * the timer's `run` has not freed it.
 * Context: any thread; never blocks or allocates; O(1).
 * Errors: -EALREADY: the timer is not started, was cancelled, or is due.
 * -ECHILD: as pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_timer_cancel(struct pinion_runtime *runtime, struct pinion_timer *timer);

PINION_END_DECLS

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A work item: a task that can be woken again and again, by any thread, and
 * never runs twice at the same time. For code that reacts to events: the
 * consumer of a queue, a connection, a periodic job.
 *
 * A plain task belongs to the caller that spawned it and is spawned once. A
 * work item is woken instead. Idle, it is queued; queued already, nothing more
 * is needed; running, it will run once more. So a run that begins after a wake
 * sees all writes before that wake, and many wakes may cost one run only.
 */
#ifndef PINION_WORK_H
#define PINION_WORK_H

#include <pinion/runtime.h>
#include <stdbool.h>

PINION_BEGIN_DECLS

struct pinion_work;

/* Return values of a run; a negative errno is a failure, and the end. */
enum pinion_work_next {
	/* Idle until woken; at once once more if woken while it ran. */
	PINION_WORK_WAIT = 0,
	/* Once more, after the tasks that wait on this worker: yields. */
	PINION_WORK_AGAIN = 1,
	/* The end, also if woken while it ran. */
	PINION_WORK_DONE = 2,
};

/*
 * One run. Returns one of enum pinion_work_next, or a negative errno, which
 * counts as a failure in struct pinion_runtime_stats.
 *
 * Owns: the struct stays the runtime's while this runs; it may not be freed
 * here, unlike a task, but in `end`.
 * Context: a worker thread, as for tasks. It may wake and cancel itself.
 * Since: 0.1
 */
typedef int (*pinion_work_fn)(struct pinion_work *work);

/*
 * The end: no run follows. `result` is 0 after PINION_WORK_DONE, the last run's
 * return value when that was negative, otherwise -ECANCELED: cancelled, or
 * queued when the runtime was stopped.
 *
 * Owns: the struct is the caller's as soon as this is entered: it may be
 * initialised anew, and freed if no wake or cancel can be under way or follow.
 * Context: a worker thread, never at the same time as a run.
 * Since: 0.1
 */
typedef void (*pinion_work_end_fn)(struct pinion_work *work, int result);

/*
 * Shape: 64 bytes, embeddable; all fields are set by pinion_work_init().
 * Owns: the caller's memory. From the first wake until its end it must not move
 * or be freed.
 * Since: 0.1
 */
struct pinion_work {
	struct pinion_task task; /* the library's; spawn it never */
	pinion_work_fn run;
	pinion_work_end_fn end; /* may be NULL */
	uint64_t private_[2];
};

/*
 * Initialises an idle work item; there is nothing to undo.
 *
 * Context: any thread, while no other call uses the struct.
 * Since: 0.1
 */
PINION_API void pinion_work_init(
	struct pinion_work *work, pinion_work_fn run, pinion_work_end_fn end);

/*
 * Makes the work run once more: after a return of 0 its run function is entered
 * after this call began, and sees the caller's writes before it, unless the
 * work ends first: by a run that returned PINION_WORK_DONE or failed, by a
 * cancel, or because the runtime is stopped; `end` then gets the reason.
 *
 * Idle work is queued after other tasks. The call that queues it does not touch
 * the struct afterwards, so one wake may be the whole life of a work that frees
 * itself in `end`.
 *
 * A drain waits for queued and running work, with the runs that this still
 * wakes, not for idle work. Work that is idle when the runtime ends stays idle:
 * pinion_work_cancel() then says that it is the caller's.
 *
 * Context: any thread, its own run included; always with the same runtime.
 * Never blocks or allocates. At most one system call, to wake a sleeping
 * worker; one for each worker in the moment in which a runtime is drained or
 * stopped.
 * Errors: -ECANCELED: cancelled or ended, no run follows. -ESHUTDOWN: idle, and
 * the runtime takes no more work from here (as for pinion_task_spawn()):
 * nothing has changed, it is still idle. -EINVAL: `run` is NULL.
 * Since: 0.1
 */
PINION_API int pinion_work_wake(struct pinion_runtime *runtime, struct pinion_work *work);

enum pinion_work_cancelled {
	/* Queued or running: `end` is called, on a worker, after that run. */
	PINION_WORK_END_FOLLOWS = 0,
	/*
	 * It was idle: it has ended here and is the caller's; `end` is not
	 * called. Writes of its runs are visible to the caller.
	 */
	PINION_WORK_ENDED = 1,
};

/*
 * Ends the work as soon as possible: no further run begins. A run that is under
 * way is not interrupted; if it returns PINION_WORK_DONE or a failure that is
 * the result, otherwise -ECANCELED.
 *
 * Context: any thread, its own run included. Never blocks, allocates or enters
 * the kernel.
 * Errors: one of enum pinion_work_cancelled. -EALREADY: it was cancelled before
 * or has ended; nothing changes.
 * Since: 0.1
 */
PINION_API int pinion_work_cancel(struct pinion_work *work);

/*
 * Says to a long run whether the work was cancelled, so that it can end early.
 *
 * Context: any thread, while the struct is in place.
 * Since: 0.1
 */
PINION_API bool pinion_work_is_cancelled(const struct pinion_work *work);

PINION_END_DECLS

#endif

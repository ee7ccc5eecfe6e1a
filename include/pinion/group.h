/* SPDX-License-Identifier: MIT */
/*
 * A group: tasks that are joined together. A wait for the group ends when all
 * its tasks are over; the caller then learns the first failure, and may have
 * cancelled the rest before.
 */
#ifndef PINION_GROUP_H
#define PINION_GROUP_H

#include <pinion/wait.h>
#include <stdbool.h>

PINION_BEGIN_DECLS

enum pinion_group_flags {
	/* A failure does not cancel the others. */
	PINION_GROUP_RUN_ALL = 1,
};

/*
 * Shape: 128 bytes, embeddable; pinion_group_init() sets all of it.
 * Owns: the caller's memory. It must stay in place until a wait has found all
 * its tasks over, and all waits for it have ended; the library does not touch
 * it from then on.
 * Since: 0.1
 */
struct pinion_group {
	uint64_t private_[16];
};

struct pinion_group_task;

/*
 * The work of a task of the group, as pinion_task_fn: a negative errno is a
 * failure, of the group as of the runtime, and the struct is the caller's again
 * as soon as this is entered.
 * Since: 0.1
 */
typedef int (*pinion_group_fn)(struct pinion_group_task *task);
typedef void (*pinion_group_cancel_fn)(struct pinion_group_task *task);

/*
 * Shape: 64 bytes, embeddable; set `run`, `cancel` and `task.flags`, zero the
 * rest.
 * Owns: the caller's memory, to stay in place until `run` or `cancel` is
 * entered; exactly one of them is.
 * Since: 0.1
 */
struct pinion_group_task {
	struct pinion_task task; /* the library's, but for `flags` */
	pinion_group_fn run;
	/*
	 * Called instead of `run` when the group is cancelled or the runtime
	 * stopped first, unless PINION_TASK_MANDATORY is set; may be NULL.
	 */
	pinion_group_cancel_fn cancel;
	struct pinion_group *group; /* as given to pinion_group_spawn() */
	uint64_t private_;
};

/*
 * Initialises a group without tasks. `flags` is of enum pinion_group_flags.
 *
 * Context: any thread, while no other call uses the group.
 * Errors: -EINVAL: unknown flags, or no runtime.
 * Since: 0.1
 */
PINION_API int pinion_group_init(
	struct pinion_group *group, struct pinion_runtime *runtime, uint32_t flags);

/*
 * Spawns a task of the group. A task of the group may spawn others.
 *
 * Context: any thread; as pinion_task_spawn(). A caller that is no task of the
 * group makes sure that the group is not joined, and freed, meanwhile.
 * Errors: as pinion_task_spawn(), -EBUSY too. -ECANCELED: the group is
 * cancelled. The task is still the caller's then.
 * Since: 0.1
 */
PINION_API int pinion_group_spawn(struct pinion_group *group, struct pinion_group_task *task);

/*
 * Cancels the tasks of the group that have not begun: they go to their
 * `cancel`. Tasks that have begun can ask pinion_group_is_cancelled(). `error`,
 * a negative errno, counts as a failure of the group, if it is the first.
 *
 * Context: any thread; never blocks, allocates or enters the kernel.
 * Errors: -EALREADY: the group was cancelled before. -EINVAL: not negative.
 * Since: 0.1
 */
PINION_API int pinion_group_cancel(struct pinion_group *group, int error);

/*
 * Says to a long task whether it may end early. Context: as
 * pinion_group_cancel(). Since: 0.1
 */
PINION_API bool pinion_group_is_cancelled(const struct pinion_group *group);

/*
 * Returns the first failure, a negative errno: the return value of a task, the
 * error of a cancel, or -ECANCELED where the runtime was stopped before a task
 * began; 0: none so far.
 *
 * Context: any thread.
 * Since: 0.1
 */
PINION_API int pinion_group_result(const struct pinion_group *group);

/*
 * Sleeps until all tasks of the group are over, at most until `deadline_ns`, as
 * in struct pinion_wait. 0: they are, or there were none; pinion_group_result()
 * returns how they ended. Their writes are visible to the caller.
 *
 * Context: as pinion_future_wait(); never allocates.
 * Errors: -ETIME. -EDEADLK: they are not over, and this is a worker thread of
 * any runtime: use pinion_group_wait_async(). -ECHILD: as pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_group_wait(struct pinion_group *group, uint64_t deadline_ns);

/*
 * Waits for the tasks of a group in a task: `wait->task` runs when all are
 * over, with a result of 0. See pinion_wait(3).
 *
 * Context: a task on a worker of `runtime`, which need not be the group's. It
 * may not be a task of the group, which would wait for itself.
 * Errors: -EPERM: not on such a worker. -EBUSY: the wait is under way already.
 * -EINVAL: no `run`, flags, or `reserved` is not 0. -ESHUTDOWN, -ECHILD: as
 * pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_group_wait_async(
	struct pinion_runtime *runtime, struct pinion_group *group, struct pinion_wait *wait);

PINION_END_DECLS

#endif

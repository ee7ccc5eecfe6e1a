/* SPDX-License-Identifier: MIT */
/*
 * A group: tasks that are joined together. Whoever waits for it goes on when
 * all of them are over, learns the first failure, and may have the rest
 * cancelled.
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
 * Owns: the caller's memory. It must stay in place until all its tasks are
 * over, as the end of a wait tells, and all waits for it are;
 * nothing touches it from then on.
 * Since: 0.1
 */
struct pinion_group {
	uint64_t private_[16];
};

struct pinion_group_task;

/*
 * As pinion_task_fn: a negative errno is a failure, of the group as of the
 * runtime, and the struct is the caller's again as soon as this is entered.
 * Since: 0.1
 */
typedef int (*pinion_group_fn)(struct pinion_group_task *task);
typedef void (*pinion_group_cancel_fn)(struct pinion_group_task *task);

/*
 * Shape: 64 bytes, embeddable; set `run`, `cancel` and `task.flags`, zero the
 * rest.
 * Owns: the caller's memory, to stay in place until `run` or `cancel` is
 * entered, of which exactly one is.
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
 * Makes it a group without tasks. `flags` is of enum pinion_group_flags.
 *
 * Context: any thread, while nobody else uses it.
 * Errors: -EINVAL: unknown flags, or no runtime.
 * Since: 0.1
 */
PINION_API int pinion_group_init(
	struct pinion_group *group, struct pinion_runtime *runtime, uint32_t flags);

/*
 * Spawns a task of the group. A task of it may spawn others.
 *
 * Context: any thread; as pinion_task_spawn(). Who is no task of the group sees
 * to it that the group is not joined, and freed, meanwhile.
 * Errors: as pinion_task_spawn(), -EBUSY too. -ECANCELED: the group is
 * cancelled. The task is still the caller's then.
 * Since: 0.1
 */
PINION_API int pinion_group_spawn(struct pinion_group *group, struct pinion_group_task *task);

/*
 * Has tasks of the group that have not begun go to their `cancel`; those that
 * have begun may ask. `error`, a negative errno, counts as a failure of the
 * group, if it is the first.
 *
 * Context: any thread; never blocks, allocates or enters the kernel.
 * Errors: -EALREADY: it was cancelled before. -EINVAL: not negative.
 * Since: 0.1
 */
PINION_API int pinion_group_cancel(struct pinion_group *group, int error);

/* For a long task: whether it may end early. Context: as above. Since: 0.1 */
PINION_API bool pinion_group_is_cancelled(const struct pinion_group *group);

/*
 * The first failure, a negative errno: what a task returned, what cancelled the
 * group, or -ECANCELED where the runtime was stopped before a task began; 0:
 * none so far.
 *
 * Context: any thread.
 * Since: 0.1
 */
PINION_API int pinion_group_result(const struct pinion_group *group);

/*
 * Sleeps until all tasks of the group are over, at most until `deadline_ns`, as
 * in struct pinion_wait. 0: they are, or there never was one;
 * pinion_group_result() tells how. What they wrote is seen.
 *
 * Context: as pinion_future_wait(); never allocates.
 * Errors: -ETIME. -EDEADLK: they are not, and this is a worker thread of any
 * runtime: use pinion_group_wait_async(). -ECHILD: as pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_group_wait(struct pinion_group *group, uint64_t deadline_ns);

/*
 * Begins to wait for that in a task: `wait->task` runs when all are over, with
 * a result of 0. See pinion_wait(3).
 *
 * Context: a task on a worker of `runtime`, which need not be the group's. It
 * may not be one of the group's own, which would wait for itself.
 * Errors: -EPERM: not on such a worker. -EBUSY: the wait is under way already.
 * -EINVAL: no `run`, flags, or `reserved` is not 0. -ESHUTDOWN, -ECHILD: as
 * pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_group_wait_async(
	struct pinion_runtime *runtime, struct pinion_group *group, struct pinion_wait *wait);

PINION_END_DECLS

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Groups: counts tasks that begin and end, serves those who wait for the last,
 * and cancels the rest after a failure.
 *
 * Tasks join it by pinion_group_spawn(), from any thread; a cleanup attribute
 * counts the end of a task that unwinds.
 *
 * Invariant: the count is raised before the task can run, so it is 0 only when
 * all tasks have ended.
 */
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/task/entry.h"
#include "runtime/task/internal.h"
#include "runtime/worker/state.h"
#include "runtime/worker/worker.h"

#include <errno.h>
#include <string.h>

#define GROUP_FLAGS ((uint32_t)PINION_GROUP_RUN_ALL)

static struct pin_group *own(struct pinion_group *group)
{
	return (struct pin_group *)(void *)group->private_;
}

static const struct pin_group *own_const(const struct pinion_group *group)
{
	return (const struct pin_group *)(const void *)group->private_;
}

static bool take(void *arg, uint64_t demand, struct pin_waiters_value *out_value)
{
	const struct pin_group *group = arg;

	(void)demand;
	(void)out_value;
	return pin_load_acquire_u64(&group->task_count) == 0; /* [GROUP-1] */
}

int pinion_group_init(struct pinion_group *group, struct pinion_runtime *runtime, uint32_t flags)
{
	struct pin_group *self = own(group);

	if (runtime == NULL || (flags & ~GROUP_FLAGS) != 0) {
		return -EINVAL;
	}
	memset(group, 0, sizeof(*group));
	self->runtime = runtime;
	self->flags = flags;
	pin_waiters_init(&self->waiters, &pin_host_linux, take, self, PIN_WAITERS_LOCKED);
	return 0;
}

/* ---- failures ---- */

static void note_failure(struct pin_group *group, int error)
{
	uint32_t none = 0;

	PIN_DCHECK(error < 0);
	/* Seen by the joiner when the task is over: [GROUP-1]. */
	pin_cas_acq_rel_u32(&group->first_failure, &none, (uint32_t)-error);
}

int pinion_group_cancel(struct pinion_group *group, int error)
{
	struct pin_group *self = own(group);

	if (error >= 0) {
		return -EINVAL;
	}
	note_failure(self, error);
	return pin_exchange_acq_rel_u32(&self->is_cancelled, 1) != 0 ? -EALREADY : 0;
}

bool pinion_group_is_cancelled(const struct pinion_group *group)
{
	return pin_load_acquire_u32(&own_const(group)->is_cancelled) != 0;
}

int pinion_group_result(const struct pinion_group *group)
{
	uint32_t failure = pin_load_acquire_u32(&own_const(group)->first_failure);

	PIN_DCHECK(failure <= INT32_MAX);
	return -(int)failure;
}

/* ---- tasks ---- */

static PIN_COLD _Noreturn void report_unknown_task(const struct pin_group *group)
{
	pin_check_misused(pin_runtime_log(group->runtime),
		"a task of the pinion_group at %p has ended, which counts none: it was "
		"initialised again, or its memory used for something else, before its tasks "
		"were over; join it first",
		(const void *)group);
}

/* One task less; the group may be gone afterwards. */
static void leave(struct pin_group *group)
{
	uint64_t count = pin_load_acquire_u64(&group->task_count);

	while (count > 1) {
		if (pin_cas_acq_rel_u64(&group->task_count, &count, count - 1)) { /* [GROUP-1] */
			return;
		}
	}
	if (PIN_UNLIKELY(count == 0)) {
		report_unknown_task(group);
	}
	pin_waiters_lock(&group->waiters);
	count = pin_fetch_sub_acq_rel_u64(&group->task_count, 1); /* [GROUP-1] */
	PIN_DCHECK(count > 0);
	pin_waiters_serve_unlock(&group->waiters);
}

static void end_task(struct pin_group *group, int rc)
{
	PIN_DCHECK((group->flags & ~GROUP_FLAGS) == 0 && group->runtime != NULL);
	if (rc < 0) {
		note_failure(group, rc);
		if ((group->flags & PINION_GROUP_RUN_ALL) == 0) {
			pin_exchange_acq_rel_u32(&group->is_cancelled, 1);
		}
	}
	leave(group);
}

/* When the task is unwound; NULL when it has ended. */
static void abandon(struct pin_group *const *unended)
{
	if (*unended != NULL) {
		end_task(*unended, pin_fault_error());
	}
}

static int run_task(struct pinion_task *task);

static void cancel_task(struct pinion_task *task)
{
	struct pinion_group_task *own_task = PIN_CONTAINER_OF(task, struct pinion_group_task, task);
	struct pin_group *group = own(own_task->group);

	PIN_DCHECK(task->run == run_task); /* it came by pinion_group_spawn() */
	if (own_task->cancel != NULL) {
		__attribute__((cleanup(abandon))) struct pin_group *unended = group;

		pin_fault_name((pin_fault_fn)own_task->cancel);
		own_task->cancel(own_task);
		unended = NULL;
	}
	end_task(group, -ECANCELED);
}

static int run_own(struct pinion_group_task *task, struct pin_group *group)
{
	__attribute__((cleanup(abandon))) struct pin_group *unended = group;
	int rc;

	pin_fault_name((pin_fault_fn)task->run);
	PIN_DCHECK(task->group != NULL && own(task->group) == group);
	rc = task->run(task);
	unended = NULL;
	return rc;
}

static int run_task(struct pinion_task *task)
{
	struct pinion_group_task *own_task = PIN_CONTAINER_OF(task, struct pinion_group_task, task);
	struct pin_group *group = own(own_task->group);
	int rc;

	if (pin_load_acquire_u32(&group->is_cancelled) != 0 &&
		(task->flags & PINION_TASK_MANDATORY) == 0) {
		cancel_task(task);
		return 0;
	}
	/* The struct is the caller's from here on; the group is there. */
	rc = run_own(own_task, group);
	end_task(group, rc);
	return rc;
}

/*
 * Counts the task first and takes that back if the spawn is refused; otherwise
 * its end could come before its beginning was counted.
 */
int pinion_group_spawn(struct pinion_group *group, struct pinion_group_task *task)
{
	struct pin_group *self = own(group);
	int rc;

	if (task->run == NULL) {
		return -EINVAL;
	}
	/* Before anything is written that its run will read. */
	if (!pin_task_is_idle(&task->task)) {
		return -EBUSY;
	}
	if (pin_load_acquire_u32(&self->is_cancelled) != 0) {
		return -ECANCELED;
	}
	task->task.run = run_task;
	task->task.cancel = cancel_task;
	task->group = group;
	/* Relaxed: it orders nothing; the spawn publishes the task. */
	pin_fetch_add_relaxed_u64(&self->task_count, 1);
	rc = pinion_task_spawn(self->runtime, &task->task);
	PIN_DCHECK(rc <= 0);
	if (rc != 0) {
		leave(self);
	}
	return rc;
}

/* ---- joining ---- */

int pinion_group_wait(struct pinion_group *group, uint64_t deadline_ns)
{
	struct pin_group *self = own(group);
	struct pin_waiter waiter;

	PIN_DCHECK(self->runtime != NULL); /* it was initialised */
	pin_waiter_init(&waiter, 0, NULL);
	return pin_runtime_wait(self->runtime, &self->waiters, &waiter, deadline_ns);
}

int pinion_group_wait_async(
	struct pinion_runtime *runtime, struct pinion_group *group, struct pinion_wait *wait)
{
	struct pin_wait_aim aim = {.waiters = &own(group)->waiters};

	return pin_runtime_await(runtime, wait, &aim);
}

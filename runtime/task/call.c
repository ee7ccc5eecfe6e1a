/* SPDX-License-Identifier: MIT */
/*
 * Calls: a task on another runtime whose result the caller waits for, as a
 * thread or as a task.
 *
 * Built from a spawn and a future. A caller that finds the lane full may queue
 * for room; the thread that makes room admits it.
 *
 * Invariant: the call's memory belongs to the called runtime until its future
 * is done.
 */
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/task/admission.h"
#include "runtime/task/entry.h"
#include "runtime/task/internal.h"
#include "runtime/worker/lane.h"
#include "runtime/worker/state.h"
#include "runtime/worker/worker.h"

#include <errno.h>
#include <limits.h>
#include <pinion/call.h>

_Static_assert(sizeof(struct pinion_call) == 192, "released size");

#define CALL_FLAGS ((uint32_t)PINION_TASK_MANDATORY | (uint32_t)PIN_TASK_LANES)

static int run_call(struct pinion_task *task);
static void cancel_call(struct pinion_task *task);

static void finish(struct pinion_call *call, int result)
{
	int rc;

	PIN_DCHECK(call->task.run == run_call && call->task.cancel == cancel_call);
	call->result = result;
	/* The last touch. */
	rc = pinion_future_set(&call->done, NULL, 0);
	if (rc != 0) {
		pin_check_misused(&pin_worker_current()->shared->log,
			"the future of the pinion_call at %p was set already: the call was started "
			"again before it had ended, or the program has set call.done; wait for "
			"call.done, which the library sets",
			(const void *)call);
	}
}

/* When the call is unwound; NULL when it has ended. */
static void abandon(struct pinion_call *const *unended)
{
	if (*unended != NULL) {
		finish(*unended, pin_fault_error());
	}
}

static int run_call(struct pinion_task *task)
{
	struct pinion_call *call = PIN_CONTAINER_OF(task, struct pinion_call, task);
	__attribute__((cleanup(abandon))) struct pinion_call *unended = call;
	/* One of its workers runs it. */
	const struct pin_shared *shared = pin_worker_current()->shared;
	uint64_t began_ns = pin_job_log_is_on(shared) ? shared->host->now_ns() : 0;
	int result;

	PIN_DCHECK(&pin_future_of(&call->done)->runtime->shared == shared);
	pin_job_log_begun(shared);
	pin_fault_name((pin_fault_fn)call->run);
	result = call->run(call->arg);
	pin_job_log_ended(shared, began_ns, result);
	unended = NULL;
	finish(call, result);
	return result;
}

static void cancel_call(struct pinion_task *task)
{
	finish(PIN_CONTAINER_OF(task, struct pinion_call, task), -ECANCELED);
}

/* -EINVAL, -EBUSY; 0: its task is claimed. */
static int claim(struct pinion_runtime *runtime, struct pinion_call *call)
{
	if (call->run == NULL || call->reserved != 0 || (call->task.flags & ~CALL_FLAGS) != 0 ||
		(call->task.flags & PIN_TASK_LANES) == PIN_TASK_LANES) {
		return -EINVAL;
	}
	if (!pin_task_claim(&call->task)) {
		return -EBUSY;
	}
	call->task.run = run_call;
	call->task.cancel = cancel_call;
	pinion_future_init(&call->done, runtime);
	PIN_DCHECK(!pin_task_is_idle(&call->task) && pin_task_lane(&call->task) < PINION_LANES);
	return 0;
}

/*
 * As claim(), or as pin_runtime_reserve_room(), which has succeeded if this
 * does.
 */
static int prepare(struct pinion_runtime *runtime, struct pinion_call *call)
{
	int rc = claim(runtime, call);

	if (rc != 0) {
		return rc;
	}
	rc = pin_runtime_reserve_room(runtime, pin_task_lane(&call->task));
	PIN_DCHECK(rc <= 0);
	if (rc != 0) {
		pin_task_release(&call->task);
	}
	return rc;
}

/* Prepared, and not given after all. */
static void undo(struct pinion_runtime *runtime, struct pinion_call *call)
{
	PIN_DCHECK(!pin_task_is_idle(&call->task));
	pin_task_release(&call->task);
	pin_runtime_undo_room(runtime, pin_task_lane(&call->task));
}

static void give(struct pinion_runtime *runtime, struct pinion_call *call)
{
	PIN_DCHECK(pin_future_of(&call->done)->runtime == runtime);
	PIN_DCHECK(call->task.run == run_call && call->task.cancel == cancel_call);
	pin_job_log_submitted(&runtime->shared, pin_task_lane(&call->task));
	pin_runtime_spawn_in_room(runtime, &call->task);
}

int pinion_call_start(struct pinion_runtime *runtime, struct pinion_call *call)
{
	int rc = prepare(runtime, call);

	if (rc == 0) {
		give(runtime, call);
	}
	return rc;
}

int pinion_call_run_async(struct pinion_runtime *runtime, struct pinion_call *call,
	struct pinion_runtime *own, struct pinion_wait *wait)
{
	int rc = prepare(runtime, call);

	if (rc != 0) {
		return rc;
	}
	/* The wait first: once the task is spawned it cannot be called back. */
	rc = pinion_future_wait_async(own, &call->done, wait);
	if (rc == 0) {
		give(runtime, call);
	} else {
		undo(runtime, call);
	}
	return rc;
}

/* ---- when there is room ---- */

static int answer_of(const struct pin_waiters_value *value)
{
	int64_t answer = (int64_t)value->words[PIN_ROOM_ANSWER];

	PIN_DCHECK(answer <= 0 && answer >= INT_MIN);
	return (int)answer;
}

/*
 * Waits for room in the lane, not for the result: an accepted call is on its
 * way when this returns.
 */
int pinion_call_start_wait(
	struct pinion_runtime *runtime, struct pinion_call *call, uint64_t deadline_ns)
{
	struct pin_waiter waiter;
	int rc;

	/* What a task spawns on its own runtime is never refused. */
	if (pin_runtime_is_own(runtime)) {
		return pinion_call_start(runtime, call);
	}
	rc = claim(runtime, call);
	if (rc != 0) {
		return rc;
	}
	pin_waiter_init(&waiter, 1, NULL);
	rc = pin_runtime_wait(runtime, pin_runtime_room(runtime, pin_task_lane(&call->task)),
		&waiter, deadline_ns);
	if (rc == 0) {
		rc = answer_of(&waiter.value);
	}
	if (rc != 0) {
		pin_task_release(&call->task);
		return rc;
	}
	give(runtime, call);
	return 0;
}

/* On the worker that has waited. */
static int32_t finish_wait(void *target, const struct pin_waiters_value *value)
{
	struct pinion_call *call = target;
	int rc = answer_of(value);

	if (rc == 0) {
		give(pin_future_of(&call->done)->runtime, call);
	}
	return rc;
}

static bool take_at_once(void *arg, uint64_t demand, struct pin_waiters_value *out_value)
{
	(void)arg;
	(void)demand;
	*out_value = (struct pin_waiters_value){{0}};
	return true;
}

/*
 * On its own runtime a task is never refused, so there the wait is over at
 * once; the same wait serves both cases.
 */
int pinion_call_start_async(struct pinion_runtime *runtime, struct pinion_call *call,
	struct pinion_runtime *own, struct pinion_wait *wait)
{
	struct pin_wait_aim aim = {.demand = 1, .finish = finish_wait, .target = call};
	struct pin_waiters open_waiters;
	int rc = claim(runtime, call);

	if (rc != 0) {
		return rc;
	}
	/* Until it is started, only the wait is under way. */
	pin_task_release(&call->task);
	if (pin_runtime_is_foreign(runtime)) {
		return -ECHILD;
	}
	if (pin_runtime_is_own(runtime)) {
		/* It is served before this returns. */
		pin_waiters_init(&open_waiters, pin_runtime_host(runtime), take_at_once, NULL,
			PIN_WAITERS_LOCKED);
		aim.waiters = &open_waiters;
	} else {
		aim.waiters = pin_runtime_room(runtime, pin_task_lane(&call->task));
	}
	PIN_DCHECK(aim.waiters->take != NULL && pin_task_is_idle(&call->task));
	return pin_runtime_await(own, wait, &aim);
}

/* ---- calls that sleep ---- */

static int wait_for(struct pinion_call *call, int *out_result)
{
	int rc = pinion_future_wait(&call->done, UINT64_MAX);

	PIN_CHECK(rc == 0);
	*out_result = call->result;
	return 0;
}

int pinion_call_run(struct pinion_runtime *runtime, pinion_call_fn run, void *arg, int *out_result)
{
	struct pinion_call call = {.run = run, .arg = arg};
	int rc;

	if (pin_worker_of_thread() != NULL) {
		return -EDEADLK;
	}
	rc = pinion_call_start(runtime, &call);
	return rc == 0 ? wait_for(&call, out_result) : rc;
}

int pinion_call_run_wait(struct pinion_runtime *runtime, pinion_call_fn run, void *arg,
	uint64_t deadline_ns, int *out_result)
{
	struct pinion_call call = {.run = run, .arg = arg};
	int rc;

	if (pin_worker_of_thread() != NULL) {
		return -EDEADLK;
	}
	rc = pinion_call_start_wait(runtime, &call, deadline_ns);
	return rc == 0 ? wait_for(&call, out_result) : rc;
}

/* SPDX-License-Identifier: MIT */
/*
 * A task is entered, and counted.
 */
#include "runtime/base/check.h"
#include "runtime/worker/next_task.h"
#include "runtime/worker/state.h"

PIN_APART void pin_run_first(struct pin_worker *worker, struct pinion_task *task)
{
	pin_search_succeed(worker);
	pin_run_found(worker, task);
}

void pin_run_cancel(struct pin_worker *worker, struct pinion_task *task)
{
	pin_task_release(task);
	if (task->cancel != NULL) {
		pin_running_enter(worker, (pin_fault_fn)task->cancel);
		worker->running_kind = PIN_RUNNING_CANCEL;
		PIN_TRACE3(task_cancel, worker->index, task, task->cancel);
		task->cancel(task);
		worker->running_kind = PIN_RUNNING_TASK;
	}
	pin_meter_add(&worker->meter.tasks_cancelled, 1);
}

void pin_run_or_cancel(struct pin_worker *worker, struct pin_link *link)
{
	struct pinion_task *task = pin_task_of(link);

	if (PIN_UNLIKELY(task->run == NULL)) {
		pin_check_misused(&worker->shared->log,
			"a queued task has no run any more: its memory was freed or cleared while "
			"it was queued; keep it until the task has run");
	}
	if (PIN_LIKELY(!pin_shared_is_stopping(worker->shared)) ||
		(task->flags & PINION_TASK_MANDATORY) != 0 ||
		pin_task_kind(task) == PIN_TASK_LANDED) {
		pin_run_task(worker, task);
	} else {
		pin_run_cancel(worker, task);
	}
}

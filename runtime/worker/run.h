/* SPDX-License-Identifier: MIT */
/*
 * Entering a task: its `run`, or its `cancel` while the runtime stops, each
 * counted by the worker that does it.
 *
 * On the worker. Before a task is entered it is released: from there on it is
 * its user's, may be spawned anew, and nothing here refers to its memory.
 */
#ifndef PIN_WORKER_RUN_H
#define PIN_WORKER_RUN_H

#include "runtime/worker/fault.h"
#include "runtime/worker/probes.h"
#include "runtime/worker/state.h"
#include "runtime/worker/state_task.h"
#include "runtime/worker/wake.h"

/* By a worker that searches no more. */
static PIN_INLINE void pin_run_found(struct pin_worker *worker, struct pinion_task *task)
{
	int rc;

	pin_task_release(task);
	pin_running_enter(worker, (pin_fault_fn)task->run);
	PIN_TRACE3(task_begin, worker->index, task, task->run);
	rc = task->run(task);
	PIN_TRACE2(task_end, worker->index, rc);
	if (PIN_UNLIKELY(rc < 0)) {
		pin_fault_note(worker, rc);
	}
	pin_meter_add(&worker->meter.tasks_run, 1); /* [END-1] */
}

/* By one that searches: it has succeeded. Apart, for the sake of the others. */
void pin_run_first(struct pin_worker *worker, struct pinion_task *task);

/* Whatever the runtime's state: what has begun is brought to its end. */
static PIN_INLINE void pin_run_task(struct pin_worker *worker, struct pinion_task *task)
{
	if (PIN_UNLIKELY(worker->is_searching)) {
		pin_run_first(worker, task);
	} else {
		pin_run_found(worker, task);
	}
}

void pin_run_cancel(struct pin_worker *worker, struct pinion_task *task);

/* As the runtime's state and the task's flags ask for. */
void pin_run_or_cancel(struct pin_worker *worker, struct pin_link *link);

/* Likewise, in line: for what most tasks pass through. */
static PIN_INLINE void pin_run_queued(struct pin_worker *worker, struct pin_link *link)
{
	if (PIN_LIKELY(!pin_shared_is_stopping(worker->shared) && !worker->is_searching)) {
		pin_run_found(worker, pin_task_of(link));
	} else {
		pin_run_or_cancel(worker, link);
	}
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Entering a task: its `run`, or its `cancel` while the runtime stops, each
 * counted by the worker that does it.
 *
 * On the worker. Nothing refers to the task's memory once it is entered.
 */
#ifndef PIN_CORE_RUN_H
#define PIN_CORE_RUN_H

#include "runtime/core/worker_state.h"

/* Whatever the runtime's state: what has begun is brought to its end. */
void pin_run_task(struct pin_worker *worker, struct pinion_task *task);

void pin_run_cancel(struct pin_worker *worker, struct pinion_task *task);

/* As the runtime's state and the task's flags ask for. */
void pin_run_or_cancel(struct pin_worker *worker, struct pin_link *link);

#endif

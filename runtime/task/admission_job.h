/* SPDX-License-Identifier: MIT */
/*
 * A job that is in: from the turn of its task to the place given back.
 *
 * The runtime knows the job by its task, whose `run` and `cancel` are the two
 * functions below. They claim the job first: one that was evicted meanwhile has
 * no place any more and goes to its `cancel`. What is claimed is run or
 * cancelled, timed and counted, and its place is given back last, since the
 * admission may be gone then.
 */
#ifndef PIN_TASK_ADMISSION_JOB_H
#define PIN_TASK_ADMISSION_JOB_H

#include "runtime/task/admission.h"

/* Its task's callbacks. */
int pin_job_run(struct pinion_task *task);
void pin_job_cancel(struct pinion_task *task);

#endif

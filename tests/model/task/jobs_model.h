/* SPDX-License-Identifier: MIT */
/*
 * An admission and its jobs, for models: at most JOBS_MODEL_MAX of them, which
 * count how many of them are in, and how often each has run or was cancelled.
 */
#ifndef MODEL_JOBS_MODEL_H
#define MODEL_JOBS_MODEL_H

#include "runtime/base/atomic.h"

#include <pinion/admission.h>

enum { JOBS_MODEL_MAX = 5 };

struct jobs_model_job {
	struct pinion_job job;
	int rc;
	uint32_t run_count;
	uint32_t cancel_count;
	bool goes_on;
};

struct jobs_model {
	struct pinion_admission *admission;
	/* Of a case that sets uses_runtime before it begins; else none runs. */
	struct pinion_runtime *runtime;
	struct jobs_model_job all[JOBS_MODEL_MAX];
	/* Jobs spawned while `queues` is set, for the case to run. */
	struct pinion_task *queue[JOBS_MODEL_MAX];
	uint32_t queued_count;
	bool queues;
	bool uses_runtime;
	bool is_drained;    /* none may run any more */
	bool is_cancelling; /* by pinion_job_cancel, not by an eviction */
	uint32_t in_count;
	uint32_t in_max;
	uint32_t run_total;
	struct pin_atomic_u32 last_run; /* what jobs leave for each other */
};

extern struct jobs_model jobs_model;

/* All jobs are of the high lane until a case says otherwise. */
void jobs_model_begin(uint32_t max, uint32_t max_total, uint32_t flags);

/* Bodies of threads: `arg` is one of the jobs_model. */
void jobs_model_spawn(void *arg);
void jobs_model_spawn_wait(void *arg);
void jobs_model_end(void *arg);

/* Spawns it, and it keeps its slot until jobs_model_end(). */
void jobs_model_begin_going_on(struct jobs_model_job *job);

/* Every admitted job has run, all slots are back. */
void jobs_model_expect_end(uint32_t job_count);

#endif

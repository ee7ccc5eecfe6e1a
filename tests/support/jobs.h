/* SPDX-License-Identifier: MIT */
/*
 * Jobs that count what happened to them, and a pool of one worker that holds
 * them back until a test lets them go.
 */
#ifndef PIN_TESTS_SUPPORT_JOBS_H
#define PIN_TESTS_SUPPORT_JOBS_H

#include "runtime/task/admission.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>

struct jobs_job {
	struct pinion_job job;
	struct pinion_task later; /* what it begins, if it does */
	int result;		  /* what its run returns */
	struct pin_atomic_u32 runs;
	struct pin_atomic_u32 cancels;
	int reason;
	uint32_t number; /* of its run or cancel, among all */
};

/* Runs and cancels so far; written by workers. */
static struct pin_atomic_u32 jobs_ended;

static inline int jobs_run(struct pinion_job *job)
{
	struct jobs_job *own = PIN_CONTAINER_OF(job, struct jobs_job, job);
	int result = own->result;

	own->number = pin_load_acquire_u32(&jobs_ended);
	tasks_signal(&own->runs);
	tasks_signal(&jobs_ended);
	return result;
}

static inline void jobs_cancel(struct pinion_job *job, int reason)
{
	struct jobs_job *own = PIN_CONTAINER_OF(job, struct jobs_job, job);

	own->number = pin_load_acquire_u32(&jobs_ended);
	own->reason = reason;
	tasks_signal(&own->cancels);
	tasks_signal(&jobs_ended);
}

static inline void jobs_init(struct jobs_job *jobs, uint32_t count, uint32_t flags)
{
	for (uint32_t i = 0; i < count; i++) {
		jobs[i] = (struct jobs_job){
			.job = {.task.flags = flags, .run = jobs_run, .cancel = jobs_cancel}};
	}
}

/* What it returned; `full` may be NULL. */
static inline int jobs_spawn(
	struct pinion_admission *admission, struct jobs_job *job, struct pinion_full *full)
{
	struct pinion_job *one = &job->job;

	return pinion_admission_spawn(admission, &one, 1, full);
}

static inline int jobs_spawn_wait(
	struct pinion_admission *admission, struct jobs_job *job, uint64_t deadline_ns)
{
	struct pinion_job *one = &job->job;

	return pinion_admission_spawn_wait(admission, &one, 1, deadline_ns);
}

/* Admits `count` that follow each other. */
static inline int jobs_spawn_all(struct pinion_admission *admission, struct jobs_job *jobs,
	uint32_t count, struct pinion_full *full)
{
	struct pinion_job *all[16];

	for (uint32_t i = 0; i < count; i++) {
		all[i] = &jobs[i].job;
	}
	return pinion_admission_spawn(admission, all, count, full);
}

static inline void jobs_expect(
	const char *what, const struct jobs_job *job, uint32_t runs, uint32_t cancels)
{
	expect_number(what, runs, pin_load_acquire_u32(&job->runs));
	expect_number(what, cancels, pin_load_acquire_u32(&job->cancels));
}

static inline void jobs_expect_full(
	const struct pinion_full *full, uint32_t current, uint32_t max, uint32_t lane)
{
	expect_number("current", current, full->current);
	expect_number("max", max, full->max);
	expect_number("lane", lane, full->lane);
}

static inline struct pinion_admission_stats jobs_counters(const struct pinion_admission *admission)
{
	struct pinion_admission_stats counters;

	pinion_admission_get_stats(admission, &counters, sizeof(counters));
	return counters;
}

/* All that were admitted have ended. */
static inline void jobs_expect_empty(struct pinion_admission *admission)
{
	struct pinion_admission_stats counters = jobs_counters(admission);

	for (uint32_t i = 0; i < PINION_LANES; i++) {
		expect_number("left", 0, counters.current[i]);
	}
	expect_number("running", 0, counters.running);
}

/* Until that number wait for a place in the lane. */
static inline void jobs_await_waiters(
	struct pinion_admission *admission, uint32_t lane, uint32_t count)
{
	struct pin_admission *own = (struct pin_admission *)(void *)admission->private_;

	while (pin_load_relaxed_u32(&own->lanes[lane].waiters.count) != count) {
		sched_yield();
	}
}

static inline void jobs_admission(struct pinion_admission *admission,
	struct pinion_runtime *runtime, uint32_t max, uint32_t max_total, uint32_t flags)
{
	struct pinion_admission_limits limits = {
		.max_tasks = {max, max, max}, .max_tasks_total = max_total, .flags = flags};

	expect_number("init", 0, pinion_admission_init(admission, runtime, &limits));
}

/* All jobs have ended, and it may go. */
static inline void jobs_drain(struct pinion_admission *admission)
{
	expect_number("drain", 0, pinion_admission_drain(admission, UINT64_MAX));
	jobs_expect_empty(admission);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What a job is told of at level debug, where `job_log` of the configuration
 * asks for it: that it is handed over, begins, and has ended. Of jobs of
 * admissions and of calls (pinion_execute); plain tasks are too many, and pay
 * nothing.
 *
 * Source: the seed's four log events, in its words; the fourth, a warning of a
 * lane that is deep, is pin_lane_warn()'s.
 */
#ifndef PIN_TASK_ADMISSION_LOG_H
#define PIN_TASK_ADMISSION_LOG_H

#include "runtime/worker/state.h"

static inline bool pin_job_log_is_on(const struct pin_shared *shared)
{
	return PIN_UNLIKELY(shared->config.job_log != 0);
}

/* The lines; only where it is on. */
void pin_job_log_say_submitted(const struct pin_shared *shared, enum pinion_lane lane);
void pin_job_log_say_begun(const struct pin_shared *shared);
void pin_job_log_say_ended(const struct pin_shared *shared, uint64_t began_ns, int result);

/* Before the job is given away. Any thread. */
static inline void pin_job_log_submitted(const struct pin_shared *shared, enum pinion_lane lane)
{
	if (pin_job_log_is_on(shared)) {
		pin_job_log_say_submitted(shared, lane);
	}
}

/* On its worker. */
static inline void pin_job_log_begun(const struct pin_shared *shared)
{
	if (pin_job_log_is_on(shared)) {
		pin_job_log_say_begun(shared);
	}
}

/* Any thread. */
static inline void pin_job_log_ended(const struct pin_shared *shared, uint64_t began_ns, int result)
{
	if (pin_job_log_is_on(shared)) {
		pin_job_log_say_ended(shared, began_ns, result);
	}
}

#endif

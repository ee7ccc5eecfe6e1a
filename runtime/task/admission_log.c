/* SPDX-License-Identifier: MIT */
/*
 * The lines of jobs.
 */
#include "runtime/task/admission_log.h"

void pin_job_log_say_submitted(const struct pin_shared *shared, enum pinion_lane lane)
{
	static const char *const names[PIN_LANES] = {"high", "medium", "low"};

	pin_log(&shared->log, PINION_LOG_DEBUG, "Submitting job to %s priority queue", names[lane]);
}

/* A worker is called by the lowest of its lanes. */
void pin_job_log_say_begun(const struct pin_shared *shared)
{
	static const char *const names[PIN_LANES] = {"High", "Medium", "Low"};
	const struct pin_worker *worker = pin_worker_current();
	uint32_t lane = PIN_LANES - 1;

	while (lane > 0 && worker != NULL && !pin_worker_serves(worker, lane)) {
		lane--;
	}
	pin_log(&shared->log, PINION_LOG_DEBUG, "%s priority worker executing job", names[lane]);
}

void pin_job_log_say_ended(const struct pin_shared *shared, uint64_t began_ns, int result)
{
	unsigned long long elapsed_ms = (shared->host->now_ns() - began_ns) / 1000000;

	if (result < 0) {
		pin_log(&shared->log, PINION_LOG_DEBUG, "Job failed in %llums: %d", elapsed_ms,
			result);
	} else {
		pin_log(&shared->log, PINION_LOG_DEBUG, "Job completed in %llums", elapsed_ms);
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * A job's turn, and its end.
 */
#include "runtime/core/job.h"
#include "runtime/base/check.h"

#include <errno.h>

static void note_time(struct pin_admission *self, uint64_t began_ns)
{
	uint64_t sample_ns = pin_host_linux.now_ns() - began_ns;
	uint64_t mean_ns = pin_load_relaxed_u64(&self->job_ns);

	/* Relaxed: two at once may lose a sample. */
	pin_store_relaxed_u64(
		&self->job_ns, mean_ns == 0 ? sample_ns : (9 * mean_ns + sample_ns) / 10);
}

/* The job may be gone; the admission may be afterwards. */
static void end_job(struct pin_admission *self, uint32_t lane, uint64_t began_ns, int result)
{
	note_time(self, began_ns);
	if (result < 0) {
		/* Relaxed: a figure. */
		pin_fetch_add_relaxed_u64(&self->failed, 1);
	}
	pin_fetch_sub_acq_rel_u32(&self->running, 1);
	pin_admission_leave(self, pin_places_amount(lane, 1));
}

/* False: it was evicted, and has no place any more. */
static bool claim(struct pin_admission *self, struct pin_job_entry *entry)
{
	bool is_claimed = true;

	if (pin_admission_evicts(self)) {
		pin_admission_lock(self);
		is_claimed = entry->state != PIN_JOB_EVICTED;
		if (entry->state == PIN_JOB_LISTED) {
			pin_admission_delist(self, entry, PIN_JOB_UNLISTED);
		}
		pin_admission_unlock(self);
	}
	return is_claimed;
}

static void cancel_evicted(struct pin_admission *self, struct pinion_job *job)
{
	if (job->cancel != NULL) {
		job->cancel(job, -EAGAIN);
	}
	pin_admission_lock(self);
	PIN_CHECK(self->evicted_queued > 0);
	self->evicted_queued--;
	pin_admission_serve_unlock(self);
}

int pin_job_run(struct pinion_task *task)
{
	struct pinion_job *job = PIN_CONTAINER_OF(task, struct pinion_job, task);
	struct pin_job_entry *entry = pin_job_entry_of(job);
	struct pin_admission *self = entry->admission;
	uint32_t lane = entry->lane;
	uint64_t began_ns;
	int rc;

	if (!claim(self, entry)) {
		cancel_evicted(self, job);
		return 0;
	}
	began_ns = pin_host_linux.now_ns();
	entry->began_ns = began_ns;
	/* Relaxed: a figure. */
	pin_fetch_add_relaxed_u32(&self->running, 1);
	rc = job->run(job);
	if (rc == PINION_JOB_GOES_ON) {
		/* It may have ended by now, and the admission too. */
		return 0;
	}
	end_job(self, lane, began_ns, rc);
	return rc;
}

void pin_job_cancel(struct pinion_task *task)
{
	struct pinion_job *job = PIN_CONTAINER_OF(task, struct pinion_job, task);
	struct pin_admission *self = pin_job_entry_of(job)->admission;
	uint32_t lane = pin_job_entry_of(job)->lane;

	if (!claim(self, pin_job_entry_of(job))) {
		cancel_evicted(self, job);
		return;
	}
	if (job->cancel != NULL) {
		job->cancel(job, -ECANCELED);
	}
	pin_admission_leave(self, pin_places_amount(lane, 1));
}

void pinion_job_end(struct pinion_job *job, int result)
{
	struct pin_job_entry *entry = pin_job_entry_of(job);

	end_job(entry->admission, entry->lane, entry->began_ns, result);
}

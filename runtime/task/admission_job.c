/* SPDX-License-Identifier: MIT */
/*
 * A job's turn on a worker: skip it if it was evicted, cancelled or is late;
 * run it; give its slot back.
 *
 * Workers enter pin_job_run() as the task's function. A cleanup attribute
 * settles the slot if the job unwinds its stack.
 *
 * Invariant: each admitted job gives its slot back once: at its end, or when
 * another job evicts it.
 */
#include "runtime/task/admission.h"
#include "runtime/base/check.h"
#include "runtime/task/entry.h"
#include "runtime/worker/watchdog.h"
#include "runtime/worker/worker.h"

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
	uint32_t before;

	note_time(self, began_ns);
	if (result < 0) {
		/* Relaxed: a figure. */
		pin_fetch_add_relaxed_u64(&self->failed, 1);
	}
	before = pin_fetch_sub_acq_rel_u32(&self->running, 1);
	PIN_CHECK(before > 0);
	PIN_DCHECK(lane < PINION_LANES);
	pin_admission_leave(self, pin_permits_amount(lane, 1));
}

/* False: it was evicted, and has no slot any more. */
static bool claim(struct pin_admission *self, struct pin_job_entry *entry)
{
	bool is_claimed = true;

	if (pin_admission_evicts(self)) {
		pin_admission_lock(self);
		PIN_DCHECK(entry->admission == self && entry->state <= PIN_JOB_EVICTED);
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
	PIN_DCHECK(pin_admission_evicts(self) && pin_job_entry_of(job)->admission == self);
	if (job->cancel != NULL) {
		job->cancel(job, -EAGAIN);
	}
	pin_admission_lock(self);
	PIN_CHECK(self->evicted_queued > 0);
	self->evicted_queued--;
	pin_admission_serve_unlock(self);
}

/* Why it does not begin, or 0; from here on it has begun if it does. */
static int refusal(struct pin_admission *self, struct pinion_job *job, uint64_t now_ns)
{
	uint32_t asked = pin_fetch_or_seq_cst_u32(
		&pin_job_entry_of(job)->asked, PIN_JOB_BEGUN); /* [JOB-1] */

	PIN_DCHECK((asked & PIN_JOB_BEGUN) == 0); /* it begins once */
	if ((job->task.flags & PINION_TASK_MANDATORY) != 0) {
		return 0;
	}
	/* Relaxed: figures. */
	if ((asked & PIN_JOB_CANCEL) != 0) {
		pin_fetch_add_relaxed_u64(&self->cancelled, 1);
		return -ECANCELED;
	}
	if (job->deadline_ns != 0 && job->deadline_ns <= now_ns) {
		pin_fetch_add_relaxed_u64(&self->timed_out, 1);
		return -ETIME;
	}
	return 0;
}

/* ---- who ends it: [JOB-2] ---- */

static uint64_t word_of(const struct pinion_job *job)
{
	uint64_t word = (uint64_t)(uintptr_t)job;

	PIN_DCHECK(word != 0 && (word & PIN_JOB_BUSY) == 0);
	return word;
}

/* Of the task in hand. */
static struct pin_atomic_u64 *own_word(void)
{
	return &pin_worker_current()->job;
}

/* On its worker, where the job may be gone. False: it has ended elsewhere. */
static bool leave_run(const struct pinion_job *job, uint64_t next)
{
	uint64_t word = word_of(job);

	PIN_DCHECK(next == 0 || next == (word | PIN_JOB_BUSY));
	return pin_cas_acq_rel_u64(own_word(), &word, next); /* [JOB-2] */
}

/* The same, when `run` has said so. */
static void note_going_on(struct pinion_job *job)
{
	if (leave_run(job, word_of(job) | PIN_JOB_BUSY)) {
		/*
		 * The last touch: a thread that sees it may reuse the struct.
		 */
		pin_store_release_u32(&pin_job_entry_of(job)->went_on, 1); /* [JOB-2] */
		pin_store_release_u64(own_word(), 0);			   /* [JOB-2] */
	}
}

/*
 * By the thread that ends it. False: it was unwound, and its admission may be
 * gone.
 */
static bool may_end(const struct pinion_job *job)
{
	const struct pin_job_entry *entry = (const void *)job->private_;
	uint64_t word;

	if (PIN_LIKELY(pin_load_acquire_u32(&entry->went_on) != 0)) { /* [JOB-2] */
		return true;
	}
	do {
		word = word_of(job);
		if (pin_cas_acq_rel_u64(entry->place, &word, 0)) { /* [JOB-2] */
			return true;
		}
		word = pin_load_acquire_u64(entry->place); /* [JOB-2] */
		if (word == (word_of(job) | PIN_JOB_BUSY)) {
			/* For a few instructions. */
			pin_host_linux.yield();
		}
	} while (word == (word_of(job) | PIN_JOB_BUSY));
	return pin_load_relaxed_u32(&entry->went_on) != 0;
}

/* The work owed once a job was entered. */
struct debt {
	struct pin_admission *admission; /* NULL: nothing */
	const struct pinion_job *job;	 /* a job that has begun, or NULL */
	uint32_t lane;
	uint64_t began_ns; /* of a job that has begun */
};

/* When the job is unwound. */
static void settle(const struct debt *debt)
{
	if (debt->admission == NULL) {
		return;
	}
	PIN_DCHECK(debt->lane < PINION_LANES);
	if (debt->job == NULL) {
		pin_admission_leave(debt->admission, pin_permits_amount(debt->lane, 1));
	} else if (leave_run(debt->job, 0)) {
		int error = pin_fault_error();

		pin_job_log_ended(&debt->admission->runtime->shared, debt->began_ns, error);
		end_job(debt->admission, debt->lane, debt->began_ns, error);
	}
}

static void cancel_claimed(struct pin_admission *self, struct pinion_job *job, int reason)
{
	/* The job may be gone when it has been entered. */
	__attribute__((cleanup(settle), unused)) struct debt debt = {
		.admission = self, .lane = pin_job_entry_of(job)->lane};

	PIN_DCHECK(reason < 0);
	if (job->cancel != NULL) {
		pin_fault_name((pin_fault_fn)job->cancel);
		job->cancel(job, reason);
	}
}

/*
 * Everything after job->run() may run without the job: if it goes on, another
 * thread may end it and free its memory at once.
 */
int pin_job_run(struct pinion_task *task)
{
	struct pinion_job *job = PIN_CONTAINER_OF(task, struct pinion_job, task);
	struct pin_job_entry *entry = pin_job_entry_of(job);
	struct pin_admission *self = entry->admission;
	const struct pin_shared *shared = &self->runtime->shared;
	__attribute__((cleanup(settle), unused)) struct debt debt = {
		.job = job, .lane = entry->lane, .began_ns = pin_host_linux.now_ns()};
	int rc;

	PIN_DCHECK(task->run == pin_job_run && task->cancel == pin_job_cancel);
	if (!claim(self, entry)) {
		cancel_evicted(self, job);
		return 0;
	}
	rc = refusal(self, job, debt.began_ns);
	if (rc != 0) {
		cancel_claimed(self, job, rc);
		return 0;
	}
	entry->began_ns = debt.began_ns;
	entry->place = own_word();
	pin_store_release_u64(entry->place, word_of(job)); /* [JOB-2] */
	/* Relaxed: a figure. */
	pin_fetch_add_relaxed_u32(&self->running, 1);
	pin_job_log_begun(shared);
	pin_fault_name((pin_fault_fn)job->run);
	debt.admission = self;
	rc = job->run(job);
	debt.admission = NULL;
	if (rc == PINION_JOB_GOES_ON) {
		/* It may have ended by now, and the admission too. */
		note_going_on(job);
		return 0;
	}
	pin_job_log_ended(shared, debt.began_ns, rc);
	end_job(self, debt.lane, debt.began_ns, rc);
	return rc;
}

void pin_job_cancel(struct pinion_task *task)
{
	struct pinion_job *job = PIN_CONTAINER_OF(task, struct pinion_job, task);
	struct pin_admission *self = pin_job_entry_of(job)->admission;

	PIN_DCHECK(task->run == pin_job_run && task->cancel == pin_job_cancel);
	if (!claim(self, pin_job_entry_of(job))) {
		cancel_evicted(self, job);
		return;
	}
	cancel_claimed(self, job, -ECANCELED);
}

void pinion_job_end(struct pinion_job *job, int result)
{
	struct pin_job_entry *entry = pin_job_entry_of(job);

	if (!may_end(job)) {
		return;
	}
	pin_job_log_ended(&entry->admission->runtime->shared, entry->began_ns, result);
	end_job(entry->admission, entry->lane, entry->began_ns, result);
}

int pinion_job_cancel(struct pinion_job *job)
{
	uint32_t asked = pin_fetch_or_seq_cst_u32(
		&pin_job_entry_of(job)->asked, PIN_JOB_CANCEL); /* [JOB-1] */

	return (asked & PIN_JOB_BEGUN) != 0 || (job->task.flags & PINION_TASK_MANDATORY) != 0
		? -EINPROGRESS
		: 0;
}

int pinion_job_should_stop(const struct pinion_job *job)
{
	const struct pin_job_entry *entry = (const void *)job->private_;

	/* Relaxed: it is asked again. */
	if ((pin_load_relaxed_u32(&entry->asked) & PIN_JOB_CANCEL) != 0 ||
		pin_shared_is_stopping(&entry->admission->runtime->shared)) {
		return -ECANCELED;
	}
	return job->deadline_ns != 0 && job->deadline_ns <= pin_host_linux.now_ns() ? -ETIME : 0;
}

/* Relaxed: a figure. */
void pinion_job_set_progress(struct pinion_job *job, uint64_t progress)
{
	struct pin_worker *worker = pin_worker_current();
	struct pin_atomic_u64 *word = &pin_job_entry_of(job)->progress;

	if (worker != NULL && pin_load_relaxed_u64(word) != progress) {
		pin_stall_note_life(worker);
	}
	pin_store_relaxed_u64(word, progress);
}

uint64_t pinion_job_progress(const struct pinion_job *job)
{
	const struct pin_job_entry *entry = (const void *)job->private_;

	return pin_load_relaxed_u64(&entry->progress);
}

/* ---- the log ---- */

/*
 * The lines of jobs.
 */

void pin_job_log_say_submitted(const struct pin_shared *shared, enum pinion_lane lane)
{
	static const char *const names[PIN_LANES] = {"high", "medium", "low"};

	PIN_DCHECK((uint32_t)lane < PIN_LANES);
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

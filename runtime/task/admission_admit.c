/* SPDX-License-Identifier: MIT */
/*
 * The ways into an admission: at once, or after a wait of a thread or a task;
 * then into the runtime.
 *
 * Invariant: jobs are claimed before slots are taken, and slots before the
 * runtime is asked; each later refusal undoes the earlier steps.
 */
#include "runtime/task/admission.h"
#include "runtime/base/check.h"
#include "runtime/task/entry.h"
#include "runtime/worker/state.h"

#include <errno.h>

#define JOB_FLAGS ((uint32_t)PINION_TASK_MANDATORY | (uint32_t)PIN_TASK_LANES)

/* Jobs that want to come in together. */
struct request {
	struct pinion_job *first; /* the others are chained to it */
	uint32_t count;
	uint32_t lane; /* the lowest of theirs */
	uint64_t amount;
};

static bool is_job(const struct pinion_job *job)
{
	return job != NULL && job->run != NULL && (job->task.flags & ~JOB_FLAGS) == 0 &&
		(job->task.flags & PIN_TASK_LANES) != PIN_TASK_LANES;
}

/*
 * Counts the jobs of each lane. More than a limit allows can never be admitted,
 * so it is -EINVAL and not -EAGAIN.
 */
static int check_request(struct pin_admission *self, struct pinion_job *const *jobs, uint32_t count,
	struct request *out_request)
{
	uint32_t counts[PINION_LANES] = {0};

	if (pin_runtime_is_foreign(self->runtime)) {
		return -ECHILD;
	}
	*out_request = (struct request){.count = count};
	if (count > pin_permits_max_total(&self->permits)) {
		return -EINVAL;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (!is_job(jobs[i])) {
			return -EINVAL;
		}
		counts[pin_task_lane(&jobs[i]->task)]++;
	}
	for (uint32_t i = 0; i < PINION_LANES; i++) {
		if (counts[i] > pin_permits_max(&self->permits, i)) {
			return -EINVAL;
		}
		out_request->amount += pin_permits_amount(i, counts[i]);
		out_request->lane = counts[i] > 0 ? i : out_request->lane;
	}
	PIN_DCHECK(pin_permits_total(out_request->amount) == count);
	return 0;
}

/* The chain has as many jobs as are counted, each of this admission. */
static __attribute__((unused)) bool is_sound(
	const struct pin_admission *self, const struct request *request)
{
	uint32_t count = 0;

	for (struct pinion_job *job = request->first; job != NULL;
		job = pin_job_entry_of(job)->chained) {
		if (pin_job_entry_of(job)->admission != self) {
			return false;
		}
		count++;
	}
	return count == request->count && pin_permits_total(request->amount) == count;
}

static void release_jobs(struct pinion_job *const *jobs, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		pin_task_release(&jobs[i]->task);
	}
}

/* -EBUSY: one is queued already, or comes twice. */
static int claim_jobs(struct pinion_job *const *jobs, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (!pin_task_claim(&jobs[i]->task)) {
			release_jobs(jobs, i);
			return -EBUSY;
		}
	}
	return 0;
}

/* From here on the jobs are written to. */
static void chain(
	struct pin_admission *self, struct pinion_job *const *jobs, struct request *request)
{
	PIN_DCHECK(request->first == NULL);
	for (uint32_t i = request->count; i > 0; i--) {
		struct pinion_job *job = jobs[i - 1];

		job->task.run = pin_job_run;
		job->task.cancel = pin_job_cancel;
		*pin_job_entry_of(job) = (struct pin_job_entry){
			.admission = self,
			.lane = pin_task_lane(&job->task),
			.chained = request->first,
		};
		request->first = job;
	}
	PIN_DCHECK(is_sound(self, request));
}

/* Slots for all of them in the runtime, or for none. */
static int reserve(struct pinion_runtime *runtime, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		int rc = pin_runtime_reserve(runtime);

		if (rc != 0) {
			while (i-- > 0) {
				pin_runtime_undo(runtime);
			}
			return rc;
		}
	}
	return 0;
}

static void enlist_chain(struct pin_admission *self, struct pinion_job *job)
{
	PIN_DCHECK(pin_admission_evicts(self));
	pin_admission_lock(self);
	for (; job != NULL; job = pin_job_entry_of(job)->chained) {
		if ((job->task.flags & PINION_TASK_MANDATORY) == 0) {
			pin_admission_enlist(self, pin_job_entry_of(job));
		}
	}
	pin_admission_unlock(self);
}

/* Jobs that have their slots: into the runtime, or out again. */
static int launch(struct pin_admission *self, const struct request *request)
{
	struct pinion_runtime *runtime = self->runtime;
	struct pinion_job *job = request->first;
	int rc = reserve(runtime, request->count);

	if (rc != 0) {
		for (; job != NULL; job = pin_job_entry_of(job)->chained) {
			pin_task_release(&job->task);
		}
		pin_admission_leave(self, request->amount);
		return rc;
	}
	PIN_DCHECK(is_sound(self, request) && request->count > 0);
	if (pin_admission_evicts(self)) {
		enlist_chain(self, job);
	}
	while (job != NULL) {
		struct pinion_job *next = pin_job_entry_of(job)->chained;

		pin_job_log_submitted(&runtime->shared, pin_task_lane(&job->task));
		PIN_DCHECK(pin_job_entry_of(job)->admission == self);
		/* The last touch; after the last one, of the admission too. */
		pin_runtime_spawn_reserved(runtime, &job->task);
		job = next;
	}
	return 0;
}

/*
 * The word's answer as the public error: too many for ever, closed, or full for
 * now.
 */
static int end_of(enum pin_permits_answer answer)
{
	switch (answer) {
	case PIN_PERMITS_ROOM:
		return 0;
	case PIN_PERMITS_CLOSED:
		return -ESHUTDOWN;
	case PIN_PERMITS_TOO_MANY:
		return -EINVAL;
	case PIN_PERMITS_LANE_FULL:
	case PIN_PERMITS_FULL:
	case PIN_PERMITS_WATCHED:
		break;
	}
	return -EAGAIN;
}

/* ---- at once ---- */

/* Past the lock, unless what it protects has a say. */
static enum pin_permits_answer take_now(
	struct pin_admission *self, const struct request *request, uint64_t *out_word)
{
	struct pin_waiter waiter;
	enum pin_permits_answer answer = PIN_PERMITS_WATCHED;

	if (!pin_admission_evicts(self)) {
		answer = pin_permits_take(&self->permits, request->amount, out_word);
	}
	if (answer != PIN_PERMITS_WATCHED) {
		return answer;
	}
	pin_waiter_init(&waiter, request->amount, NULL);
	waiter.value.words[PIN_ADMISSION_ANSWER] = PIN_PERMITS_WATCHED;
	waiter.value.words[PIN_ADMISSION_WORD] = pin_permits_word(&self->permits);
	pin_waiters_try(&self->lanes[request->lane].waiters, &waiter);
	PIN_DCHECK(waiter.value.words[PIN_ADMISSION_ANSWER] <= PIN_PERMITS_TOO_MANY);
	*out_word = waiter.value.words[PIN_ADMISSION_WORD];
	return (enum pin_permits_answer)waiter.value.words[PIN_ADMISSION_ANSWER];
}

/* Of a thread pool, those that are there now; a figure. */
static uint32_t count_workers(const struct pin_shared *shared)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < shared->class_count; i++) {
		count += pin_load_relaxed_u32(&shared->classes[i].serving_count);
	}
	return count > 0 ? count : 1;
}

static uint64_t estimate_us(const struct pin_admission *self, uint32_t lane, uint64_t word)
{
	uint32_t running = pin_load_relaxed_u32(&self->running);
	uint32_t worker_count = count_workers(&self->runtime->shared);
	uint64_t job_ns = pin_load_relaxed_u64(&self->job_ns);
	uint64_t ahead = 0;

	PIN_DCHECK(lane < PINION_LANES && worker_count > 0);
	for (uint32_t i = 0; i <= lane; i++) {
		ahead += pin_permits_count(word, i);
	}
	/* More run at once than there are workers where jobs go on by I/O. */
	return ahead * job_ns / (running > worker_count ? running : worker_count) / 1000;
}

static void tell_full(const struct pin_admission *self, const struct request *request,
	enum pin_permits_answer answer, uint64_t word, struct pinion_full *out_full)
{
	const struct pin_permits *permits = &self->permits;
	uint32_t lane = request->lane;

	PIN_DCHECK(answer != PIN_PERMITS_ROOM && answer != PIN_PERMITS_CLOSED);
	if (answer == PIN_PERMITS_WATCHED) {
		/* There may be room, but not for those who come last. */
		answer = pin_permits_fit(permits, word, request->amount);
	}
	/* Of several lanes, the lane that has none. */
	for (uint32_t i = 0; i < PINION_LANES && answer == PIN_PERMITS_LANE_FULL; i++) {
		uint32_t count = pin_permits_count(request->amount, i);

		if (count > 0 && pin_permits_count(word, i) + count > pin_permits_max(permits, i)) {
			lane = i;
		}
	}
	*out_full = (struct pinion_full){
		.current = pin_permits_count(word, lane),
		.max = pin_permits_max(permits, lane),
		.estimated_wait_us = estimate_us(self, request->lane, word),
		.lane = lane,
	};
	if (answer == PIN_PERMITS_FULL) {
		out_full->current = pin_permits_total(word);
		out_full->max = pin_permits_max_total(permits);
		out_full->lane = PINION_LANES;
	}
}

/*
 * Never waits: full is an answer, with the number of jobs in and an estimate of
 * the wait.
 */
int pinion_admission_spawn(struct pinion_admission *admission, struct pinion_job *const *jobs,
	uint32_t count, struct pinion_full *out_full)
{
	struct pin_admission *self = pin_admission_of(admission);
	struct request request;
	enum pin_permits_answer answer;
	uint64_t word;
	int rc = check_request(self, jobs, count, &request);

	if (rc == 0) {
		rc = claim_jobs(jobs, count);
	}
	if (rc != 0 || count == 0) {
		return rc;
	}
	answer = take_now(self, &request, &word);
	rc = end_of(answer);
	if (rc == 0) {
		chain(self, jobs, &request);
		return launch(self, &request);
	}
	release_jobs(jobs, count);
	if (rc == -EAGAIN) {
		/* Relaxed: a figure. */
		pin_fetch_add_relaxed_u64(&self->refused[request.lane], 1);
		if (out_full != NULL) {
			tell_full(self, &request, answer, word, out_full);
		}
	}
	return rc;
}

/* ---- later ---- */

/*
 * Blocks the calling thread in the lane's queue; the thread that frees slots
 * takes them for the waiter and wakes it.
 */
int pinion_admission_spawn_wait(struct pinion_admission *admission, struct pinion_job *const *jobs,
	uint32_t count, uint64_t deadline_ns)
{
	struct pin_admission *self = pin_admission_of(admission);
	struct request request;
	struct pin_waiter waiter;
	int rc = check_request(self, jobs, count, &request);

	if (rc == 0) {
		rc = claim_jobs(jobs, count);
	}
	if (rc != 0 || count == 0) {
		return rc;
	}
	pin_waiter_init(&waiter, request.amount, NULL);
	rc = pin_runtime_wait(
		self->runtime, &self->lanes[request.lane].waiters, &waiter, deadline_ns);
	if (rc == 0) {
		rc = end_of((enum pin_permits_answer)waiter.value.words[PIN_ADMISSION_ANSWER]);
	}
	if (rc != 0) {
		release_jobs(jobs, count);
		return rc;
	}
	chain(self, jobs, &request);
	return launch(self, &request);
}

/* On the worker that has waited. */
static int32_t finish(void *target, const struct pin_waiters_value *value)
{
	struct pinion_job *first = target;
	struct request request = {.first = first};
	int rc = end_of((enum pin_permits_answer)value->words[PIN_ADMISSION_ANSWER]);

	if (rc != 0) {
		return rc;
	}
	for (struct pinion_job *job = first; job != NULL; job = pin_job_entry_of(job)->chained) {
		request.count++;
		request.amount += pin_permits_amount(pin_job_entry_of(job)->lane, 1);
	}
	PIN_DCHECK(request.count == pin_permits_total(request.amount));
	return launch(pin_job_entry_of(first)->admission, &request);
}

/*
 * As the blocking form, with a wait of the calling task in place of the
 * thread's sleep.
 */
int pinion_admission_spawn_async(struct pinion_runtime *runtime, struct pinion_admission *admission,
	struct pinion_job *const *jobs, uint32_t count, struct pinion_wait *wait)
{
	struct pin_admission *self = pin_admission_of(admission);
	struct pin_wait_aim aim = {.finish = finish};
	struct request request;
	int rc = check_request(self, jobs, count, &request);

	if (rc == 0) {
		rc = claim_jobs(jobs, count);
	}
	if (rc != 0 || count == 0) {
		return rc != 0 ? rc : -EINVAL;
	}
	chain(self, jobs, &request);
	/* Until they are in, only the wait is under way. */
	release_jobs(jobs, count);
	PIN_DCHECK(request.lane < PINION_LANES && is_sound(self, &request));
	aim.waiters = &self->lanes[request.lane].waiters;
	aim.demand = request.amount;
	aim.target = request.first;
	return pin_runtime_await(runtime, wait, &aim);
}

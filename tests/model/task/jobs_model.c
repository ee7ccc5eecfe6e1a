/* SPDX-License-Identifier: MIT */
/*
 * The real sources of an admission and of its jobs, with steps that a mutant
 * may leave out or do otherwise, and jobs that count what becomes of them.
 */
#include "tests/model/task/jobs_model.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/task/admission.h"
#include "runtime/task/entry.h"
#include "runtime/worker/worker.h"
#include "tests/model/explorer.h"
#include "tests/model/heap.h"

#include <errno.h>

struct jobs_model jobs_model;

/* ---- what a mutant does otherwise in task/admission_slots.c ---- */

enum { WATCHED = 2 };

/*
 * SKIP: a job that finds no room says nothing. LATE: he does so in a second
 * step. In task/admission_job.c, SKIP: it takes it that the word names its job.
 */
static bool cas(struct pin_atomic_u64 *atomic, uint64_t *expected, uint64_t value, const char *site)
{
	bool watches = value == (*expected | WATCHED);

	if ((watches && model_is_spoilt(MODEL_SKIP, site, "watch")) ||
		model_is_spoilt(MODEL_SKIP, site, "job")) {
		return true;
	}
	if (watches && model_is_spoilt(MODEL_LATE, site, "watch")) {
		model_update_u64(atomic, MODEL_OR, WATCHED, MODEL_ORDER_ACQ_REL, site);
		return true;
	}
	return model_cas_u64(atomic, expected, value, MODEL_ORDER_ACQ_REL, site);
}

#undef pin_cas_acq_rel_u64
#define pin_cas_acq_rel_u64(atomic, expected, value) cas(atomic, expected, value, __func__)
#include "runtime/task/admission_slots.c"

/* ---- and in task/admission*.c ---- */

static void spawn_here(struct pinion_task *task);

/* LATE: looked at once more when the slot is given. */
static bool give(struct pin_permits *permits, uint64_t amount, const char *site)
{
	bool is_given = pin_permits_give(permits, amount);

	if (model_is_spoilt(MODEL_LATE, site, "pin_permits_give")) {
		pin_permits_word(permits);
	}
	return is_given;
}

#define pin_permits_give(permits, amount) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_permits_give") \
			? true \
			: give(permits, amount, __func__))
/* SKIP: a job that lost its slot still has it. */
#define pin_permits_exchange(permits, given, amount) \
	(pin_permits_exchange)(permits, \
		model_is_spoilt(MODEL_SKIP, __func__, "pin_permits_exchange") ? 0 : (given), \
		amount)
/* SKIP: any amount counts as one that may fit one day. */
#define pin_permits_fit(permits, word, amount) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_permits_fit") \
			? PIN_PERMITS_ROOM \
			: (pin_permits_fit)(permits, word, amount))
#define pin_waiters_pop_served(waiters, out_served) \
	(model_is_spoilt(MODEL_SKIP, __func__, #waiters) \
			? false \
			: (pin_waiters_pop_served)(waiters, out_served))
#define pin_waiters_pop_ended(waiters, ends, out_served) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_waiters_pop_ended") \
			? (void)0 \
			: (pin_waiters_pop_ended)(waiters, ends, out_served))
/* SKIP: a drain forgets the tasks of evicted jobs. */
#define pin_admission_has_evicted(self) \
	(!model_is_spoilt(MODEL_SKIP, __func__, "has_evicted") && (pin_admission_has_evicted)(self))
#define pin_waiters_lock(waiters) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_waiters_lock") ? (void)0 \
								   : (pin_waiters_lock)(waiters))
#define pin_waiters_unlock(waiters) \
	(model_is_spoilt(MODEL_SKIP, "pin_admission_lock", "pin_waiters_lock") \
			? (void)0 \
			: (pin_waiters_unlock)(waiters))
#define pin_runtime_reserve(runtime) (jobs_model.uses_runtime ? (pin_runtime_reserve)(runtime) : 0)
#define pin_runtime_spawn_reserved(runtime, task) \
	(jobs_model.uses_runtime ? (pin_runtime_spawn_reserved)(runtime, task) : spawn_here(task))
/* Also where jobs run on no worker. */
static struct pin_worker nobodies[MODEL_THREADS_MAX];
#define pin_worker_current() \
	(pin_worker_self != NULL ? pin_worker_self : &nobodies[model_thread_current()])
#include "runtime/task/admission.c"
#include "runtime/task/admission_admit.c"
/* SKIP: waiters are not served. */
#define pin_admission_serve_unlock(self) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_admission_serve_unlock") \
			? pin_admission_unlock(self) \
			: (pin_admission_serve_unlock)(self))
#include "runtime/task/admission_job.c"

static struct jobs_model_job *own_job(struct pinion_job *job)
{
	return PIN_CONTAINER_OF(job, struct jobs_model_job, job);
}

static int run(struct pinion_job *job)
{
	struct jobs_model_job *own = own_job(job);

	own->run_count++;
	MODEL_CHECK(own->run_count + own->cancel_count == 1);
	MODEL_CHECK(!jobs_model.is_drained);
	jobs_model.in_count++;
	MODEL_CHECK(jobs_model.in_count <= jobs_model.in_max);
	if (jobs_model.in_max == 1) {
		MODEL_CHECK(pin_load_relaxed_u32(&jobs_model.last_run) ==
			jobs_model.run_total); /* [PERMITS-1] */
		jobs_model.run_total++;
		pin_store_relaxed_u32(&jobs_model.last_run, jobs_model.run_total);
	}
	if (own->goes_on) {
		return PINION_JOB_GOES_ON;
	}
	model_point();
	jobs_model.in_count--;
	return 0;
}

static void cancel(struct pinion_job *job, int reason)
{
	struct jobs_model_job *own = own_job(job);

	own->cancel_count++;
	MODEL_CHECK(own->run_count + own->cancel_count == 1);
	MODEL_CHECK(reason ==
		(jobs_model.uses_runtime || jobs_model.is_cancelling ? -ECANCELED : -EAGAIN));
}

static void spawn_here(struct pinion_task *task)
{
	if (jobs_model.queues) {
		jobs_model.queue[jobs_model.queued_count] = task;
		jobs_model.queued_count++;
	} else {
		task->run(task);
	}
}

void jobs_model_begin(uint32_t max, uint32_t max_total, uint32_t flags)
{
	static struct pinion_runtime nobody; /* has no worker */
	struct pinion_admission_limits limits = {.max_tasks_total = max_total, .flags = flags};

	nobody.forked = pin_forked_now();
	nobody.shared.worker_count = 1;
	jobs_model = (struct jobs_model){
		.runtime = jobs_model.uses_runtime ? jobs_model.runtime : &nobody,
		.uses_runtime = jobs_model.uses_runtime,
		.in_max = max < max_total ? max : max_total,
	};
	for (uint32_t i = 0; i < PINION_LANES; i++) {
		limits.max_tasks[i] = max;
	}
	for (uint32_t i = 0; i < JOBS_MODEL_MAX; i++) {
		jobs_model.all[i].job = (struct pinion_job){
			.task.flags = PINION_TASK_HIGH, .run = run, .cancel = cancel};
	}
	jobs_model.admission = model_aligned_alloc(PIN_CACHE_LINE, sizeof(*jobs_model.admission));
	MODEL_CHECK(pinion_admission_init(jobs_model.admission, jobs_model.runtime, &limits) == 0);
}

void jobs_model_spawn(void *arg)
{
	struct jobs_model_job *own = arg;
	struct pinion_job *job = &own->job;

	own->rc = pinion_admission_spawn(jobs_model.admission, &job, 1, NULL);
	MODEL_CHECK(own->rc == 0 || own->rc == -EAGAIN || own->rc == -ESHUTDOWN);
}

void jobs_model_spawn_wait(void *arg)
{
	struct jobs_model_job *own = arg;
	struct pinion_job *job = &own->job;

	own->rc = pinion_admission_spawn_wait(jobs_model.admission, &job, 1, PIN_NO_DEADLINE);
	MODEL_CHECK(own->rc == 0 || own->rc == -ESHUTDOWN);
}

void jobs_model_end(void *arg)
{
	struct jobs_model_job *own = arg;

	jobs_model.in_count--;
	pinion_job_end(&own->job, 0);
}

void jobs_model_begin_going_on(struct jobs_model_job *job)
{
	job->goes_on = true;
	jobs_model_spawn(job);
	MODEL_CHECK(job->rc == 0);
}

void jobs_model_expect_end(uint32_t job_count)
{
	for (uint32_t i = 0; i < job_count; i++) {
		MODEL_CHECK(jobs_model.all[i].run_count + jobs_model.all[i].cancel_count ==
			(jobs_model.all[i].rc == 0 ? 1 : 0));
	}
	MODEL_CHECK(
		pin_permits_total(pin_admission_of(jobs_model.admission)->permits.word.value) == 0);
	MODEL_CHECK(pin_admission_of(jobs_model.admission)->running.value == 0);
	model_free(jobs_model.admission);
}

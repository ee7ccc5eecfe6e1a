/* SPDX-License-Identifier: MIT */
/*
 * Goal: a job that is cancelled ends once, as the cancel says, whatever its
 * worker does meanwhile; a job that goes on after its run, or is unwound out of
 * it, has one end as well, by whichever thread, and is not touched after it.
 * W54.
 * Method: one thread cancels or ends a job while another runs it, from a queue
 * or on a real worker; its memory is freed at its end.
 */
#include "runtime/task/admission.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"
#include "tests/model/heap.h"
#include "tests/model/task/jobs_model.h"

#include <errno.h>
#include <pinion/fault.h>

/* ---- a cancel, and the job's turn ---- */

static void work_off_one(void *arg)
{
	(void)arg;
	jobs_model.queue[0]->run(jobs_model.queue[0]);
}

static void run_cancelled(void)
{
	uint32_t worker;
	int rc;

	jobs_model_begin(1, 1, 0);
	jobs_model.is_cancelling = jobs_model.queues = true;
	jobs_model_spawn(&jobs_model.all[0]);
	worker = model_thread_start("worker", work_off_one, NULL);
	rc = pinion_job_cancel(&jobs_model.all[0].job);
	MODEL_CHECK(rc == 0 || rc == -EINPROGRESS);
	model_thread_join(worker);
	/* What the cancel said is so. */
	MODEL_CHECK(jobs_model.all[0].cancel_count == (rc == 0 ? 1u : 0u));
	MODEL_CHECK(jobs_model.all[0].run_count == (rc == 0 ? 0u : 1u));
	MODEL_CHECK(pinion_admission_drain(jobs_model.admission, PIN_NO_DEADLINE) == 0);
	jobs_model.is_cancelling = false;
	jobs_model_expect_end(1);
}

/* ---- a job that goes on, or is unwound, and its end by another ---- */

static struct jobs_model_job *long_job;
static struct pin_atomic_u32 may_be_ended;

static bool is_begun(const void *arg)
{
	(void)arg;
	return may_be_ended.value != 0;
}

static void end_begun(void *arg)
{
	(void)arg;
	model_await("the job", is_begun, NULL);
	/* Its beginnings are ordered after that. */
	pin_fetch_add_acq_rel_u32(&may_be_ended, 1);
	pinion_job_end(&long_job->job, -EIO);
	model_free(long_job);
}

static int go_on(struct pinion_job *job)
{
	(void)job;
	pin_fetch_add_acq_rel_u32(&may_be_ended, 1);
	return PINION_JOB_GOES_ON;
}

static int begin_and_panic(struct pinion_job *job)
{
	go_on(job);
	pinion_task_panic(-EIO, NULL);
}

/* It has one end, whichever that is, and is not touched after it. */
static void run_ended(pinion_job_fn body)
{
	struct pinion_admission_stats counters;
	uint32_t finisher;

	jobs_model.uses_runtime = true;
	may_be_ended = (struct pin_atomic_u32){0};
	jobs_model.runtime = model_runtime_begin(1, PIN_DOORBELL_MESSAGE, NULL);
	jobs_model_begin(1, 1, 0);
	long_job = model_aligned_alloc(PIN_CACHE_LINE, sizeof(*long_job));
	*long_job = (struct jobs_model_job){.job.run = body};
	finisher = model_thread_start("finisher", end_begun, NULL);
	jobs_model_spawn(long_job);
	MODEL_CHECK(pinion_admission_drain(jobs_model.admission, PIN_NO_DEADLINE) == 0);
	pinion_admission_get_stats(jobs_model.admission, &counters, sizeof(counters));
	MODEL_CHECK(counters.failed == 1 && counters.running == 0);
	jobs_model_expect_end(0);
	model_quiet_begin();
	model_thread_join(finisher);
	MODEL_CHECK(pinion_runtime_drain(jobs_model.runtime) == 0);
	model_runtime_end(jobs_model.runtime);
	model_quiet_end();
	jobs_model.uses_runtime = false;
}

static void run_goes_on(void)
{
	run_ended(go_on);
}

static void run_unwound(void)
{
	run_ended(begin_and_panic);
}

static const struct model_mutant cancelled_mutants[] = {
	{"cancelled in two steps", {MODEL_TORN, "pinion_job_cancel", NULL}},
	{"begun in two steps", {MODEL_TORN, "refusal", NULL}},
	{.name = NULL},
};

static const struct model_mutant goes_on_mutants[] = {
	{"said in two steps", {MODEL_TORN, "leave_run", NULL}},
	{"not seen: said without a release", {MODEL_RELAXED, "note_going_on", NULL}},
	{"not seen: looked at without an acquire", {MODEL_RELAXED, "may_end", NULL}},
	{.name = NULL},
};

static const struct model_mutant unwound_mutants[] = {
	{"ended twice: unwound in two steps", {MODEL_TORN, "leave_run", NULL}},
	{"ended twice: ended in two steps", {MODEL_TORN, "may_end", NULL}},
	{"ended twice: unwound without a check", {MODEL_SKIP, "leave_run", "job"}},
	{"ended twice: ended without a check", {MODEL_SKIP, "may_end", "job"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"cancelled", run_cancelled, 2, 1, 0, cancelled_mutants, NULL},
	{"goes_on", run_goes_on, 1, 1, 0, goes_on_mutants, NULL},
	{"unwound", run_unwound, 2, 1, 0, unwound_mutants, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("job", cases, PIN_ARRAY_COUNT(cases));
}

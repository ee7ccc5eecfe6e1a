/* SPDX-License-Identifier: MIT */
/*
 * Goal: a job that is cancelled, or whose deadline passes, before it begins is
 * handed to its `cancel` with the reason, counted, and gives its place back; a
 * running job gets the reason when it asks; others read how far it has come; a
 * job that panics gives its place back, once, even if something it had begun
 * ends it as well. Limits that an admission leaves open are the
 * configuration's. C15, WP-36, RP-5.
 * Method: one worker, which is held while jobs are queued and cancelled, or is
 * in a job that waits until it was asked.
 */
#include "tests/support/jobs.h"

#include <pinion/fault.h>

enum {
	JOBS = 5,
	PROGRESS = 42,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static struct pinion_admission admission;
static struct tasks_hold hold;
static struct jobs_job jobs[JOBS];

static void check_queued(void)
{
	struct pinion_admission_stats counters;

	jobs_admission(&admission, runtime, JOBS, JOBS, 0);
	jobs_init(jobs, JOBS, 0);
	jobs[1].job.deadline_ns = 1;
	jobs[2].job.deadline_ns = UINT64_MAX;
	jobs[4].job.task.flags = PINION_TASK_MANDATORY;
	jobs[4].job.deadline_ns = 1;
	tasks_hold_begin(&hold, runtime, 0);
	expect_number("spawn", 0, jobs_spawn_all(&admission, jobs, JOBS, NULL));
	expect_number("not begun", 0, pinion_job_cancel(&jobs[0].job));
	expect_number("again", 0, pinion_job_cancel(&jobs[0].job));
	expect_number("mandatory", -EINPROGRESS, pinion_job_cancel(&jobs[4].job));
	tasks_hold_end(&hold);
	jobs_drain(&admission);
	jobs_expect("cancelled", &jobs[0], 0, 1);
	expect_number("reason", -ECANCELED, jobs[0].reason);
	jobs_expect("too late", &jobs[1], 0, 1);
	expect_number("reason", -ETIME, jobs[1].reason);
	jobs_expect("in time", &jobs[2], 1, 0);
	jobs_expect("without a deadline", &jobs[3], 1, 0);
	jobs_expect("mandatory", &jobs[4], 1, 0);
	counters = jobs_counters(&admission);
	expect_number("cancelled", 1, (long long)counters.cancelled);
	expect_number("timed out", 1, (long long)counters.timed_out);
	expect_number("failed", 0, (long long)counters.failed);
}

/* ---- a running job ---- */

static struct pin_atomic_u32 has_begun;

static int run_until_told(struct pinion_job *job)
{
	int rc = pinion_job_should_stop(job);

	pinion_job_set_progress(job, PROGRESS);
	tasks_signal(&has_begun);
	while (rc == 0) {
		rc = pinion_job_should_stop(job);
	}
	return rc;
}

static void spawn_long(struct pinion_job *job, uint64_t deadline_ns)
{
	pin_store_release_u32(&has_begun, 0);
	*job = (struct pinion_job){.run = run_until_told, .deadline_ns = deadline_ns};
	expect_number("spawn", 0, pinion_admission_spawn(&admission, &job, 1, NULL));
}

static void check_running(void)
{
	struct pinion_job job;

	jobs_admission(&admission, runtime, JOBS, JOBS, 0);
	spawn_long(&job, 0);
	tasks_await(&has_begun, 1);
	expect_number("progress", PROGRESS, (long long)pinion_job_progress(&job));
	expect_number("has begun", -EINPROGRESS, pinion_job_cancel(&job));
	jobs_drain(&admission);
	expect_number("it said so", 1, (long long)jobs_counters(&admission).failed);
	expect_number("not before", 0, (long long)jobs_counters(&admission).cancelled);
}

/* It ends by its deadline alone; it may pass before the job begins. */
static void check_deadline(void)
{
	struct pinion_job job;
	struct pinion_admission_stats counters;

	jobs_admission(&admission, runtime, JOBS, JOBS, 0);
	spawn_long(&job, pinion_clock_now_ns() + 20 * 1000 * 1000);
	jobs_drain(&admission);
	counters = jobs_counters(&admission);
	expect_number("ended by it", 1, (long long)(counters.failed + counters.timed_out));
}

/* ---- the end of the runtime ---- */

static void *stop(void *arg)
{
	(void)arg;
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	return NULL;
}

static void check_stop(void)
{
	struct pinion_job job;
	pthread_t stopper;

	jobs_admission(&admission, runtime, JOBS, JOBS, 0);
	spawn_long(&job, 0);
	tasks_await(&has_begun, 1);
	expect_ready("thread", pthread_create(&stopper, NULL, stop, NULL) == 0);
	pthread_join(stopper, NULL);
	jobs_drain(&admission);
	expect_number("told", 1, (long long)jobs_counters(&admission).failed);
}

/* ---- a job that panics ---- */

static int panic(struct pinion_job *job)
{
	(void)job;
	pinion_task_panic(-EIO, "no more");
}

static void panic_instead(struct pinion_job *job, int reason)
{
	(void)reason;
	panic(job);
}

static void check_panic(void)
{
	jobs_admission(&admission, runtime, 2, 2, 0);
	jobs_init(jobs, 2, 0);
	jobs[0].job.run = panic;
	jobs[1].job.cancel = panic_instead;
	jobs[1].job.deadline_ns = 1;
	expect_number("spawn", 0, jobs_spawn_all(&admission, jobs, 2, NULL));
	/* It would not return with a place lost. */
	jobs_drain(&admission);
	expect_number("failed", 1, (long long)jobs_counters(&admission).failed);
	expect_number("running", 0, jobs_counters(&admission).running);
}

static int end_later(struct pinion_task *task)
{
	struct jobs_job *own = PIN_CONTAINER_OF(task, struct jobs_job, later);

	pinion_job_end(&own->job, -EPIPE);
	tasks_signal(&own->runs);
	return 0;
}

/* Something that will end it is under way. */
static int begin_and_panic(struct pinion_job *job)
{
	struct jobs_job *own = PIN_CONTAINER_OF(job, struct jobs_job, job);

	own->later = (struct pinion_task){.run = end_later};
	expect_number("spawn", 0, pinion_task_spawn(runtime, &own->later));
	return panic(job);
}

static int end_and_panic(struct pinion_job *job)
{
	pinion_job_end(job, -EPIPE);
	return panic(job);
}

/* Of the two ends the first counts, and there is no other. */
static void check_panic_going_on(void)
{
	static const pinion_job_fn bodies[] = {begin_and_panic, end_and_panic};

	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(bodies); i++) {
		jobs_admission(&admission, runtime, 2, 2, 0);
		jobs_init(jobs, 2, 0);
		jobs[0].job.run = bodies[i];
		jobs[1].result = PINION_JOB_GOES_ON;
		expect_number("spawn", 0, jobs_spawn_all(&admission, jobs, 2, NULL));
		tasks_await(&jobs[1].runs, 1);
		tasks_await(&jobs[0].runs, bodies[i] == begin_and_panic ? 1 : 0);
		/* Places given back twice would be those of others. */
		expect_number("in", 1, jobs_counters(&admission).current[PINION_LANE_NORMAL]);
		expect_number("running", 1, jobs_counters(&admission).running);
		expect_number("failed", 1, (long long)jobs_counters(&admission).failed);
		pinion_job_end(&jobs[1].job, 0);
		jobs_drain(&admission);
	}
}

/* ---- limits ---- */

static void check_limits(void)
{
	struct pinion_admission_limits limits = {.max_tasks = {[PINION_LANE_LOW] = 4}};
	struct pinion_config config;
	struct pinion_runtime *own = runtime;
	struct pinion_full full;

	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	runtimes_tuning.max_tasks_high = 1;
	runtimes_tuning.max_tasks_low = 3;
	runtimes_tuning.max_tasks_total = 4;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	expect_number("init", 0, pinion_admission_init(&admission, runtime, NULL));
	tasks_hold_begin(&hold, runtime, 0);
	jobs_init(jobs, JOBS, PINION_TASK_HIGH);
	expect_number("spawn", 0, jobs_spawn(&admission, &jobs[0], NULL));
	expect_number("high", -EAGAIN, jobs_spawn(&admission, &jobs[1], &full));
	jobs_expect_full(&full, 1, 1, PINION_LANE_HIGH);
	jobs_init(&jobs[1], JOBS - 1, 0);
	expect_number("spawn", 0, jobs_spawn_all(&admission, &jobs[1], 3, NULL));
	expect_number("total", -EAGAIN, jobs_spawn(&admission, &jobs[4], &full));
	jobs_expect_full(&full, 4, 4, PINION_LANES);
	tasks_hold_end(&hold);
	jobs_drain(&admission);

	expect_number("init", 0, pinion_admission_init(&admission, runtime, &limits));
	tasks_hold_begin(&hold, runtime, 0);
	jobs_init(jobs, JOBS, PINION_TASK_LOW);
	expect_number("its own limit", 0, jobs_spawn_all(&admission, jobs, 4, NULL));
	tasks_hold_end(&hold);
	jobs_drain(&admission);
	pinion_runtime_destroy(runtime);
	runtime = own;
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	runtime = runtimes_start(1, PINION_IO_FALLBACK);
	check_queued();
	check_running();
	check_deadline();
	check_panic();
	check_panic_going_on();
	check_limits();
	check_stop();
	pinion_runtime_destroy(runtime);
	return expect_status();
}

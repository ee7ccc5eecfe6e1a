/* SPDX-License-Identifier: MIT */
/*
 * Goal: where it is asked for, a job of a higher lane has the slot of a job
 * that has not begun: of the lowest lane, the newest, which goes to its
 * `cancel` and is counted; never of its own lane, nor of a running or mandatory
 * job; for several jobs, as many or none; and there is an end to it. Lowered
 * limits evict none by themselves, nor more than one for each that comes in.
 * RP-5, W41.
 * Method: one worker that is held while jobs displace each other; in the end
 * each was run or cancelled.
 */
#include "tests/support/jobs.h"

enum {
	LIMIT_SECONDS = 60,
	LOW = PINION_LANE_LOW,
	NORMAL = PINION_LANE_NORMAL,
};

static struct pinion_runtime *runtime;
static struct tasks_hold hold;
static struct pinion_admission admission;
static struct jobs_job high[4];
static struct jobs_job normal[4];
static struct jobs_job low[4];

static void begin(uint32_t max, uint32_t max_total)
{
	jobs_admission(&admission, runtime, max, max_total, PINION_ADMISSION_EVICT);
	jobs_init(high, PIN_ARRAY_COUNT(high), PINION_TASK_HIGH);
	jobs_init(normal, PIN_ARRAY_COUNT(normal), 0);
	jobs_init(low, PIN_ARRAY_COUNT(low), PINION_TASK_LOW);
	tasks_hold_begin(&hold, runtime, 0);
}

static void end(void)
{
	tasks_hold_end(&hold);
	jobs_drain(&admission);
}

static void expect_evicted(const struct jobs_job *job)
{
	jobs_expect("evicted", job, 0, 1);
	expect_number("reason", -EAGAIN, job->reason);
}

static void check_choice(void)
{
	struct pinion_admission_stats counters;
	struct pinion_full full;

	begin(4, 4);
	expect_number("low", 0, jobs_spawn_all(&admission, low, 2, NULL));
	expect_number("normal", 0, jobs_spawn_all(&admission, normal, 2, NULL));
	expect_number("its own lane", -EAGAIN, jobs_spawn(&admission, &low[2], &full));
	jobs_expect_full(&full, 4, 4, PINION_LANES);
	expect_number("normal", 0, jobs_spawn(&admission, &normal[2], &full));
	expect_number("high", 0, jobs_spawn(&admission, &high[0], &full));
	expect_number("high", 0, jobs_spawn(&admission, &high[1], &full));
	counters = jobs_counters(&admission);
	expect_number("high in", 2, counters.current[PINION_LANE_HIGH]);
	expect_number("normal in", 2, counters.current[NORMAL]);
	expect_number("low in", 0, counters.current[LOW]);
	expect_number("low evicted", 2, (long long)counters.evicted[LOW]);
	expect_number("normal evicted", 1, (long long)counters.evicted[NORMAL]);
	end();
	expect_evicted(&low[0]);
	expect_evicted(&low[1]);
	expect_evicted(&normal[2]);
	jobs_expect("stays", &normal[0], 1, 0);
	jobs_expect("stays", &normal[1], 1, 0);
	jobs_expect("came in", &high[0], 1, 0);
	jobs_expect("came in", &high[1], 1, 0);
	jobs_expect("refused", &low[2], 0, 0);
}

/* Two low ones give way to two or to none. */
static void check_batch(void)
{
	begin(4, 2);
	expect_number("low", 0, jobs_spawn_all(&admission, low, 2, NULL));
	low[2].job.task.flags |= PINION_TASK_MANDATORY;
	expect_number("more than total", -EINVAL, jobs_spawn_all(&admission, high, 3, NULL));
	expect_number("two", 0, jobs_spawn_all(&admission, high, 2, NULL));
	end();
	expect_evicted(&low[0]);
	expect_evicted(&low[1]);

	begin(4, 2);
	low[1].job.task.flags |= PINION_TASK_MANDATORY;
	expect_number("low", 0, jobs_spawn_all(&admission, low, 2, NULL));
	expect_number("one is mandatory", -EAGAIN, jobs_spawn_all(&admission, high, 2, NULL));
	expect_number("none evicted", 0, (long long)jobs_counters(&admission).evicted[LOW]);
	end();
	jobs_expect("stays", &low[0], 1, 0);
	jobs_expect("stays", &low[1], 1, 0);
	jobs_expect("refused", &high[0], 0, 0);
}

/*
 * A running job keeps its slot; none is taken either where its own lane is
 * full.
 */
static void check_refusals(void)
{
	struct pinion_full full;
	uint32_t ended = pin_load_acquire_u32(&jobs_ended);

	begin(2, 2);
	low[0].result = PINION_JOB_GOES_ON;
	expect_number("low", 0, jobs_spawn(&admission, &low[0], NULL));
	expect_number("high", 0, jobs_spawn(&admission, &high[0], NULL));
	tasks_hold_end(&hold);
	tasks_await(&jobs_ended, ended + 2);
	tasks_hold_begin(&hold, runtime, 0);
	expect_number("high", 0, jobs_spawn(&admission, &high[1], NULL));
	expect_number("begun", -EAGAIN, jobs_spawn(&admission, &normal[0], &full));
	jobs_expect_full(&full, 2, 2, PINION_LANES);
	pinion_job_end(&low[0].job, 0);
	expect_number("low", 0, jobs_spawn(&admission, &low[1], NULL));
	expect_number("high", 0, jobs_spawn(&admission, &high[2], NULL));
	expect_number("its lane", -EAGAIN, jobs_spawn(&admission, &high[3], &full));
	jobs_expect_full(&full, 2, 2, PINION_LANE_HIGH);
	end();
	jobs_expect("had begun", &low[0], 1, 0);
	expect_evicted(&low[1]);
}

/* Tasks of evicted jobs are in the queue still: as many as there are slots. */
static void check_bound(void)
{
	begin(1, 1);
	expect_number("low", 0, jobs_spawn(&admission, &low[0], NULL));
	expect_number("normal", 0, jobs_spawn(&admission, &normal[0], NULL));
	expect_number("high", -EAGAIN, jobs_spawn(&admission, &high[0], NULL));
	end();
	expect_evicted(&low[0]);
	jobs_expect("stays", &normal[0], 1, 0);
	jobs_expect("refused", &high[0], 0, 0);
}

/* Of those beyond a lowered limit, one for each that comes in, and no more. */
static void check_lowered(void)
{
	struct pinion_admission_limits limits = {
		.max_tasks = {4, 4, 4}, .max_tasks_total = 2, .flags = PINION_ADMISSION_EVICT};
	struct pinion_admission_stats counters;

	begin(4, 4);
	expect_number("low", 0, jobs_spawn_all(&admission, low, 4, NULL));
	expect_number("lower", 0, pinion_admission_set_limits(&admission, &limits));
	expect_number("no job is thrown out", 4, jobs_counters(&admission).current[LOW]);
	expect_number("in place of one", 0, jobs_spawn(&admission, &normal[0], NULL));
	expect_number("evicted", 1, (long long)jobs_counters(&admission).evicted[LOW]);
	expect_number("in place of another", 0, jobs_spawn(&admission, &high[0], NULL));
	/* As many tasks of evicted jobs are queued as the total allows. */
	expect_number("no more", -EAGAIN, jobs_spawn(&admission, &high[1], NULL));
	counters = jobs_counters(&admission);
	expect_number("high in", 1, counters.current[PINION_LANE_HIGH]);
	expect_number("normal in", 1, counters.current[NORMAL]);
	expect_number("low in", 2, counters.current[LOW]);
	expect_number("evicted", 2, (long long)counters.evicted[LOW]);
	end();
	jobs_expect("stays", &low[0], 1, 0);
	jobs_expect("stays", &low[1], 1, 0);
	expect_evicted(&low[2]);
	expect_evicted(&low[3]);
}

/* Stopped with one evicted and one waiting: each has its own error. */
static void check_stop(void)
{
	begin(1, 1);
	expect_number("low", 0, jobs_spawn(&admission, &low[0], NULL));
	expect_number("high", 0, jobs_spawn_wait(&admission, &high[0], UINT64_MAX));
	tasks_signal(&hold.may_end);
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	jobs_drain(&admission);
	expect_evicted(&low[0]);
	expect_number("ended once", 1,
		pin_load_acquire_u32(&high[0].runs) + pin_load_acquire_u32(&high[0].cancels));
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	runtime = runtimes_start(1, PINION_IO_AUTO);
	check_choice();
	check_batch();
	check_refusals();
	check_bound();
	check_lowered();
	check_stop();
	pinion_runtime_destroy(runtime);
	return expect_status();
}

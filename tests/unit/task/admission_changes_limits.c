/* SPDX-License-Identifier: MIT */
/*
 * Goal: the limits of an admission change while jobs are in and wait: raised,
 * they admit waiters though no job leaves; lowered, they remove no job, none
 * comes in until enough have ended, and a wait for more than there can be room
 * for ends; a refused change changes nothing. W49.
 * Method: one worker that is held, so that admitted jobs stay in; threads that
 * wait.
 */
#include "tests/support/jobs.h"

enum {
	LIMIT_SECONDS = 60,
	HIGH = PINION_LANE_HIGH,
	NORMAL = PINION_LANE_NORMAL,
};

static struct pinion_runtime *runtime;
static struct tasks_hold hold;
static struct pinion_admission admission;
static struct jobs_job jobs[8];
static int wait_rc;

static void set_limits(uint32_t each, uint32_t total)
{
	struct pinion_admission_limits limits = {
		.max_tasks = {each, each, each}, .max_tasks_total = total};

	expect_number("set", 0, pinion_admission_set_limits(&admission, &limits));
}

static void expect_full(struct jobs_job *job, uint32_t current, uint32_t max, uint32_t lane)
{
	struct pinion_full full = {0};

	expect_number("full", -EAGAIN, jobs_spawn(&admission, job, &full));
	jobs_expect_full(&full, current, max, lane);
}

static void check_raised(void)
{
	jobs_admission(&admission, runtime, 1, 1, 0);
	jobs_init(jobs, 4, 0);
	tasks_hold_begin(&hold, runtime, 0);
	expect_number("first", 0, jobs_spawn(&admission, &jobs[0], NULL));
	expect_full(&jobs[1], 1, 1, NORMAL);
	set_limits(2, 3);
	expect_number("second", 0, jobs_spawn(&admission, &jobs[1], NULL));
	expect_full(&jobs[2], 2, 2, NORMAL);
	set_limits(4, 3);
	expect_number("third", 0, jobs_spawn(&admission, &jobs[2], NULL));
	expect_full(&jobs[3], 3, 3, PINION_LANES);
	tasks_hold_end(&hold);
	jobs_drain(&admission);
	for (uint32_t i = 0; i < 4; i++) {
		jobs_expect("run", &jobs[i], i < 3 ? 1 : 0, 0);
	}
}

static void *wait_for_two(void *arg)
{
	struct pinion_job *two[] = {&jobs[1].job, &jobs[2].job};

	(void)arg;
	wait_rc = pinion_admission_spawn_wait(&admission, two, 2, UINT64_MAX);
	return NULL;
}

static void check_wait_is_served(void)
{
	pthread_t thread;

	jobs_admission(&admission, runtime, 2, 2, 0);
	jobs_init(jobs, 4, 0);
	tasks_hold_begin(&hold, runtime, 0);
	expect_number("first", 0, jobs_spawn(&admission, &jobs[0], NULL));
	expect_ready("thread", pthread_create(&thread, NULL, wait_for_two, NULL) == 0);
	set_limits(3, 3);
	pthread_join(thread, NULL);
	expect_number("both came in", 0, wait_rc);
	expect_number("in", 3, jobs_counters(&admission).current[NORMAL]);
	tasks_hold_end(&hold);
	jobs_drain(&admission);
}

static void check_wait_is_refused(void)
{
	pthread_t thread;

	jobs_admission(&admission, runtime, 2, 2, 0);
	jobs_init(jobs, 4, 0);
	tasks_hold_begin(&hold, runtime, 0);
	expect_number("first", 0, jobs_spawn(&admission, &jobs[0], NULL));
	expect_ready("thread", pthread_create(&thread, NULL, wait_for_two, NULL) == 0);
	set_limits(1, 1);
	pthread_join(thread, NULL);
	expect_number("there is no room for two", -EINVAL, wait_rc);
	expect_number("admitted jobs stay", 1, jobs_counters(&admission).current[NORMAL]);
	expect_full(&jobs[3], 1, 1, NORMAL);
	tasks_hold_end(&hold);
	jobs_drain(&admission);
	jobs_expect("run", &jobs[0], 1, 0);
	jobs_expect("not run", &jobs[1], 0, 0);
}

static void *wait_for_one(void *arg)
{
	expect_number("came in at last", 0, jobs_spawn_wait(&admission, arg, UINT64_MAX));
	return NULL;
}

/* Each waiter for two where there is room for one job; the others stay. */
static void check_each_wait_is_refused(void)
{
	pthread_t stays[2];
	pthread_t ends;

	jobs_admission(&admission, runtime, 2, 2, 0);
	jobs_init(jobs, 6, 0);
	jobs_init(&jobs[5], 1, PINION_TASK_HIGH);
	tasks_hold_begin(&hold, runtime, 0);
	expect_number("first", 0, jobs_spawn(&admission, &jobs[0], NULL));
	expect_number("second", 0, jobs_spawn(&admission, &jobs[4], NULL));
	/* In its lane another waits before it, and one in a higher lane. */
	expect_ready("high", pthread_create(&stays[0], NULL, wait_for_one, &jobs[5]) == 0);
	jobs_await_waiters(&admission, HIGH, 1);
	expect_ready("thread", pthread_create(&stays[1], NULL, wait_for_one, &jobs[3]) == 0);
	jobs_await_waiters(&admission, NORMAL, 1);
	expect_ready("behind", pthread_create(&ends, NULL, wait_for_two, NULL) == 0);
	jobs_await_waiters(&admission, NORMAL, 2);
	set_limits(1, 1);
	pthread_join(ends, NULL);
	expect_number("there is no room for two", -EINVAL, wait_rc);
	jobs_await_waiters(&admission, HIGH, 1);
	jobs_await_waiters(&admission, NORMAL, 1);
	tasks_hold_end(&hold);
	pthread_join(stays[0], NULL);
	pthread_join(stays[1], NULL);
	jobs_drain(&admission);
	for (uint32_t i = 0; i < 6; i++) {
		jobs_expect("run, or refused", &jobs[i], i == 1 || i == 2 ? 0 : 1, 0);
	}
}

/* Those that are in beyond the limit end before another comes in. */
static void check_lowered(void)
{
	jobs_admission(&admission, runtime, 3, 3, 0);
	jobs_init(jobs, 4, 0);
	tasks_hold_begin(&hold, runtime, 0);
	for (uint32_t i = 0; i < 3; i++) {
		expect_number("in", 0, jobs_spawn(&admission, &jobs[i], NULL));
	}
	set_limits(2, 2);
	expect_full(&jobs[3], 3, 2, NORMAL);
	tasks_hold_end(&hold);
	expect_number("when they have ended", 0,
		pinion_admission_spawn_wait(
			&admission, (struct pinion_job *[]){&jobs[3].job}, 1, UINT64_MAX));
	jobs_drain(&admission);
	for (uint32_t i = 0; i < 4; i++) {
		jobs_expect("run", &jobs[i], 1, 0);
	}
}

static void check_mistakes(void)
{
	struct pinion_admission_limits limits = {.max_tasks = {1, 1, 1}};

	jobs_admission(&admission, runtime, 1, 1, 0);
	jobs_init(jobs, 2, PINION_TASK_HIGH);
	limits.flags = PINION_ADMISSION_EVICT;
	expect_number("another kind", -EINVAL, pinion_admission_set_limits(&admission, &limits));
	limits = (struct pinion_admission_limits){.max_tasks_total = 2, .reserved = {0, 1, 0}};
	expect_number("reserved", -EINVAL, pinion_admission_set_limits(&admission, &limits));
	tasks_hold_begin(&hold, runtime, 0);
	expect_number("one", 0, jobs_spawn(&admission, &jobs[0], NULL));
	expect_full(&jobs[1], 1, 1, HIGH);
	expect_number("those of the runtime", 0, pinion_admission_set_limits(&admission, NULL));
	expect_number("two", 0, jobs_spawn(&admission, &jobs[1], NULL));
	tasks_hold_end(&hold);
	jobs_drain(&admission);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	runtime = runtimes_start(1, PINION_IO_FALLBACK);
	check_raised();
	check_wait_is_served();
	check_wait_is_refused();
	check_each_wait_is_refused();
	check_lowered();
	check_mistakes();
	pinion_runtime_destroy(runtime);
	return expect_status();
}

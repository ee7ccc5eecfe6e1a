/* SPDX-License-Identifier: MIT */
/*
 * Goal: the four log events of the worker pool, each at its level and in its
 * words: a job is submitted, begins, has ended, a lane is deep; the first three
 * only where they are asked for; a job's end with what it took, in whole
 * milliseconds. WP-19, WP-34.
 * Method: a thread pool with a log that keeps levels; calls and jobs of each
 * lane, one that fails, and enough that wait while another holds the only
 * worker.
 */
#include "tests/support/clock.h"
#include "tests/support/jobs.h"

#include <pinion/call.h>
#include <pinion/thread_pool.h>

enum {
	LEVELS = PINION_LOG_DEBUG + 1,
	DEEP = 7,
	LIMIT_SECONDS = 60,
};

static char lines[LEVELS][8192];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pinion_runtime *thread_pool;

static void keep(void *arg, enum pinion_log_level level, const char *message)
{
	size_t length;

	(void)arg;
	pthread_mutex_lock(&lock);
	length = strlen(lines[level]);
	snprintf(lines[level] + length, sizeof(lines[level]) - length, "%s\n", message);
	pthread_mutex_unlock(&lock);
}

static void start(uint32_t job_log, struct pinion_thread_pool_sizes sizes)
{
	struct pinion_config config;

	memset(lines, 0, sizeof(lines));
	pinion_thread_pool_config_init(&config);
	config.tuning = runtimes_thread_pool_tuning();
	config.log = keep;
	runtimes_tuning.job_log = job_log;
	runtimes_tuning.normal_warn_depth = DEEP;
	expect_ready("create", pinion_thread_pool_create(&config, &sizes, &thread_pool) == 0);
}

static void finish(void)
{
	expect_number("drain", 0, pinion_runtime_drain(thread_pool));
	pinion_runtime_destroy(thread_pool);
}

static uint32_t count(enum pinion_log_level level, const char *text)
{
	uint32_t found = 0;

	for (const char *at = lines[level]; (at = strstr(at, text)) != NULL; at++) {
		found++;
	}
	return found;
}

static void expect_lines(enum pinion_log_level level, const char *text, uint32_t expected)
{
	expect_number(text, expected, count(level, text));
}

static int call(void *arg)
{
	return *(const int *)arg;
}

static void execute(uint32_t flags, int result)
{
	struct pinion_call own = {.task.flags = flags, .run = call, .arg = &result};

	expect_number("start", 0, pinion_call_start(thread_pool, &own));
	expect_number("wait", 0, pinion_future_wait(&own.done, UINT64_MAX));
	expect_number("result", result, own.result);
}

static void run_one_of_each(void)
{
	execute(PINION_TASK_HIGH, 0);
	execute(0, 3);
	execute(PINION_TASK_LOW, -EIO);
}

static void check_calls(void)
{
	/* A worker that serves low serves all lanes. */
	start(1, (struct pinion_thread_pool_sizes){0, 0, 1});
	run_one_of_each();
	finish();
	expect_lines(PINION_LOG_DEBUG, "Submitting job to high priority queue\n", 1);
	expect_lines(PINION_LOG_DEBUG, "Submitting job to medium priority queue\n", 1);
	expect_lines(PINION_LOG_DEBUG, "Submitting job to low priority queue\n", 1);
	expect_lines(PINION_LOG_DEBUG, "Low priority worker executing job\n", 3);
	expect_lines(PINION_LOG_DEBUG, "Job completed in ", 2);
	expect_lines(PINION_LOG_DEBUG, "Job failed in ", 1);
	expect_lines(PINION_LOG_DEBUG, "ms: -5\n", 1);
	expect_lines(PINION_LOG_DEBUG, "\n", 9);
	/* The outcome with its job's name, whatever is asked for. */
	expect_lines(PINION_LOG_WARN, "Input/output error", 1);
}

/* By the clock of its worker. */
static int take_seven_milliseconds(struct pinion_job *job)
{
	clock_own_ns += 7999999;
	return jobs_run(job);
}

static void check_jobs(void)
{
	struct pinion_admission admission;
	struct jobs_job jobs[2];

	start(1, (struct pinion_thread_pool_sizes){0, 0, 1});
	clock_stop(thread_pool, 0);
	jobs_admission(&admission, thread_pool, 2, 2, 0);
	jobs_init(jobs, 2, PINION_TASK_HIGH);
	jobs[0].job.run = take_seven_milliseconds;
	jobs[1].job.run = take_seven_milliseconds;
	jobs[1].result = -EIO;
	expect_number("spawn", 0, jobs_spawn(&admission, &jobs[0], NULL));
	expect_number("spawn", 0, jobs_spawn(&admission, &jobs[1], NULL));
	jobs_drain(&admission);
	finish();
	expect_lines(PINION_LOG_DEBUG, "Submitting job to high priority queue\n", 2);
	expect_lines(PINION_LOG_DEBUG, "Low priority worker executing job\n", 2);
	expect_lines(PINION_LOG_DEBUG, "Job completed in 7ms\n", 1);
	expect_lines(PINION_LOG_DEBUG, "Job failed in 7ms: -5\n", 1);
	expect_lines(PINION_LOG_DEBUG, "\n", 6);
}

/* The worker of high is named so: only it can run that lane's waiting jobs. */
static void check_worker_names(void)
{
	struct tasks_hold holds[2] = {{.prepare = NULL}};

	start(1, (struct pinion_thread_pool_sizes){1, 1, 1});
	tasks_hold_begin(&holds[0], thread_pool, 1);
	tasks_hold_begin(&holds[1], thread_pool, 2);
	execute(PINION_TASK_HIGH, 0);
	expect_lines(PINION_LOG_DEBUG, "High priority worker executing job\n", 1);
	tasks_hold_end(&holds[0]);
	tasks_hold_begin(&holds[0], thread_pool, 0);
	execute(0, 0);
	expect_lines(PINION_LOG_DEBUG, "Medium priority worker executing job\n", 1);
	tasks_hold_end(&holds[0]);
	tasks_hold_end(&holds[1]);
	finish();
}

static int succeed(struct pinion_task *task)
{
	(void)task;
	return 0;
}

static void check_quiet_and_deep(void)
{
	struct pinion_task tasks[DEEP + 1];
	struct pinion_task *all[DEEP + 1];
	struct tasks_hold hold = {.prepare = NULL};

	start(0, (struct pinion_thread_pool_sizes){0, 0, 1});
	run_one_of_each();
	tasks_hold_begin(&hold, thread_pool, 0);
	for (uint32_t i = 0; i <= DEEP; i++) {
		tasks[i] = (struct pinion_task){.run = succeed};
		all[i] = &tasks[i];
	}
	expect_number("spawn", 0, pinion_task_spawn_batch(thread_pool, all, DEEP + 1));
	tasks_hold_end(&hold);
	finish();
	expect_lines(PINION_LOG_DEBUG, "\n", 0);
	expect_lines(PINION_LOG_WARN, "Medium priority queue depth: 8 jobs\n", 1);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_calls();
	check_jobs();
	check_worker_names();
	check_quiet_and_deep();
	return expect_status();
}

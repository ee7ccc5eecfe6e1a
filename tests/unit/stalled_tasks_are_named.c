/* SPDX-License-Identifier: MIT */
/*
 * Goal: a task that runs for longer than `stall_ms` without progress is named
 * in the log once, with its worker and lane, on a runtime of one worker and on
 * a crew; one whose job tells of progress is not, nor is a worker that sleeps,
 * nor anybody where the limit is not set. Many are as few lines as ten a
 * second. WP-26, WP-35, W46.
 * Method: tasks that hold their worker until the log has said so; a log that
 * keeps its lines and wakes who waits for one. Where nothing is to be said,
 * real time has to pass: that is what a stall is.
 */
#include "tests/support/jobs.h"

#include <pinion/crew.h>
#include <pinion/execute.h>

enum {
	STALL_MS = 20,
	CREW = 0,	/* one worker of each lane */
	CROWD = 24,	/* more workers than lines in a second */
	WHILE_MS = 300, /* many times that */
	STEP_MS = 5,
	/* Which a machine in trouble does not reach between two steps. */
	PROGRESS_STALL_MS = 2000,
	LIMIT_SECONDS = 60,
};

static char lines[16384];
static bool is_open;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; /* lines, is_open */

static void keep(void *arg, enum pinion_log_level level, const char *message)
{
	size_t length;

	(void)arg;
	pthread_mutex_lock(&lock);
	length = strlen(lines);
	snprintf(lines + length, sizeof(lines) - length, "%d %s\n", (int)level, message);
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static uint32_t count_locked(const char *text)
{
	uint32_t found = 0;

	for (const char *at = lines; (at = strstr(at, text)) != NULL; at++) {
		found++;
	}
	return found;
}

static uint32_t count(const char *text)
{
	uint32_t found;

	pthread_mutex_lock(&lock);
	found = count_locked(text);
	pthread_mutex_unlock(&lock);
	return found;
}

static void await_named(uint32_t wanted)
{
	pthread_mutex_lock(&lock);
	while (count_locked("without progress") < wanted) {
		pthread_cond_wait(&changed, &lock);
	}
	pthread_mutex_unlock(&lock);
}

/* Holds its worker until so many stalled tasks were named. */
static int hold_until_named(void *arg)
{
	await_named(*(const uint32_t *)arg);
	return 0;
}

/* Nobody waits for anything here: what may go wrong needs the time. */
static void pass_time(uint32_t ms)
{
	struct timespec pause = {.tv_nsec = (long)ms * 1000 * 1000};

	nanosleep(&pause, NULL);
}

/* Shown by its name, as it is exported. */
int pinion_test_hold_for_long(void *arg);
int pinion_test_hold_for_long(void *arg)
{
	hold_until_named(arg);
	/* Named once, however long it goes on. */
	pass_time(WHILE_MS);
	return 0;
}

/* A crew, or workers for any lane. */
static struct pinion_runtime *start(uint64_t stall_ms, uint32_t sentry_us, uint32_t worker_count)
{
	const struct pinion_crew_sizes sizes = {1, 1, 1};
	struct pinion_runtime *runtime;
	struct pinion_config config;
	int rc;

	lines[0] = '\0';
	pinion_crew_config_init(&config);
	config.log = keep;
	config.stall_ms = stall_ms;
	config.sentry_us = sentry_us;
	config.worker_count = worker_count;
	rc = worker_count == CREW ? pinion_crew_create(&config, &sizes, &runtime)
				  : pinion_runtime_create(&config, &runtime);
	expect_ready("create", rc == 0);
	return runtime;
}

static void call(struct pinion_runtime *crew, uint32_t flags, pinion_call_fn run, void *arg)
{
	struct pinion_call call = {.task.flags = flags, .run = run, .arg = arg};

	expect_number("start", 0, pinion_call_start(crew, &call));
	expect_number("wait", 0, pinion_future_wait(&call.done, UINT64_MAX));
}

static void check_one_worker(void)
{
	struct pinion_runtime *crew = start(STALL_MS, 10000, 1);
	uint32_t one = 1;

	call(crew, 0, pinion_test_hold_for_long, &one);
	expect_number("named once", 1, count("without progress"));
	expect_number("as a warning", 1, count("1 worker "));
	expect_number("with its lane", 1, count("of the normal lane"));
	pinion_runtime_destroy(crew);
}

static void check_lanes(void)
{
	struct pinion_runtime *crew = start(STALL_MS, 0, CREW);
	uint32_t one = 1;
	uint32_t two = 2;

	call(crew, PINION_TASK_LOW, hold_until_named, &one);
	expect_number("low", 1, count("of the low lane"));
	call(crew, PINION_TASK_HIGH, hold_until_named, &two);
	expect_number("high", 1, count("of the high lane"));
	expect_number("each once", 2, count("without progress"));
	pinion_runtime_destroy(crew);
}

/* ---- jobs that tell of progress ---- */

static uint32_t job_ended;

static int step_on(struct pinion_job *job)
{
	/* For longer, in all, than it may be without. */
	for (uint32_t i = 1; i <= PROGRESS_STALL_MS * 3 / 2 / STEP_MS; i++) {
		pinion_job_set_progress(job, i);
		pass_time(STEP_MS);
	}
	__atomic_store_n(&job_ended, 1, __ATOMIC_RELEASE);
	return 0;
}

static int step_in_place(struct pinion_job *job)
{
	uint32_t one = 1;

	pinion_job_set_progress(job, 1);
	hold_until_named(&one);
	__atomic_store_n(&job_ended, 1, __ATOMIC_RELEASE);
	return 0;
}

static void run_job(struct pinion_runtime *crew, pinion_job_fn run)
{
	struct pinion_admission admission;
	struct pinion_job job = {.run = run};
	struct pinion_job *jobs = &job;

	job_ended = 0;
	expect_number("init", 0, pinion_admission_init(&admission, crew, NULL));
	expect_number("spawn", 0, pinion_admission_spawn(&admission, &jobs, 1, NULL));
	expect_number("drain", 0, pinion_admission_drain(&admission, UINT64_MAX));
	expect_number("it ended", 1, __atomic_load_n(&job_ended, __ATOMIC_ACQUIRE));
}

static void check_progress(void)
{
	struct pinion_runtime *crew = start(STALL_MS, 10000, 2);

	run_job(crew, step_in_place);
	expect_number("no progress", 1, count("without progress"));
	pinion_runtime_destroy(crew);

	crew = start(PROGRESS_STALL_MS, 10000, 2);
	run_job(crew, step_on);
	expect_number("progress", 0, count("without progress"));
	pinion_runtime_destroy(crew);
}

/* ---- none, and many ---- */

static int hold_for_a_while(void *arg)
{
	(void)arg;
	pass_time(WHILE_MS);
	return 0;
}

static void check_nobody(void)
{
	struct pinion_runtime *crew = start(0, 10000, 1);

	call(crew, 0, hold_for_a_while, NULL);
	expect_number("not asked for", 0, count("without progress"));
	pinion_runtime_destroy(crew);
	/* Its workers sleep, for many times the limit. */
	crew = start(1, 10000, CREW);
	hold_for_a_while(NULL);
	expect_number("asleep", 0, count("without progress"));
	pinion_runtime_destroy(crew);
}

static int hold_until_open(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	while (!is_open) {
		pthread_cond_wait(&changed, &lock);
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

static void open_all(void)
{
	pthread_mutex_lock(&lock);
	is_open = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void check_crowd(void)
{
	struct pinion_runtime *crew = start(STALL_MS, 10000, CROWD);
	static struct pinion_call calls[CROWD];

	for (uint32_t i = 0; i < CROWD; i++) {
		calls[i] = (struct pinion_call){.run = hold_until_open};
		expect_number("start", 0, pinion_call_start(crew, &calls[i]));
	}
	await_named(10);
	open_all();
	for (uint32_t i = 0; i < CROWD; i++) {
		expect_number("wait", 0, pinion_future_wait(&calls[i].done, UINT64_MAX));
	}
	/* Until one stalls in a second in which it may be said. */
	for (int i = 0; count("more stalled tasks") == 0 && i < LIMIT_SECONDS; i++) {
		call(crew, 0, hold_for_a_while, NULL);
	}
	expect_true("ten lines at first", count("without progress") >= 10);
	expect_number("and of those left out", 1, count("more stalled tasks"));
	pinion_runtime_destroy(crew);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_one_worker();
	check_lanes();
	check_progress();
	check_nobody();
	check_crowd();
	return expect_status();
}

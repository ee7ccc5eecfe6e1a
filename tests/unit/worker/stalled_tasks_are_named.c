/* SPDX-License-Identifier: MIT */
/*
 * Goal: a task that runs for longer than `stall_ms` without progress is named
 * in the log, as a warning and with its lane, on a runtime of one worker and on
 * a thread pool; so is a task whose job reported progress, and then none; a
 * report is a sign of life, and saying the same again is none. After a drain
 * the metrics page shows no stalled task. No task is named where the limit is
 * not set. WP-26, WP-35, W46.
 * Method: tasks that hold their worker until the log has said something; a log
 * that keeps its lines and wakes a thread that waits for a stall. A worker that
 * the machine holds up is reported as well, before its task begins or when it
 * is over, and then the task is not: so each is tried until it is named itself.
 * How long it takes, how often it is said and which must not be named is in
 * stalls_are_told_by_clock, with a clock of its own: no pause of the machine
 * makes either fail.
 */
#include "runtime/worker/stall.h"
#include "runtime/worker/watchdog.h"
#include "runtime/worker/worker.h"
#include "tests/support/jobs.h"
#include "tests/support/metrics.h"

#include <pinion/call.h>
#include <pinion/thread_pool.h>

enum {
	THREAD_POOL = 0, /* one worker of each lane */
	/*
	 * The log reports these workers less than ten times a second, whatever
	 * they do, and leaves no line out.
	 */
	STALL_MS = 400,
	WORKERS_MAX = 3,
	WHILE_MS = 300,
	LIMIT_SECONDS = 120,
};

_Static_assert(WORKERS_MAX * 1000 / STALL_MS < 10, "no line is left out");

static char lines[16384];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; /* lines */

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

/* Holds its worker until one more worker was reported, whichever it is. */
static int hold_until_told(void *arg)
{
	uint32_t before;

	(void)arg;
	pthread_mutex_lock(&lock);
	before = count_locked("without progress");
	/* It may have been reported already, in which case not again. */
	pin_stall_note_life(pin_worker_current());
	while (count_locked("without progress") == before) {
		pthread_cond_wait(&changed, &lock);
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

static int spin_until_told(struct pinion_task *task)
{
	(void)task;
	return hold_until_told(NULL);
}

/* A thread pool, or workers for any lane. */
static struct pinion_runtime *start(uint64_t stall_ms, uint32_t watchdog_us, uint32_t worker_count)
{
	const struct pinion_thread_pool_sizes sizes = {1, 1, 1};
	struct pinion_runtime *runtime;
	struct pinion_config config;
	int rc;

	lines[0] = '\0';
	pinion_thread_pool_config_init(&config);
	config.tuning = runtimes_thread_pool_tuning();
	config.log = keep;
	runtimes_tuning.stall_ms = stall_ms;
	runtimes_tuning.watchdog_us = watchdog_us;
	config.worker_count = worker_count;
	rc = worker_count == THREAD_POOL ? pinion_thread_pool_create(&config, &sizes, &runtime)
					 : pinion_runtime_create(&config, &runtime);
	expect_ready("create", rc == 0);
	return runtime;
}

static void call(struct pinion_runtime *thread_pool, uint32_t flags, pinion_call_fn run, void *arg)
{
	struct pinion_call call = {.task.flags = flags, .run = run, .arg = arg};

	expect_number("start", 0, pinion_call_start(thread_pool, &call));
	expect_number("wait", 0, pinion_future_wait(&call.done, UINT64_MAX));
}

/* As often as it takes; "LEVEL worker …: task NAME of the LANE lane …". */
static void await_named(struct pinion_runtime *thread_pool, uint32_t flags, const char *lane)
{
	char name[PIN_SYMBOL_BYTES];
	char line[sizeof(name) + 64];

	pin_running_describe((pin_fault_fn)hold_until_told, name);
	snprintf(line, sizeof(line), "task %s of the %s lane", name, lane);
	do {
		call(thread_pool, flags, hold_until_told, NULL);
	} while (count(line) == 0);
}

static void check_one_worker(void)
{
	struct pinion_runtime *thread_pool = start(STALL_MS, 10000, 1);

	await_named(thread_pool, 0, "normal");
	pinion_runtime_destroy(thread_pool);
	expect_number("as a warning", count("for more than"), count("1 worker 0: task"));
}

static void check_lanes(void)
{
	struct pinion_runtime *thread_pool = start(STALL_MS, 0, THREAD_POOL);

	await_named(thread_pool, PINION_TASK_LOW, "low");
	await_named(thread_pool, PINION_TASK_HIGH, "high");
	pinion_runtime_destroy(thread_pool);
}

/* ---- jobs that report progress ---- */

static bool has_run;

/* What the watchdog goes by. */
static uint32_t signs_of_life(void)
{
	return pin_load_relaxed_u32(&pin_worker_current()->life);
}

static int step_in_place(struct pinion_job *job)
{
	uint32_t before = signs_of_life();

	pinion_job_set_progress(job, 1);
	expect_true("progress is a sign of life", signs_of_life() != before);
	before = signs_of_life();
	pinion_job_set_progress(job, 1);
	expect_number("none is none", before, signs_of_life());
	pinion_job_set_progress(job, 2);
	expect_true("more is another", signs_of_life() != before);
	has_run = true;
	return hold_until_told(NULL);
}

static void check_progress(void)
{
	struct pinion_runtime *thread_pool = start(STALL_MS, 10000, 2);
	struct pinion_admission admission;
	struct pinion_job job = {.run = step_in_place};
	struct pinion_job *jobs = &job;

	expect_number("init", 0, pinion_admission_init(&admission, thread_pool, NULL));
	expect_number("spawn", 0, pinion_admission_spawn(&admission, &jobs, 1, NULL));
	expect_number("drain", 0, pinion_admission_drain(&admission, UINT64_MAX));
	/* Else it would be in there still. */
	expect_true("it was reported", has_run && count("without progress") > 0);
	pinion_runtime_destroy(thread_pool);
}

/* ---- the end ---- */

/* The watchdog ends with it, before its next look. */
static void check_drained(void)
{
	struct pinion_task task = {.run = spin_until_told};
	struct pinion_runtime *runtime = start(STALL_MS, 0, 1);
	struct pinion_metrics *metrics;
	uint64_t stalled = UINT64_MAX;
	uint64_t stalls = 0;
	int row;

	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	metrics = open_own(0);
	expect_number("snapshot", 0, pinion_metrics_snapshot(metrics));
	row = pinion_metrics_find(metrics, "tasks_stalled", PINION_METRICS_RUNTIME, UINT32_MAX);
	expect_number("now", 0, pinion_metrics_read(metrics, (uint32_t)row, 0, &stalled));
	row = pinion_metrics_find(metrics, "stalls", PINION_METRICS_RUNTIME, UINT32_MAX);
	expect_number("so far", 0, pinion_metrics_read(metrics, (uint32_t)row, 0, &stalls));
	pinion_metrics_close(metrics);
	expect_number("stalled now", 0, (long long)stalled);
	expect_number("stalled so far", count("for more than"), (long long)stalls);
	expect_number("each is over", count("for more than"), count("goes on: it was"));
	pinion_runtime_destroy(runtime);
}

/* ---- none ---- */

/* No thread waits for anything here: a wrong report needs the time. */
static int hold_for_a_while(void *arg)
{
	struct timespec pause = {.tv_nsec = (long)WHILE_MS * 1000 * 1000};

	(void)arg;
	nanosleep(&pause, NULL);
	return 0;
}

static void check_nobody(void)
{
	struct pinion_runtime *thread_pool = start(0, 10000, 1);

	call(thread_pool, 0, hold_for_a_while, NULL);
	expect_number("not asked for", 0, count("without progress"));
	pinion_runtime_destroy(thread_pool);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_one_worker();
	check_lanes();
	check_progress();
	check_drained();
	check_nobody();
	return expect_status();
}

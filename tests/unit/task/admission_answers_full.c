/* SPDX-License-Identifier: MIT */
/*
 * Goal: an admission takes as many jobs as its limits say, of each lane and in
 * all, and answers who comes then with numbers that are true; batches come in
 * whole or not at all; a job has its slot until it ends, by its return or
 * later; higher lanes are served first; pools side by side, and on one runtime,
 * do not disturb each other; each mistake is refused. RP-1, RP-2, RP-3, RP-5,
 * RP-7, RP-12, RP-13, RP-17, W41, W51, W54.
 * Method: one worker that is held, so that admitted jobs stay in.
 */
#include "tests/support/clock.h"
#include "tests/support/jobs.h"

#include <sys/wait.h>

enum {
	LIMIT_SECONDS = 60,
	HIGH = PINION_LANE_HIGH,
	NORMAL = PINION_LANE_NORMAL,
	LOW = PINION_LANE_LOW,
};

static struct pinion_runtime *runtime;
static struct tasks_hold hold;
static struct pinion_admission admission;
static struct jobs_job jobs[16];

static void check_mistakes(void)
{
	struct pinion_admission_limits limits = {.max_tasks = {2, 2, 2}};
	struct pinion_admission_limits wrong = limits;
	struct pinion_job *none[] = {NULL};

	expect_number("no runtime", -EINVAL, pinion_admission_init(&admission, NULL, &limits));
	wrong.max_tasks[LOW] = PINION_ADMISSION_TASKS + 1;
	expect_number("a lane", -EINVAL, pinion_admission_init(&admission, runtime, &wrong));
	wrong = limits;
	wrong.max_tasks_total = PINION_LANES * PINION_ADMISSION_TASKS + 1;
	expect_number("total", -EINVAL, pinion_admission_init(&admission, runtime, &wrong));
	wrong = limits;
	wrong.flags = 2;
	expect_number("flags", -EINVAL, pinion_admission_init(&admission, runtime, &wrong));
	wrong = limits;
	wrong.reserved[2] = 1;
	expect_number("reserved", -EINVAL, pinion_admission_init(&admission, runtime, &wrong));

	expect_number("init", 0, pinion_admission_init(&admission, runtime, &limits));
	jobs_init(jobs, 3, 0);
	expect_number("none", 0, pinion_admission_spawn(&admission, none, 0, NULL));
	expect_number("NULL", -EINVAL, pinion_admission_spawn(&admission, none, 1, NULL));
	expect_number("too many", -EINVAL, jobs_spawn_all(&admission, jobs, 3, NULL));
	jobs[1].job.task.flags = 64;
	expect_number("flags", -EINVAL, jobs_spawn_all(&admission, jobs, 2, NULL));
	jobs[1].job.task.flags = PINION_TASK_HIGH | PINION_TASK_LOW;
	expect_number("two lanes", -EINVAL, jobs_spawn_all(&admission, jobs, 2, NULL));
	jobs[1].job.task.flags = 0;
	jobs[1].job.run = NULL;
	expect_number("no run", -EINVAL, jobs_spawn_all(&admission, jobs, 2, NULL));
	jobs_drain(&admission);
	jobs_expect("refused", &jobs[0], 0, 0);
}

/* Of each lane, and of all. */
static void check_limits(void)
{
	struct pinion_admission_limits limits = {.max_tasks = {2, 3, 1}, .max_tasks_total = 4};
	struct pinion_admission_stats counters;
	struct pinion_full full = {.current = 77};

	expect_number("init", 0, pinion_admission_init(&admission, runtime, &limits));
	jobs_init(jobs, 3, PINION_TASK_HIGH);
	jobs_init(jobs + 3, 2, PINION_TASK_LOW);
	jobs_init(jobs + 5, 2, 0);
	tasks_hold_begin(&hold, runtime, 0);
	expect_number("high", 0, jobs_spawn(&admission, &jobs[0], &full));
	expect_number("high", 0, jobs_spawn(&admission, &jobs[1], &full));
	expect_number("not written", 77, full.current);
	expect_number("high", -EAGAIN, jobs_spawn(&admission, &jobs[2], &full));
	jobs_expect_full(&full, 2, 2, HIGH);
	expect_number("none has ended", 0, (long long)full.estimated_wait_us);
	expect_number("low", 0, jobs_spawn(&admission, &jobs[3], &full));
	expect_number("low", -EAGAIN, jobs_spawn(&admission, &jobs[4], &full));
	jobs_expect_full(&full, 1, 1, LOW);
	expect_number("normal", 0, jobs_spawn(&admission, &jobs[5], &full));
	expect_number("normal", -EAGAIN, jobs_spawn(&admission, &jobs[6], &full));
	jobs_expect_full(&full, 4, 4, PINION_LANES);
	expect_number("no answer wanted", -EAGAIN, jobs_spawn(&admission, &jobs[6], NULL));
	counters = jobs_counters(&admission);
	expect_number("high in", 2, counters.current[HIGH]);
	expect_number("normal in", 1, counters.current[NORMAL]);
	expect_number("low in", 1, counters.current[LOW]);
	expect_number("running", 0, counters.running);
	expect_number("high refused", 1, (long long)counters.refused[HIGH]);
	expect_number("normal refused", 2, (long long)counters.refused[NORMAL]);
	expect_number("low refused", 1, (long long)counters.refused[LOW]);
	tasks_hold_end(&hold);
	jobs_drain(&admission);
	for (uint32_t i = 0; i < 7; i++) {
		bool is_in = i != 2 && i != 4 && i != 6;

		jobs_expect("run", &jobs[i], is_in ? 1 : 0, 0);
	}
}

/* In several lanes at once, too. */
static void check_batches(void)
{
	struct pinion_full full;

	jobs_admission(&admission, runtime, 2, 5, 0);
	jobs_init(jobs, 2, PINION_TASK_HIGH);
	jobs_init(jobs + 2, 2, 0);
	jobs_init(jobs + 4, 2, PINION_TASK_LOW);
	tasks_hold_begin(&hold, runtime, 0);
	expect_number("beyond the total", -EINVAL, jobs_spawn_all(&admission, jobs, 6, NULL));
	expect_number("five", 0, jobs_spawn_all(&admission, jobs, 5, &full));
	expect_number("one more", -EAGAIN, jobs_spawn(&admission, &jobs[5], &full));
	jobs_expect_full(&full, 5, 5, PINION_LANES);
	tasks_hold_end(&hold);
	jobs_drain(&admission);
	for (uint32_t i = 0; i < 5; i++) {
		jobs_expect("of five", &jobs[i], 1, 0);
	}
	jobs_expect("refused", &jobs[5], 0, 0);

	jobs_admission(&admission, runtime, 2, 5, 0);
	jobs_init(jobs, 6, 0);
	tasks_hold_begin(&hold, runtime, 0);
	expect_number("one", 0, jobs_spawn(&admission, &jobs[0], NULL));
	expect_number("two", -EAGAIN, jobs_spawn_all(&admission, jobs + 1, 2, &full));
	jobs_expect_full(&full, 1, 2, NORMAL);
	tasks_hold_end(&hold);
	jobs_drain(&admission);
	jobs_expect("one", &jobs[0], 1, 0);
	jobs_expect("neither of two", &jobs[1], 0, 0);
	jobs_expect("neither of two", &jobs[2], 0, 0);
}

static uint64_t took_ns; /* what the next job takes, by its worker's clock */

static int run_for_some_time(struct pinion_job *job)
{
	clock_own_ns += took_ns;
	return jobs_run(job);
}

/* Its mean is then this, in nanoseconds. */
static void expect_mean(uint64_t job_took_ns, uint64_t mean_ns)
{
	uint32_t ended = pin_load_acquire_u32(&jobs_ended);

	took_ns = job_took_ns;
	jobs_init(jobs, 1, PINION_TASK_HIGH);
	jobs[0].job.run = run_for_some_time;
	expect_number("timed", 0, jobs_spawn(&admission, &jobs[0], NULL));
	tasks_await(&jobs_ended, ended + 1);
	tasks_hold_begin(&hold, runtime, 0); /* so the job has ended altogether */
	tasks_hold_end(&hold);
	expect_number("mean", (long long)mean_ns, (long long)jobs_counters(&admission).job_ns);
}

/*
 * By the time of jobs, nine tenths of it the average before the last, the
 * number ahead, and the number of workers.
 */
static void check_estimate(void)
{
	const uint64_t job_ns = 1900 * 1000;
	struct pinion_full full;

	jobs_admission(&admission, runtime, 3, 0, 0);
	clock_stop(runtime, 0);
	expect_mean(1000 * 1000, 1000 * 1000);
	expect_mean(11000 * 1000, 2000 * 1000);
	expect_mean(1000 * 1000, job_ns);
	jobs_init(jobs, 3, PINION_TASK_HIGH);
	jobs_init(jobs + 3, 4, 0);
	jobs_init(jobs + 7, 1, PINION_TASK_HIGH);
	tasks_hold_begin(&hold, runtime, 0);
	expect_number("high", 0, jobs_spawn_all(&admission, jobs, 2, NULL));
	expect_number("normal", 0, jobs_spawn_all(&admission, jobs + 3, 3, NULL));
	expect_number("full", -EAGAIN, jobs_spawn(&admission, &jobs[6], &full));
	jobs_expect_full(&full, 3, 3, NORMAL);
	expect_number(
		"estimate", (long long)(5 * job_ns / 1000), (long long)full.estimated_wait_us);
	expect_number("high", 0, jobs_spawn(&admission, &jobs[2], NULL));
	expect_number("full", -EAGAIN, jobs_spawn(&admission, &jobs[7], &full));
	expect_number("of its own lane", (long long)(3 * job_ns / 1000),
		(long long)full.estimated_wait_us);
	tasks_hold_end(&hold);
	jobs_drain(&admission);
}

static void check_going_on(void)
{
	struct pinion_admission_stats counters;
	uint32_t ended = pin_load_acquire_u32(&jobs_ended);

	jobs_admission(&admission, runtime, 1, 0, 0);
	jobs_init(jobs, 2, 0);
	jobs[0].result = PINION_JOB_GOES_ON;
	jobs[1].result = -EIO;
	expect_number("goes on", 0, jobs_spawn(&admission, &jobs[0], NULL));
	tasks_await(&jobs_ended, ended + 1);
	counters = jobs_counters(&admission);
	expect_number("in", 1, counters.current[NORMAL]);
	expect_number("running", 1, counters.running);
	expect_number("still full", -EAGAIN, jobs_spawn(&admission, &jobs[1], NULL));
	pinion_job_end(&jobs[0].job, -ENOENT);
	expect_number("failed", 1, (long long)jobs_counters(&admission).failed);
	expect_number("room", 0, jobs_spawn(&admission, &jobs[1], NULL));
	jobs_drain(&admission);
	expect_number("failed", 2, (long long)jobs_counters(&admission).failed);
}

/* Urgent jobs pass those admitted before. */
static void check_lanes(void)
{
	struct pinion_runtime *strict = NULL;
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_AUTO);
	runtimes_tuning.lane_floor = 0;
	expect_number("create", 0, pinion_runtime_create(&config, &strict));
	expect_ready(runtimes_log, strict != NULL);
	jobs_admission(&admission, strict, 1, 0, 0);
	jobs_init(jobs, 1, PINION_TASK_LOW);
	jobs_init(jobs + 1, 1, 0);
	jobs_init(jobs + 2, 1, PINION_TASK_HIGH);
	tasks_hold_begin(&hold, strict, 0);
	for (uint32_t i = 0; i < 3; i++) {
		expect_number("one of each", 0, jobs_spawn(&admission, &jobs[i], NULL));
	}
	tasks_hold_end(&hold);
	jobs_drain(&admission);
	expect_true("high before normal", jobs[2].number < jobs[1].number);
	expect_true("normal before low", jobs[1].number < jobs[0].number);
	pinion_runtime_destroy(strict);
}

/* A full or held admission does not delay the others. */
static void check_side_by_side(void)
{
	struct pinion_runtime *other = runtimes_start(1, PINION_IO_AUTO);
	struct pinion_admission beside;
	struct pinion_admission elsewhere;
	uint32_t ended = pin_load_acquire_u32(&jobs_ended);

	jobs_admission(&admission, runtime, 1, 0, 0);
	jobs_admission(&beside, runtime, 1, 0, 0);
	jobs_admission(&elsewhere, other, 1, 0, 0);
	jobs_init(jobs, 4, 0);
	tasks_hold_begin(&hold, runtime, 0);
	expect_number("one", 0, jobs_spawn(&admission, &jobs[0], NULL));
	expect_number("full", -EAGAIN, jobs_spawn(&admission, &jobs[3], NULL));
	expect_number("on the same runtime", 0, jobs_spawn(&beside, &jobs[1], NULL));
	expect_number("on another", 0, jobs_spawn(&elsewhere, &jobs[2], NULL));
	tasks_await(&jobs_ended, ended + 1);
	jobs_expect("while the other is held", &jobs[2], 1, 0);
	tasks_hold_end(&hold);
	jobs_drain(&admission);
	jobs_drain(&beside);
	jobs_drain(&elsewhere);
	pinion_runtime_destroy(other);
}

/* In a child, where no worker would run anything. */
static void check_fork(void)
{
	int status = 0;
	pid_t child;

	jobs_admission(&admission, runtime, 1, 0, 0);
	jobs_init(jobs, 1, 0);
	fflush(stdout);
	child = fork();
	expect_ready("fork", child >= 0);
	if (child == 0) {
		bool is_refused;

		/* Returns, though the lock may have been another thread's. */
		pinion_admission_close(&admission);
		is_refused = jobs_spawn(&admission, &jobs[0], NULL) == -ECHILD &&
			jobs_spawn_wait(&admission, &jobs[0], UINT64_MAX) == -ECHILD &&
			pinion_admission_drain(&admission, UINT64_MAX) == -ECHILD;

		_exit(is_refused ? 0 : 1);
	}
	expect_ready("waitpid", waitpid(child, &status, 0) == child);
	expect_number("the child's answers", 0, status);
	jobs_drain(&admission);
}

/* The runtime takes no more: the slot is given back. */
static void check_ended_runtime(void)
{
	jobs_admission(&admission, runtime, 1, 0, 0);
	jobs_init(jobs, 1, 0);
	expect_number("join", -EIO, pinion_runtime_join(runtime));
	expect_number("ended", -ESHUTDOWN, jobs_spawn(&admission, &jobs[0], NULL));
	expect_number("ended", -ESHUTDOWN, jobs_spawn_wait(&admission, &jobs[0], UINT64_MAX));
	jobs_expect_empty(&admission);
	jobs_drain(&admission);
	jobs_expect("neither", &jobs[0], 0, 0);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	runtime = runtimes_start(1, PINION_IO_AUTO);
	check_mistakes();
	check_limits();
	check_batches();
	check_estimate();
	check_going_on();
	check_lanes();
	check_side_by_side();
	check_fork();
	check_ended_runtime();
	pinion_runtime_destroy(runtime);
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: waiters for a slot, threads and tasks, get it in the order of coming,
 * higher lanes first, several jobs together, without overtaking; a wait ends
 * with its deadline, and with a close; a drain returns when no job is in; a
 * stop cancels admitted jobs and gives their slots back. RP-13, W41, W54, C13.
 * Method: jobs that go on until the test ends them, one at a time; their
 * numbers show which ran when.
 */
#include "tests/support/jobs.h"
#include "tests/support/stops.h"

enum {
	LIMIT_SECONDS = 60,
	HIGH = PINION_LANE_HIGH,
	NORMAL = PINION_LANE_NORMAL,
	LOW = PINION_LANE_LOW,
};

static struct pinion_runtime *runtime;
static struct pinion_admission admission;
static struct jobs_job jobs[8];

struct spawner {
	pthread_t thread;
	struct jobs_job *jobs;
	uint32_t count;
	int rc;
};

static void *spawn_wait(void *arg)
{
	struct spawner *spawner = arg;
	struct pinion_job *all[] = {&spawner->jobs[0].job, &spawner->jobs[1].job};

	spawner->rc = pinion_admission_spawn_wait(&admission, all, spawner->count, UINT64_MAX);
	return NULL;
}

/* Returns when it waits, as one of `waiting` in that lane. */
static void begin_waiting(struct spawner *spawner, struct jobs_job *first, uint32_t count,
	uint32_t lane, uint32_t waiting)
{
	*spawner = (struct spawner){.jobs = first, .count = count, .rc = 1};
	expect_ready("thread", pthread_create(&spawner->thread, NULL, spawn_wait, spawner) == 0);
	jobs_await_waiters(&admission, lane, waiting);
}

static void end_waiting(struct spawner *spawner, int rc)
{
	pthread_join(spawner->thread, NULL);
	expect_number("the wait", rc, spawner->rc);
}

/* Jobs that stay until the test ends them. */
static void init_staying(struct jobs_job *first, uint32_t count, uint32_t flags)
{
	jobs_init(first, count, flags);
	for (uint32_t i = 0; i < count; i++) {
		first[i].result = PINION_JOB_GOES_ON;
	}
}

/* Ends a job that has begun, or is about to. */
static void end_job(struct jobs_job *job)
{
	tasks_await(&job->runs, 1);
	pinion_job_end(&job->job, 0);
}

static void check_deadlines(void)
{
	jobs_admission(&admission, runtime, 1, 0, 0);
	init_staying(jobs, 2, 0);
	expect_number("room", 0, jobs_spawn_wait(&admission, &jobs[0], 0));
	expect_number("not now", -ETIME, jobs_spawn_wait(&admission, &jobs[1], 0));
	expect_number("not soon", -ETIME,
		jobs_spawn_wait(&admission, &jobs[1], pinion_clock_now_ns() + 1000 * 1000));
	jobs_expect("not spawned", &jobs[1], 0, 0);
	expect_number("not drained", -ETIME, pinion_admission_drain(&admission, 0));
	end_job(&jobs[0]);
	jobs_drain(&admission);
}

static void check_order(void)
{
	struct spawner spawners[4];
	struct pinion_full full;

	jobs_admission(&admission, runtime, 2, 2, 0);
	init_staying(jobs, 3, 0);
	init_staying(jobs + 3, 1, PINION_TASK_LOW);
	init_staying(jobs + 4, 4, PINION_TASK_HIGH);
	expect_number("two", 0, jobs_spawn_all(&admission, jobs, 2, NULL));
	begin_waiting(&spawners[0], &jobs[3], 1, LOW, 1);
	begin_waiting(&spawners[1], &jobs[2], 1, NORMAL, 1);
	begin_waiting(&spawners[2], &jobs[4], 2, HIGH, 1);
	begin_waiting(&spawners[3], &jobs[6], 1, HIGH, 2);
	/* There is a slot now, but the oldest wants two. */
	end_job(&jobs[0]);
	expect_number("past who waits", -EAGAIN, jobs_spawn(&admission, &jobs[7], &full));
	jobs_expect_full(&full, 0, 2, HIGH);
	for (uint32_t i = 2; i < 7; i++) {
		jobs_expect("not yet", &jobs[i], 0, 0);
	}
	end_job(&jobs[1]);
	end_waiting(&spawners[2], 0);
	end_job(&jobs[4]);
	end_waiting(&spawners[3], 0);
	end_job(&jobs[5]);
	end_waiting(&spawners[1], 0);
	jobs_expect("the low lane last", &jobs[3], 0, 0);
	end_job(&jobs[2]);
	end_waiting(&spawners[0], 0);
	end_job(&jobs[6]);
	end_job(&jobs[3]);
	jobs_drain(&admission);
}

static void check_close(void)
{
	struct spawner spawner;

	jobs_admission(&admission, runtime, 1, 0, 0);
	init_staying(jobs, 3, 0);
	expect_number("one", 0, jobs_spawn(&admission, &jobs[0], NULL));
	begin_waiting(&spawner, &jobs[1], 1, NORMAL, 1);
	pinion_admission_close(&admission);
	end_waiting(&spawner, -ESHUTDOWN);
	pinion_admission_close(&admission);
	expect_number("closed", -ESHUTDOWN, jobs_spawn(&admission, &jobs[2], NULL));
	expect_number("closed", -ESHUTDOWN, jobs_spawn_wait(&admission, &jobs[2], UINT64_MAX));
	expect_number("one is in", -ETIME, pinion_admission_drain(&admission, 0));
	end_job(&jobs[0]);
	jobs_drain(&admission);
	jobs_expect("refused", &jobs[1], 0, 0);
}

/* ---- tasks that wait ---- */

static struct pinion_wait waits[3];
static struct pin_atomic_u32 step;

static int end_wait(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&step);
	return 0;
}

static int await(struct jobs_job *job, struct pinion_wait *wait)
{
	struct pinion_job *one = &job->job;

	return pinion_admission_spawn_async(runtime, &admission, &one, 1, wait);
}

static int run_waiting(struct pinion_task *task)
{
	struct pinion_job *none = NULL;

	(void)task;
	expect_number("it would wait for itself", -EDEADLK,
		jobs_spawn_wait(&admission, &jobs[1], UINT64_MAX));
	expect_number("drain", -EDEADLK, pinion_admission_drain(&admission, UINT64_MAX));
	expect_number("none", -EINVAL,
		pinion_admission_spawn_async(runtime, &admission, &none, 0, &waits[0]));
	tasks_signal(&step);
	return 0;
}

static int run_awaits(struct pinion_task *task)
{
	(void)task;
	for (uint32_t i = 0; i < 2; i++) {
		waits[i] = (struct pinion_wait){
			.task.run = end_wait, .deadline_ns = i == 0 ? UINT64_MAX : 0};
	}
	expect_number("await", 0, await(&jobs[1], &waits[0]));
	expect_number("under way", -EBUSY, await(&jobs[2], &waits[0]));
	expect_number("await", 0, await(&jobs[2], &waits[1]));
	tasks_signal(&step);
	return 0;
}

static int run_await_again(struct pinion_task *task)
{
	(void)task;
	waits[2] = (struct pinion_wait){.task.run = end_wait, .deadline_ns = UINT64_MAX};
	expect_number("await", 0, await(&jobs[3], &waits[2]));
	tasks_signal(&step);
	return 0;
}

static void check_tasks(void)
{
	static struct pinion_task task;
	uint32_t at = pin_load_acquire_u32(&step);

	jobs_admission(&admission, runtime, 1, 0, 0);
	init_staying(jobs, 4, 0);
	expect_number("one", 0, jobs_spawn(&admission, &jobs[0], NULL));
	expect_number("no worker", -EPERM, await(&jobs[1], &waits[0]));
	task = (struct pinion_task){.run = run_awaits};
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	/* The second has no time. */
	tasks_await(&step, at + 2);
	expect_number("no time", -ETIME, waits[1].result);
	end_job(&jobs[0]);
	tasks_await(&step, at + 3);
	expect_number("served", 0, waits[0].result);
	task = (struct pinion_task){.run = run_await_again};
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	tasks_await(&step, at + 4);
	pinion_admission_close(&admission);
	tasks_await(&step, at + 5);
	expect_number("closed", -ESHUTDOWN, waits[2].result);
	end_job(&jobs[1]);
	jobs_drain(&admission);
	jobs_expect("no time", &jobs[2], 0, 0);
	jobs_expect("closed", &jobs[3], 0, 0);

	jobs_admission(&admission, runtime, 1, 0, 0);
	init_staying(jobs, 2, 0);
	expect_number("one", 0, jobs_spawn(&admission, &jobs[0], NULL));
	task = (struct pinion_task){.run = run_waiting};
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	tasks_await(&step, at + 6);
	end_job(&jobs[0]);
	jobs_drain(&admission);
}

/* ---- the end of the runtime ---- */

static void check_stop(void)
{
	struct tasks_hold hold = {.prepare = NULL};
	pthread_t stop;

	jobs_admission(&admission, runtime, 3, 0, 0);
	jobs_init(jobs, 3, 0);
	jobs[1].job.task.flags = PINION_TASK_MANDATORY;
	jobs[2].job.cancel = NULL;
	tasks_hold_begin(&hold, runtime, 0);
	expect_number("three", 0, jobs_spawn_all(&admission, jobs, 3, NULL));
	stop = stops_begin(runtime);
	tasks_hold_end(&hold);
	stops_end(stop);
	jobs_expect("cancelled", &jobs[0], 0, 1);
	expect_number("reason", -ECANCELED, jobs[0].reason);
	jobs_expect("mandatory", &jobs[1], 1, 0);
	jobs_drain(&admission);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	runtime = runtimes_start(1, PINION_IO_AUTO);
	check_deadlines();
	check_order();
	check_close();
	check_tasks();
	check_stop();
	pinion_runtime_destroy(runtime);
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: a worker that blocks in a task for another runtime, or for whom it does
 * not know, goes on with its other tasks, up to `help_depth` of them on its
 * stack; what they wait for in turn is done then. Waits that only each other's
 * workers could end get -EDEADLK. Above a task that waits others may panic, end
 * their thread, be cancelled by a stop; jobs are counted right; lanes count.
 * C2, WP-1, WP-11, WP-36, C14, C15.
 * Method: runtimes of one worker or two that call each other.
 */
#include "runtime/core/admission.h"
#include "runtime/core/runtime_state.h"
#include "tests/support/expect.h"
#include "tests/support/runtimes.h"
#include "tests/support/sides.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <pthread.h>

enum {
	LIMIT_SECONDS = 60,
	LEVELS = 30,
};

/* ---- calls back and forth ---- */

struct call_level {
	int index;
	int last;
	int rc; /* of its call */
};

static struct call_level levels[LEVELS];
static int entered_count;

/* On the runtime of its parity. */
static int call_next(void *arg)
{
	struct call_level *level = arg;
	int result = 0;

	entered_count++;
	if (level->index == level->last) {
		return 7;
	}
	levels[level->index + 1] = (struct call_level){level->index + 1, level->last, 0};
	level->rc = pinion_execute(
		sides[(level->index + 1) % 2], call_next, &levels[level->index + 1], &result);
	return level->rc != 0 ? level->rc : result;
}

static int call_to(int last)
{
	int result = 0;

	entered_count = 0;
	levels[0] = (struct call_level){0, last, 0};
	expect_number("call", 0, pinion_execute(sides[0], call_next, &levels[0], &result));
	return result;
}

/* Of one worker: it is in one of its tasks while the last one runs. */
static void check_calls(void)
{
	sides_start(1, 4);
	expect_number("there", 7, call_to(1));
	expect_number("there and back", 7, call_to(2));
	expect_number("and so on", 7, call_to(9));
	expect_number("tasks entered", 10, entered_count);
	/* Four of each help, one of each blocks, nobody is left. */
	expect_number("too deep", -EDEADLK, call_to(10));
	expect_number("tasks entered", 10, entered_count);
	expect_number("again", 7, call_to(3));
	sides_end();

	sides_start(1, 0);
	expect_number("nobody helps", -EDEADLK, call_to(2));
	expect_number("tasks entered", 2, entered_count);
	sides_end();

	sides_start(2, 0);
	expect_number("a second worker", 7, call_to(3));
	expect_number("both are blocked", -EDEADLK, call_to(4));
	sides_end();
}

/* ---- waits for each other ---- */

struct waiter {
	struct pinion_task task;
	struct pinion_future *wanted;
	struct pinion_future *given;
	int rc;
};

static struct pinion_future futures[2];
static struct waiter waiters[2];
static struct pin_atomic_u32 waiting_count;

static int wait_then_set(struct pinion_task *task)
{
	struct waiter *waiter = (struct waiter *)(void *)task;

	pin_fetch_add_acq_rel_u32(&waiting_count, 1);
	waiter->rc = pinion_future_wait(waiter->wanted, UINT64_MAX);
	(void)pinion_future_set(waiter->given, NULL, 0);
	return 0;
}

static int stay_for_a_while(struct pinion_task *task)
{
	(void)task;
	while (!pin_load_acquire_u32(&sides_may_end)) {
		pinion_should_yield(sides[0]);
	}
	return 0;
}

static void spawn_waiter(int side)
{
	waiters[side] = (struct waiter){
		.task.run = wait_then_set,
		.wanted = &futures[1 - side],
		.given = &futures[side],
		.rc = 1,
	};
	expect_number("spawn", 0, pinion_spawn(sides[side], &waiters[side].task));
}

/* Neither would ever be set. `has_other`: one more task has to end first. */
static void check_knot(uint32_t workers, uint64_t help_depth, bool has_other)
{
	struct pinion_task other = {.run = stay_for_a_while};

	sides_start(workers, help_depth);
	pin_store_release_u32(&waiting_count, 0);
	pin_store_release_u32(&sides_may_end, false);
	for (int side = 0; side < 2; side++) {
		pinion_future_init(&futures[side], sides[side]);
	}
	if (has_other) {
		expect_number("spawn", 0, pinion_spawn(sides[0], &other));
	}
	spawn_waiter(0);
	spawn_waiter(1);
	while (has_other && pin_load_acquire_u32(&waiting_count) < 2) {
		sched_yield();
	}
	pin_store_release_u32(&sides_may_end, true);
	sides_end();
	expect_true("one of them", (waiters[0].rc == -EDEADLK) != (waiters[1].rc == -EDEADLK));
	expect_number("the other", 0, waiters[0].rc == 0 ? 0 : waiters[1].rc);
}

/* ---- for anybody ---- */

static struct pinion_timer timer;
static struct pinion_task simple[4];
static int ends[2];
static int wait_rc;
static int index_at_end;

static int wait_for_it(struct pinion_task *task)
{
	(void)task;
	wait_rc = pinion_future_wait(&sides_future, UINT64_MAX);
	index_at_end = pinion_worker_index(sides[0]);
	return 0;
}

static int panic_above(struct pinion_task *task)
{
	(void)task;
	ends[0]++;
	pinion_panic(-EIO, "above a task that waits");
	return 0;
}

static int exit_above(struct pinion_task *task)
{
	(void)task;
	ends[1]++;
	pthread_exit(NULL);
}

/* Its own worker's later tasks and timers are what it waits for. */
static void check_unknown(void)
{
	struct pinion_runtime_counters counters;

	sides_start(1, 1);
	pinion_future_init(&sides_future, NULL);
	sides_spawn(&simple[0], wait_for_it);
	sides_spawn(&simple[1], panic_above);
	sides_spawn(&simple[2], exit_above);
	sides_spawn(&simple[3], sides_set);
	expect_number("drain", 0, pinion_runtime_drain(sides[0]));
	expect_number("wait", 0, wait_rc);
	expect_number("its worker", 0, index_at_end);
	expect_number("panicked", 1, ends[0]);
	expect_number("ended its thread", 1, ends[1]);
	pinion_runtime_counters(sides[0], &counters, sizeof(counters));
	expect_number("unwound", 2, (long long)counters.tasks_unwound);
	/* A wait counts as one. */
	expect_number("run", 5, (long long)counters.tasks_run);
	expect_number("spawned", 5, (long long)counters.tasks_spawned);
	sides_end();

	sides_start(1, 1);
	pinion_future_init(&sides_future, NULL);
	timer = (struct pinion_timer){.task.run = sides_set};
	sides_spawn(&simple[0], wait_for_it);
	expect_number("timer", 0, pinion_timer_start(sides[0], &timer, pinion_now_ns() + 1000000));
	sides_end();
	expect_number("wait for a timer", 0, wait_rc);
}

static int wait_in_vain(struct pinion_task *task)
{
	(void)task;
	wait_rc = pinion_future_wait(&sides_future, pinion_now_ns() + 1000000);
	return 0;
}

static void check_deadline(uint64_t help_depth)
{
	sides_start(1, help_depth);
	pinion_future_init(&sides_future, NULL);
	wait_rc = 0;
	sides_spawn(&simple[0], wait_in_vain);
	sides_end();
	expect_number("deadline", -ETIME, wait_rc);
}

/* ---- a stop ---- */

static struct pinion_task queued[8];
static struct pin_atomic_u32 cancelled_count;

static int never_run(struct pinion_task *task)
{
	(void)task;
	return 0;
}

static void count_cancel(struct pinion_task *task)
{
	(void)task;
	pin_fetch_add_acq_rel_u32(&cancelled_count, 1);
}

static int stop_and_wait(struct pinion_task *task)
{
	for (int i = 0; i < 8; i++) {
		queued[i] = (struct pinion_task){.run = never_run, .cancel = count_cancel};
		expect_number("spawn", 0, pinion_spawn(sides[0], &queued[i]));
	}
	pin_store_release_u32(&sides_may_end, true);
	while (!pin_shared_is_stopping(&sides[0]->shared)) {
		sched_yield();
	}
	return wait_for_it(task);
}

/* What is queued is cancelled above the task that waits; its wait goes on. */
static void check_stop(void)
{
	pthread_t stopper;

	sides_start(1, 4);
	pinion_future_init(&sides_future, NULL);
	pin_store_release_u32(&sides_may_end, false);
	pin_store_release_u32(&cancelled_count, 0);
	wait_rc = 1;
	sides_spawn(&simple[0], stop_and_wait);
	while (!pin_load_acquire_u32(&sides_may_end)) {
		sched_yield();
	}
	expect_ready("thread", pthread_create(&stopper, NULL, sides_stop, sides[0]) == 0);
	while (pin_load_acquire_u32(&cancelled_count) < 8) {
		sched_yield();
	}
	expect_number("set", 0, pinion_future_set(&sides_future, NULL, 0));
	pthread_join(stopper, NULL);
	expect_number("wait", 0, wait_rc);
	pinion_runtime_destroy(sides[0]);
	pinion_runtime_destroy(sides[1]);
}

/* ---- jobs ---- */

static struct pinion_admission admission;
static struct pinion_job jobs[3];
static struct pin_atomic_u32 jobs_above;

static int wait_in_job(struct pinion_job *job)
{
	(void)job;
	(void)wait_for_it(NULL);
	return PINION_JOB_GOES_ON;
}

static int end_above(struct pinion_job *job)
{
	(void)job;
	pin_fetch_add_acq_rel_u32(&jobs_above, 1);
	return -EIO;
}

static int go_on_above(struct pinion_job *job)
{
	(void)job;
	pin_fetch_add_acq_rel_u32(&jobs_above, 1);
	return PINION_JOB_GOES_ON;
}

/*
 * Others end above one that waits, and one goes on; each keeps its place for as
 * long as it is in, whoever ends it.
 */
static void check_jobs(void)
{
	struct pinion_job *all[] = {&jobs[0], &jobs[1], &jobs[2]};

	sides_start(1, 1);
	pinion_future_init(&sides_future, NULL);
	pin_store_release_u32(&jobs_above, 0);
	wait_rc = 1;
	jobs[0] = (struct pinion_job){.run = wait_in_job};
	jobs[1] = (struct pinion_job){.run = end_above};
	jobs[2] = (struct pinion_job){.run = go_on_above};
	expect_number("admission", 0, pinion_admission_init(&admission, sides[0], NULL));
	expect_number("jobs", 0, pinion_admission_spawn(&admission, all, 3, NULL));
	while (pin_load_acquire_u32(&jobs_above) < 2) {
		sched_yield();
	}
	/* In its `run` still, below the others. */
	pinion_job_end(&jobs[0], 0);
	pinion_job_end(&jobs[2], 0);
	expect_number("set", 0, pinion_future_set(&sides_future, NULL, 0));
	expect_number("all are out", 0, pinion_admission_drain(&admission, UINT64_MAX));
	expect_number("failed", 1,
		(long long)pin_load_relaxed_u64(&pin_admission_of(&admission)->failed));
	sides_end();
	expect_number("wait", 0, wait_rc);
}

/* ---- lanes ---- */

static struct pinion_task holder;
static struct pinion_task above;
static struct pinion_task normal;
static struct pin_atomic_u32 has_run_above;
static int normal_index;

static int note_above(struct pinion_task *task)
{
	(void)task;
	pin_store_release_u32(&has_run_above, true);
	return 0;
}

static int note_normal(struct pinion_task *task)
{
	(void)task;
	normal_index = pinion_worker_index(sides[0]);
	return pinion_future_set(&sides_future, NULL, 0);
}

/* A high worker helps with what is high alone. */
static void check_lanes(void)
{
	struct pinion_task high = {.run = wait_for_it, .flags = PINION_TASK_HIGH};

	sides[0] = sides_start_one(2, 4, "h:1,nl:1");
	pin_store_release_u32(&has_run_above, false);
	normal_index = -1;
	pinion_future_init(&sides_future, NULL);
	normal = (struct pinion_task){.run = note_normal};
	above = (struct pinion_task){.run = note_above, .flags = PINION_TASK_HIGH};
	sides_hold(0, &holder);
	expect_number("spawn", 0, pinion_spawn(sides[0], &high));
	expect_number("spawn", 0, pinion_spawn(sides[0], &normal));
	expect_number("spawn", 0, pinion_spawn(sides[0], &above));
	while (!pin_load_acquire_u32(&has_run_above)) {
		sched_yield();
	}
	expect_number("the normal one waits", -1, normal_index);
	pin_store_release_u32(&sides_may_end, true);
	expect_number("drain", 0, pinion_runtime_drain(sides[0]));
	expect_number("it ran on its own worker", 1, normal_index);
	pinion_runtime_destroy(sides[0]);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_calls();
	check_knot(1, 4, false);
	check_knot(1, 0, false);
	check_knot(2, 4, false);
	check_knot(2, 4, true);
	check_knot(2, 0, true);
	check_unknown();
	check_deadline(4);
	check_deadline(0);
	check_stop();
	check_jobs();
	check_lanes();
	return expect_status();
}

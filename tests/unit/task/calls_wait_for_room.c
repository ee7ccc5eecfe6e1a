/* SPDX-License-Identifier: MIT */
/*
 * Goal: a caller that finds a lane full gets its numbers, and may wait for room
 * there: a thread asleep, a task of another runtime by a wait. Each is started
 * when there is room, or ends by its deadline, a cancel, or the end of the
 * runtime that it waits for, though the workers there are held; nothing is
 * started then and no place is kept. A worker never sleeps for it. AS-36, WP-1.
 * Method: the only worker is held while calls fill one lane after another; the
 * lane's queue of waiters shows them.
 */
#include "runtime/task/entry.h"
#include "tests/support/runtimes.h"
#include "tests/support/stops.h"
#include "tests/support/tasks.h"

#include <errno.h>
#include <pthread.h>

enum {
	LIMIT = 8,
	THREADS = 3,
	LIMIT_SECONDS = 60,
};

static const uint64_t never_ns = UINT64_MAX;

static struct pinion_runtime *runtime; /* whose lanes are full */
static struct pinion_runtime *other;   /* of tasks that call into it */
static struct tasks_hold hold;
static struct pinion_task tasks[3 * LIMIT];
static struct pinion_task *pointers[3 * LIMIT];
static struct pin_atomic_u32 run_count;
static enum pinion_lane lane;

static int answer(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&run_count);
	return 0;
}

static int answer_call(void *arg)
{
	*(uint32_t *)arg = pin_fetch_add_seq_cst_u32(&run_count, 1);
	return 7;
}

static struct pinion_call call_of(uint32_t *arg)
{
	return (struct pinion_call){
		.run = answer_call, .arg = arg, .task.flags = pinion_lane_flags(lane)};
}

/* Its worker is held, and `count` tasks of the lane wait. */
static void begin(uint32_t count)
{
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_AUTO);
	runtimes_tuning.injector_tasks = LIMIT;
	runtimes_tuning.injector_batch_min = 1;
	runtimes_tuning.injector_batch_max = 1;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	pin_store_release_u32(&run_count, 0);
	for (uint32_t i = 0; i < 3 * LIMIT; i++) {
		tasks[i] = (struct pinion_task){.run = answer, .flags = pinion_lane_flags(lane)};
		pointers[i] = &tasks[i];
	}
	tasks_hold_begin(&hold, runtime, 0);
	expect_number("fill", 0, pinion_task_spawn_batch(runtime, pointers, count));
}

static void end(uint32_t expected_count)
{
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("run", expected_count, pin_load_acquire_u32(&run_count));
	pinion_runtime_destroy(runtime);
}

static void await_waiters(uint32_t count)
{
	while (pin_load_relaxed_u32(&runtime->shared.rooms[lane].waiters.count) != count) {
		sched_yield();
	}
}

/* ---- numbers ---- */

static void expect_full(const char *what, uint32_t first, uint32_t count, uint32_t current)
{
	struct pinion_full full = {.current = 77};
	int rc = pinion_task_spawn_batch_full(runtime, &pointers[first], count, &full);

	expect_number(what, -EAGAIN, rc);
	expect_number("current", current, full.current);
	expect_number("max", LIMIT, full.max);
	expect_number("lane", lane, full.lane);
	expect_number("no estimate", 0, (long long)full.estimated_wait_us);
}

static void check_numbers(void)
{
	enum pinion_lane next = (enum pinion_lane)((lane + 1) % PINION_LANES);
	struct pinion_full full = {.current = 77};

	begin(LIMIT - 2);
	expect_full("three for two places", LIMIT, 3, LIMIT - 2);
	/* The full lane is named, not one with room. */
	tasks[LIMIT].flags = pinion_lane_flags(next);
	expect_full("with one of another lane", LIMIT, 4, LIMIT - 2);
	expect_number(
		"two", 0, pinion_task_spawn_batch_full(runtime, &pointers[LIMIT - 2], 2, &full));
	expect_full("full", LIMIT + 1, 1, LIMIT);
	expect_full("with one of another lane", LIMIT, 2, LIMIT);
	expect_number("needs no notification", -EAGAIN,
		pinion_task_spawn_batch_full(runtime, &pointers[LIMIT + 1], 1, NULL));
	expect_number("never fits", -EINVAL,
		pinion_task_spawn_batch_full(runtime, &pointers[LIMIT + 1], LIMIT + 1, &full));
	expect_number("only then", 77, full.current);
	tasks_hold_end(&hold);
	end(LIMIT);
}

/* ---- threads ---- */

struct waiter {
	pthread_t thread;
	struct pinion_call call;
	uint32_t place; /* how many had run before */
	uint64_t deadline_ns;
	int rc;
};

static void *start_when_room(void *arg)
{
	struct waiter *self = arg;

	self->rc = pinion_call_start_wait(runtime, &self->call, self->deadline_ns);
	return NULL;
}

static void waiter_begin(struct waiter *waiter, uint32_t number)
{
	*waiter = (struct waiter){.deadline_ns = never_ns};
	waiter->call = call_of(&waiter->place);
	expect_ready("thread", pthread_create(&waiter->thread, NULL, start_when_room, waiter) == 0);
	await_waiters(number + 1);
}

static void expect_room_for(uint32_t count)
{
	expect_number(
		"room", 0, pinion_task_spawn_batch(runtime, &pointers[2 * LIMIT - count], count));
}

static void check_threads(void)
{
	struct waiter waiters[THREADS];
	struct pinion_call late;
	uint32_t place = 0;

	begin(LIMIT);
	late = call_of(&place);
	expect_number("not now", -ETIME, pinion_call_start_wait(runtime, &late, 0));
	expect_number("not so soon", -ETIME,
		pinion_call_start_wait(runtime, &late, pinion_clock_now_ns() + 1000000));
	for (uint32_t i = 0; i < THREADS; i++) {
		waiter_begin(&waiters[i], i);
	}
	expect_number("busy", -EBUSY, pinion_call_start_wait(runtime, &waiters[0].call, 0));
	tasks_hold_end(&hold);
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_join(waiters[i].thread, NULL);
		expect_number("started", 0, waiters[i].rc);
		expect_number("future", 0, pinion_future_wait(&waiters[i].call.done, never_ns));
		expect_number("result", 7, waiters[i].call.result);
		expect_true("after those before it", waiters[i].place >= LIMIT);
	}
	/* Neither those nor the two that gave up have kept a place. */
	tasks_hold_begin(&hold, runtime, 0);
	expect_room_for(LIMIT);
	expect_number("full", -ETIME, pinion_call_start_wait(runtime, &late, 0));
	tasks_hold_end(&hold);
	tasks_await(&run_count, 2 * LIMIT + THREADS);
	expect_number("at once", 0, pinion_call_start_wait(runtime, &late, 0));
	expect_number("future", 0, pinion_future_wait(&late.done, never_ns));
	end(2 * LIMIT + THREADS + 1);
}

static void *execute_when_room(void *arg)
{
	struct waiter *self = arg;
	int result = 0;

	self->rc = pinion_call_run_wait(runtime, answer_call, &self->place, never_ns, &result);
	expect_number("result", 7, result);
	return NULL;
}

/* Of the normal lane. */
static void check_execute(void)
{
	struct waiter waiter = {.rc = 1};
	int result = 5;

	begin(LIMIT);
	expect_number(
		"not now", -ETIME, pinion_call_run_wait(runtime, answer_call, NULL, 0, &result));
	expect_number("untouched", 5, result);
	expect_ready(
		"thread", pthread_create(&waiter.thread, NULL, execute_when_room, &waiter) == 0);
	await_waiters(1);
	tasks_hold_end(&hold);
	pthread_join(waiter.thread, NULL);
	expect_number("executed", 0, waiter.rc);
	end(LIMIT + 1);
}

static void *drain(void *arg)
{
	(void)arg;
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	return NULL;
}

/* A waiter is notified while the worker is held. */
static void check_closed(bool stops)
{
	struct waiter waiters[THREADS];
	pthread_t finisher;

	begin(LIMIT);
	for (uint32_t i = 0; i < THREADS; i++) {
		waiter_begin(&waiters[i], i);
	}
	if (stops) {
		finisher = stops_begin(runtime);
	} else {
		expect_ready("thread", pthread_create(&finisher, NULL, drain, NULL) == 0);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_join(waiters[i].thread, NULL);
		expect_number("closed", -ESHUTDOWN, waiters[i].rc);
	}
	expect_number("held still", 0, pin_load_acquire_u32(&hold.has_ended));
	expect_number("closed now", -ESHUTDOWN,
		pinion_call_start_wait(runtime, &waiters[0].call, never_ns));
	tasks_hold_end(&hold);
	pthread_join(finisher, NULL);
	end(stops ? 0 : LIMIT);
}

/* What makes room besides a pop: a place, or an admission, given back. */
static void check_undone(void)
{
	struct waiter waiter;

	begin(LIMIT - 1);
	expect_number("reserve", 0, pin_runtime_reserve_room(runtime, lane));
	waiter_begin(&waiter, 0);
	pin_runtime_undo_room(runtime, lane);
	pthread_join(waiter.thread, NULL);
	expect_number("started", 0, waiter.rc);
	tasks_hold_end(&hold);
	expect_number("future", 0, pinion_future_wait(&waiter.call.done, never_ns));
	end(LIMIT);
}

/* ---- tasks ---- */

static struct pinion_task beginner;
static struct pinion_call call_here;
static struct pinion_wait wait_here;
static uint32_t place_here;
static struct pin_atomic_u32 end_count;
static int begin_rc;

static int note_end(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&end_count);
	return 0;
}

static int begin_wait(struct pinion_task *task)
{
	struct pinion_call sleeper = call_of(&place_here);

	(void)task;
	expect_number("a worker never sleeps", -EDEADLK,
		pinion_call_start_wait(runtime, &sleeper, never_ns));
	expect_number("nor so", -EDEADLK,
		pinion_call_run_wait(runtime, answer_call, &place_here, never_ns, &begin_rc));
	begin_rc = pinion_call_start_async(runtime, &call_here, other, &wait_here);
	return 0;
}

static void await_room(uint64_t deadline_ns)
{
	/* The task before it has run: its wait has ended, on this worker. */
	beginner = (struct pinion_task){.run = begin_wait};
	call_here = call_of(&place_here);
	wait_here = (struct pinion_wait){.task.run = note_end, .deadline_ns = deadline_ns};
	pin_store_release_u32(&end_count, 0);
	expect_number("spawn", 0, pinion_task_spawn(other, &beginner));
	if (deadline_ns == never_ns) {
		await_waiters(1);
	}
}

static void expect_end(int expected)
{
	tasks_await(&end_count, 1);
	expect_number("begun", 0, begin_rc);
	expect_number("end", expected, wait_here.result);
}

static void check_tasks(void)
{
	pthread_t finisher;

	begin(LIMIT);
	await_room(0);
	expect_end(-ETIME);
	await_room(pinion_clock_now_ns() + 1000000);
	expect_end(-ETIME);
	await_room(never_ns);
	expect_number("cancel", 0, pinion_wait_cancel(other, &wait_here));
	expect_end(-ECANCELED);
	await_room(never_ns);
	tasks_hold_end(&hold);
	expect_end(0);
	expect_number("future", 0, pinion_future_wait(&call_here.done, never_ns));
	expect_number("result", 7, call_here.result);
	tasks_hold_begin(&hold, runtime, 0);
	expect_room_for(LIMIT);
	await_room(never_ns);
	/* Notified while the worker is held; the drain ends when it is not. */
	expect_ready("thread", pthread_create(&finisher, NULL, drain, NULL) == 0);
	expect_end(-ESHUTDOWN);
	tasks_hold_end(&hold);
	pthread_join(finisher, NULL);
	end(2 * LIMIT + 1);
}

/* On its own runtime a task has room always, and mistakes begin nothing. */
static int call_own(struct pinion_task *task)
{
	struct pinion_call unnamed = {.run = NULL};

	(void)task;
	expect_number("no function", -EINVAL,
		pinion_call_start_async(runtime, &unnamed, runtime, &wait_here));
	wait_here = (struct pinion_wait){.deadline_ns = never_ns};
	expect_number("no task", -EINVAL,
		pinion_call_start_async(runtime, &call_here, runtime, &wait_here));
	wait_here.task.run = note_end;
	expect_number("own", 0, pinion_call_start_async(runtime, &call_here, runtime, &wait_here));
	return 0;
}

static void check_own(void)
{
	struct pinion_task task = {.run = call_own};

	begin(LIMIT);
	pin_store_release_u32(&end_count, 0);
	call_here = call_of(&place_here);
	expect_number("spawn", 0, pinion_task_spawn_on(runtime, 0, &task));
	tasks_hold_end(&hold);
	begin_rc = 0;
	expect_end(0);
	expect_number("future", 0, pinion_future_wait(&call_here.done, never_ns));
	end(LIMIT + 1);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	other = runtimes_start(1, PINION_IO_AUTO);
	for (uint32_t i = 0; i < PINION_LANES; i++) {
		lane = (enum pinion_lane)i;
		check_numbers();
		check_threads();
		check_closed(false);
		check_closed(true);
		check_undone();
		check_tasks();
		check_own();
	}
	lane = PINION_LANE_NORMAL;
	check_execute();
	pinion_runtime_destroy(other);
	return expect_status();
}

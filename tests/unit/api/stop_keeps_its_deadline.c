/* SPDX-License-Identifier: MIT */
/*
 * Goal: a stop with a deadline returns -ETIME while something has not ended, as
 * often as it is called, and goes on stopping; 0 once all is over, also when
 * another thread waits for the same, and from then on. It is refused where a
 * stop without one is: -EDEADLK on a worker, -ECHILD in a child. C15.
 * Method: a task that the test holds.
 */
#include "tests/support/child.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>

enum { LIMIT_SECONDS = 60 };

static struct pinion_runtime *runtime;
static struct pin_atomic_u32 has_looked;
static struct pin_atomic_u32 cancelled;
static int on_worker;

static int stop_here(struct pinion_task *task)
{
	(void)task;
	on_worker = pinion_runtime_stop_until(runtime, UINT64_MAX);
	tasks_signal(&has_looked);
	return 0;
}

static int stop_in_child(void *arg)
{
	(void)arg;
	expect_number("in a child", -ECHILD, pinion_runtime_stop_until(runtime, 0));
	return expect_status();
}

static int run_never(struct pinion_task *task)
{
	(void)task;
	expect_true("runs after the stop", false);
	return 0;
}

static void note_cancel(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&cancelled);
}

static void *stop_elsewhere(void *arg)
{
	uint64_t deadline_ns = *(const uint64_t *)arg;

	expect_number("another's stop", 0, pinion_runtime_stop_until(runtime, deadline_ns));
	return NULL;
}

static void check_refusals(void)
{
	struct pinion_task task = {.run = stop_here};

	expect_number("in a child", 0, child_code(child_run(stop_in_child, NULL, NULL, 0)));
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	tasks_await(&has_looked, 1);
	expect_number("on a worker", -EDEADLK, on_worker);
}

static void check_deadline(uint32_t io_level)
{
	struct pinion_task queued = {.run = run_never, .cancel = note_cancel};
	struct pinion_task late = {.run = run_never, .cancel = note_cancel};
	static const uint64_t deadlines[] = {UINT64_MAX, UINT64_MAX - 1};
	struct tasks_hold hold = {.prepare = NULL};
	pthread_t others[2];

	runtime = runtimes_start(1, io_level);
	pin_store_release_u32(&has_looked, 0);
	pin_store_release_u32(&cancelled, 0);
	check_refusals();
	tasks_hold_begin(&hold, runtime, 0);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &queued));
	expect_number("no time", -ETIME, pinion_runtime_stop_until(runtime, 0));
	expect_number("it goes on", -ESHUTDOWN, pinion_task_spawn(runtime, &late));
	expect_number("a moment", -ETIME,
		pinion_runtime_stop_until(runtime, pinion_clock_now_ns() + 1000 * 1000));
	for (size_t i = 0; i < 2; i++) {
		expect_ready("thread",
			pthread_create(&others[i], NULL, stop_elsewhere,
				(void *)(uintptr_t)&deadlines[i]) == 0);
	}
	/* One of them may have the runtime's lock by now, and waits in it. */
	expect_number("beside others", -ETIME,
		pinion_runtime_stop_until(runtime, pinion_clock_now_ns() + 1000 * 1000));
	expect_number("has ended", 0, pin_load_acquire_u32(&hold.has_ended));
	tasks_hold_end(&hold);
	for (size_t i = 0; i < 2; i++) {
		pthread_join(others[i], NULL);
	}
	expect_number("cancelled", 1, pin_load_acquire_u32(&cancelled));
	expect_number("afterwards", 0, pinion_runtime_stop_until(runtime, 0));
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_deadline(PINION_IO_AUTO);
	check_deadline(PINION_IO_FALLBACK);
	return expect_status();
}

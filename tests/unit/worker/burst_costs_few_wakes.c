/* SPDX-License-Identifier: MIT */
/*
 * Goal: a burst of 1000 tasks onto 2 sleeping workers costs its producer at
 * most 3 wakes. AS-23, C7.
 * Method: futex wakes of the producing thread are counted where the library
 * makes them. The tasks end only after the burst, so the figure does not hang
 * on who is faster: a wake by the producer brings a worker to a task, which
 * happens once for each, or the other worker took that task first and is busy
 * with it from then on. With tasks that end at once workers fall asleep
 * and are woken during the burst; that is printed, not asserted.
 */
#include "tests/support/runtimes.h"
#include "tests/support/wakes.h"

enum {
	BURST = 1000,
	ROUNDS = 100,
	WAKES_MAX = 3,
	LIMIT_SECONDS = 60,
};

static struct pin_atomic_u32 may_end;
static struct pin_atomic_u32 done;
static struct pinion_task tasks[BURST];

static int run_after_burst(struct pinion_task *task)
{
	(void)task;
	tasks_await(&may_end, 1);
	tasks_signal(&done);
	return 0;
}

/* Returns the wakes it took this thread. */
static uint32_t burst(struct pinion_runtime *runtime, bool is_held)
{
	uint32_t wakes;

	pin_store_release_u32(&may_end, is_held ? 0 : 1);
	pin_store_release_u32(&done, 0);
	for (int i = 0; i < BURST; i++) {
		tasks[i] = (struct pinion_task){.run = run_after_burst};
	}
	wakes_count = 0;
	for (int i = 0; i < BURST; i++) {
		expect_number("spawn", 0, pinion_task_spawn(runtime, &tasks[i]));
	}
	wakes = wakes_count;
	tasks_signal(&may_end);
	tasks_await(&done, BURST);
	return wakes;
}

int main(void)
{
	struct pinion_runtime *runtime;
	uint32_t most = 0;
	uint32_t sum = 0;

	runtimes_watchdog(LIMIT_SECONDS);
	wakes_begin();
	for (int i = 0; i < ROUNDS && expect_failure_count == 0; i++) {
		uint32_t wakes;

		runtime = runtimes_start(2, PINION_IO_AUTO);
		wakes_watch(runtime);
		wakes = burst(runtime, true);
		most = wakes > most ? wakes : most;
		sum += wakes;
		if (wakes > WAKES_MAX) {
			expect_number("wakes of a burst", WAKES_MAX, wakes);
		}
		wakes_forget();
		pinion_runtime_destroy(runtime);
	}
	/* Else they had not slept, or nothing was counted. */
	expect_true("the bursts woke a worker", sum > 0);
	runtime = runtimes_start(2, PINION_IO_AUTO);
	wakes_watch(runtime);
	for (int i = 0; i < 3; i++) {
		printf("with tasks that end at once: %u wakes\n", burst(runtime, false));
	}
	wakes_forget();
	pinion_runtime_destroy(runtime);
	printf("with tasks that do not: %u at most\n", most);
	return expect_status();
}

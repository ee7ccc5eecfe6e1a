/* SPDX-License-Identifier: MIT */
/*
 * Goal: with `park_timeout_us`, a worker that work came to while it slept gives
 * a waker time to come; it does not make its own timers, and the deadlines of
 * its waits, wait for that, and what it gets up for is not counted as found by
 * the timeout. AS-31, C5.
 * Method: wakers have an hour. A task pushed as a spawn does it, but for its
 * wake, to a worker that sleeps until something of its own is due; where that
 * waits for the waker, the test hangs and trips its watchdog.
 */
#include "runtime/task/entry.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>
#include <pinion/future.h>
#include <pinion/timer.h>

enum {
	TIMEOUT_US = 5000,
	DUE_NS = 100 * 1000 * 1000,
	WAKER_SECONDS = 3600,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static struct pin_atomic_u32 has_begun;
static struct pin_atomic_u32 due_count;
static struct pin_atomic_u32 done;
static struct pinion_timer timer;
static struct pinion_future future;
static struct pinion_wait wait;

static int give_wakers_time(void *arg, uint32_t worker_index, void **out_context)
{
	(void)arg;
	(void)worker_index;
	(void)out_context;
	pin_worker_of_thread()->waker_delay_ns = UINT64_C(1000000000) * WAKER_SECONDS;
	return 0;
}

static int note_due(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&due_count);
	return 0;
}

static int note_done(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&done);
	return 0;
}

static int start_timer(struct pinion_task *task)
{
	(void)task;
	timer = (struct pinion_timer){.task.run = note_due};
	expect_number(
		"start", 0, pinion_timer_start(runtime, &timer, pinion_clock_now_ns() + DUE_NS));
	tasks_signal(&has_begun);
	return 0;
}

static int begin_wait(struct pinion_task *task)
{
	(void)task;
	wait = (struct pinion_wait){
		.task.run = note_due, .deadline_ns = pinion_clock_now_ns() + DUE_NS};
	expect_number("await", 0, pinion_future_wait_async(runtime, &future, &wait));
	tasks_signal(&has_begun);
	return 0;
}

static bool is_asleep(void)
{
	return pin_parker_is_parked(&runtime->shared.workers[0].parker);
}

/* To its inbox, without a wake. */
static void spawn_untold(struct pinion_task *task)
{
	expect_ready("admitted", pin_gate_admit(&runtime->shared.gate, 1));
	pin_inbox_push(&runtime->shared.workers[0].inbox, pin_task_link(task));
}

/* For longer than the timeout: for due work, or for a waker. */
static bool awaits_more(uint64_t since_ns)
{
	uint64_t until_ns = pin_meter_read(&runtime->shared.workers[0].meter.park_until_ns);

	return until_ns > since_ns + DUE_NS / 2;
}

/* True: the task came while it slept. Then it gets up for due work. */
static bool try_once(int (*begin)(struct pinion_task *task))
{
	struct pinion_task first = {.run = begin};
	struct pinion_task untold = {.run = note_done};
	bool has_met = false;
	uint64_t now_ns;

	pin_store_release_u32(&has_begun, 0);
	pin_store_release_u32(&due_count, 0);
	pin_store_release_u32(&done, 0);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &first));
	tasks_await(&has_begun, 1);
	while (!is_asleep()) {
		pin_host_linux.yield();
	}
	now_ns = pinion_clock_now_ns();
	spawn_untold(&untold);
	while (!has_met && pin_load_acquire_u32(&done) == 0) {
		has_met = is_asleep() && awaits_more(now_ns);
		pin_host_linux.yield();
	}
	tasks_await(&due_count, 1);
	tasks_await(&done, 1);
	return has_met;
}

static void check(int (*begin)(struct pinion_task *task))
{
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_AUTO);
	runtimes_tuning.park_timeout_us = TIMEOUT_US;
	config.after_start = give_wakers_time;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	pinion_future_init(&future, runtime);
	while (!try_once(begin)) {
	}
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	expect_number("wait", begin == begin_wait ? -ETIME : 0, wait.result);
	expect_number("not by the timeout", 0,
		(long long)runtimes_counters(runtime).park_timeout_found_work);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check(start_timer);
	check(begin_wait);
	return expect_status();
}

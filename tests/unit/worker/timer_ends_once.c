/* SPDX-License-Identifier: MIT */
/*
 * Goal: timers run when their time has come and not before, in order on one
 * worker, wake a sleeping worker, and each ends once, by `run` or `cancel`:
 * from a worker, from outside, cancelled, drained, stopped. AS-3, AS-30, W32,
 * C22.
 * Method: real runtimes; no time is judged but "not before".
 */
#include "runtime/base/base.h"
#include "runtime/host/host.h"
#include "tests/support/expect.h"
#include "tests/support/random.h"
#include "tests/support/runtimes.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <string.h>

#define MANY 2000
#define US 1000u

struct entry {
	struct pinion_timer timer;
	uint64_t deadline_ns;
	struct pin_atomic_u32 run_count;
	struct pin_atomic_u32 cancel_count;
};

static struct pinion_runtime *runtime;
static struct entry entries[MANY];
static struct pin_atomic_u32 ended_count;
static struct pin_atomic_u32 early_count;

static struct entry *entry_of(struct pinion_task *task)
{
	return PIN_CONTAINER_OF(task, struct entry, timer.task);
}

static int run(struct pinion_task *task)
{
	struct entry *entry = entry_of(task);

	if (pinion_clock_now_ns() < entry->deadline_ns) {
		pin_fetch_add_acq_rel_u32(&early_count, 1);
	}
	pin_fetch_add_acq_rel_u32(&entry->run_count, 1);
	pin_fetch_add_acq_rel_u32(&ended_count, 1);
	return 0;
}

static void cancel(struct pinion_task *task)
{
	pin_fetch_add_acq_rel_u32(&entry_of(task)->cancel_count, 1);
	pin_fetch_add_acq_rel_u32(&ended_count, 1);
}

static void begin(uint32_t worker_count)
{
	struct pinion_config config;

	memset(entries, 0, sizeof(entries));
	for (uint32_t i = 0; i < MANY; i++) {
		entries[i].timer.task = (struct pinion_task){.run = run, .cancel = cancel};
	}
	pin_store_release_u32(&ended_count, 0);
	runtimes_config(&config, worker_count, PINION_IO_AUTO);
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
}

static int start(struct entry *entry, uint64_t deadline_ns)
{
	entry->deadline_ns = deadline_ns;
	return pinion_timer_start(runtime, &entry->timer, deadline_ns);
}

static void await(uint32_t count)
{
	while (pin_load_acquire_u32(&ended_count) < count) {
		pin_host_linux.yield();
	}
}

static void expect_ends(const char *what, uint32_t index, uint32_t runs, uint32_t cancels)
{
	expect_number(what, runs, pin_load_acquire_u32(&entries[index].run_count));
	expect_number(what, cancels, pin_load_acquire_u32(&entries[index].cancel_count));
}

static void check_single(void)
{
	begin(1);
	expect_number("0", 0, start(&entries[0], 0));
	expect_number("past", 0, start(&entries[1], 1));
	expect_number("soon", 0, start(&entries[2], pinion_clock_now_ns() + 2000 * US));
	expect_number("never", 0, start(&entries[3], UINT64_MAX));
	expect_number("started twice", -EBUSY, start(&entries[3], 0));
	await(3);
	for (uint32_t i = 0; i < 3; i++) {
		expect_ends("ran", i, 1, 0);
	}
	expect_number("cancel", 0, pinion_timer_cancel(runtime, &entries[3].timer));
	await(4);
	expect_ends("cancelled", 3, 0, 1);
	expect_number("cancel again", -EALREADY, pinion_timer_cancel(runtime, &entries[3].timer));
	expect_number(
		"cancel after the run", -EALREADY, pinion_timer_cancel(runtime, &entries[0].timer));
	expect_number("started anew", 0, start(&entries[0], 0));
	await(5);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("start when drained", -ESHUTDOWN, start(&entries[1], 0));
	pinion_runtime_destroy(runtime);
}

/* ---- many at once, some of them cancelled from outside ---- */

static void check_many(uint32_t worker_count, bool is_stopped)
{
	struct random_source source;
	uint64_t seed = random_begin(&source);
	static uint32_t cancelled[MANY];
	struct pinion_runtime_stats counters;

	begin(worker_count);
	memset(cancelled, 0, sizeof(cancelled));
	for (uint32_t i = 0; i < MANY; i++) {
		uint64_t wait_us = random_below(&source, 20000);

		expect_number("start", 0, start(&entries[i], pinion_clock_now_ns() + wait_us * US));
		if (random_below(&source, 3) == 0) {
			cancelled[i] = pinion_timer_cancel(runtime, &entries[i].timer) == 0;
		}
	}
	expect_number("end", 0,
		is_stopped ? pinion_runtime_stop(runtime) : pinion_runtime_drain(runtime));
	for (uint32_t i = 0; i < MANY && expect_failure_count == 0; i++) {
		uint32_t runs = pin_load_acquire_u32(&entries[i].run_count);
		uint32_t cancels = pin_load_acquire_u32(&entries[i].cancel_count);

		expect_number("ends", 1, runs + cancels);
		if (cancelled[i]) {
			expect_number("cancelled in time", 1, cancels);
		} else if (!is_stopped) {
			expect_number("not cancelled", 1, runs);
		}
	}
	pinion_runtime_get_stats(runtime, &counters, sizeof(counters));
	expect_number(
		"ends counted", MANY, (long long)(counters.tasks_run + counters.tasks_cancelled));
	if (expect_failure_count != 0) {
		printf("seed %llu\n", (unsigned long long)seed);
	}
	pinion_runtime_destroy(runtime);
}

/* ---- on a worker: in order, and periodic ---- */

static uint32_t order_next;
static uint32_t disorder_count;

static int run_in_order(struct pinion_task *task)
{
	disorder_count += entry_of(task) - entries == order_next ? 0 : 1;
	order_next++;
	return run(task);
}

static int start_in_order(struct pinion_task *task)
{
	uint64_t now_ns = pinion_clock_now_ns();

	(void)task;
	/* Started backwards, so that only their deadlines order them. */
	for (uint32_t i = 100; i > 0; i--) {
		entries[i - 1].timer.task.run = run_in_order;
		if (start(&entries[i - 1], now_ns + i * 10 * US) != 0) {
			return -EIO;
		}
	}
	return 0;
}

static int run_again(struct pinion_task *task)
{
	struct entry *entry = entry_of(task);

	run(task);
	if (pin_load_acquire_u32(&entry->run_count) < 10) {
		return start(entry, entry->deadline_ns + 100 * US);
	}
	return 0;
}

static void check_on_worker(void)
{
	struct pinion_task starter = {.run = start_in_order};

	begin(1);
	order_next = 0;
	expect_number("spawn", 0, pinion_task_spawn(runtime, &starter));
	await(100);
	expect_number("out of order", 0, disorder_count);
	entries[200].timer.task.run = run_again;
	expect_number("start", 0, start(&entries[200], pinion_clock_now_ns()));
	expect_number("join", 0, pinion_runtime_join(runtime));
	expect_ends("periodic", 200, 10, 0);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	check_single();
	check_on_worker();
	for (uint32_t workers = 1; workers <= 3; workers++) {
		check_many(workers, false);
		check_many(workers, true);
	}
	expect_number("ran too early", 0, pin_load_acquire_u32(&early_count));
	return expect_status();
}

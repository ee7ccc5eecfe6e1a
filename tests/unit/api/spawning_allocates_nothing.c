/* SPDX-License-Identifier: MIT */
/*
 * Goal: a runtime that has started neither allocates nor maps memory, whatever
 * is spawned, stolen, taken from the shared queue or slept through, since what
 * a task needs is in its 32 bytes. C16, EX-16.
 * Method: malloc and its kin are this program's, and count before they pass a
 * call on. A tree of 100 000 tasks on workers' queues, which overflow; tasks
 * after a task that waits for them, so that they are stolen; single ones from
 * outside, each awaited, until workers sleep; batches; tasks for a certain
 * worker; reads. The runtime's counters say that all of that took place, and a
 * planted malloc that calls are counted.
 */
#include "tests/support/allocations.h"
#include "tests/support/rounds.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"
#include "tests/support/tasks.h"

enum {
	TREE = 100000,
	SINGLE = 20000,
	SINGLE_LEAST = 500,
	SINGLE_SECONDS = 8,
	STOLEN = 64, /* less what the LIFO slot may keep */
	READS = 2000,
	BATCH = 1000,
	WORKERS = 4,
	LIMIT_SECONDS = 60,
};

_Static_assert(sizeof(struct pinion_task) == 32, "EX-16");

static struct pinion_runtime *runtime;
static struct pinion_task tree[TREE];
static struct pinion_task *pointers[BATCH];
static struct pinion_request request;
static struct pinion_file file;
static struct pin_atomic_u32 done;
static uint8_t byte;

/* ---- the work ---- */

static int answer(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&done);
	return 0;
}

static int grow(struct pinion_task *task)
{
	size_t number = (size_t)(task - tree);

	for (size_t child = 20 * number + 1; child <= 20 * number + 20 && child < TREE; child++) {
		int rc;

		tree[child] = (struct pinion_task){.run = grow};
		rc = child % 16 == 0 ? pinion_task_spawn_shared(runtime, &tree[child])
				     : pinion_task_spawn(runtime, &tree[child]);
		if (rc != 0) {
			return rc;
		}
	}
	pin_fetch_add_acq_rel_u32(&done, 1);
	if (number % 64 == 0) {
		sched_yield();
	}
	return pin_load_acquire_u32(&done) == TREE ? answer(task) : 0;
}

static int read_again(struct pinion_task *task)
{
	if (pin_fetch_add_acq_rel_u32(&done, 1) + 1 == READS) {
		tasks_signal(&done);
		return 0;
	}
	(void)task;
	return pinion_request_submit(runtime, &request);
}

static int begin_reading(struct pinion_task *task)
{
	(void)task;
	return pinion_request_submit(runtime, &request);
}

static void grow_tree(void)
{
	pin_store_release_u32(&done, 0);
	tree[0] = (struct pinion_task){.run = grow};
	expect_number("spawn", 0, pinion_task_spawn(runtime, &tree[0]));
	tasks_await(&done, TREE + 1);
}

/* Only others can run what it waits for. */
static int be_stolen_from(struct pinion_task *task)
{
	for (uint32_t i = 0; i < STOLEN; i++) {
		int rc;

		tree[i] = (struct pinion_task){.run = answer};
		rc = pinion_task_spawn(runtime, &tree[i]);
		if (rc != 0) {
			return rc;
		}
	}
	tasks_await(&done, STOLEN - 1);
	return answer(task);
}

static void steal_some(void)
{
	static struct pinion_task task;

	pin_store_release_u32(&done, 0);
	task = (struct pinion_task){.run = be_stolen_from};
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	tasks_await(&done, STOLEN + 1);
}

static void spawn_singles(void)
{
	struct rounds rounds = rounds_begin(SINGLE, SINGLE_LEAST, SINGLE_SECONDS);
	uint64_t parks = runtimes_counters(runtime).parks_futex;

	pin_store_release_u32(&done, 0);
	for (uint32_t i = 0; rounds_go_on(&rounds, i); i++) {
		tree[i] = (struct pinion_task){.run = answer};
		expect_number("spawn", 0,
			i % 2 == 0 ? pinion_task_spawn(runtime, &tree[i])
				   : pinion_task_spawn_on(runtime, i / 2 % WORKERS, &tree[i]));
		tasks_await(&done, i + 1);
	}
	/* With nothing to do they are bound to. */
	while (runtimes_counters(runtime).parks_futex == parks) {
		sched_yield();
	}
}

static void spawn_batches(void)
{
	pin_store_release_u32(&done, 0);
	for (uint32_t i = 0; i < BATCH; i++) {
		pointers[i] = &tree[i];
	}
	for (uint32_t round = 1; round <= TREE / BATCH; round++) {
		expect_number("batch", 0, pinion_task_spawn_batch(runtime, pointers, BATCH));
		tasks_await(&done, round * BATCH);
	}
}

static void read_often(void)
{
	static struct pinion_task task;

	pin_store_release_u32(&done, 0);
	request = (struct pinion_request){
		.task.run = read_again,
		.file = &file,
		.bytes = &byte,
		.length_bytes = 1,
	};
	task = (struct pinion_task){.run = begin_reading};
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	tasks_await(&done, READS + 1);
}

static void check(uint32_t queue_order, uint32_t park_timeout_us)
{
	struct pinion_runtime_stats counters;
	struct pinion_config config;

	runtimes_config(&config, WORKERS, PINION_IO_AUTO);
	runtimes_tuning.queue_order = queue_order;
	runtimes_tuning.park_timeout_us = park_timeout_us;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	allocations_begin();
	grow_tree();
	steal_some();
	spawn_singles();
	spawn_batches();
	read_often();
	allocations_expect_none();
	expect_number("join", 0, pinion_runtime_join(runtime));
	counters = runtimes_counters(runtime);
	expect_true("some were stolen", counters.tasks_stolen > 0);
	expect_true("some came from the shared queue", counters.injector_takes > 0);
	expect_true("workers slept", counters.parks_futex > 0);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	if (!ALLOCATIONS_CAN_COUNT) {
		printf("the sanitizer's malloc cannot be counted\n");
		return EXPECT_SKIPPED;
	}
	runtimes_watchdog(LIMIT_SECONDS);
	allocations_check_counting();
	scratch_enter("spawning_allocates_nothing");
	scratch_file("file", "text");
	expect_number("open", 0, pinion_file_open(&file, "file", PINION_DIRECT_NEVER));
	check(PINION_QUEUE_FIFO, 0);
	check(PINION_QUEUE_LIFO, 1000);
	pinion_file_close(&file);
	scratch_leave();
	return expect_status();
}

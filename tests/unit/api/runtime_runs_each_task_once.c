/* SPDX-License-Identifier: MIT */
/*
 * Goal: every task runs exactly once, from wherever it is spawned, the counters
 * say so, and drain waits for all of them, whatever the I/O level and however
 * many workers. EX-29, EX-40.
 * Method: 10 000 tasks from outside, half of them spawn_shared; tasks that
 * spawn a tree of tasks on their own worker, so that queues overflow, and for
 * others; two runtimes that spawn on each other.
 */
#include "runtime/base/atomic.h"
#include "runtime/base/base.h"
#include "tests/support/runtimes.h"

#include <errno.h>

enum {
	TASKS = 10000,
	LIMIT_SECONDS = 60,
};

struct item {
	struct pinion_task task;
	struct pin_atomic_u32 run_count;
};

static struct pinion_runtime *runtime;
static struct pinion_runtime *other;
static struct item items[TASKS];
static struct pin_atomic_u32 misplaced_count;

static void count_run(struct pinion_task *task)
{
	struct item *item = PIN_CONTAINER_OF(task, struct item, task);

	pin_fetch_add_acq_rel_u32(&item->run_count, 1);
}

static void note_misplaced(bool is_misplaced)
{
	if (is_misplaced) {
		pin_fetch_add_acq_rel_u32(&misplaced_count, 1);
	}
}

static int run_plain(struct pinion_task *task)
{
	int index = pinion_worker_index(runtime);

	note_misplaced(index < 0 || (uint32_t)index >= pinion_runtime_worker_count(runtime));
	note_misplaced(other != NULL && pinion_worker_index(other) != -ENOENT);
	count_run(task);
	return task == &items[7].task ? -EIO : 0;
}

/* Task n spawns 2n + 1 and 2n + 2; some for any worker. */
static int run_tree(struct pinion_task *task)
{
	size_t number = (size_t)(PIN_CONTAINER_OF(task, struct item, task) - items);

	count_run(task);
	for (size_t child = 2 * number + 1; child <= 2 * number + 2; child++) {
		int rc = 0;

		if (child >= TASKS) {
			break;
		}
		items[child].task = (struct pinion_task){.run = run_tree};
		rc = child % 5 == 0 ? pinion_task_spawn_shared(runtime, &items[child].task)
				    : pinion_task_spawn(runtime, &items[child].task);
		note_misplaced(rc != 0);
	}
	return 0;
}

/* More than a queue holds, from one task. */
static int run_flood(struct pinion_task *task)
{
	count_run(task);
	for (size_t i = 1; i < TASKS; i++) {
		items[i].task = (struct pinion_task){.run = run_plain};
		note_misplaced(pinion_task_spawn(runtime, &items[i].task) != 0);
	}
	return 0;
}

static int run_across(struct pinion_task *task)
{
	size_t number = (size_t)(PIN_CONTAINER_OF(task, struct item, task) - items);

	if (number % 2 == 0) {
		struct item *next = &items[number + 1];

		next->task = (struct pinion_task){.run = run_across};
		note_misplaced(pinion_task_spawn(other, &next->task) != 0);
	}
	count_run(task);
	return 0;
}

static void check_counts(
	const char *what, const struct pinion_runtime *ended, uint64_t expected, uint64_t failed)
{
	struct pinion_runtime_stats counters = runtimes_counters(ended);

	expect_number(what, (long long)expected, (long long)counters.tasks_spawned);
	expect_number(what, (long long)expected, (long long)counters.tasks_run);
	expect_number(what, 0, (long long)counters.tasks_cancelled);
	expect_number(what, (long long)failed, (long long)counters.tasks_failed);
}

static void check_items(const char *what)
{
	for (size_t i = 0; i < TASKS; i++) {
		if (!expect_number(what, 1, pin_load_acquire_u32(&items[i].run_count))) {
			break;
		}
		pin_store_release_u32(&items[i].run_count, 0);
	}
	expect_number("errors inside tasks", 0, pin_load_acquire_u32(&misplaced_count));
}

static void check_outside(uint32_t workers, uint32_t io_level)
{
	runtime = runtimes_start(workers, io_level);
	expect_number("worker count", workers, pinion_runtime_worker_count(runtime));
	expect_number("index outside", -ENOENT, pinion_worker_index(runtime));
	for (size_t i = 0; i < TASKS; i++) {
		items[i].task = (struct pinion_task){.run = run_plain};
		expect_number("spawn", 0,
			i % 2 == 0 ? pinion_task_spawn(runtime, &items[i].task)
				   : pinion_task_spawn_shared(runtime, &items[i].task));
	}
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	check_items("from outside");
	check_counts("from outside", runtime, TASKS, 1);
	pinion_runtime_destroy(runtime);
}

static void check_from(const char *what, pinion_task_fn first, uint32_t workers, uint64_t failed)
{
	runtime = runtimes_start(workers, PINION_IO_AUTO);
	items[0].task = (struct pinion_task){.run = first};
	expect_number("spawn", 0, pinion_task_spawn(runtime, &items[0].task));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	check_items(what);
	check_counts(what, runtime, TASKS, failed);
	pinion_runtime_destroy(runtime);
}

static void check_two(void)
{
	runtime = runtimes_start(2, PINION_IO_AUTO);
	other = runtimes_start(2, PINION_IO_AUTO);
	for (size_t i = 0; i < TASKS; i += 2) {
		items[i].task = (struct pinion_task){.run = run_across};
		expect_number("spawn", 0, pinion_task_spawn(runtime, &items[i].task));
	}
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("drain", 0, pinion_runtime_drain(other));
	check_items("across");
	check_counts("the first", runtime, TASKS / 2, 0);
	check_counts("the second", other, TASKS / 2, 0);
	pinion_runtime_destroy(other);
	pinion_runtime_destroy(runtime);
	other = NULL;
}

static void check_arguments(void)
{
	struct pinion_task task = {0};

	runtime = runtimes_start(1, PINION_IO_AUTO);
	expect_number("no function", -EINVAL, pinion_task_spawn(runtime, &task));
	expect_number("no function", -EINVAL, pinion_task_spawn_shared(runtime, &task));
	expect_number("no task", -EINVAL, pinion_task_spawn(runtime, NULL));
	pinion_runtime_destroy(runtime);
	pinion_runtime_destroy(NULL);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_arguments();
	check_outside(4, PINION_IO_AUTO);
	check_outside(4, PINION_IO_FALLBACK);
	check_outside(1, PINION_IO_AUTO);
	check_outside(16, PINION_IO_AUTO);
	check_from("a tree", run_tree, 4, 0);
	check_from("a tree on one", run_tree, 1, 0);
	check_from("a flood", run_flood, 4, 1);
	check_from("a flood on one", run_flood, 1, 1);
	check_two();
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: pinion_task_spawn_on() has a task run on the worker named and on no
 * other, in order, also while that worker's own queue never runs empty; bad
 * indices and tasks are -EINVAL, after the end it is -ESHUTDOWN, and refused
 * tasks stay as they were. A worker that spawns for one asleep counts one wake,
 * and none for one awake. EX-54, W28.
 * Method: tasks that note where they ran, spawned from outside and by workers
 * for each other; a worker that is held while others are free; a worker whose
 * own queue is kept filled by a task that spawns itself.
 */
#include "runtime/task/entry.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>

enum {
	WORKERS = 4,
	EACH = 1000,
	TOTAL = WORKERS * EACH,
	LIMIT_SECONDS = 60,
};

struct item {
	struct pinion_task task;
	int wanted;
	uint32_t position; /* among those of its worker */
};

static struct pinion_runtime *runtime;
static struct item items[TOTAL];
static struct pin_atomic_u32 run_counts[WORKERS];
static struct pin_atomic_u32 done;
static struct pin_atomic_u32 busy_ended;
static struct pin_atomic_u32 misplaced;
static struct pin_atomic_u32 unordered;

static int run_item(struct pinion_task *task)
{
	struct item *item = PIN_CONTAINER_OF(task, struct item, task);
	uint32_t position = pin_fetch_add_acq_rel_u32(&run_counts[item->wanted], 1);

	if (pinion_worker_index(runtime) != item->wanted) {
		pin_fetch_add_acq_rel_u32(&misplaced, 1);
	}
	if (position != item->position) {
		pin_fetch_add_acq_rel_u32(&unordered, 1);
	}
	tasks_signal(&done);
	return 0;
}

static void prepare(void)
{
	for (uint32_t i = 0; i < TOTAL; i++) {
		items[i] = (struct item){.task.run = run_item,
			.wanted = (int)(i % WORKERS),
			.position = i / WORKERS};
	}
	for (uint32_t i = 0; i < WORKERS; i++) {
		pin_store_release_u32(&run_counts[i], 0);
	}
	pin_store_release_u32(&done, 0);
}

/* From outside, or as a task that spawns for all workers, itself included. */
static int spawn_all(struct pinion_task *task)
{
	(void)task;
	for (uint32_t i = 0; i < TOTAL; i++) {
		if (pinion_task_spawn_on(runtime, (uint32_t)items[i].wanted, &items[i].task) != 0) {
			pin_fetch_add_acq_rel_u32(&misplaced, 1);
		}
	}
	return 0;
}

static void check_all(const char *what)
{
	tasks_await(&done, TOTAL);
	expect_number(what, 0, pin_load_acquire_u32(&misplaced));
	expect_number(what, 0, pin_load_acquire_u32(&unordered));
}

/* The others have nothing to do, and may not help. */
static void check_held(void)
{
	struct tasks_hold hold = {0};
	struct tasks_hold others[WORKERS] = {0};

	prepare();
	tasks_hold_begin(&hold, runtime, 1);
	for (uint32_t i = 1; i < TOTAL; i += WORKERS) {
		expect_number("spawn_on", 0, pinion_task_spawn_on(runtime, 1, &items[i].task));
	}
	for (uint32_t i = 0; i < WORKERS; i++) {
		if (i != 1) {
			tasks_hold_begin(&others[i], runtime, i);
			tasks_hold_end(&others[i]);
		}
	}
	expect_number("run by others", 0, pin_load_acquire_u32(&done));
	tasks_hold_end(&hold);
	tasks_await(&done, EACH);
	expect_number("on the wrong worker", 0, pin_load_acquire_u32(&misplaced));
}

/* Until all of them have run. */
static bool has_ended(void)
{
	if (pin_load_acquire_u32(&done) < EACH) {
		return false;
	}
	tasks_signal(&busy_ended);
	return true;
}

static int spawn_itself(struct pinion_task *task)
{
	return has_ended() ? 0 : pinion_task_respawn(runtime, task);
}

static int spawn_itself_first(struct pinion_task *task)
{
	return has_ended() ? 0 : pinion_task_spawn(runtime, task);
}

static void check_beside(pinion_task_fn busy)
{
	struct tasks_hold holds[WORKERS] = {0};
	struct pinion_task task = {.run = busy};

	/* So that no worker steals it from worker 0. */
	prepare();
	pin_store_release_u32(&busy_ended, 0);
	for (uint32_t i = 1; i < WORKERS; i++) {
		tasks_hold_begin(&holds[i], runtime, i);
	}
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	for (uint32_t i = 0; i < TOTAL; i += WORKERS) {
		expect_number("spawn_on", 0, pinion_task_spawn_on(runtime, 0, &items[i].task));
	}
	tasks_await(&busy_ended, 1);
	for (uint32_t i = 1; i < WORKERS; i++) {
		tasks_hold_end(&holds[i]);
	}
	expect_number("unordered", 0, pin_load_acquire_u32(&unordered));
}

static struct pinion_task woken_for;
static bool is_target_asleep;

static int run_nothing(struct pinion_task *task)
{
	(void)task;
	return 0;
}

/* On worker 0, for worker 1. */
static void spawn_for_one(struct tasks_hold *hold)
{
	const struct pin_worker *own = &runtime->shared.workers[0];
	uint64_t before = pin_meter_read(&own->meter.wakes_sent);

	(void)hold;
	while (is_target_asleep && !pin_parker_is_parked(&runtime->shared.workers[1].parker)) {
		pin_host_linux.yield();
	}
	woken_for = (struct pinion_task){.run = run_nothing};
	expect_number("spawn_on", 0, pinion_task_spawn_on(runtime, 1, &woken_for));
	expect_number("wakes counted", is_target_asleep,
		(long long)(pin_meter_read(&own->meter.wakes_sent) - before));
}

static void check_wakes(void)
{
	struct tasks_hold spawner = {.prepare = spawn_for_one};
	struct tasks_hold target = {0};

	is_target_asleep = true;
	tasks_hold_begin(&spawner, runtime, 0);
	tasks_hold_end(&spawner);
	is_target_asleep = false;
	tasks_hold_begin(&target, runtime, 1);
	tasks_hold_begin(&spawner, runtime, 0);
	tasks_hold_end(&spawner);
	tasks_hold_end(&target);
}

static void expect_refused(const char *what, int expected, uint32_t index, struct pinion_task task)
{
	struct pinion_task copy = task;

	expect_number(what, expected, pinion_task_spawn_on(runtime, index, &copy));
	expect_number(what, 0, memcmp(&copy, &task, sizeof(task)));
}

int main(void)
{
	struct pinion_task first = {.run = spawn_all};
	struct pinion_task good = {.run = run_item, .private_ = 7};

	runtimes_watchdog(LIMIT_SECONDS);
	runtime = runtimes_start(WORKERS, PINION_IO_AUTO);
	prepare();
	spawn_all(NULL);
	check_all("from outside");
	prepare();
	expect_number("spawn", 0, pinion_task_spawn(runtime, &first));
	check_all("from a worker");
	check_held();
	check_beside(spawn_itself);
	check_beside(spawn_itself_first);
	check_wakes();
	expect_refused("one beyond the last", -EINVAL, WORKERS, good);
	expect_refused("far beyond the last", -EINVAL, UINT32_MAX, good);
	expect_refused("no function", -EINVAL, 0, (struct pinion_task){0});
	expect_refused("unknown flag", -EINVAL, 0,
		(struct pinion_task){.run = run_item, .flags = 1u << 31});
	expect_number("no task", -EINVAL, pinion_task_spawn_on(runtime, 0, NULL));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_refused("drained", -ESHUTDOWN, 0, good);
	pinion_runtime_destroy(runtime);
	return expect_status();
}

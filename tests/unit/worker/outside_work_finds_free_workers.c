/* SPDX-License-Identifier: MIT */
/*
 * Goal: a request from outside goes to a worker that serves its lane, in turns;
 * if the next in turn is busy, to a sleeping worker; of the high lane to those
 * that serve little else. A general worker with other work leaves a task of the
 * high lane to a sleeping worker that serves high alone. A7, G2.
 * Method: workers that tasks hold, and the choice that each submit makes, asked
 * for. Then a general worker that has a task of each lane, beside a worker for
 * high that sleeps or that a task holds: the order in which it runs them.
 */
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include "runtime/task/entry.h"
#include "runtime/worker/lane.h"
#include "runtime/worker/request.h"
#include "runtime/worker/wake.h"

enum {
	CHOICES = 12,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;

static void start(uint32_t worker_count, const char *lanes)
{
	struct pinion_config config;

	runtimes_config(&config, worker_count, PINION_IO_AUTO);
	config.lanes = lanes;
	/* Which wakes sleepers for held workers. */
	runtimes_tuning.watchdog_us = 0;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
}

static void finish(void)
{
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
}

/* In the parked set, too, which is what others look at. */
static void await_sleep(uint32_t worker_index)
{
	const struct pin_shared *shared = &runtime->shared;
	const struct pin_worker *worker = &shared->workers[worker_index];
	uint32_t rank = pin_victims_rank(&shared->victims, worker_index);

	while (!pin_parker_is_parked(&worker->parker) ||
		!(pin_idle_holds(&worker->worker_class->parked[PIN_PARKED_FUTEX], rank) ||
			pin_idle_holds(&worker->worker_class->parked[PIN_PARKED_RING], rank))) {
		pin_host_linux.yield();
	}
}

/* Choices go to workers that are bits of `expected`, to each of them. */
static void expect_choice(const char *what, enum pinion_lane lane, uint32_t expected)
{
	uint32_t chosen = 0;

	for (uint32_t i = 0; i < CHOICES; i++) {
		chosen |= UINT32_C(1) << pin_external_choose(&runtime->shared, lane)->index;
	}
	expect_number(what, expected, chosen);
}

static void check_one_class(void)
{
	struct tasks_hold held[2] = {{.prepare = NULL}, {.prepare = NULL}};

	start(2, NULL);
	await_sleep(0);
	await_sleep(1);
	expect_choice("both sleep", PINION_LANE_NORMAL, 3);
	expect_choice("both sleep, high", PINION_LANE_HIGH, 3);
	tasks_hold_begin(&held[0], runtime, 0);
	await_sleep(1);
	expect_choice("the first is busy", PINION_LANE_NORMAL, 2);
	expect_choice("the first is busy, high", PINION_LANE_HIGH, 2);
	tasks_hold_begin(&held[1], runtime, 1);
	expect_choice("both are busy", PINION_LANE_NORMAL, 3);
	tasks_hold_end(&held[0]);
	await_sleep(0);
	expect_choice("the second is busy", PINION_LANE_LOW, 1);
	tasks_hold_end(&held[1]);
	finish();
}

/* Worker 0 serves high alone, 1 and 2 serve all, 3 serves low alone. */
static void check_classes(void)
{
	struct tasks_hold held[3] = {{.prepare = NULL}, {.prepare = NULL}, {.prepare = NULL}};

	start(4, "h:1,hnl:2,l:1");
	for (uint32_t i = 0; i < 4; i++) {
		await_sleep(i);
	}
	expect_choice("high", PINION_LANE_HIGH, 1);
	expect_choice("normal", PINION_LANE_NORMAL, 2 | 4);
	expect_choice("low", PINION_LANE_LOW, 2 | 4 | 8);
	tasks_hold_begin(&held[0], runtime, 1);
	await_sleep(2);
	expect_choice("normal beside a busy one", PINION_LANE_NORMAL, 4);
	tasks_hold_begin(&held[1], runtime, 0);
	await_sleep(2);
	expect_choice("high, its own is busy", PINION_LANE_HIGH, 4);
	tasks_hold_begin(&held[2], runtime, 2);
	expect_choice("high, all are busy", PINION_LANE_HIGH, 1);
	expect_choice("normal, all are busy", PINION_LANE_NORMAL, 2 | 4);
	await_sleep(3);
	expect_choice("low, one sleeps", PINION_LANE_LOW, 8);
	for (uint32_t i = 0; i < 3; i++) {
		tasks_hold_end(&held[i]);
	}
	finish();
}

/* ---- tasks ---- */

/* A task of high and one of normal, in the order in which they run. */
enum {
	HIGH,
	NORMAL,
	PAIR,
};

struct ordered {
	struct pinion_task task;
	uint32_t position;
	int worker_index;
};

static struct ordered pair[PAIR];
static struct pin_atomic_u32 run_count;

static int note_order(struct pinion_task *task)
{
	struct ordered *ordered = PIN_CONTAINER_OF(task, struct ordered, task);

	ordered->position = pin_load_relaxed_u32(&run_count);
	ordered->worker_index = pinion_worker_index(runtime);
	tasks_signal(&run_count);
	return 0;
}

/*
 * Runs on worker 1, which takes both tasks when this one ends. It queues the
 * high task without a wake, so that the other worker goes on sleeping.
 */
static int leave_both(struct pinion_task *task)
{
	struct pin_shared *shared = &runtime->shared;
	struct pin_list list = {0};

	(void)task;
	pin_meter_add(&shared->workers[1].meter.tasks_spawned, 1);
	pin_meter_add(&shared->workers[1].meter.tasks_laned, 1);
	pin_list_push(&list, pin_task_link(&pair[HIGH].task));
	pin_lane_queue_push(&shared->lanes[PINION_LANE_HIGH], &list, 1);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &pair[NORMAL].task));
	return 0;
}

static void run_pair(uint32_t high_position)
{
	struct pinion_task both = {.run = leave_both};

	pin_store_release_u32(&run_count, 0);
	pair[HIGH] = (struct ordered){.task = {.run = note_order, .flags = PINION_TASK_HIGH}};
	pair[NORMAL] = (struct ordered){.task = {.run = note_order}};
	expect_number("spawn_on", 0, pinion_task_spawn_on(runtime, 1, &both));
	tasks_await(&run_count, PAIR);
	for (uint32_t i = 0; i < PAIR; i++) {
		expect_number("its worker", 1, pair[i].worker_index);
	}
	expect_number("high's position", high_position, pair[HIGH].position);
}

static void check_tasks(void)
{
	struct tasks_hold held = {.prepare = NULL};

	start(2, "h:1,hnl:1");
	await_sleep(0);
	/* To the sleeping one; it takes it when it has nothing else. */
	run_pair(1);
	/* Where none of its own is free, it takes it at once. */
	tasks_hold_begin(&held, runtime, 0);
	run_pair(0);
	tasks_hold_end(&held);
	finish();
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_one_class();
	check_classes();
	check_tasks();
	return expect_status();
}

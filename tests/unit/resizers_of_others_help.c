/* SPDX-License-Identifier: MIT */
/*
 * Goal: a worker that resizes a crew goes on with its own tasks until those
 * that are too many have left, as what their jobs wait for may be one of them;
 * such a task may even end the crew. Of two crews that resize each other, each
 * by a job of the worker that is to leave, one call gets -EDEADLK, and both
 * become as small as told; nobody gets it while a worker is only on its way.
 * C2, WP-35, WP-36.
 * Method: a runtime and a crew, two crews; jobs bound to the worker that leaves
 * or to the one that stays.
 */
#include "tests/support/expect.h"
#include "tests/support/runtimes.h"
#include "tests/support/sides.h"

#include <errno.h>
#include <pinion/crew.h>

enum { LIMIT_SECONDS = 60, STAYS = 0, LEAVES = 1 };

static const struct pinion_crew_sizes one = {0, 0, 1};
static const struct pinion_crew_sizes two = {0, 0, 2};

static struct pinion_task there;
static struct pinion_task here[3];
static int rcs[2];
static int index_at_end;

static struct pinion_runtime *start_crew(uint64_t help_depth)
{
	struct pinion_runtime *crew;
	struct pinion_config config;

	pinion_crew_config_init(&config);
	config.log = runtimes_note;
	config.help_depth = help_depth;
	expect_ready(runtimes_log, pinion_crew_create(&config, &two, &crew) == 0);
	return crew;
}

static void begin(uint64_t help_depth)
{
	sides[0] = sides_start_one(1, help_depth, NULL);
	sides[1] = start_crew(help_depth);
	pinion_future_init(&sides_future, NULL);
	rcs[0] = 1;
	rcs[1] = 1;
	index_at_end = -1;
}

static void expect_low(const char *what, uint32_t low, const struct pinion_runtime *crew)
{
	struct pinion_crew_sizes now;

	expect_number(what, 0, pinion_crew_sizes_now(crew, &now));
	expect_number(what, low, now.low);
}

/* Has `run` begin on a worker of the crew. */
static void spawn_there(uint32_t worker_index, int (*run)(struct pinion_task *task))
{
	there = (struct pinion_task){.run = run};
	expect_number("spawn there", 0, pinion_spawn_on(sides[1], worker_index, &there));
}

/* ---- what the other waits for is run meanwhile ---- */

static struct pin_atomic_u32 has_begun;

static int wait_there(struct pinion_task *task)
{
	(void)task;
	pin_store_release_u32(&has_begun, true);
	rcs[1] = pinion_future_wait(&sides_future, UINT64_MAX);
	return 0;
}

static int resize_other(struct pinion_task *task)
{
	(void)task;
	rcs[0] = pinion_crew_resize(sides[1], &one);
	index_at_end = pinion_worker_index(sides[0]);
	return 0;
}

static void begin_waiting(void)
{
	begin(4);
	pin_store_release_u32(&has_begun, false);
	spawn_there(LEAVES, wait_there);
	while (!pin_load_acquire_u32(&has_begun)) {
		sched_yield();
	}
	sides_spawn(&here[0], resize_other);
}

static void check_help(void)
{
	begin_waiting();
	sides_spawn(&here[1], sides_set);
	expect_number("drain", 0, pinion_runtime_drain(sides[0]));
	expect_number("resized", 0, rcs[0]);
	expect_number("its job was served", 0, rcs[1]);
	expect_number("on the same worker", 0, index_at_end);
	expect_low("is smaller", 1, sides[1]);
	sides_end();
}

/* ---- it is ended meanwhile, above ---- */

static int again_rc;
static int end_rc;

static int end_above(struct pinion_task *task)
{
	(void)task;
	again_rc = pinion_crew_resize(sides[1], &one);
	end_rc = pinion_runtime_drain(sides[1]);
	return 0;
}

static void check_end_above(void)
{
	begin_waiting();
	sides_spawn(&here[1], end_above);
	sides_spawn(&here[2], sides_set);
	expect_number("drain", 0, pinion_runtime_drain(sides[0]));
	expect_number("one at a time", -EBUSY, again_rc);
	expect_number("ended above", 0, end_rc);
	expect_number("ended meanwhile", -ESHUTDOWN, rcs[0]);
	expect_number("its job was served", 0, rcs[1]);
	sides_end();
}

/* ---- each waits for the other ---- */

static struct pin_atomic_u32 begun_count;
static struct pin_atomic_u32 over_count;

/* Both are in their job before either asks for the other's worker. */
static int resize_side(int other)
{
	pin_fetch_add_acq_rel_u32(&begun_count, 1);
	while (pin_load_acquire_u32(&begun_count) != 2) {
		sched_yield();
	}
	rcs[1 - other] = pinion_crew_resize(sides[other], &one);
	pin_fetch_add_acq_rel_u32(&over_count, 1);
	return 0;
}

static int resize_first(struct pinion_task *task)
{
	(void)task;
	return resize_side(0);
}

static int resize_second(struct pinion_task *task)
{
	(void)task;
	return resize_side(1);
}

/* Both leave in the end, and who resizes next is told so. */
static void check_each_other(uint64_t help_depth)
{
	struct pinion_task last = {.run = resize_second};

	begin(help_depth);
	pin_store_release_u32(&begun_count, 0);
	pin_store_release_u32(&over_count, 0);
	pinion_runtime_destroy(sides[0]);
	sides[0] = start_crew(help_depth);
	expect_number("spawn", 0, pinion_spawn_on(sides[0], LEAVES, &last));
	spawn_there(LEAVES, resize_first);
	while (pin_load_acquire_u32(&over_count) != 2) {
		sched_yield();
	}
	for (int side = 0; side < 2; side++) {
		expect_number("resized at last", 0, pinion_crew_resize(sides[side], &one));
		expect_low("is smaller", 1, sides[side]);
	}
	expect_true("one of them", (rcs[0] == -EDEADLK) != (rcs[1] == -EDEADLK));
	expect_number("the other", 0, rcs[0] == -EDEADLK ? rcs[1] : rcs[0]);
	expect_number("larger again", 0, pinion_crew_resize(sides[0], &two));
	expect_low("is larger", 2, sides[0]);
	sides_end();
}

/* ---- a worker that is on its way is all the other has left ---- */

static int drain_first(struct pinion_task *task)
{
	(void)task;
	rcs[1] = pinion_runtime_drain(sides[0]);
	return 0;
}

static void check_on_its_way(uint64_t help_depth)
{
	struct pinion_task held;

	begin(help_depth);
	/* Closed only when both have their task. */
	sides_hold(0, &held);
	sides_spawn(&here[0], resize_other);
	spawn_there(STAYS, drain_first);
	pin_store_release_u32(&sides_may_end, true);
	expect_number("drain", 0, pinion_runtime_drain(sides[0]));
	expect_number("resized", 0, rcs[0]);
	expect_number("drain", 0, pinion_runtime_drain(sides[1]));
	expect_number("and drained", 0, rcs[1]);
	sides_end();
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_help();
	check_end_above();
	for (int i = 0; i < 20; i++) {
		check_each_other(4);
		check_each_other(0);
		check_on_its_way(4);
		check_on_its_way(0);
	}
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: a worker that drains, joins, stops or destroys another runtime goes on
 * with its own tasks meanwhile, as what the other runtime waits for may be one
 * of them. Of two that end each other one gets -EDEADLK, who destroys never
 * does; of two that destroy each other one comes back without having done so.
 * A limit is kept when the other does not end.
 * C2, C14, WP-36.
 * Method: two runtimes of one worker each, all ways of ending.
 */
#include "tests/support/expect.h"
#include "tests/support/runtimes.h"
#include "tests/support/sides.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <pthread.h>

enum { LIMIT_SECONDS = 60 };

static struct pinion_task waits_there;
static struct pinion_task simple[2];
static struct pin_atomic_u32 is_begun;

enum way {
	WAY_DRAIN,
	WAY_JOIN,
	WAY_STOP,
	WAY_STOP_UNTIL,
	WAY_DESTROY,
	WAYS,
};

static enum way way;
static int end_rc;
static int others_rc;
static int index_at_end;

static int end_side(struct pinion_runtime *side)
{
	switch (way) {
	case WAY_DRAIN:
		return pinion_runtime_drain(side);
	case WAY_JOIN:
		return pinion_runtime_join(side);
	case WAY_STOP:
		return pinion_runtime_stop(side);
	case WAY_STOP_UNTIL:
		return pinion_runtime_stop_until(side, pinion_now_ns() + 50000000000);
	case WAY_DESTROY:
	case WAYS:
		break;
	}
	pinion_runtime_destroy(side);
	return 0;
}

static int end_other(struct pinion_task *task)
{
	(void)task;
	end_rc = end_side(sides[1]);
	index_at_end = pinion_worker_index(sides[0]);
	return 0;
}

static int wait_on_other(struct pinion_task *task)
{
	(void)task;
	pin_store_release_u32(&is_begun, true);
	others_rc = pinion_future_wait(&sides_future, UINT64_MAX);
	return 0;
}

static void begin_ending(uint32_t workers, uint64_t help_depth)
{
	sides_start(workers, help_depth);
	pinion_future_init(&sides_future, NULL);
	pin_store_release_u32(&is_begun, false);
	end_rc = 1;
	others_rc = 1;
	index_at_end = -1;
	waits_there = (struct pinion_task){.run = wait_on_other};
}

/* The one worker's next task is what the other runtime waits for. */
static void check_end(void)
{
	begin_ending(1, 1);
	expect_number("spawn", 0, pinion_spawn(sides[1], &waits_there));
	while (!pin_load_acquire_u32(&is_begun)) {
		sched_yield();
	}
	sides_spawn(&simple[0], end_other);
	sides_spawn(&simple[1], sides_set);
	expect_number("drain", 0, pinion_runtime_drain(sides[0]));
	expect_number("the other has ended", 0, end_rc);
	expect_number("its task was served", 0, others_rc);
	expect_number("on the same worker", 0, index_at_end);
	pinion_runtime_destroy(sides[0]);
	if (way != WAY_DESTROY) {
		pinion_runtime_destroy(sides[1]);
	}
}

static int stop_other_in_vain(struct pinion_task *task)
{
	(void)task;
	end_rc = pinion_runtime_stop_until(sides[1], pinion_now_ns() + 1000000);
	others_rc = pinion_runtime_stop_until(sides[1], 0);
	return 0;
}

/* What does not end meanwhile; somebody else waits for it as well. */
static void check_end_in_vain(uint64_t help_depth)
{
	struct pinion_task held;
	pthread_t stopper;

	begin_ending(1, help_depth);
	sides_hold(1, &held);
	expect_ready("thread", pthread_create(&stopper, NULL, sides_stop, sides[1]) == 0);
	sides_spawn(&simple[0], stop_other_in_vain);
	expect_number("drain", 0, pinion_runtime_drain(sides[0]));
	expect_number("until then", -ETIME, end_rc);
	expect_number("at once", -ETIME, others_rc);
	pin_store_release_u32(&sides_may_end, true);
	pthread_join(stopper, NULL);
	sides_end();
}

static int end_first(struct pinion_task *task)
{
	(void)task;
	others_rc = pinion_runtime_drain(sides[0]);
	return 0;
}

/*
 * Each ends the other: one of them is told, and has ended it nevertheless, by
 * ending itself. Who destroys is never the one.
 */
static void check_ends_of_each_other(uint64_t help_depth)
{
	struct pinion_task first = {.run = end_first, .flags = PINION_TASK_MANDATORY};
	struct pinion_task last = {.run = end_other};
	struct pinion_task held[2];

	begin_ending(1, help_depth);
	/* Neither may be closed before both have their task. */
	sides_hold(0, &held[0]);
	sides_hold(1, &held[1]);
	expect_number("spawn", 0, pinion_spawn(sides[1], &first));
	expect_number("spawn", 0, pinion_spawn(sides[0], &last));
	pin_store_release_u32(&sides_may_end, true);
	expect_number("drain", 0, pinion_runtime_drain(sides[0]));
	if (way == WAY_DESTROY) {
		expect_number("who does not destroy", -EDEADLK, others_rc);
		expect_number("who destroys", 0, end_rc);
	} else {
		expect_number("drain", 0, pinion_runtime_drain(sides[1]));
		expect_true("one of them", (end_rc == -EDEADLK) != (others_rc == -EDEADLK));
		expect_number("the other", 0, end_rc == -EDEADLK ? others_rc : end_rc);
		pinion_runtime_destroy(sides[1]);
	}
	pinion_runtime_destroy(sides[0]);
}

/* ---- two that destroy each other ---- */

static struct pin_atomic_u32 is_first_back;
static struct pin_atomic_u32 back_count;
static int left_side;

static int destroy_side(int side)
{
	pinion_runtime_destroy(sides[side]);
	/* The other comes back only when this task's runtime is gone. */
	if (pin_exchange_acq_rel_u32(&is_first_back, true) == 0) {
		left_side = side;
	}
	pin_fetch_add_acq_rel_u32(&back_count, 1);
	return 0;
}

static int destroy_first(struct pinion_task *task)
{
	(void)task;
	return destroy_side(0);
}

static int destroy_second(struct pinion_task *task)
{
	(void)task;
	return destroy_side(1);
}

static void check_destroys_of_each_other(uint64_t help_depth)
{
	struct pinion_task first = {.run = destroy_first, .flags = PINION_TASK_MANDATORY};
	struct pinion_task second = {.run = destroy_second, .flags = PINION_TASK_MANDATORY};
	struct pinion_task held[2];

	begin_ending(1, help_depth);
	runtimes_log[0] = '\0';
	pin_store_release_u32(&is_first_back, false);
	pin_store_release_u32(&back_count, 0);
	sides_hold(0, &held[0]);
	sides_hold(1, &held[1]);
	expect_number("spawn", 0, pinion_spawn(sides[1], &first));
	expect_number("spawn", 0, pinion_spawn(sides[0], &second));
	pin_store_release_u32(&sides_may_end, true);
	while (pin_load_acquire_u32(&back_count) != 2) {
		sched_yield();
	}
	expect_true("it is said", strstr(runtimes_log, "a runtime is not freed") != NULL);
	expect_true("closed", !pinion_runtime_is_accepting(sides[left_side]));
	pinion_runtime_destroy(sides[left_side]);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	for (way = 0; way < WAYS; way++) {
		check_end();
	}
	check_end_in_vain(4);
	check_end_in_vain(0);
	for (way = 0; way < WAYS; way++) {
		check_ends_of_each_other(4);
		check_ends_of_each_other(0);
	}
	check_destroys_of_each_other(4);
	check_destroys_of_each_other(0);
	return expect_status();
}

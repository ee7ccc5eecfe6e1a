/* SPDX-License-Identifier: MIT */
/*
 * Two runtimes whose workers wait for each other: for tests of what a blocked
 * worker does meanwhile.
 */
#ifndef PIN_TESTS_SUPPORT_SIDES_H
#define PIN_TESTS_SUPPORT_SIDES_H

#include "runtime/base/atomic.h"
#include "tests/support/expect.h"
#include "tests/support/runtimes.h"

#include <pinion/pinion.h>
#include <sched.h>

static struct pinion_runtime *sides[2];

/* Of anybody; set by the task sides_set() and waited for by its user. */
static struct pinion_future sides_future;

/* One flag for all tasks that hold their worker, see sides_hold(). */
static struct pin_atomic_u32 sides_may_end;
static struct pin_atomic_u32 sides_is_held;

static inline struct pinion_runtime *sides_start_one(
	uint32_t workers, uint64_t help_depth, const char *lanes)
{
	struct pinion_runtime *runtime;
	struct pinion_config config;

	runtimes_config(&config, workers, PINION_IO_AUTO);
	config.help_depth = help_depth;
	config.lanes = lanes;
	config.lane_floor = 0;
	config.bind_workers = 0;
	expect_ready(runtimes_log, pinion_runtime_create(&config, &runtime) == 0);
	return runtime;
}

static inline void sides_start(uint32_t workers, uint64_t help_depth)
{
	sides[0] = sides_start_one(workers, help_depth, NULL);
	sides[1] = sides_start_one(workers, help_depth, NULL);
}

static inline void sides_end(void)
{
	expect_number("drain", 0, pinion_runtime_drain(sides[0]));
	expect_number("drain", 0, pinion_runtime_drain(sides[1]));
	pinion_runtime_destroy(sides[0]);
	pinion_runtime_destroy(sides[1]);
}

/* Spawns `run` on the first of them. */
static inline void sides_spawn(struct pinion_task *task, int (*run)(struct pinion_task *task))
{
	*task = (struct pinion_task){.run = run};
	expect_number("spawn", 0, pinion_spawn(sides[0], task));
}

static inline int sides_set(struct pinion_task *task)
{
	(void)task;
	return pinion_future_set(&sides_future, NULL, 0);
}

static inline int sides_stay(struct pinion_task *task)
{
	(void)task;
	pin_store_release_u32(&sides_is_held, true);
	while (!pin_load_acquire_u32(&sides_may_end)) {
		sched_yield();
	}
	return 0;
}

/* A worker of that side is in `holder` until `sides_may_end`. */
static inline void sides_hold(int side, struct pinion_task *holder)
{
	pin_store_release_u32(&sides_may_end, false);
	pin_store_release_u32(&sides_is_held, false);
	*holder = (struct pinion_task){.run = sides_stay};
	expect_number("spawn", 0, pinion_spawn(sides[side], holder));
	while (!pin_load_acquire_u32(&sides_is_held)) {
		sched_yield();
	}
}

/* For a thread: stops the runtime that it is given. */
static inline void *sides_stop(void *arg)
{
	expect_number("stop", 0, pinion_runtime_stop(arg));
	return NULL;
}

#endif

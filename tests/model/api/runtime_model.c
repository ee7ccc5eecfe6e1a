/* SPDX-License-Identifier: MIT */
/*
 * The real api/runtime.c, api/spawn.c and task/entry.c, on the model's heap,
 * with calls that a mutant may leave out or turn round.
 */
#include "tests/model/api/runtime_model.h"
#include "runtime/api/internal.h"
#include "runtime/host/process.h"
#include "runtime/task/entry.h"
#include "runtime/worker/lane.h"
#include "runtime/worker/spawn.h"
#include "runtime/worker/timer.h"
#include "runtime/worker/wake.h"
#include "runtime/worker/watchdog.h"
#include "runtime/worker/worker.h"
#include "tests/model/explorer.h"
#include "tests/model/heap.h"

#include <stdlib.h>

/* EARLY: sleepers are woken before there is anything to find. */
static bool is_early(const char *site)
{
	return model_is_spoilt(MODEL_EARLY, site, "pin_wake_one");
}

#define pin_injector_push(injector, list) \
	do { \
		if (is_early(__func__)) { \
			(pin_wake_one)(shared, NULL); \
		} \
		(pin_injector_push)(injector, list); \
	} while (0)
#define pin_wake_one(shared, waker) \
	(is_early(__func__) || model_is_spoilt(MODEL_SKIP, __func__, "pin_wake_one") \
			? (void)0 \
			: (pin_wake_one)(shared, waker))
#define pin_wake_all(shared) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_wake_all") ? (void)0 : (pin_wake_all)(shared))

#define pin_wake_worker(target, waker) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_wake_worker") \
			? (void)0 \
			: (pin_wake_worker)(target, waker))

static bool acquire(struct pin_lock *lock)
{
	pin_lock_acquire(lock, &pin_host_linux);
	return true;
}

/* SKIP: it waits until the lock is free. */
#define pin_lock_try(lock) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_lock_try") ? acquire(lock) \
							       : (pin_lock_try)(lock))

#include "runtime/api/resize.c"
#include "runtime/api/runtime.c"
#include "runtime/api/runtime_create.c"
#include "runtime/api/spawn.c"
#include "runtime/api/stats.c"
#include "runtime/api/worker.c"
#include "runtime/task/entry.c"

bool model_uses_lifo;
bool model_has_watchdog;
uint64_t model_stall_ms;
bool model_announces;
const char *model_lanes;
uint32_t model_assist;
uint32_t model_assist_reserve;
const uint32_t *model_serving_counts;
bool model_polls;
bool model_takes_commands;
uint64_t model_injector_tasks;
bool model_is_driven;
uint32_t model_fence_wake_batches = 1;

void model_runtime_register(void)
{
	model_worker_register();
}

struct pinion_runtime *model_runtime_begin(
	uint32_t worker_count, enum pin_doorbell_kind doorbell, void (*in_between)(void))
{
	struct pinion_runtime *runtime;
	struct pinion_config config;
	struct pinion_tuning tuning;

	model_rings_begin(doorbell);
	pinion_config_init(&config);
	pinion_tuning_init(&tuning);
	config.tuning = &tuning;
	config.worker_count = worker_count;
	config.is_driven = model_is_driven;
	tuning.steal_tries = 1; /* more are the same again */
	tuning.lifo_polls = model_uses_lifo ? 1 : 0;
	tuning.wake_batch_spawns = 1; /* a spawned task is visible at once */
	tuning.watchdog_us = 0;
	tuning.stall_ms = model_stall_ms;
	tuning.spawn_wake_us = model_announces ? 1 : 0;
	config.lanes = model_lanes;
	tuning.lane_floor = 0;
	tuning.assist = model_assist;
	tuning.assist_reserve = model_assist_reserve;
	tuning.injector_tasks = model_injector_tasks;
	tuning.polled = model_polls ? PINION_POLLED_ALWAYS : PINION_POLLED_NEVER;
	tuning.ring_sharing = model_shares_rings ? PINION_RING_SHARED : PINION_RING_OWN;
	if (model_has_watchdog) {
		tuning.wake_batch_spawns = 65535;
		tuning.task_ns = 1;
		tuning.watchdog_us = 1;
	}
	model_quiet_begin();
	MODEL_CHECK(pin_runtime_create(&config, model_serving_counts, &runtime) == 0);
	for (uint32_t i = 0; i < worker_count && worker_count > 1; i++) {
		runtime->shared.workers[i].wake_batch.fence_spawns =
			model_fence_wake_batches * tuning.wake_batch_spawns;
		runtime->shared.workers[i].wake_batch.pause_ns = 0;
	}
	if (in_between != NULL) {
		in_between();
	}
	model_quiet_end();
	if (model_choose(MODEL_FREE, 2) == 1) {
		model_quiet_begin();
		model_settle();
		model_quiet_end();
	}
	return runtime;
}

void model_runtime_end(struct pinion_runtime *runtime)
{
	const struct pin_shared *shared = &runtime->shared;

	model_quiet_begin();
	model_device_release();
	pinion_runtime_destroy(runtime);
	/* The last to see it, of all that saw it at the same time. */
	MODEL_CHECK(model_end_count(shared) == 1);
}

bool model_is_worker_awake(const struct pinion_runtime *runtime, uint32_t worker_index)
{
	return runtime->shared.workers[worker_index].parker.state.value != PIN_PARK_FUTEX;
}

static bool is_watchdog_asleep(const void *arg)
{
	const struct pinion_runtime *runtime = arg;

	return runtime->shared.watchdog.value == PIN_WATCHDOG_ASLEEP;
}

void model_watchdog_settle(struct pinion_runtime *runtime)
{
	model_quiet_begin();
	model_await("the watchdog to sleep", is_watchdog_asleep, runtime);
	model_quiet_end();
}

static int run_task(struct pinion_task *task)
{
	struct model_task *model_task = PIN_CONTAINER_OF(task, struct model_task, request.task);

	model_task->run_count++;
	MODEL_CHECK(model_task->run_count + model_task->cancel_count == 1);
	model_event("task", "runs", model_task, model_task->run_count);
	if (model_task->body != NULL) {
		model_task->body(model_task);
	}
	return 0;
}

static void cancel_task(struct pinion_task *task)
{
	struct model_task *model_task = PIN_CONTAINER_OF(task, struct model_task, request.task);

	model_task->cancel_count++;
	MODEL_CHECK(model_task->run_count + model_task->cancel_count == 1);
	model_event("task", "is cancelled", model_task, model_task->cancel_count);
}

void model_task_init(struct model_task *task, void (*body)(struct model_task *task))
{
	static struct pinion_file file; /* of no kind in particular */

	*task = (struct model_task){
		.request = {.task = {.run = run_task, .cancel = cancel_task}, .file = &file},
		.body = body,
	};
}

bool model_task_has_run(const void *task)
{
	const struct model_task *model_task = task;

	return model_task->run_count > 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Tasks that hold their workers until a test lets them go, and words that a
 * thread sleeps on until others have counted them up. Nothing here waits for a
 * time.
 */
#ifndef PIN_TESTS_SUPPORT_TASKS_H
#define PIN_TESTS_SUPPORT_TASKS_H

#include "tests/support/expect.h"
#include "tests/support/rounds.h"

#include "runtime/base/atomic.h"
#include "runtime/base/base.h"
#include "runtime/host/host.h"

#include <pinion/pinion.h>

/* Counts one up and wakes its waiters. */
static inline void tasks_signal(struct pin_atomic_u32 *word)
{
	pin_fetch_add_seq_cst_u32(word, 1);
	pin_host_linux.futex_wake(word, UINT32_MAX);
}

static inline void tasks_await(struct pin_atomic_u32 *word, uint32_t wanted)
{
	for (;;) {
		uint32_t now = pin_load_acquire_u32(word);

		if (now >= wanted) {
			return;
		}
		pin_host_linux.futex_wait(word, now, PIN_NO_DEADLINE);
	}
}

/*
 * A task that holds its worker from `has_begun` to `may_end`; it first calls
 * `prepare`, if there is one, on that worker. The spawner is done with the
 * worker by then, so `prepare` may replace what a spawn reads.
 */
struct tasks_hold {
	struct pinion_task task;
	void (*prepare)(struct tasks_hold *hold);
	struct pin_atomic_u32 is_spawned;
	struct pin_atomic_u32 has_begun;
	struct pin_atomic_u32 may_end;
	struct pin_atomic_u32 has_ended;
};

static inline int tasks_hold_run(struct pinion_task *task)
{
	struct tasks_hold *hold = PIN_CONTAINER_OF(task, struct tasks_hold, task);

	if (hold->prepare != NULL) {
		tasks_await(&hold->is_spawned, 1);
		hold->prepare(hold);
	}
	tasks_signal(&hold->has_begun);
	tasks_await(&hold->may_end, 1);
	tasks_signal(&hold->has_ended);
	return 0;
}

/* Returns when worker `worker_index` is held. */
static inline void tasks_hold_begin(
	struct tasks_hold *hold, struct pinion_runtime *runtime, uint32_t worker_index)
{
	hold->task = (struct pinion_task){.run = tasks_hold_run};
	pin_store_release_u32(&hold->is_spawned, 0);
	pin_store_release_u32(&hold->has_begun, 0);
	pin_store_release_u32(&hold->may_end, 0);
	pin_store_release_u32(&hold->has_ended, 0);
	expect_number("spawn_on", 0, pinion_task_spawn_on(runtime, worker_index, &hold->task));
	tasks_signal(&hold->is_spawned);
	tasks_await(&hold->has_begun, 1);
}

/* Returns when the task is the caller's again. */
static inline void tasks_hold_end(struct tasks_hold *hold)
{
	tasks_signal(&hold->may_end);
	tasks_await(&hold->has_ended, 1);
}

/* How often to repeat: STRESS_ITERATIONS, or what a short run does. */
static inline uint32_t tasks_iterations(uint32_t standard)
{
	const char *given = getenv("STRESS_ITERATIONS");
	unsigned long count = given == NULL ? 0 : strtoul(given, NULL, 10);

	return count == 0 || count > UINT32_MAX ? (uint32_t)rounds_part(standard) : (uint32_t)count;
}

#endif

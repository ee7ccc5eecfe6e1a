/* SPDX-License-Identifier: MIT */
/*
 * Places for tasks that are to come, waits, and what the layers above ask.
 */
#include "runtime/task/entry.h"
#include "runtime/base/check.h"
#include "runtime/worker/events.h"
#include "runtime/worker/lane.h"
#include "runtime/worker/spawn.h"
#include "runtime/worker/wake.h"

#include <errno.h>

/* Apart by lanes before any is pushed: then it may run, and its memory go. */
void pin_entry_push_lanes(
	struct pin_shared *shared, struct pinion_task *const *tasks, uint32_t count)
{
	struct pin_list lists[PIN_LANES] = {{0}};

	for (uint32_t i = 0; i < count; i++) {
		PIN_DCHECK(!pin_task_is_idle(tasks[i])); /* claimed, so no other queues it */
		pin_list_push(&lists[pin_task_lane(tasks[i])], pin_task_link(tasks[i]));
	}
	for (uint32_t lane = 0; lane < PIN_LANES; lane++) {
		if (!pin_list_is_empty(&lists[lane])) {
			pin_lane_push_claimed(shared, lane, &lists[lane]);
		}
	}
}

/* ---- places for tasks ---- */

/*
 * On a worker a place needs no more than a test of the stop flag: a task pushed
 * after it is cancelled, not lost.
 */
int pin_runtime_reserve(struct pinion_runtime *runtime)
{
	struct pin_shared *shared = &runtime->shared;
	bool is_open;

	if (pin_runtime_is_foreign(runtime)) {
		return -ECHILD;
	}
	is_open = pin_runtime_own_worker(runtime) != NULL ? !pin_shared_is_stopping(shared)
							  : pin_gate_admit(&shared->gate, 1);

	return is_open ? 0 : -ESHUTDOWN;
}

void pin_runtime_spawn_reserved(struct pinion_runtime *runtime, struct pinion_task *task)
{
	struct pin_shared *shared = &runtime->shared;
	struct pin_worker *worker = pin_runtime_own_worker(runtime);

	pin_task_set_kind(task, PIN_TASK_PLAIN);
	if (worker != NULL) {
		pin_worker_respawn(worker, task);
		return;
	}
	pin_event_spawn_external(shared, NULL, task);
	if (pin_task_lane(task) != PINION_LANE_NORMAL) {
		pin_room_note_elsewhere(shared, 1);
	}
	pin_lane_push_one(shared, NULL, task);
}

void pin_runtime_undo(struct pinion_runtime *runtime)
{
	struct pin_shared *shared = &runtime->shared;

	if (pin_runtime_own_worker(runtime) != NULL) {
		return;
	}
	if (pin_gate_undo(&shared->gate, 1)) {
		pin_wake_all(shared);
	}
	pin_room_tell(shared, PINION_LANE_NORMAL);
}

int pin_runtime_reserve_room(struct pinion_runtime *runtime, enum pinion_lane lane)
{
	struct pin_shared *shared = &runtime->shared;
	struct pin_room_counts counts = {0};

	if (pin_runtime_is_foreign(runtime)) {
		return -ECHILD;
	}
	if (pin_runtime_own_worker(runtime) != NULL) {
		return pin_shared_is_stopping(shared) ? -ESHUTDOWN : 0;
	}
	PIN_CHECK((uint32_t)lane < PIN_LANES);
	counts.of[lane] = 1;
	return pin_room_admit_lanes(shared, &counts, NULL);
}

void pin_runtime_spawn_in_room(struct pinion_runtime *runtime, struct pinion_task *task)
{
	struct pin_shared *shared = &runtime->shared;

	if (pin_runtime_own_worker(runtime) != NULL) {
		pin_runtime_spawn_reserved(runtime, task);
		return;
	}
	pin_task_set_kind(task, PIN_TASK_PLAIN);
	pin_event_spawn_external(shared, NULL, task);
	if (pin_task_lane(task) != PINION_LANE_NORMAL) {
		pin_room_note_elsewhere(shared, 1);
	}
	pin_entry_push_lanes(shared, &task, 1);
}

void pin_runtime_undo_room(struct pinion_runtime *runtime, enum pinion_lane lane)
{
	PIN_CHECK((uint32_t)lane < PIN_LANES);
	if (pin_runtime_own_worker(runtime) == NULL) {
		pin_room_undo(&runtime->shared, lane);
	}
	pin_runtime_undo(runtime);
}

struct pin_waiters *pin_runtime_room(struct pinion_runtime *runtime, enum pinion_lane lane)
{
	PIN_CHECK((uint32_t)lane < PIN_LANES);
	return &runtime->shared.rooms[lane].waiters;
}

bool pin_runtime_is_own(const struct pinion_runtime *runtime)
{
	return pin_runtime_own_worker(runtime) != NULL;
}

/* ---- waits ---- */

int pin_runtime_await(
	struct pinion_runtime *runtime, struct pinion_wait *wait, const struct pin_wait_aim *aim)
{
	struct pin_worker *worker = pin_runtime_own_worker(runtime);

	if (pin_runtime_is_foreign(runtime)) {
		return -ECHILD;
	}
	return worker != NULL ? pin_wait_begin(worker, wait, aim) : -EPERM;
}

int pin_runtime_wait(const struct pinion_runtime *runtime, struct pin_waiters *waiters,
	struct pin_waiter *waiter, uint64_t deadline_ns)
{
	if (runtime != NULL && pin_runtime_is_foreign(runtime)) {
		return -ECHILD;
	}
	if (pin_worker_of_thread() != NULL) {
		return pin_waiters_try(waiters, waiter) ? 0 : -EDEADLK;
	}
	return pin_waiters_wait(waiters, waiter, deadline_ns);
}

/* ---- what others ask ---- */

const struct pin_log *pin_runtime_log(const struct pinion_runtime *runtime)
{
	static const struct pin_log none;

	return runtime != NULL ? &runtime->shared.log : &none;
}

const struct pin_host *pin_runtime_host(const struct pinion_runtime *runtime)
{
	PIN_DCHECK(runtime->shared.host != NULL);
	return runtime->shared.host;
}

uint32_t pin_runtime_buffer_bytes(const struct pinion_runtime *runtime)
{
	return runtime->shared.config.buffer_bytes;
}

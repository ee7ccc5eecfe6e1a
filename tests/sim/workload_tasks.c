/* SPDX-License-Identifier: MIT */
/*
 * Tasks of a workload: they burn time, start requests and spawn others, as
 * their program says.
 */
#include "runtime/task/entry.h"
#include "runtime/worker/wait.h"
#include "tests/sim/watch.h"
#include "tests/sim/workload_state.h"
#include "tests/sim/world.h"

#include <errno.h>

/* Between two attempts to start a read. */
enum { RETRY_NS = 5 * 1000 };

/* Nothing is drawn where all are normal. */
static uint32_t choose_lane(const struct sim_program *program)
{
	uint32_t share;

	if (program->high_percent + program->low_percent == 0) {
		return 0;
	}
	share = (uint32_t)world_random(100);
	if (share < program->high_percent) {
		return PINION_TASK_HIGH;
	}
	return share < program->high_percent + program->low_percent ? PINION_TASK_LOW : 0;
}

struct workload_entry *workload_new_entry(
	enum workload_kind kind, const struct sim_program *program)
{
	struct workload_entry *entry = &workload_entries[workload.entry_count];

	if (workload.entry_count == WORKLOAD_TASKS_MAX) {
		world_fail("the case has more than %u tasks", WORKLOAD_TASKS_MAX);
	}
	workload.entry_count++;
	*entry = (struct workload_entry){.kind = kind, .program = program};
	return entry;
}

bool workload_spawn(struct workload_entry *entry, bool is_shared)
{
	struct pinion_task *task = &entry->request.task;
	int rc;

	entry->is_entered = false;
	entry->is_accepted = true; /* it may be entered before the call returns */
	watch_task_ready(workload_number(entry));
	world_event("spawns", workload_number(entry), is_shared);
	rc = is_shared ? pinion_task_spawn_shared(workload.runtime, task)
		       : pinion_task_spawn(workload.runtime, task);
	if (rc == 0) {
		workload.spawned++;
		return true;
	}
	if (rc != -ESHUTDOWN) {
		world_fail("a spawn returns %d", rc);
	}
	if (entry->is_entered) {
		world_fail("task %u was refused and entered", workload_number(entry));
	}
	entry->is_accepted = false;
	watch_task_gone(workload_number(entry));
	world_event("is refused", workload_number(entry), 0);
	return false;
}

void workload_enter(struct workload_entry *entry, const char *what)
{
	world_event(what, workload_number(entry), 0);
	if (!entry->is_accepted || entry->is_entered) {
		world_fail("task %u %s, though it is not due", workload_number(entry), what);
	}
	entry->is_entered = true;
	watch_task_gone(workload_number(entry));
	watch_task_entered(workload_number(entry));
}

static bool are_children_over(void *arg, uint64_t demand, struct pin_waiters_value *out_value)
{
	const struct workload_entry *entry = arg;

	(void)demand;
	(void)out_value;
	return entry->children_left == 0;
}

static void leave_joiner(const struct workload_entry *entry)
{
	struct workload_entry *joiner = entry->joiner;

	if (joiner != NULL) {
		pin_waiters_lock(&joiner->waiters);
		joiner->children_left--;
		pin_waiters_serve_unlock(&joiner->waiters);
	}
}

static int has_joined(struct pinion_task *task)
{
	struct pinion_wait *wait = PIN_CONTAINER_OF(task, struct pinion_wait, task);
	struct workload_entry *entry = PIN_CONTAINER_OF(wait, struct workload_entry, wait);

	world_event("has joined", workload_number(entry), (uint64_t)(int64_t)wait->result);
	if (wait->result == 0) {
		WORLD_CHECK(entry->children_left == 0);
	} else {
		WORLD_CHECK(wait->result == -ECANCELED && workload.is_stopping);
	}
	leave_joiner(entry);
	return 0;
}

/* False: it is refused, as the runtime stops. */
static bool join_children(struct workload_entry *entry)
{
	struct pin_wait_aim aim = {.waiters = &entry->waiters};
	int rc;

	entry->wait = (struct pinion_wait){.task.run = has_joined, .deadline_ns = PIN_NO_DEADLINE};
	workload.joins++;
	rc = pin_wait_begin(pin_worker_current(), &entry->wait, &aim);
	if (rc == 0) {
		return true;
	}
	WORLD_CHECK(rc == -ESHUTDOWN && workload.is_stopping);
	workload.joins--;
	return false;
}

static void spawn_children(struct workload_entry *entry)
{
	const struct sim_program *program = entry->program;

	for (uint32_t i = 0; i < program->children; i++) {
		struct workload_entry *child = workload_new_task(program->spawns);

		child->joiner = program->joins > 0 ? entry : NULL;
		if (!workload_spawn(child, world_random(100) < program->shared_percent)) {
			leave_joiner(child);
		}
	}
}

bool workload_spawn_children(struct workload_entry *entry)
{
	if (entry->program->joins == 0) {
		spawn_children(entry);
		return false;
	}
	pin_waiters_init(
		&entry->waiters, &pin_host_linux, are_children_over, entry, PIN_WAITERS_LOCKED);
	entry->children_left = entry->program->children;
	spawn_children(entry);
	return join_children(entry);
}

static void burn(const struct sim_program *program)
{
	if (program->burn_us > 0) {
		world_busy(world_random((uint64_t)program->burn_us * 1000));
	}
}

static void hold(const struct sim_program *program)
{
	uint64_t stall_us = (uint64_t)workload.test->stall_ms * 1000;

	if (program->hold_us > 0) {
		world_busy((uint64_t)program->hold_us * 1000);
	}
	/* Checks are half of that apart, and late by less. */
	if (stall_us > 0 && program->hold_us >= 4 * stall_us &&
		!pin_worker_current()->stall.is_told) {
		world_fail("a task of %u us is not seen to be stalled", program->hold_us);
	}
}

static int run_task(struct pinion_task *task)
{
	struct workload_entry *entry = workload_entry_of(task);
	const struct sim_program *program = entry->program;
	bool is_joining = false;

	workload_enter(entry, "runs");
	workload.run++;
	if (entry->attempt_count > 0) {
		world_busy(RETRY_NS);
	} else {
		burn(program);
		entry->reads_to_start = program->reads;
		entry->reads_left = program->reads;
	}
	entry->attempt_count++;
	if (entry->reads_left > 0) {
		workload_start_reads(entry);
	} else {
		is_joining = workload_spawn_children(entry);
	}
	/* With what it has begun still in the worker's queues or its ring. */
	if (entry->reads_to_start == 0) {
		hold(program);
		if (!is_joining) {
			leave_joiner(entry);
		}
	}
	if (world_random(16) == 0) {
		workload.failed++;
		return -EIO;
	}
	return 0;
}

static void cancel_task(struct pinion_task *task)
{
	struct workload_entry *entry = workload_entry_of(task);

	workload_enter(entry, "is cancelled");
	workload.cancelled++;
	leave_joiner(entry);
	if (!workload.is_stopping) {
		world_fail("task %u is cancelled without a stop", workload_number(entry));
	}
}

struct workload_entry *workload_new_task(const struct sim_program *program)
{
	struct workload_entry *entry = workload_new_entry(WORKLOAD_TASK, program);
	struct pinion_task *task = &entry->request.task;

	task->run = run_task;
	task->cancel = cancel_task;
	task->flags = choose_lane(program);
	return entry;
}

/* SPDX-License-Identifier: MIT */
/*
 * The changes of the state that the caller and the tasks of a walk share.
 *
 * Called by both; see walk_tasks.h for the protocol.
 */
#include "runtime/scan/walk_shared.h"
#include "runtime/base/check.h"
#include "runtime/task/entry.h"

#include <errno.h>

/* ---- under the lock ---- */

static bool may_open(const struct pin_walk_tasks *tasks)
{
	return tasks->open_count < tasks->open_max &&
		(tasks->returned != NULL || tasks->walk->top != NULL);
}

bool pin_walk_has_work(const struct pin_walk_tasks *tasks)
{
	return !tasks->is_ending && (tasks->aside != NULL || may_open(tasks));
}

/* A directory that the lister has closed may be followed by another. */
void pin_walk_count_closed(struct pin_walk_tasks *tasks, struct pin_lister *lister)
{
	if (lister->has_closed) {
		PIN_CHECK(tasks->open_count > 0);
		lister->has_closed = false;
		tasks->open_count--;
	}
}

/* Invariant 2: nothing is left, and nothing can come. */
bool pin_walk_is_over(const struct pin_walk_tasks *tasks)
{
	return tasks->active_count == 0 && tasks->parked == NULL && tasks->ready_first == NULL &&
		tasks->own.walker.listing == NULL && !pin_walk_has_work(tasks);
}

static bool caller_has_work(const struct pin_walk_tasks *tasks)
{
	return tasks->is_ending || tasks->ready_first != NULL || pin_walk_has_work(tasks) ||
		pin_walk_is_over(tasks);
}

static void note_spawn(struct pin_walk_after *after, struct pin_lister *lister)
{
	PIN_CHECK(after->spawns[1] == NULL);
	after->spawns[after->spawns[0] == NULL ? 0 : 1] = lister;
}

/*
 * One idle task, where more names wait than active tasks and the caller will
 * take next. Each task that takes one calls this, so that all come to work.
 */
void pin_walk_wake_idle(struct pin_walk_tasks *tasks, struct pin_walk_after *after)
{
	struct pin_lister *lister = tasks->idle;

	if (lister == NULL || tasks->is_stopped || !may_open(tasks) ||
		tasks->walk->waiting_count <= (size_t)tasks->active_count + 1) {
		return;
	}
	tasks->idle = lister->next;
	tasks->active_count++;
	note_spawn(after, lister);
}

static void push_ready(struct pin_walk_tasks *tasks, struct pin_walk_block *block)
{
	PIN_CHECK(block->directory != NULL && block->next == NULL);
	if (tasks->ready_first == NULL) {
		tasks->ready_first = block;
	} else {
		tasks->ready_last->next = block;
	}
	tasks->ready_last = block;
}

/* The task's block, if it has one: to be visited, or to be filled by others. */
void pin_walk_give_block(struct pin_walk_tasks *tasks, struct pin_lister *lister)
{
	struct pin_walk_block *block = lister->walker.block;

	lister->walker.block = NULL;
	if (block == NULL) {
		return;
	}
	if (block->directory != NULL) {
		push_ready(tasks, block);
	} else {
		block->next = tasks->free_blocks;
		tasks->free_blocks = block;
	}
}

bool pin_walk_take_block(struct pin_walk_tasks *tasks, struct pin_lister *lister)
{
	struct pin_walk_block *block = tasks->free_blocks;

	PIN_CHECK(lister->walker.block == NULL);
	if (block == NULL) {
		return false;
	}
	PIN_CHECK(block->directory == NULL && block->used_bytes == 0);
	tasks->free_blocks = block->next;
	block->next = NULL;
	lister->walker.block = block;
	return true;
}

/* A free block for a parked task. */
void pin_walk_unpark(struct pin_walk_tasks *tasks, struct pin_walk_after *after)
{
	struct pin_lister *lister = tasks->parked;

	if (lister == NULL || tasks->is_ending || !pin_walk_take_block(tasks, lister)) {
		return;
	}
	tasks->parked = lister->next;
	tasks->active_count++;
	note_spawn(after, lister);
}

/* The task is active no more; another's spawn may begin at the unlock. */
void pin_walk_go_idle(
	struct pin_walk_tasks *tasks, struct pin_lister *lister, struct pin_walk_after *after)
{
	PIN_CHECK(tasks->active_count > 0 && lister->walker.listing == NULL);
	pin_walk_give_block(tasks, lister);
	pin_walk_unpark(tasks, after);
	lister->next = tasks->idle;
	tasks->idle = lister;
	tasks->active_count--;
}

void pin_walk_begin_end(struct pin_walk_tasks *tasks, int rc)
{
	if (!tasks->is_ending) {
		tasks->is_ending = true;
		tasks->rc = rc;
	}
}

void pin_walk_put_aside(struct pin_walk_tasks *tasks, struct pin_walker *walker)
{
	struct pin_listing *listing = walker->listing;

	listing->next = tasks->aside;
	tasks->aside = listing;
	tasks->aside_count++;
	walker->listing = NULL;
}

/* A listing that is aside, or a directory; neither: there is none. -ENOMEM. */
int pin_walk_choose(struct pin_walk_tasks *tasks, struct pin_listing **out_listing,
	struct pin_directory **out_directory)
{
	bool opens = may_open(tasks);

	*out_listing = NULL;
	*out_directory = NULL;
	if (tasks->aside != NULL &&
		(!opens || tasks->walk->waiting_bytes < tasks->waiting_bytes_max / 2)) {
		*out_listing = tasks->aside;
		tasks->aside = tasks->aside->next;
		tasks->aside_count--;
		return 0;
	}
	if (!opens) {
		return 0;
	}
	tasks->open_count++;
	if (tasks->returned != NULL) {
		*out_directory = tasks->returned;
		tasks->returned = tasks->returned->next;
		(*out_directory)->next = NULL;
		return 0;
	}
	return pin_walk_take_directory(tasks->walk, out_directory);
}

/* ---- without it ---- */

void pin_walk_leave(struct pin_walk_tasks *tasks)
{
	pinion_budget_release(&tasks->running, &pin_walk_unit);
}

static void spawn(struct pin_walk_tasks *tasks, struct pin_lister *lister);

/* The last touch by a task that is idle or parked then, but for its unit. */
void pin_walk_unlock(struct pin_walk_tasks *tasks, struct pin_walk_after *after)
{
	if (tasks->caller_waits && caller_has_work(tasks)) { /* [WALK-1] */
		tasks->caller_waits = false;
		after->rings = true;
	}
	pin_lock_release(&tasks->lock, tasks->walk->host);
	if (after->rings) {
		pinion_budget_release(&tasks->bell, &pin_walk_unit);
	}
	for (size_t i = 0; i < PIN_ARRAY_COUNT(after->spawns) && after->spawns[i] != NULL; i++) {
		spawn(tasks, after->spawns[i]);
	}
}

/*
 * A task that cannot run any more: the caller goes on with what it has open.
 */
void pin_walk_retire(struct pin_walk_tasks *tasks, struct pin_lister *lister)
{
	struct pin_walk_after after = {.rings = false};

	pin_walk_lock(tasks);
	pin_walk_count_closed(tasks, lister);
	tasks->is_stopped = true;
	if (lister->walker.listing != NULL) {
		pin_walk_put_aside(tasks, &lister->walker);
	}
	pin_walk_go_idle(tasks, lister, &after);
	pin_walk_unlock(tasks, &after);
}

/* Into the queue that all workers share, whatever the room in it. */
static int spawn_shared(struct pin_walk_tasks *tasks, struct pinion_task *task)
{
	int rc;

	*task = (struct pinion_task){.run = pin_lister_run, .cancel = pin_lister_cancel};
	if (pin_runtime_is_own(tasks->runtime)) {
		return pinion_task_spawn_shared(tasks->runtime, task);
	}
	rc = pin_runtime_reserve(tasks->runtime);
	if (rc == 0) {
		pin_runtime_spawn_reserved(tasks->runtime, task);
	}
	return rc;
}

/* The task is active already. It is refused when the runtime is stopped. */
static void spawn(struct pin_walk_tasks *tasks, struct pin_lister *lister)
{
	if (pinion_budget_try_acquire(&tasks->running, &pin_walk_unit) != 0) {
		pin_walk_retire(tasks, lister); /* the caller awaits the end */
		return;
	}
	if (spawn_shared(tasks, &lister->task) != 0) {
		pin_walk_retire(tasks, lister);
		pin_walk_leave(tasks);
	}
}

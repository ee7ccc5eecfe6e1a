/* SPDX-License-Identifier: MIT */
/*
 * The tasks of a walk, and the steps of listing that the caller takes as well;
 * see walk_tasks.h.
 */
#include "runtime/scan/walk_tasks.h"
#include "runtime/base/check.h"
#include "runtime/host/heap.h"
#include "runtime/scan/walk_shared.h"

#include <errno.h>

enum {
	BLOCKS_OF_TASK = 2, /* one is filled, one waits to be visited */
};

static enum pin_walk_progress end_walk(struct pin_walk_tasks *tasks, int rc)
{
	struct pin_walk_after after = {.rings = false};

	pin_walk_lock(tasks);
	pin_walk_begin_end(tasks, rc);
	pin_walk_unlock(tasks, &after);
	return PIN_WALK_ENDED;
}

/*
 * No descriptor was left: from now on fewer directories are open at once, and
 * this one waits until another is closed; or it is opened anyway, for the error
 * to be visited.
 */
static enum pin_walk_progress want_descriptor(
	struct pin_lister *lister, struct pin_directory *directory)
{
	struct pin_walk_tasks *tasks = lister->tasks;
	struct pin_walk_after after = {.rings = false};
	bool is_alone;

	pin_walk_lock(tasks);
	is_alone = tasks->open_count == 1;
	if (!is_alone) {
		tasks->open_count--;
		tasks->open_max = tasks->open_count;
		directory->next = tasks->returned;
		tasks->returned = directory;
	}
	pin_walk_unlock(tasks, &after);
	if (!is_alone) {
		return PIN_WALK_MOVED;
	}
	lister->walker.is_patient = false;
	switch (pin_walker_open(&lister->walker, directory)) {
	case PIN_LISTING_READ:
		break;
	case PIN_LISTING_DONE:
		lister->has_closed = true;
		break;
	case PIN_LISTING_FULL:
	case PIN_LISTING_WANTING:
	case PIN_LISTING_ENDED:
		return end_walk(tasks, lister->walker.rc);
	}
	return PIN_WALK_MOVED;
}

enum pin_walk_progress pin_lister_open(struct pin_lister *lister, struct pin_directory *directory)
{
	lister->walker.is_patient = true;
	switch (pin_walker_open(&lister->walker, directory)) {
	case PIN_LISTING_READ:
		return PIN_WALK_MOVED;
	case PIN_LISTING_DONE:
		lister->has_closed = true;
		return PIN_WALK_MOVED;
	case PIN_LISTING_WANTING:
		return want_descriptor(lister, directory);
	case PIN_LISTING_FULL: /* there was room */
	case PIN_LISTING_ENDED:
		break;
	}
	return end_walk(lister->tasks, lister->walker.rc);
}

/* The caller has none. */
static bool is_empty(const struct pin_walk_block *block)
{
	return block == NULL || block->directory == NULL;
}

/* Takes the next directory, or becomes idle, under the same lock. */
static enum pin_walk_progress take_next(struct pin_lister *lister)
{
	struct pin_walk_tasks *tasks = lister->tasks;
	struct pin_walk_after after = {.rings = false};
	struct pin_listing *listing;
	struct pin_directory *directory;
	int rc;

	pin_walk_lock(tasks);
	pin_walk_count_closed(tasks, lister);
	rc = tasks->is_ending ? 0 : pin_walk_choose(tasks, &listing, &directory);
	if (tasks->is_ending || rc != 0) {
		pin_walk_begin_end(tasks, rc);
		pin_walk_unlock(tasks, &after);
		return PIN_WALK_ENDED;
	}
	if (listing == NULL && directory == NULL) {
		if (lister != &tasks->own) {
			pin_walk_go_idle(tasks, lister, &after);
		}
		pin_walk_unlock(tasks, &after);
		return PIN_WALK_DRY;
	}
	pin_walk_wake_idle(tasks, &after);
	if (tasks->caller_waits && tasks->free_blocks != NULL && !is_empty(lister->walker.block)) {
		pin_walk_give_block(tasks, lister);
		(void)pin_walk_take_block(tasks, lister);
	}
	pin_walk_unlock(tasks, &after);
	if (directory != NULL) {
		return pin_lister_open(lister, directory);
	}
	rc = pin_walker_resume(&lister->walker, listing);
	return rc == 0 ? PIN_WALK_MOVED : end_walk(tasks, rc);
}

/* The names that a part of a listing has brought. */
static enum pin_walk_progress add_names(struct pin_lister *lister)
{
	struct pin_walk_tasks *tasks = lister->tasks;
	struct pin_walk_after after = {.rings = false};
	struct pin_names *names = pin_walker_take_names(&lister->walker);

	if (names == NULL) {
		return lister->walker.rc == 0 ? PIN_WALK_MOVED : end_walk(tasks, lister->walker.rc);
	}
	pin_walk_lock(tasks);
	pin_walk_add_names(tasks->walk, lister->walker.directory, names);
	if (tasks->walk->waiting_bytes > tasks->waiting_bytes_max &&
		tasks->aside_count < PIN_WALK_ASIDE_MAX && tasks->open_count < tasks->open_max) {
		pin_walk_put_aside(tasks, &lister->walker);
	}
	pin_walk_wake_idle(tasks, &after);
	pin_walk_unlock(tasks, &after);
	return PIN_WALK_MOVED;
}

/* One step: a directory is opened, or a part of it listed. */
enum pin_walk_progress pin_lister_step(struct pin_lister *lister)
{
	struct pin_walk_tasks *tasks = lister->tasks;

	if (pin_walk_is_cancelled(tasks->walk)) {
		return end_walk(tasks, -ECANCELED);
	}
	if (lister->walker.listing == NULL) {
		return pin_walker_may_open(&lister->walker) ? take_next(lister) : PIN_WALK_FULL;
	}
	switch (pin_walker_list(&lister->walker)) {
	case PIN_LISTING_READ:
		return add_names(lister);
	case PIN_LISTING_DONE:
		pin_walker_close(&lister->walker);
		lister->has_closed = true;
		return PIN_WALK_MOVED;
	case PIN_LISTING_FULL:
		return PIN_WALK_FULL;
	case PIN_LISTING_WANTING: /* of opens only */
	case PIN_LISTING_ENDED:
		break;
	}
	return end_walk(tasks, lister->walker.rc);
}

/* ---- a task ---- */

static struct pin_walk_block *block_create(const struct pin_walk_tasks *tasks)
{
	uint32_t capacity = tasks->block_bytes;
	struct pin_walk_block *block =
		pin_heap_allocate(tasks->walk->host, PIN_HEAP_ALIGN, sizeof(*block) + capacity, 1);

	if (block != NULL) {
		*block = (struct pin_walk_block){.capacity_bytes = capacity};
	}
	return block;
}

/* A task's first blocks: one is its own, the others are free. */
static enum pin_walk_progress make_blocks(struct pin_lister *lister)
{
	struct pin_walk_tasks *tasks = lister->tasks;

	for (uint32_t i = 0; i < BLOCKS_OF_TASK; i++) {
		struct pin_walk_after after = {.rings = false};
		struct pin_walk_block *block = block_create(tasks);

		if (block == NULL) {
			return end_walk(tasks, -ENOMEM);
		}
		if (i == 0) {
			lister->walker.block = block;
			continue;
		}
		pin_walk_lock(tasks);
		block->next = tasks->free_blocks;
		tasks->free_blocks = block;
		pin_walk_unpark(tasks, &after);
		pin_walk_unlock(tasks, &after);
	}
	lister->has_blocks = true;
	return PIN_WALK_MOVED;
}

/*
 * Hands the block over and takes another; where there is none the task is
 * parked, and PIN_WALK_DRY for now.
 */
static enum pin_walk_progress renew_block(struct pin_lister *lister)
{
	struct pin_walk_tasks *tasks = lister->tasks;
	struct pin_walk_after after = {.rings = false};
	bool has_one;

	if (!lister->has_blocks) {
		return make_blocks(lister);
	}
	pin_walk_lock(tasks);
	pin_walk_count_closed(tasks, lister);
	pin_walk_give_block(tasks, lister);
	has_one = pin_walk_take_block(tasks, lister);
	if (!has_one) {
		lister->next = tasks->parked;
		tasks->parked = lister;
		PIN_CHECK(tasks->active_count > 0);
		tasks->active_count--;
	}
	pin_walk_unlock(tasks, &after);
	return has_one ? PIN_WALK_MOVED : PIN_WALK_DRY;
}

static void end_task(struct pin_walk_tasks *tasks)
{
	struct pin_walk_after after = {.rings = false};

	pin_walk_lock(tasks);
	PIN_CHECK(tasks->active_count > 0);
	tasks->active_count--;
	pin_walk_unlock(tasks, &after);
}

/* Lists until the worker's turn is over, and is queued after others then. */
int pin_lister_run(struct pinion_task *task)
{
	struct pin_lister *lister = PIN_CONTAINER_OF(task, struct pin_lister, task);
	struct pin_walk_tasks *tasks = lister->tasks;
	enum pin_walk_progress progress;

	do {
		progress = pin_lister_step(lister);
		if (progress == PIN_WALK_FULL) {
			progress = renew_block(lister);
		}
	} while (progress == PIN_WALK_MOVED && !pinion_worker_should_yield(tasks->runtime));
	if (progress == PIN_WALK_MOVED) {
		if (pinion_task_respawn(tasks->runtime, task) == 0) {
			return 0;
		}
		pin_walk_retire(tasks, lister);
	} else if (progress == PIN_WALK_ENDED) {
		end_task(tasks);
	}
	pin_walk_leave(tasks);
	return 0;
}

void pin_lister_cancel(struct pinion_task *task)
{
	struct pin_lister *lister = PIN_CONTAINER_OF(task, struct pin_lister, task);
	struct pin_walk_tasks *tasks = lister->tasks;

	pin_walk_retire(tasks, lister);
	pin_walk_leave(tasks);
}

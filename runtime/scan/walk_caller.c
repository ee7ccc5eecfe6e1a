/* SPDX-License-Identifier: MIT */
/*
 * The thread that calls a walk by tasks: visits blocks, lists directories
 * itself, sleeps; and begins and ends it all. See walk_tasks.h.
 */
#include "runtime/base/check.h"
#include "runtime/host/heap.h"
#include "runtime/scan/walk_shared.h"
#include "runtime/scan/walk_tasks.h"

#include <errno.h>
#include <string.h>

/* Names that wait before directories are put aside. */
enum { WAITING_BYTES_MAX = 16 << 20 };

/* Visits what a block holds, unless `rc` is set, and empties it. */
static int visit_block(struct pin_walk_tasks *tasks, struct pin_walk_block *block, int rc)
{
	const struct pin_walk *walk = tasks->walk;
	struct pin_directory *directory = NULL;
	size_t path_bytes = 0;

	for (size_t position = 0; position < block->used_bytes;) {
		const struct pin_walk_record *record =
			(const void *)((const char *)block->bytes + position);

		position += pin_round_up(sizeof(*record) + record->name_bytes, sizeof(uint64_t));
		if (record->sight.kind == PIN_WALK_DIRECTORY) {
			pin_directory_release(walk, directory);
			memcpy(&directory, record->name, sizeof(directory));
			rc = rc == 0 && pin_walk_is_cancelled(walk) ? -ECANCELED : rc;
			rc = rc == 0 ? pin_walk_path_of(walk, &tasks->path, directory) : rc;
			path_bytes = directory->path_bytes;
			continue;
		}
		if (rc == 0 && record->name_bytes > 0) {
			rc = pin_walk_path_add(
				walk, &tasks->path, (const char *)record->name, record->name_bytes);
		}
		if (rc == 0) {
			rc = pin_walk_visit(walk, &tasks->path, &record->sight);
			pin_walk_path_cut(&tasks->path, path_bytes);
		}
	}
	pin_directory_release(walk, directory);
	block->directory = NULL;
	block->used_bytes = 0;
	return rc;
}

enum duty {
	VISIT_BLOCK,
	LIST_DIRECTORY,
	SLEEP,
	FINISH,
};

/* Under the lock. */
static enum duty choose_duty(struct pin_walk_tasks *tasks)
{
	pin_walk_count_closed(tasks, &tasks->own);
	if (tasks->is_ending) {
		return FINISH;
	}
	if (tasks->ready_first != NULL) {
		return VISIT_BLOCK;
	}
	if (tasks->own.walker.listing != NULL || pin_walk_has_work(tasks)) {
		return LIST_DIRECTORY;
	}
	if (pin_walk_is_over(tasks)) {
		return FINISH;
	}
	tasks->caller_waits = true; /* [WALK-1] */
	return SLEEP;
}

static void visit_ready(struct pin_walk_tasks *tasks, struct pin_walk_block *block)
{
	struct pin_walk_after after = {.rings = false};
	int rc = visit_block(tasks, block, 0);

	pin_walk_lock(tasks);
	block->next = tasks->free_blocks;
	tasks->free_blocks = block;
	if (rc != 0) {
		pin_walk_begin_end(tasks, rc);
	}
	pin_walk_unpark(tasks, &after);
	pin_walk_unlock(tasks, &after);
}

/* Until the end; tasks may be active then, and are about to leave. */
static void serve(struct pin_walk_tasks *tasks)
{
	for (;;) {
		struct pin_walk_block *block = NULL;
		enum duty duty;

		pin_walk_lock(tasks);
		duty = choose_duty(tasks);
		if (duty == VISIT_BLOCK) {
			block = tasks->ready_first;
			tasks->ready_first = block->next;
			block->next = NULL;
		}
		pin_lock_release(&tasks->lock, tasks->walk->host);
		switch (duty) {
		case VISIT_BLOCK:
			visit_ready(tasks, block);
			break;
		case LIST_DIRECTORY:
			(void)pin_lister_step(&tasks->own);
			break;
		case SLEEP:
			(void)pinion_budget_acquire_wait(&tasks->bell, &pin_walk_unit, UINT64_MAX);
			break;
		case FINISH:
			return;
		}
	}
}

/* ---- begin and end ---- */

static void lister_init(struct pin_walk_tasks *tasks, struct pin_lister *lister)
{
	lister->tasks = tasks;
	lister->walker.walk = tasks->walk;
}

static int tasks_init(
	struct pin_walk_tasks *tasks, struct pin_walk *walk, const struct pin_walk_means *means)
{
	uint32_t worker_count = pinion_runtime_worker_count(means->runtime);
	uint64_t units;

	*tasks = (struct pin_walk_tasks){
		.walk = walk,
		.runtime = means->runtime,
		.lister_count =
			worker_count < PIN_WALK_TASKS_MAX ? worker_count : PIN_WALK_TASKS_MAX,
		.open_max =
			means->open_max > 0 ? means->open_max : pin_walk_directories(worker_count),
	};
	tasks->waiting_bytes_max =
		means->waiting_bytes_max > 0 ? means->waiting_bytes_max : WAITING_BYTES_MAX;
	tasks->block_bytes = means->block_bytes > 0 ? means->block_bytes : PIN_WALK_BLOCK_BYTES;
	PIN_CHECK(tasks->block_bytes >= PIN_WALK_BLOCK_BYTES_MIN);
	/* A task may be spawned again before it has left. */
	units = 2 * (uint64_t)tasks->lister_count;
	pinion_budget_init(&tasks->running, NULL, &units, 1);
	pinion_budget_init(&tasks->bell, NULL, &pin_walk_unit, 1);
	(void)pinion_budget_try_acquire(&tasks->bell, &pin_walk_unit);
	lister_init(tasks, &tasks->own);
	tasks->listers = pin_heap_zeroed(
		walk->host, PIN_CACHE_LINE, tasks->lister_count, sizeof(*tasks->listers));
	if (tasks->listers == NULL) {
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < tasks->lister_count; i++) {
		lister_init(tasks, &tasks->listers[i]);
		tasks->listers[i].walker.fills_blocks = true;
		tasks->listers[i].next = tasks->idle;
		tasks->idle = &tasks->listers[i];
	}
	return 0;
}

static void block_free(const struct pin_walk_tasks *tasks, struct pin_walk_block *block)
{
	pin_heap_release(tasks->walk->host, block, PIN_HEAP_ALIGN,
		sizeof(*block) + block->capacity_bytes, 1);
}

/* Frees a list of blocks, and what they hold. */
static void blocks_free(struct pin_walk_tasks *tasks, struct pin_walk_block *block)
{
	while (block != NULL) {
		struct pin_walk_block *next = block->next;

		(void)visit_block(tasks, block, -ECANCELED);
		block_free(tasks, block);
		block = next;
	}
}

/* Until no task touches the walk any more. */
static void await_tasks(struct pin_walk_tasks *tasks)
{
	uint64_t units = 2 * (uint64_t)tasks->lister_count;
	int rc = pinion_budget_acquire_wait(&tasks->running, &units, UINT64_MAX);

	PIN_CHECK(rc == 0);
}

static void tasks_fini(struct pin_walk_tasks *tasks)
{
	struct pin_walk *walk = tasks->walk;

	blocks_free(tasks, tasks->ready_first);
	blocks_free(tasks, tasks->free_blocks);
	for (uint32_t i = 0; tasks->listers != NULL && i < tasks->lister_count; i++) {
		blocks_free(tasks, tasks->listers[i].walker.block);
		pin_walker_fini(&tasks->listers[i].walker);
	}
	while (tasks->aside != NULL) {
		struct pin_listing *listing = tasks->aside;

		tasks->aside = listing->next;
		if (tasks->own.walker.listing != NULL) {
			pin_walker_close(&tasks->own.walker);
		}
		tasks->own.walker.listing = listing;
	}
	pin_walker_fini(&tasks->own.walker);
	while (tasks->returned != NULL) {
		struct pin_directory *directory = tasks->returned;

		tasks->returned = directory->next;
		pin_directory_release(walk, directory);
	}
	pin_walk_drop_names(walk);
	pin_walk_path_free(walk, &tasks->path);
	pin_heap_release(walk->host, tasks->listers, PIN_CACHE_LINE, tasks->lister_count,
		sizeof(*tasks->listers));
}

int pin_walk_by_tasks(
	struct pin_walk *walk, const struct pin_walk_means *means, struct pin_directory *root)
{
	struct pin_walk_tasks tasks;
	int rc = tasks_init(&tasks, walk, means);

	if (rc != 0) {
		pin_directory_release(walk, root);
		tasks_fini(&tasks);
		return rc;
	}
	tasks.open_count = 1;
	if (pin_lister_open(&tasks.own, root) != PIN_WALK_ENDED) {
		serve(&tasks);
	}
	await_tasks(&tasks);
	rc = tasks.rc;
	tasks_fini(&tasks);
	return rc;
}

/* SPDX-License-Identifier: MIT */
/*
 * The state that the caller and the tasks of a walk share, and its changes.
 *
 * walk_tasks.h has the protocol and its invariants. Functions of the first part
 * are called under the lock. Spawns and a ring that they decide on are noted in
 * a struct pin_walk_after, and done by pin_walk_unlock().
 */
#ifndef PIN_SCAN_WALK_SHARED_H
#define PIN_SCAN_WALK_SHARED_H

#include "runtime/scan/walk_list.h"

#include <pinion/budget.h>
#include <pinion/runtime.h>

struct pin_walk_tasks;

/* Lists directories: the caller, or a task. */
struct pin_lister {
	struct pinion_task task;
	struct pin_walk_tasks *tasks;
	struct pin_lister *next; /* [lock:lock] idle or parked */
	bool has_closed;	 /* a directory, which is not counted yet */
	bool has_blocks;	 /* made */
	struct pin_walker walker;
};

struct pin_walk_tasks {
	struct pin_walk *walk;		/* [const] */
	struct pinion_runtime *runtime; /* [const] */
	struct pin_lister *listers;	/* [const] of tasks */
	uint32_t lister_count;		/* [const] */
	size_t waiting_bytes_max;	/* [const] */
	uint32_t block_bytes;		/* [const] */
	/* The caller's */
	struct pin_lister own;
	struct pin_walk_path path; /* of the block that it visits */
	/* Shared */
	struct pin_lock lock; /* rank 2 */
	/* [lock:lock] all below, and the walk's names */
	struct pin_lister *idle;
	struct pin_lister *parked;
	uint32_t active_count; /* tasks that are neither */
	struct pin_walk_block *free_blocks;
	struct pin_walk_block *ready_first;
	struct pin_walk_block *ready_last;
	struct pin_listing *aside;
	uint32_t aside_count;
	struct pin_directory *returned; /* for want of a descriptor */
	uint32_t open_count;		/* directories that are open, or about to be */
	uint32_t open_max;
	bool caller_waits; /* [WALK-1] */
	bool is_ending;
	bool is_stopped;	      /* the runtime takes no tasks any more */
	int rc;			      /* once it is ending */
	struct pinion_budget bell;    /* a unit: the caller is to look again */
	struct pinion_budget running; /* units of tasks */
};

/* To be done without the lock. */
struct pin_walk_after {
	struct pin_lister *spawns[2];
	bool rings;
};

/* Of the budgets: a task, or a ring. */
static const uint64_t pin_walk_unit = 1;

static inline void pin_walk_lock(struct pin_walk_tasks *tasks)
{
	pin_lock_acquire(&tasks->lock, tasks->walk->host);
}

/* ---- under the lock ---- */

/* Whether the caller could list a directory. */
bool pin_walk_has_work(const struct pin_walk_tasks *tasks);

/* Invariant 2: nothing is left, and nothing can come. */
bool pin_walk_is_over(const struct pin_walk_tasks *tasks);

/* A directory that the lister has closed may be followed by another. */
void pin_walk_count_closed(struct pin_walk_tasks *tasks, struct pin_lister *lister);

/* Spawns an idle task if there is enough to list. */
void pin_walk_wake_idle(struct pin_walk_tasks *tasks, struct pin_walk_after *after);

/* The lister's block, if it has one: to be visited, or to be filled. */
void pin_walk_give_block(struct pin_walk_tasks *tasks, struct pin_lister *lister);

/* False: no block is free. */
bool pin_walk_take_block(struct pin_walk_tasks *tasks, struct pin_lister *lister);

/* Spawns a parked task if a block is free. */
void pin_walk_unpark(struct pin_walk_tasks *tasks, struct pin_walk_after *after);

/* The task is active no more; its next spawn may begin at the unlock. */
void pin_walk_go_idle(
	struct pin_walk_tasks *tasks, struct pin_lister *lister, struct pin_walk_after *after);

void pin_walk_begin_end(struct pin_walk_tasks *tasks, int rc);

void pin_walk_put_aside(struct pin_walk_tasks *tasks, struct pin_walker *walker);

/* A listing that is aside, or a directory; neither: there is none. -ENOMEM. */
int pin_walk_choose(struct pin_walk_tasks *tasks, struct pin_listing **out_listing,
	struct pin_directory **out_directory);

/* ---- without it ---- */

/* A task's last touch, but for its unit: it is idle or parked then. */
void pin_walk_unlock(struct pin_walk_tasks *tasks, struct pin_walk_after *after);

/* The last touch of all. */
void pin_walk_leave(struct pin_walk_tasks *tasks);

/* A task that cannot run: the caller goes on with its listing. */
void pin_walk_retire(struct pin_walk_tasks *tasks, struct pin_lister *lister);

/* ---- listing: walk_tasks.c ---- */

enum pin_walk_progress {
	PIN_WALK_MOVED,
	PIN_WALK_FULL,	/* the block */
	PIN_WALK_DRY,	/* there is no directory; a task is idle now */
	PIN_WALK_ENDED, /* the walk */
};

/* One step: a directory is opened, or a part of it listed. */
enum pin_walk_progress pin_lister_step(struct pin_lister *lister);

/* Opens a directory that is counted already. */
enum pin_walk_progress pin_lister_open(struct pin_lister *lister, struct pin_directory *directory);

/* Of the task: its two functions. */
int pin_lister_run(struct pinion_task *task);
void pin_lister_cancel(struct pinion_task *task);

#endif

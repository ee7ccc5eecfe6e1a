/* SPDX-License-Identifier: MIT */
/*
 * A walk by the tasks of a runtime: each lists one directory at a time.
 *
 * The walk is begun by a thread that is no worker, the caller, which makes all
 * visits itself. It lists the root. As soon as more directories wait than it
 * can list, tasks are spawned that list them too, at most one for each worker.
 *
 *     caller                            task, on a worker
 *     visits a block that is ready  <-- fills a block, hands it over
 *     else lists a directory            takes a directory, lists it,
 *     else sleeps                       adds its subdirectories
 *
 * A task never waits on its worker. A task that finds no directory is idle, and
 * not spawned until a name waits. A task that finds no free block is parked in
 * the middle of its listing, and spawned when the caller gives a block back: a
 * caller that waits in a visit, for a slot of its scan, stops the tasks when
 * their blocks are full. The caller needs no task to go on: it lists by itself
 * where no worker is free, or where the runtime is stopped, and takes over what
 * a cancelled task had open.
 *
 * Memory is bounded: blocks and open directories are few. Where names of
 * subdirectories take more than some MiB, a task that lists puts its open
 * directory aside, and lists those that wait, depth first; only where too many
 * are put aside already their names are more. Where descriptors run out, fewer
 * directories are open at once from then on.
 *
 * One lock guards all that is shared, and is held for some assignments only.
 *
 * Invariants: (1) a task is idle, or parked, or active: spawned or running.
 * (2) the walk is at its end when no name waits, no directory is put aside or
 * given back, no block is ready, the caller lists none, and no task is active
 * or parked. (3) a task leaves by giving back its unit of `running`, and
 * touches nothing of the walk afterwards; the caller frees it with all units.
 *
 * [WALK-1] a task pushes a block, or ends, and takes `caller_waits` under the
 * lock -> the caller looks for blocks and for the end under the same lock
 * before it sets `caller_waits` and waits for the bell. The task that clears it
 * rings once. Without the lock a task could end between the two.
 * Test: tests/model/scan/walk.c.
 */
#ifndef PIN_SCAN_WALK_TASKS_H
#define PIN_SCAN_WALK_TASKS_H

#include "runtime/scan/walk_tree.h"

enum {
	PIN_WALK_TASKS_MAX = 32, /* more list no faster than the caller can visit */
	PIN_WALK_ASIDE_MAX = 4,	 /* directories put aside */
};

/* How many directories may be open at once: the caller's, each task's. */
static inline uint32_t pin_walk_directories(uint32_t worker_count)
{
	return (worker_count < PIN_WALK_TASKS_MAX ? worker_count : PIN_WALK_TASKS_MAX) +
		PIN_WALK_ASIDE_MAX + 1;
}

/*
 * Walks from `root`, which is taken over. The calling thread is no worker.
 * Returns as pin_walk().
 */
int pin_walk_by_tasks(
	struct pin_walk *walk, const struct pin_walk_means *means, struct pin_directory *root);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A task: the smallest unit of work a runtime runs, a struct in the caller's
 * memory with a function. Spawning one allocates nothing.
 */
#ifndef PINION_TASK_H
#define PINION_TASK_H

#include <pinion/version.h>
#include <stdint.h>

PINION_BEGIN_DECLS

struct pinion_task;

/*
 * Runs to completion on a worker.
 *
 * Errors: 0 or a negative errno; a negative value counts as a failure in
 * pinion_runtime_get_stats, and the runtime's first is kept for
 * pinion_runtime_join(); `fault_policy` says what else happens.
 * Context: a worker thread. It may spawn, submit requests, and block, though
 * blocking holds up everything else on that worker. The task's memory is the
 * caller's again as soon as the function is entered: it may free it or spawn
 * it anew.
 * Since: 0.1
 */
typedef int (*pinion_task_fn)(struct pinion_task *task);

enum pinion_task_flags {
	PINION_TASK_MANDATORY = 1, /* run even if the runtime is stopped first */
	/* Its lane (lane.h); neither: normal, both: an error. */
	PINION_TASK_HIGH = 2,
	PINION_TASK_LOW = 4,
};

/*
 * Shape: 32 bytes, embeddable; set `run`, `cancel` and `flags`, zero the rest
 * once: the library leaves it ready for the next spawn.
 * Owns: the caller's memory. It must not move, be freed or be written to
 * between a successful pinion_task_spawn() and the entry of `run` or `cancel`,
 * of which exactly one is called; to spawn it again meanwhile is refused:
 * -EBUSY.
 * Since: 0.1
 */
struct pinion_task {
	pinion_task_fn run;
	/*
	 * Called instead of `run` when the runtime is stopped first; may be
	 * NULL.
	 */
	void (*cancel)(struct pinion_task *task);
	uint32_t flags; /* enum pinion_task_flags */
	uint32_t private_kind;
	uint64_t private_;
};

PINION_END_DECLS

#endif

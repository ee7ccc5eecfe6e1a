/* SPDX-License-Identifier: MIT */
/*
 * A task: the smallest unit of work that a runtime runs. It is a struct in the
 * caller's memory with a function; spawning it allocates nothing.
 */
#ifndef PINION_TASK_H
#define PINION_TASK_H

#include <pinion/version.h>
#include <stdint.h>

PINION_BEGIN_DECLS

struct pinion_task;

/*
 * The work of a task. It runs to completion on a worker.
 *
 * Errors: 0 or a negative errno. A negative value counts as a failure in struct
 * pinion_runtime_stats, and pinion_runtime_join() returns the first one;
 * `fault_policy` says what else happens.
 * Context: a worker thread. The function may spawn, submit requests, and block,
 * though blocking holds up all other work on that worker. The task's memory is
 * the caller's again as soon as the function is entered: it may free the task
 * or spawn it anew.
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
 * once: the library leaves the struct ready for the next spawn.
 * Owns: the caller's memory. It must not move, be freed or be written to
 * between a successful pinion_task_spawn() and the entry of `run` or `cancel`;
 * exactly one of these is called. A second spawn before that is refused:
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

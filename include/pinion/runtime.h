/* SPDX-License-Identifier: MIT */
/*
 * A runtime: workers, one per core, each with its own ring, arena and queue.
 * Several may live in one process. It has one life: create, then drain or
 * stop, then destroy.
 */
#ifndef PINION_RUNTIME_H
#define PINION_RUNTIME_H

#include <pinion/config.h>
#include <pinion/task.h>
#include <stddef.h>

PINION_BEGIN_DECLS

struct pinion_runtime;

/*
 * Starts a runtime. When it returns 0 every worker is running, has its ring
 * and its arena, and waits for work without using CPU.
 *
 * Owns: `config` is copied. The runtime belongs to the caller until
 * pinion_runtime_destroy().
 * Context: any thread but a worker's; blocks, allocates.
 * Errors: -EINVAL: a field is out of range, the log message names it.
 * -E2BIG: the struct is newer than the library and an unknown field is set.
 * -ENOMEM, -EAGAIN: memory or threads ran out, the message names the limit.
 * -ENOSYS, -EPERM and others of io_uring_setup(2): only with PINION_IO_RING.
 * Since: 0.1
 */
PINION_API int pinion_runtime_create(
	const struct pinion_config *config, struct pinion_runtime **out_runtime);

/*
 * Frees a runtime, stopping it first if need be. NULL is accepted.
 *
 * Context: any thread but a worker's, while no other call on this runtime is
 * under way; blocks as pinion_runtime_stop() does.
 * Since: 0.1
 */
PINION_API void pinion_runtime_destroy(struct pinion_runtime *runtime);

/*
 * Has `task` run once on some worker: on the current one when called from a
 * worker of this runtime, else on whichever is free first.
 *
 * Owns: on success the task is the runtime's until it is entered; on failure
 * it stays with the caller, untouched.
 * Context: any thread; never blocks or allocates. At most one system call, to
 * wake a sleeping worker.
 * Errors: -ESHUTDOWN: drained or stopped, and the caller is not a task of this
 * runtime; tasks may spawn until the last one is done, except under stop.
 * -EINVAL: `task->run` is NULL.
 * Since: 0.1
 */
PINION_API int pinion_spawn(struct pinion_runtime *runtime, struct pinion_task *task);

/*
 * As pinion_spawn(), but any worker may take the task, also when the caller is
 * one: for work that should spread.
 * Since: 0.1
 */
PINION_API int pinion_spawn_shared(struct pinion_runtime *runtime, struct pinion_task *task);

/*
 * Refuses new outside work, waits until everything admitted has run, with all
 * that it spawned and submitted, and ends the workers.
 *
 * Context: any thread but a worker's; blocks. A second call returns at once.
 * Errors: -EDEADLK: called from a worker of this runtime.
 * Since: 0.1
 */
PINION_API int pinion_runtime_drain(struct pinion_runtime *runtime);

/*
 * Refuses all new work, gives queued tasks to their `cancel`, cancels requests
 * in flight, waits for what is running and for every request (each still
 * completes exactly once), and ends the workers.
 *
 * Context and Errors: as pinion_runtime_drain().
 * Since: 0.1
 */
PINION_API int pinion_runtime_stop(struct pinion_runtime *runtime);

/*
 * Number of workers; `buffer_bytes` and `small_buffer_bytes` of each one's
 * arena are those of the configuration.
 *
 * Context: any thread.
 * Since: 0.1
 */
PINION_API uint32_t pinion_runtime_worker_count(const struct pinion_runtime *runtime);

/*
 * Index of the worker of `runtime` that runs the calling code, 0 … count - 1:
 * the way to per-worker state without locks.
 *
 * Errors: -ENOENT: the caller is not a worker of this runtime.
 * Context: any thread.
 * Since: 0.1
 */
PINION_API int pinion_worker_index(const struct pinion_runtime *runtime);

/*
 * What the workers have done so far. Each figure is exact once the runtime is
 * drained or stopped; before, it is a moment's reading of each worker in turn.
 *
 * Shape: size-versioned; pass sizeof(*out_counters).
 * Since: 0.1
 */
struct pinion_runtime_counters {
	uint64_t tasks_spawned;	  /* admitted by pinion_spawn and its kin */
	uint64_t tasks_run;	  /* entered through `run`, completions included */
	uint64_t tasks_failed;	  /* of those, returned a negative value */
	uint64_t tasks_cancelled; /* entered through `cancel` */
	uint64_t requests_submitted;
	uint64_t requests_completed;
	uint64_t read_bytes;	     /* bytes that completed reads delivered */
	uint64_t ring_enters;	     /* io_uring_enter calls */
	uint64_t parks_futex;	     /* times a worker slept on its futex */
	uint64_t parks_ring;	     /* times a worker slept in its ring */
	uint64_t wakes_sent;	     /* times a worker woke another */
	uint64_t unregistered_reads; /* reads into memory the ring does not know */
};

PINION_API void pinion_runtime_counters(const struct pinion_runtime *runtime,
	struct pinion_runtime_counters *out_counters, size_t size);

/*
 * What the runtime settled on at creation.
 *
 * Shape: size-versioned; strings are static or live as long as the runtime.
 * Since: 0.1
 */
struct pinion_runtime_facts {
	uint32_t worker_count;
	uint32_t workers_bound;	    /* how many are bound to a core */
	uint32_t uses_ring;	    /* 0: some worker reads by the pread fallback */
	uint32_t ring_setup_flags;  /* IORING_SETUP_* in force */
	uint32_t arenas_registered; /* workers whose arena the kernel holds registered */
	uint32_t page_bytes;	    /* smallest page size any arena got */
	const char *doorbell;	    /* "send_msg_ring", "eventfd" or "none" */
	const char *fallback_cause; /* why there is no ring, or NULL */
};

PINION_API void pinion_runtime_facts(
	const struct pinion_runtime *runtime, struct pinion_runtime_facts *out_facts, size_t size);

PINION_END_DECLS

#endif

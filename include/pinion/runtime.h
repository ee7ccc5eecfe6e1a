/* SPDX-License-Identifier: MIT */
/*
 * A runtime: workers, one per core, each with its own ring, arena and queue.
 * Several may live in one process. It has one life: create, then drain or
 * stop, then destroy.
 *
 * A process may fork while it has runtimes: they go on in the parent. In the
 * child they are dead memory: each call on them returns -ECHILD.
 */
#ifndef PINION_RUNTIME_H
#define PINION_RUNTIME_H

#include <pinion/config.h>
#include <pinion/task.h>
#include <stdbool.h>
#include <stddef.h>

PINION_BEGIN_DECLS

struct pinion_runtime;
struct pinion_full; /* pinion/lane.h */

/*
 * Starts a runtime. When it returns 0 every worker is running, has its ring
 * and its arena, and waits for work without using CPU.
 *
 * Owns: `config` is copied; NULL: every default.
 * The runtime belongs to the caller until
 * pinion_runtime_destroy().
 * Context: any thread but a worker's; blocks, allocates.
 * Errors: -EINVAL: a field is out of range, the log message names it.
 * -E2BIG: the struct is newer than the library and an unknown field is set.
 * -ENOMEM, -EAGAIN: memory or threads ran out, the message names the limit.
 * -ENOSYS, -EPERM and others of io_uring_setup(2): only with a level of rings.
 * -EOPNOTSUPP: likewise, the kernel cannot live up to that level's name.
 * Since: 0.1
 */
PINION_API int pinion_runtime_create(
	const struct pinion_config *config, struct pinion_runtime **out_runtime);

/*
 * Frees a runtime, stopping it first if need be; 0. NULL is accepted.
 *
 * Context: a thread that is no worker of any runtime, while no other call on
 * this runtime is under way; blocks as pinion_runtime_stop() does, also after
 * pinion_runtime_stop_until() has given up.
 * Errors: -EDEADLK: on a worker thread of any runtime, where it does nothing
 * but say so to the log. -ECHILD: as pinion_task_spawn(). The runtime is as
 * before. -EBUSY: a pool or a scan that was made from it was not destroyed; the
 * log says which. The runtime has stopped and is not freed: destroy that, then
 * call again. A second call for a runtime that was freed aborts, with a
 * message.
 * Since: 0.1
 */
PINION_API int pinion_runtime_destroy(struct pinion_runtime *runtime);

/*
 * Has `task` run once on some worker. Called from a worker of this runtime, it
 * is queued there, and runs there next or when its turn comes, unless a worker
 * that has nothing to do takes it; else whichever is free first runs it.
 *
 * Owns: on success the task is the runtime's until it is entered; on failure
 * it stays with the caller, untouched.
 * Context: any thread; never blocks or allocates. At most one system call, to
 * wake a sleeping worker.
 * Errors: -EAGAIN: from outside, while `injector_tasks` of the task's lane wait
 * in the queue that all workers share; try again when some have run; a full
 * lane takes no room of the others. At the limit of the normal lane also while
 * another thread is just spawning into another lane, or on one worker.
 * -ESHUTDOWN: drained or stopped, and the caller is not a task of this runtime;
 * tasks may spawn until the last one is done, except under stop. -EINVAL:
 * `task->run` is NULL, or a flag is unknown. -EBUSY: the task waits to be run
 * already, or belongs to a timer, request or wait under way; or it was not
 * zeroed. -ECHILD: the runtime is that of the process this one was forked from.
 *
 * -EBUSY finds a mistake of the caller, and orders nothing: two threads that
 * spawn the same task at the same instant may both succeed, and the task is
 * then lost or runs twice. A build with --enable-checks refuses one of the two,
 * and logs the address and the `run` of each task that it refuses.
 * Since: 0.1
 */
PINION_API int pinion_task_spawn(struct pinion_runtime *runtime, struct pinion_task *task);

/*
 * As pinion_task_spawn() from a worker, but behind all that waits in its queue:
 * for a task that makes way and spawns what is left of it, usually itself.
 *
 * Context: a task on a worker of `runtime`; never blocks or allocates.
 * Errors: as pinion_task_spawn(); -EPERM: not on a worker of this runtime.
 * Since: 0.1
 */
PINION_API int pinion_task_respawn(struct pinion_runtime *runtime, struct pinion_task *task);

/*
 * As pinion_task_spawn(), but through the queue all workers share, also when
 * the caller is one: for work that should spread at once.
 * Since: 0.1
 */
PINION_API int pinion_task_spawn_shared(struct pinion_runtime *runtime, struct pinion_task *task);

/*
 * As pinion_task_spawn(), but worker `worker_index` runs the task and no other:
 * for work on that worker's memory and files.
 *
 * Errors: also -EINVAL: there is no such worker. Never -EAGAIN: the task waits
 * with that worker.
 * Since: 0.1
 */
PINION_API int pinion_task_spawn_on(
	struct pinion_runtime *runtime, uint32_t worker_index, struct pinion_task *task);

/*
 * Spawns `count` tasks at once, in order, all of them or none. From outside it
 * costs one admission and at most one wake; the workers wake each other.
 *
 * Owns: on failure every task stays with the caller, untouched.
 * Errors: as pinion_task_spawn(), for any of them; -EBUSY: also for one that is
 * in the batch twice. -EAGAIN: there is not room for all. -EINVAL: nor could
 * there be, as those of one lane are more than `injector_tasks` and the caller
 * outside. 0 tasks are fine.
 * Since: 0.1
 */
PINION_API int pinion_task_spawn_batch(
	struct pinion_runtime *runtime, struct pinion_task *const *tasks, uint32_t count);

/*
 * As pinion_task_spawn_batch(), and says why there was no room: with -EAGAIN
 * *out_full, unless NULL, has the lane that was full, how many of its tasks
 * waited when it refused, and its limit; else it is not touched. A single task
 * is a batch of one.
 *
 * Context and Errors: as pinion_task_spawn_batch().
 * Since: 0.1
 */
PINION_API int pinion_task_spawn_batch_full(struct pinion_runtime *runtime,
	struct pinion_task *const *tasks, uint32_t count, struct pinion_full *out_full);

/*
 * For a long task, now and then: whether it should return soon, and spawn what
 * is left of it. True when its worker's turn is over (`budget_us`), or when
 * completions wait; those are collected by the call, to be run next.
 *
 * Context: a task on a worker of `runtime`, where it takes some 25 ns; false
 * anywhere else.
 * Since: 0.1
 */
PINION_API bool pinion_worker_should_yield(struct pinion_runtime *runtime);

/*
 * Refuses new outside work, waits until everything admitted has run, with all
 * that it spawned and submitted, and ends the workers.
 *
 * Context: a thread that is no worker of any runtime; blocks. A second call
 * returns at once.
 * Errors: -EDEADLK: on a worker thread of any runtime; nothing has changed. A
 * task that is to end a runtime has a thread do it: pinion_runtime(3).
 * -ECHILD: as pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_runtime_drain(struct pinion_runtime *runtime);

/*
 * As pinion_runtime_drain(), then returns how the tasks went: 0, or what the
 * first of them that failed had returned.
 *
 * Context and Errors: as pinion_runtime_drain(), besides a task's own.
 * Since: 0.1
 */
PINION_API int pinion_runtime_join(struct pinion_runtime *runtime);

/*
 * Refuses all new work, gives queued tasks to their `cancel` (those that
 * are mandatory run instead), cancels requests
 * in flight, waits for what is running and for every request (each still
 * completes exactly once), and ends the workers.
 *
 * Context and Errors: as pinion_runtime_drain().
 * Since: 0.1
 */
PINION_API int pinion_runtime_stop(struct pinion_runtime *runtime);

/*
 * As pinion_runtime_stop(), but comes back when `deadline_ns` has come on the
 * clock of pinion_clock_now_ns(), should something not end: a task that runs
 * on, or a request that a device which hangs neither completes nor gives up.
 *
 * Owns: after -ETIME the runtime goes on stopping. What has not ended keeps its
 * memory, which the device may still write to: buffers are not handed out
 * again, and pinion_runtime_destroy() would wait. So call again later, or leave
 * the runtime as it is for the rest of the process, which may exit.
 * Context: as pinion_runtime_drain(), except that a `before_stop` is not bound
 * by the deadline. UINT64_MAX: for ever; 0: looks and does not wait.
 * Errors: as pinion_runtime_drain(); -ETIME.
 * Since: 0.1
 */
PINION_API int pinion_runtime_stop_until(struct pinion_runtime *runtime, uint64_t deadline_ns);

/*
 * Whether work from outside is still admitted: from creation until a drain, a
 * join or a stop begins, or a task fails where the first failure ends all
 * (`fault_policy`); then never again. Once it is false for a thread, what that
 * thread spawns from outside gets -ESHUTDOWN; tasks still spawn, as
 * pinion_task_spawn() says. True is no promise: the next call may be too late,
 * or find no room (-EAGAIN), and tells so itself.
 *
 * Context: any thread, also within tasks and hooks, until the runtime is
 * destroyed; one load, never blocks. In a process forked off: false.
 * Since: 0.1
 */
PINION_API bool pinion_runtime_is_accepting(const struct pinion_runtime *runtime);

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
 * The context of the worker of `runtime` that runs the calling code, as the
 * configuration's `after_start` made it, or NULL. A task may go on elsewhere
 * once it has returned: it asks anew each time it is entered, and does not keep
 * what it got.
 *
 * Errors: -ENOENT: the caller is not a worker of this runtime, and
 * *out_context is left. -ECHILD: as pinion_task_spawn().
 * Context: any thread; a few nanoseconds.
 * Since: 0.1
 */
PINION_API int pinion_worker_context(const struct pinion_runtime *runtime, void **out_context);

/*
 * What the workers have done so far, and how they are now. Each count is exact
 * once the runtime is drained or stopped; before, it is a moment's reading of
 * each worker in turn.
 *
 * Shape: size-versioned; pass sizeof(*out_stats).
 * Since: 0.1
 */
struct pinion_runtime_stats {
	uint64_t tasks_spawned;	  /* admitted by pinion_task_spawn and its kin */
	uint64_t tasks_run;	  /* entered through `run`, completions included */
	uint64_t tasks_failed;	  /* of those, returned a negative value */
	uint64_t tasks_cancelled; /* entered through `cancel` */
	uint64_t requests_submitted;
	uint64_t requests_completed;
	uint64_t read_bytes;		  /* bytes that completed reads delivered */
	uint64_t ring_enters;		  /* io_uring_enter calls */
	uint64_t parks_futex;		  /* times a worker slept on its futex */
	uint64_t parks_ring;		  /* times a worker slept in its ring */
	uint64_t wakes_sent;		  /* times a worker woke another */
	uint64_t unregistered_reads;	  /* reads into memory the ring does not know */
	uint64_t tasks_stolen;		  /* moved from one worker's queue to another's */
	uint64_t steals;		  /* in so many pieces */
	uint64_t lifo_polls;		  /* tasks run straight after the one that spawned them */
	uint64_t injector_takes;	  /* batches taken from the queue all share */
	uint64_t searches;		  /* times a worker looked into the others' queues */
	uint64_t spin_hits;		  /* times it found work while spinning */
	uint64_t park_timeout_found_work; /* wake-ups only the safety net caught; 0 */
	uint64_t write_bytes;		  /* bytes that completed writes took */
	uint64_t unregistered_writes;	  /* writes from memory the ring does not know */
	uint64_t requests_cancelled;	  /* ended with ECANCELED */
	uint64_t requests_timed_out;	  /* ended with ETIME, timeouts among them */
	uint64_t tasks_unwound;		  /* ended otherwise than by returning */
	uint64_t ticks;			  /* calls of `on_tick` */
	uint64_t cached_reads;		  /* requests copied from the page cache at once */
	uint64_t dontcache_reads;	  /* whose pages the kernel dropped by itself */
	uint64_t evicted_reads;		  /* likewise, asked for behind each read */
	uint64_t files_registered;	  /* with the rings of workers, each counted */
	uint64_t plain_file_transfers;	  /* through a ring that had not registered the file */
	uint64_t polled_transfers;	  /* whose completions were asked for (`polled`) */
	uint64_t polled_refusals;	  /* of these, refused, and done the usual way */
	uint64_t ring_commands;		  /* reads of NVMe namespaces that went to a ring */
	uint64_t tasks_shared;		  /* moved by workers to queues all share */
	uint64_t spawns_refused;	  /* tasks for which there was no room (`injector_tasks`) */
	/* Files that workers opened, by their enum pinion_way. */
	uint64_t files_direct;
	uint64_t files_asked;
	uint64_t files_cached;
	uint64_t files_empty;
	uint64_t files_unable;
	uint64_t direct_refusals; /* transfers past the cache that then went through it */
	/*
	 * What follows is no count, but how it is at that moment. A worker that
	 * is kept busy by its own tasks looks into the queue that all share
	 * once in so many of them: of the workers the least, and the most.
	 */
	uint64_t look_interval_min;
	uint64_t look_interval_max;
	uint64_t searching;    /* workers that look for others' work, or were just woken to */
	uint64_t parked_futex; /* workers that sleep on their futex, or are about to */
	uint64_t parked_ring;  /* likewise, in their ring */
	uint64_t parked_set;   /* bit i: worker i is one of these two; of the first 64 */
	uint64_t steal_rounds; /* a count: ways past all others in `searches` (`steal_tries`) */
	/*
	 * As it is again, of the workers' own the most. A turn is what a worker
	 * runs before it looks after its ring (`budget_polls`): the last one
	 * that it timed, which of turns of one short task is one in 48.
	 */
	uint64_t turn_polls_max;
	uint64_t lifo_row_max; /* tasks in a row straight after who spawned them (`lifo_polls`) */
	/*
	 * When the first of those that sleep gets up if nothing happens: for a
	 * timer, a deadline, a tick or `park_timeout_us`; on the clock of
	 * pinion_clock_now_ns(). UINT64_MAX: none of them does, or nobody
	 * sleeps.
	 */
	uint64_t park_until_ns;
	uint64_t timers_processed; /* a count: timers whose time came, also for another worker */
	/*
	 * Counts again: how often completions waited in a worker's ring for
	 * longer than `cq_stall_us` of the tuning, and the microseconds
	 * that lasted, all together, as far as looks twice in that time tell.
	 */
	uint64_t cq_stalls;
	uint64_t cq_stall_us;
	/*
	 * Transfers past the cache whose error might have been that of a
	 * neighbour on the disk, with which the kernel had made one request of
	 * them: each was tried once more, by itself.
	 */
	uint64_t errors_tried_alone;
	/*
	 * Workers that found themselves allowed on CPUs beside their own and
	 * bound themselves again, each time counted: `bind_workers`.
	 */
	uint64_t workers_rebound;
};

PINION_API void pinion_runtime_get_stats(
	const struct pinion_runtime *runtime, struct pinion_runtime_stats *out_stats, size_t size);

/*
 * What the runtime settled on at creation.
 *
 * Shape: size-versioned; strings are static or live as long as the runtime.
 * Since: 0.1
 */
struct pinion_runtime_info {
	uint32_t worker_count;
	uint32_t workers_bound;	    /* how many are bound to a core, or to their node, now */
	uint32_t uses_ring;	    /* 0: some worker reads by the pread fallback */
	uint32_t ring_setup_flags;  /* IORING_SETUP_* in force */
	uint32_t arenas_registered; /* workers whose arena the kernel holds registered */
	uint32_t page_bytes;	    /* smallest page size any arena got */
	const char *doorbell;	    /* "send_msg_ring", "eventfd" or "none" */
	const char *fallback_cause; /* why there is no ring, or NULL */
	/* The workers' arenas, all together. */
	uint64_t arena_bytes;
	uint64_t huge_bytes;	    /* of these, on pages of 2 MiB or more */
	uint64_t hugetlb_bytes;	    /* of these, set aside by the administrator */
	uint64_t registered_bytes;  /* of arena_bytes, with at least one ring */
	uint32_t arenas_shared;	    /* workers whose ring knows all arenas, not its own alone */
	uint32_t arenas_unexamined; /* whose huge_bytes the kernel does not tell: as asked */
	/*
	 * Of the worker that has the fewest: pages on its NUMA node,
	 * thousandths. UINT32_MAX: the kernel does not tell.
	 */
	uint32_t local_permille;
	uint32_t buffer_count; /* large ones of each worker, as far as memory allowed */
	const char *io_level;  /* as PINION_IO_LEVEL spells the one in force; "ring": all */
	uint32_t file_slots;   /* how many files the ring of each worker can register */
	uint32_t polled_rings; /* workers with a second ring, for devices that are polled */
	/* As configured, or PINION_CPU_LATENCY_ANY if that cannot be had. */
	uint64_t cpu_latency_us;
};

PINION_API void pinion_runtime_get_info(
	const struct pinion_runtime *runtime, struct pinion_runtime_info *out_info, size_t size);

PINION_END_DECLS

#endif

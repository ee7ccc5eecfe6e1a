/* SPDX-License-Identifier: MIT */
/*
 * A runtime: workers, one for each core, each with its own ring, arena and
 * queue. A process may have several. A runtime is created, then drained or
 * stopped, then destroyed.
 *
 * A process may fork while it has runtimes: they go on in the parent. In the
 * child they are dead memory, and each call on them returns -ECHILD.
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
 * Starts a runtime. When it returns 0 every worker runs, has its ring and its
 * arena, and waits for work without using CPU.
 *
 * Owns: `config` is copied; NULL: every default. The runtime belongs to the
 * caller until pinion_runtime_destroy().
 * Context: any thread but a worker's; blocks, allocates.
 * Errors: -EINVAL: a field is out of range, the log message names it; without
 * a message: `size` is not what pinion_config_init() has set. -E2BIG:
 * the struct is newer than the library and an unknown field is set. -ENOMEM,
 * -EAGAIN: memory or threads ran out, the message names the limit. -ENOSYS,
 * -EPERM, -EOPNOTSUPP and other errors of io_uring_setup(2): only where
 * `io_level` asks for rings; -EOPNOTSUPP also when the kernel lacks a feature
 * of that level.
 * Since: 0.1
 */
PINION_API int pinion_runtime_create(
	const struct pinion_config *config, struct pinion_runtime **out_runtime);

/*
 * Frees a runtime, and stops it first if need be; 0. NULL is accepted.
 *
 * Context: a thread that is no worker of any runtime, while no other call on
 * this runtime is under way; blocks as pinion_runtime_stop() does, also after
 * pinion_runtime_stop_until() has given up.
 * Errors: -EDEADLK: on a worker thread of any runtime; a message in the log
 * says so, and nothing has changed. -ECHILD: as pinion_task_spawn(). -EBUSY: a
 * pool or a scan of this runtime was not destroyed; the log says which. The
 * runtime has stopped and is not freed: destroy the pool or scan, then call
 * again. A second call for a freed runtime aborts, with a message.
 * Since: 0.1
 */
PINION_API int pinion_runtime_destroy(struct pinion_runtime *runtime);

/*
 * Runs `task` once on some worker. Called from a worker of this runtime, the
 * task is queued there; it runs there next or when its turn comes, unless an
 * idle worker takes it. Called from any other thread, the first free worker
 * runs it.
 *
 * Owns: on success the task is the runtime's until it is entered; on failure it
 * stays with the caller, untouched.
 * Context: any thread; never blocks or allocates. At most one system call, to
 * wake a sleeping worker.
 * Errors: -EAGAIN: from outside, while `injector_tasks` of the task's lane wait
 * in the queue that all workers share. Try again when some have run; a full
 * lane takes no room of the others. At the limit of the normal lane also while
 * another thread spawns into another lane, or on one worker. -ESHUTDOWN: the
 * runtime is drained or stopped, and the caller is not one of its tasks; tasks
 * may spawn until the last task ends, except under stop. -EINVAL: `task->run`
 * is NULL, or a flag is unknown. -EBUSY: the task waits to be run already, or
 * belongs to a timer, request or wait under way; or it was not zeroed. -ECHILD:
 * the runtime belongs to the process that this one was forked from.
 *
 * -EBUSY finds a mistake of the caller, and orders nothing: two threads that
 * spawn the same task at the same instant may both succeed, and the task is
 * then lost or runs twice. A build with --enable-checks refuses one of the two,
 * and logs the address and the `run` of each task that it refuses.
 * Since: 0.1
 */
PINION_API int pinion_task_spawn(struct pinion_runtime *runtime, struct pinion_task *task);

/*
 * Queues a task after all that waits in the calling worker's queue: for a task
 * that makes way and spawns the rest of its work, usually itself.
 *
 * Context: a task on a worker of `runtime`; never blocks or allocates.
 * Errors: as pinion_task_spawn(); -EPERM: not on a worker of this runtime.
 * Since: 0.1
 */
PINION_API int pinion_task_respawn(struct pinion_runtime *runtime, struct pinion_task *task);

/*
 * Spawns a task through the queue that all workers share, also from a worker:
 * for work that should spread at once. Otherwise as pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_task_spawn_shared(struct pinion_runtime *runtime, struct pinion_task *task);

/*
 * Spawns a task that only worker `worker_index` runs: for work on that worker's
 * memory and files. Otherwise as pinion_task_spawn().
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
 * Errors: as pinion_task_spawn(), for any of the tasks. -EBUSY: also for a task
 * that is in the batch twice. -EAGAIN: there is not room for all. -EINVAL: from
 * outside, also when the tasks of one lane are more than `injector_tasks`, so
 * that there could never be room. 0 tasks are fine.
 * Since: 0.1
 */
PINION_API int pinion_task_spawn_batch(
	struct pinion_runtime *runtime, struct pinion_task *const *tasks, uint32_t count);

/*
 * Spawns as pinion_task_spawn_batch(), and says why there was no room: with
 * -EAGAIN *out_full, unless NULL, has the lane that was full, how many of its
 * tasks waited, and its limit; otherwise it is not written. A single task is a
 * batch of one.
 *
 * Context and Errors: as pinion_task_spawn_batch().
 * Since: 0.1
 */
PINION_API int pinion_task_spawn_batch_full(struct pinion_runtime *runtime,
	struct pinion_task *const *tasks, uint32_t count, struct pinion_full *out_full);

/*
 * Says whether a long task should return soon, and spawn the rest of its work:
 * its worker's turn is over (`budget_us`), or completions wait. The call
 * collects those completions, to be run next.
 *
 * Context: a task on a worker of `runtime`, where it takes some 25 ns; false
 * anywhere else.
 * Since: 0.1
 */
PINION_API bool pinion_worker_should_yield(struct pinion_runtime *runtime);

/*
 * Refuses new work from outside, waits until all admitted work has run, with
 * everything that it spawned and submitted, and ends the workers. Requests that
 * wait for a peer, such as accepts, end with -ECANCELED unless they have a
 * deadline: pinion_request_submit().
 *
 * Context: a thread that is no worker of any runtime; blocks. A second call
 * returns at once.
 * Errors: -EDEADLK: on a worker thread of any runtime; nothing has changed. To
 * end a runtime from a task, have a thread do it: pinion_runtime(3). -ECHILD:
 * as pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_runtime_drain(struct pinion_runtime *runtime);

/*
 * Drains as pinion_runtime_drain(), then returns the result of the tasks: 0, or
 * the return value of the first task that failed.
 *
 * Context and Errors: as pinion_runtime_drain(), besides a task's own.
 * Since: 0.1
 */
PINION_API int pinion_runtime_join(struct pinion_runtime *runtime);

/*
 * Ends a runtime early: refuses all new work, gives queued tasks to their
 * `cancel` (mandatory tasks run instead), cancels requests in flight, waits for
 * running tasks and for every request (each still completes exactly once), and
 * ends the workers.
 *
 * Context and Errors: as pinion_runtime_drain().
 * Since: 0.1
 */
PINION_API int pinion_runtime_stop(struct pinion_runtime *runtime);

/*
 * Stops as pinion_runtime_stop(), but returns at `deadline_ns` on the clock of
 * pinion_clock_now_ns() if something has not ended by then: a task that goes
 * on, or a request that a hanging device neither completes nor gives up.
 *
 * Owns: after -ETIME the runtime goes on stopping. Work that has not ended
 * keeps its memory, which the device may still write to: its buffers are not
 * handed out again, and pinion_runtime_destroy() would wait. So call again
 * later, or leave the runtime as it is for the rest of the process, which may
 * exit.
 * Context: as pinion_runtime_drain(), except that a `before_stop` is not bound
 * by the deadline. UINT64_MAX: no deadline; 0: returns at once.
 * Errors: as pinion_runtime_drain(); -ETIME.
 * Since: 0.1
 */
PINION_API int pinion_runtime_stop_until(struct pinion_runtime *runtime, uint64_t deadline_ns);

/*
 * Says whether the runtime still admits work from outside: true from creation
 * until a drain, a join or a stop begins, or a task fails where the first
 * failure ends all (`fault_policy`), and false ever after. Once a thread has
 * seen false, its spawns from outside return -ESHUTDOWN; tasks still spawn, as
 * pinion_task_spawn() says. True is no promise: the next call may be too late,
 * or find no room (-EAGAIN), and reports that itself.
 *
 * Context: any thread, also within tasks and hooks, until the runtime is
 * destroyed; one load, never blocks. In a forked child: false.
 * Since: 0.1
 */
PINION_API bool pinion_runtime_is_accepting(const struct pinion_runtime *runtime);

/*
 * Returns the number of workers; `buffer_bytes` and `small_buffer_bytes` of
 * each worker's arena are those of the configuration.
 *
 * Context: any thread.
 * Since: 0.1
 */
PINION_API uint32_t pinion_runtime_worker_count(const struct pinion_runtime *runtime);

/*
 * Returns the index of the worker that runs the calling code, 0 … count - 1:
 * with it a program keeps state for each worker without locks.
 *
 * Errors: -ENOENT: the caller is not a worker of this runtime.
 * Context: any thread.
 * Since: 0.1
 */
PINION_API int pinion_worker_index(const struct pinion_runtime *runtime);

/*
 * Gives the context of the worker that runs the calling code, as `after_start`
 * of the configuration made it, or NULL. A task may go on elsewhere once it has
 * returned: it asks anew each time it is entered, and does not keep the
 * context.
 *
 * Errors: -ENOENT: the caller is not a worker of this runtime, and *out_context
 * is not written. -ECHILD: as pinion_task_spawn().
 * Context: any thread; a few nanoseconds.
 * Since: 0.1
 */
PINION_API int pinion_worker_context(const struct pinion_runtime *runtime, void **out_context);

/*
 * Counts of the workers' actions, and their state now. Each count is exact once
 * the runtime is drained or stopped; before that it is a moment's reading of
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
	/*
	 * Bytes of reads that ended without an error. A scan's copies from the
	 * page cache are in pinion_scan_stats alone.
	 */
	uint64_t read_bytes;
	uint64_t ring_enters;		  /* io_uring_enter calls */
	uint64_t parks_futex;		  /* times a worker slept on its futex */
	uint64_t parks_ring;		  /* times a worker slept in its ring */
	uint64_t wakes_sent;		  /* times a worker woke another */
	uint64_t unregistered_reads;	  /* reads into memory that the ring has not registered */
	uint64_t tasks_stolen;		  /* moved from one worker's queue to another's */
	uint64_t steals;		  /* batches in which these were moved */
	uint64_t lifo_polls;		  /* tasks run straight after the task that spawned them */
	uint64_t injector_takes;	  /* batches taken from the shared queue */
	uint64_t searches;		  /* times a worker searched the queues of others */
	uint64_t spin_hits;		  /* times it found work while spinning */
	uint64_t park_timeout_found_work; /* wake-ups only the safety net caught; 0 */
	uint64_t write_bytes;		  /* of writes that ended without an error */
	uint64_t unregistered_writes;	  /* writes from such memory */
	uint64_t requests_cancelled;	  /* ended with ECANCELED */
	uint64_t requests_timed_out;	  /* ended with ETIME, timeouts among them */
	uint64_t tasks_unwound;		  /* ended otherwise than by returning */
	uint64_t ticks;			  /* calls of `on_tick` */
	uint64_t cached_reads;		  /* requests copied from the page cache at once */
	uint64_t dontcache_reads;	  /* whose pages the kernel dropped by itself */
	uint64_t evicted_reads;		  /* whose pages the library dropped after each read */
	uint64_t files_registered;	  /* with the rings of workers, each counted */
	uint64_t plain_file_transfers;	  /* through a ring that had not registered the file */
	uint64_t polled_transfers;	  /* with polled completions (`polled`) */
	uint64_t polled_refusals;	  /* of these, refused, and done without polling */
	uint64_t ring_commands;		  /* reads of NVMe namespaces that went to a ring */
	uint64_t tasks_shared;		  /* moved by workers to shared queues */
	uint64_t spawns_refused;	  /* tasks refused for lack of room (`injector_tasks`) */
	/* Files that workers opened, by their enum pinion_way. */
	uint64_t files_direct;
	uint64_t files_asked;
	uint64_t files_cached;
	uint64_t files_empty;
	uint64_t files_unable;
	uint64_t direct_refusals; /* transfers past the cache that then went through it */
	/*
	 * The next fields are no counts, but the state at that moment. A worker
	 * that is busy with its own tasks checks the queue that all share once
	 * in this many tasks: of all workers the fewest, and the most.
	 */
	uint64_t look_interval_min;
	uint64_t look_interval_max;
	uint64_t searching;    /* workers that search, or were just woken to */
	uint64_t parked_futex; /* workers that sleep on their futex, or are about to */
	uint64_t parked_ring;  /* workers that sleep in their ring */
	uint64_t parked_set;   /* bit i: worker i sleeps; of the first 64 */
	uint64_t steal_rounds; /* count: rounds in `searches` (`steal_tries`) */
	/*
	 * State again, the maximum over all workers. A turn is the number of
	 * tasks that a worker runs before it checks its ring (`budget_polls`),
	 * of the last turn that it timed; of turns of one short task it times
	 * one in 48.
	 */
	uint64_t turn_polls_max;
	uint64_t lifo_row_max; /* tasks in a row by `lifo_polls` */
	/*
	 * When the first sleeping worker wakes if nothing happens: for a timer,
	 * a deadline, a tick or `park_timeout_us`; on the clock of
	 * pinion_clock_now_ns(). UINT64_MAX: none wakes by itself, or none
	 * sleeps.
	 */
	uint64_t park_until_ns;
	uint64_t timers_processed; /* count: expired timers, also for another worker */
	/*
	 * Counts: how often completions waited in a worker's ring for longer
	 * than `cq_stall_us` of the tuning, and the microseconds of these
	 * waits, all together, as far as two checks in that time can see.
	 */
	uint64_t cq_stalls;
	uint64_t cq_stall_us;
	/*
	 * Count: transfers past the cache whose error might have belonged to a
	 * neighbour on the disk that the kernel had merged with them; each was
	 * tried once more, by itself.
	 */
	uint64_t errors_tried_alone;
	/*
	 * Count: workers that found themselves allowed on other CPUs and bound
	 * themselves again, each time: `bind_workers`.
	 */
	uint64_t workers_rebound;
	/*
	 * Count: how often the watchdog woke a sleeping worker (`watchdog_us`)
	 * for tasks that waited behind a long task and for which no spawn had
	 * woken it. Near 0.
	 */
	uint64_t watchdog_found_work;
	/*
	 * Counts of the stall watch, `stall_ms` of the tuning: tasks that ran
	 * for longer without progress, and the microseconds of these stalls,
	 * all together, from a task's begin or a report of progress to its end,
	 * which may lack a quarter of `stall_ms` each: pinion_runtime(3);
	 * devices that completed nothing, and lanes of which no task began, for
	 * ten times as long.
	 */
	uint64_t stalls;
	uint64_t stall_us;
	uint64_t device_stalls;
	uint64_t starved_lanes;
	/* Counts: bytes that requests received from sockets, and sent there. */
	uint64_t received_bytes;
	uint64_t sent_bytes;
};

/*
 * Writes the counts of `runtime` to *out_stats.
 *
 * Context: any thread; never blocks.
 * Since: 0.1
 */
PINION_API void pinion_runtime_get_stats(
	const struct pinion_runtime *runtime, struct pinion_runtime_stats *out_stats, size_t size);

/*
 * The settings and resources that a runtime chose at creation.
 *
 * Shape: size-versioned; strings are static or live as long as the runtime.
 * Since: 0.1
 */
struct pinion_runtime_info {
	uint32_t worker_count;
	uint32_t workers_bound;	    /* how many are bound to a core, or to their node, now */
	uint32_t uses_ring;	    /* 0: some worker reads by the pread fallback */
	uint32_t ring_setup_flags;  /* IORING_SETUP_* in force */
	uint32_t arenas_registered; /* workers: the kernel holds all registered that has memory */
	uint32_t page_bytes;	    /* smallest page size any arena got */
	const char *doorbell;	    /* "send_msg_ring", "eventfd" or "none" */
	const char *fallback_cause; /* why there is no ring, or NULL */
	/* The workers' arenas, all together. */
	uint64_t arena_bytes;	    /* addresses: what they may take */
	uint64_t huge_bytes;	    /* of these, on pages of 2 MiB or more */
	uint64_t hugetlb_bytes;	    /* of these, set aside by the administrator */
	uint64_t registered_bytes;  /* of arena_bytes, with at least one ring */
	uint32_t arenas_shared;	    /* workers whose ring has registered all arenas */
	uint32_t arenas_unexamined; /* workers whose huge_bytes the kernel hides: as asked */
	/*
	 * Of the worker with the fewest: pages on its NUMA node, thousandths.
	 * UINT32_MAX: the kernel does not report it.
	 */
	uint32_t local_permille;
	uint32_t buffer_count; /* large ones of each worker, as far as memory allowed */
	const char *io_level;  /* the level in force, as PINION_IO_LEVEL spells it */
	uint32_t file_slots;   /* how many files the ring of each worker can register */
	uint32_t polled_rings; /* workers with a second ring, for devices that are polled */
	/* As configured, or PINION_CPU_LATENCY_ANY if that cannot be had. */
	uint64_t cpu_latency_us;
	uint64_t populated_bytes;  /* of arena_bytes; the rest has no memory now */
	uint64_t given_back_bytes; /* after rest, since the start */
};

/*
 * Writes the settings of `runtime` to *out_info.
 *
 * Context: any thread; never blocks.
 * Since: 0.1
 */
PINION_API void pinion_runtime_get_info(
	const struct pinion_runtime *runtime, struct pinion_runtime_info *out_info, size_t size);

PINION_END_DECLS

#endif

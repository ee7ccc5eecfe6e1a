/* SPDX-License-Identifier: MIT */
/*
 * The fields of a runtime's configuration that few programs set: how workers
 * look for work, sleep and wake, what they ask of the kernel and of devices,
 * and when they warn. docs/TUNING.md says which to change for which symptom.
 */
#ifndef PINION_TUNING_H
#define PINION_TUNING_H

#include <pinion/allocator.h>
#include <pinion/hooks.h>
#include <pinion/policy.h>
#include <stdint.h>

PINION_BEGIN_DECLS

/*
 * Shape: size-versioned; only ever appended to. Initialise with
 * pinion_tuning_init(), change fields, and give it to a configuration as its
 * `tuning`.
 * Owns: the caller's memory, read during creation only; `arena_arg` must
 * outlive the runtime.
 * Since: 0.1
 */
struct pinion_tuning {
	/*
	 * Bytes of this struct the caller knows. Set by pinion_tuning_init().
	 */
	uint32_t size;

	/* ---- a worker's loop ---- */

	/*
	 * Tasks that a worker runs before it checks for completions, 1 … 65535.
	 * Default 128. Environment: PINION_BUDGET_POLLS.
	 */
	uint32_t budget_polls;

	/*
	 * Microseconds that a worker runs tasks before it checks for
	 * completions, 1 … 1000000. Default 500. Environment: PINION_BUDGET_US.
	 */
	uint32_t budget_us;

	/*
	 * One of enum pinion_queue_order. Default fifo. Environment:
	 * PINION_QUEUE_ORDER.
	 */
	uint32_t queue_order;

	/*
	 * Tasks that a worker's own queue holds, 4 … 65536, a power of two.
	 * When it is full, half of them move to the queue that all workers
	 * share. Default 256. Environment: PINION_QUEUE_TASKS.
	 */
	uint32_t queue_tasks;

	/*
	 * How many times in a row a worker may run the task that it spawned
	 * last before other tasks have their turn, 0 … 65535. 0: that task
	 * queues like all others. Only in FIFO order. Default 3. Environment:
	 * PINION_LIFO_POLLS.
	 */
	uint32_t lifo_polls;

	/*
	 * Longest wait of a task in the queue that all workers share while
	 * every worker is busy with its own, microseconds, 1 … 1000000. It
	 * decides how often busy workers check that queue: every
	 * `interval_min` … `interval_max` tasks (1 … 65535). Defaults 1000, 8,
	 * 255. Environment: PINION_INJECTOR_TARGET_US, PINION_INTERVAL_MIN,
	 * PINION_INTERVAL_MAX.
	 */
	uint32_t injector_target_us;
	uint32_t interval_min;
	uint32_t interval_max;

	/*
	 * Weight of the newest task in the average task time, thousandths, 1 …
	 * 999, and the average before the first task, ns, 1 … 1000000000.
	 * Defaults 100, 50000. Environment: PINION_EWMA_ALPHA_PERMILLE,
	 * PINION_TASK_NS.
	 */
	uint32_t ewma_alpha_permille;
	uint32_t task_ns;

	/*
	 * Milliseconds between two calls of `on_tick` on a worker, 1 …
	 * 3600000; the next call is due that long after the last one began. It
	 * comes on every worker, busy or idle, and ends a sleep. It is late by
	 * at most one loop of the worker: `budget_us`, or the task that runs.
	 * One more call comes at the end, before `before_stop`. Without
	 * `on_tick` no sleep ends for it. Default 1000. Environment:
	 * PINION_TICK_INTERVAL_MS.
	 */
	uint32_t tick_interval_ms;

	/*
	 * Tasks that a worker moves at once from the shared queue into its own:
	 * its part of those there, at least `injector_batch_min` and at most
	 * `injector_batch_max`, 1 … 65536 each, as far as there is room. Where
	 * workers serve different lanes it moves one at a time. Defaults 4, 64.
	 * Environment: PINION_INJECTOR_BATCH_MIN, PINION_INJECTOR_BATCH_MAX.
	 */
	uint32_t injector_batch_min;
	uint32_t injector_batch_max;

	/*
	 * Limit of back-pressure: tasks of each lane that may wait in the queue
	 * that all workers share, up to 2^40; 0: no limit. When the queue of a
	 * lane is full, a spawn into it from outside is refused with -EAGAIN,
	 * and so is a call, also one of another runtime's task; other lanes
	 * keep their room. Tasks that workers spawn are never refused, although
	 * they take room there, nor are jobs and work items, which have limits
	 * of their own. Timers, requests and tasks for one worker wait
	 * elsewhere. Default 65536. Environment: PINION_INJECTOR_TASKS.
	 */
	uint64_t injector_tasks;

	/* ---- stealing, sleeping, waking ---- */

	/*
	 * Rounds through the queues of all other workers before a worker stops
	 * searching, 1 … 1024. Default 4. Environment: PINION_STEAL_TRIES.
	 */
	uint32_t steal_tries;

	/*
	 * Percentage of the workers that serve the same lanes which may search
	 * the queues of others at once, 1 … 100; one always may. The limit is
	 * approximate: for an instant there may be one more. Default 50.
	 * Environment: PINION_SEARCHERS_PERCENT.
	 */
	uint32_t searchers_percent;

	/*
	 * Polls for work before an idle worker sleeps (30 to 50 ns each), 0 …
	 * 65535. Adaptive: up to four times as many while spinning finds work,
	 * none while it does not, rarely sixteen times as many as a probe. 0:
	 * never spin. Default 200. Environment: PINION_SPIN_ITERS.
	 */
	uint32_t spin_iters;

	/*
	 * Microseconds after which a sleeping worker wakes and checks for work,
	 * 0 … 60000000. 0: never; nothing depends on it. It is a safety net:
	 * park_timeout_found_work counts the work that it finds. Default 0.
	 * Environment: PINION_PARK_TIMEOUT_US.
	 */
	uint32_t park_timeout_us;

	/*
	 * One of enum pinion_wake_policy. Default near. Environment:
	 * PINION_WAKE_POLICY.
	 */
	uint32_t wake_policy;

	/*
	 * Spawns of a worker into its own queue after which it wakes another
	 * worker, 1 … 65535. Default 32. Environment: PINION_WAKE_BATCH_SPAWNS.
	 */
	uint32_t wake_batch_spawns;

	/*
	 * Microseconds after which a spawn wakes a sleeping worker however few
	 * tasks are queued, so that the task starts though its spawner goes on
	 * for long, 0 … 1000000. Up to 256 times as many while the workers so
	 * woken find nothing. 0: a lone task may wait for its spawner, until
	 * `watchdog_us`. Default 100. Environment: PINION_SPAWN_WAKE_US.
	 */
	uint64_t spawn_wake_us;

	/*
	 * Microseconds of work in a worker's own queue, estimated by its
	 * average task, for which it wakes another worker earlier, 0 …
	 * 1000000. Default 20, about the cost of a wake to both sides.
	 * Environment: PINION_WAKE_WORTH_US.
	 */
	uint32_t wake_worth_us;

	/* ---- lanes ---- */

	/*
	 * Share of a lane that others pass: a worker runs at least one task in
	 * this many from it while it has work, 2 … 65535; 0: none, the order of
	 * lanes is strict. Tasks bound to one worker get 1 in 16 in any case.
	 * Default 16. Environment: PINION_LANE_FLOOR.
	 */
	uint32_t lane_floor;

	/*
	 * Milliseconds after which work in the low lane comes first at its
	 * worker, 0 … 86400000; up to a quarter later than that, and never by
	 * interrupting a task. 0: it may be delayed for ever, except for
	 * `lane_floor`. Default 0. Environment: PINION_LOW_MAX_WAIT_MS.
	 */
	uint32_t low_max_wait_ms;

	/*
	 * One of enum pinion_assist: whether a worker without work in its own
	 * lanes takes one task at a time from another lane, while
	 * `assist_reserve` other workers of its class (0 … 4096) are idle.
	 * Defaults off, 1. Environment: PINION_ASSIST, PINION_ASSIST_RESERVE.
	 */
	uint32_t assist;
	uint32_t assist_reserve;

	/*
	 * Queue depths of the lanes for which a warning is sent to `log`, once,
	 * and again only after the depth has fallen to half; 0: no warning. In
	 * the normal lane the tasks in the queue that all share count.
	 * Defaults 100, 0, 0. Environment: PINION_HIGH_WARN_DEPTH,
	 * PINION_NORMAL_WARN_DEPTH, PINION_LOW_WARN_DEPTH.
	 */
	uint32_t high_warn_depth;
	uint32_t normal_warn_depth;
	uint32_t low_warn_depth;

	/*
	 * Workers of each class up to which a thread pool may grow
	 * (thread_pool.h), 0 … 1024; those it begins with are always allowed.
	 * Each costs some KiB while it does not exist. Has no effect on other
	 * runtimes. Default 0. Environment: PINION_THREAD_POOL_MAX.
	 */
	uint32_t thread_pool_max;

	/*
	 * Gives way to workers of higher classes, for classes that share CPUs:
	 * a thread is this much nicer for each lane that the lowest lane it
	 * serves is below that of the first class, 19 at most. With
	 * "h:1,hn:2,hnl:1" and 5, threads of the second class have 5 more than
	 * those of the first, of the third 10. 20: they run only when no other
	 * thread of the machine wants the CPU (SCHED_IDLE). All of it is added
	 * to what the thread has that creates the runtime, or resizes the
	 * thread pool; that should not be a worker of a lower class. Where the
	 * kernel refuses, threads stay as they are. 0 … 20, default 0.
	 * Environment: PINION_CLASS_NICE.
	 * Source: sched(7); docs/PERFORMANCE.md, "A thread pool on fewer CPUs
	 * than it has threads".
	 */
	uint32_t class_nice;

	/*
	 * Limits of admissions (admission.h) that leave theirs at 0: jobs that
	 * may be in, of each lane, 0 … 1048575, and of all, 0 … 3145725. 0: the
	 * highest; of all: the sum of these. Defaults 0. Environment:
	 * PINION_MAX_TASKS_HIGH, PINION_MAX_TASKS_NORMAL, PINION_MAX_TASKS_LOW,
	 * PINION_MAX_TASKS_TOTAL.
	 */
	uint32_t max_tasks_high;
	uint32_t max_tasks_normal;
	uint32_t max_tasks_low;
	uint32_t max_tasks_total;

	/* ---- rings ---- */

	/*
	 * Submission queue entries of each ring, 8 … 32768, a power of two.
	 * Default 256. Environment: PINION_RING_ENTRIES.
	 */
	uint32_t ring_entries;

	/*
	 * Threads that the kernel may add to each ring for operations that
	 * would block (opening cold files), 1 … 1024. Default 16: enough to
	 * keep a disk's queue filled with inode reads, far below what a ring
	 * without a limit may start. Environment: PINION_RING_HELPER_COUNT.
	 * Source: docs/decisions/workers.md, "The kernel's helper threads stay
	 * on their worker's node".
	 */
	uint32_t ring_helper_count;

	/*
	 * One of enum pinion_ring_sharing. Default own. Environment:
	 * PINION_RING_SHARING.
	 * Source: docs/decisions/rings.md, "Other workers can reap the ring of
	 * a stalled worker".
	 */
	uint32_t ring_sharing;

	/*
	 * Bits of enum pinion_io_feature that are not used even where the
	 * kernel has them: for tests, and to avoid a fault of a kernel.
	 * Default 0. Environment: PINION_IO_WITHOUT, a list with commas.
	 */
	uint32_t io_without;

	/*
	 * One of enum pinion_polled. Unless never, each worker has a second
	 * ring (IORING_SETUP_IOPOLL), for reads and writes of up to 128 KiB
	 * past the page cache. While it has any of these in flight a worker
	 * runs tasks and asks the device in between, but does not sleep: lower
	 * latencies, for a CPU that is never idle. Such requests cannot be
	 * cancelled once begun. Requests that the ring, the kernel or the
	 * device refuses take the usual path. Has no effect where rings are
	 * shared (`ring_sharing`), and without io_uring. Default never.
	 * Environment: PINION_POLLED.
	 * Source: docs/decisions/rings.md, "Polled completions have a ring of
	 * their own".
	 */
	uint32_t polled;

	/*
	 * Files that the ring of each worker can register, a power of two from
	 * 8 on, or 0: none. A file that pinion_file_open() or its kin opened
	 * for reading alone is registered with a ring after a few reads there.
	 * A file that finds no room is read by its descriptor, which costs some
	 * CPU. At most RLIMIT_NOFILE. Default 256. Environment:
	 * PINION_REGISTERED_FILES.
	 */
	uint32_t registered_files;

	/* ---- devices ---- */

	/*
	 * Of enum pinion_io_priority: the priority of reads and writes of the
	 * high and of the low lane whose `io_priority` is 0; those of normal
	 * have the thread's. A request's lane is that of its task's
	 * flags, else that of the task that submits it. Defaults none and be7:
	 * no caller waits for low work, and be7 yields to all others but is
	 * served. Environment: PINION_IO_PRIORITY_HIGH, PINION_IO_PRIORITY_LOW.
	 * Source: ioprio_set(2); docs/decisions/devices.md, "Low requests get a
	 * low I/O priority".
	 */
	uint32_t io_priority_high;
	uint32_t io_priority_low;

	/*
	 * Reads and writes in one device at once, of all workers together, 0 …
	 * 1048575, and the bytes they ask for, 0 … 1 TiB. Both 0: the library
	 * finds them while the device works, between `depth_min` (1 … 65536)
	 * and `depth_count_max` (1 … 1048575) requests and at most
	 * `depth_bytes_max` (64 KiB … 1 TiB) bytes; a request of more than
	 * 64 KiB counts as several. A drive with heads to move is given
	 * `depth_rotational` requests instead, 0 … 65536; 0: it is like all
	 * others. pinion_runtime_set_limits() changes the first two.
	 * Defaults 0, 0, 8, 1024, 64 MiB, 4. Environment: PINION_DEPTH_COUNT,
	 * PINION_DEPTH_BYTES, PINION_DEPTH_MIN, PINION_DEPTH_COUNT_MAX,
	 * PINION_DEPTH_BYTES_MAX, PINION_DEPTH_ROTATIONAL.
	 * Source: docs/decisions/devices.md, "The depth of a device is found by
	 * trial".
	 */
	uint32_t depth_count;
	uint32_t depth_min;
	uint32_t depth_count_max;
	uint32_t depth_rotational;
	uint64_t depth_bytes;
	uint64_t depth_bytes_max;

	/*
	 * Bytes that reads and writes may ask for in a second, of all workers
	 * and devices together, and how many of them may begin, up to 2^62; 0:
	 * no limit. pinion_runtime_set_limits() changes them. Defaults 0.
	 * Environment: PINION_BYTES_PER_SECOND, PINION_REQUESTS_PER_SECOND.
	 */
	uint64_t bytes_per_second;
	uint64_t requests_per_second;

	/* ---- stalls and diagnosis ---- */

	/*
	 * Microseconds that tasks, and timers that are due, may wait for a task
	 * that blocks or computes for long on their worker while another worker
	 * sleeps, 0 … 60000000; then the sleeper is woken for them. A watchdog
	 * thread checks twice in this time while any worker that spawns is
	 * awake. 0: there is no such thread, and they wait until the task ends.
	 * Work for one worker alone (pinion_task_spawn_on(), and, without
	 * `ring_sharing`, completions of requests) waits in any case. Default
	 * 10000. Environment: PINION_WATCHDOG_US.
	 * Source: docs/decisions/waking.md, "A watchdog finds tasks kept by a
	 * stalled worker".
	 */
	uint32_t watchdog_us;

	/*
	 * 1: each job of an admission, and each call of pinion_call_run() and
	 * its kin, sends three messages to `log` at level debug: when it is
	 * handed over, begins and ends. 0 or 1. Default 0. Environment:
	 * PINION_JOB_LOG.
	 */
	uint32_t job_log;

	/*
	 * Milliseconds that a task may run without progress, 0 … 86400000;
	 * then a warning in `log` names it once, with its worker and lane, and
	 * the system call, file and offset that it waits for. A job makes
	 * progress by pinion_job_set_progress(). After ten times as long a
	 * device of which no request completes is named, with the file and
	 * offset of its oldest request, and a lane of which no task begins
	 * while some wait; the low lane not before `low_max_wait_ms` and a
	 * quarter. At most 20 lines a second of each kind, as of all messages.
	 * When it goes on, a message at level info says so. `stalls` of struct
	 * pinion_runtime_stats and its neighbours count. It costs a thread that
	 * checks twice in that time, while any worker is awake or requests are
	 * in devices, and some 6 us at the first wake after all workers have
	 * slept that long. 0: no check. Default 100; of thread pools, whose
	 * jobs may take long, 0.
	 * Environment: PINION_STALL_MS.
	 * Source: docs/decisions/observing.md, "The stall watch is on by
	 * default".
	 */
	uint64_t stall_ms;

	/*
	 * Microseconds that completions may wait in the rings of a worker that
	 * is awake and takes none out, 0 … 86400000000: it is in a long task,
	 * and without `ring_sharing` no other worker can take them. Where it
	 * has to ask a device for them (`polled`), requests in flight wait
	 * until it asks. Longer waits are counted (`cq_stalls` and
	 * `cq_stall_us` of struct pinion_runtime_stats), and a warning in `log`
	 * names the task once, at most ten a second together with those of
	 * `stall_ms`. It costs a thread that checks twice in that time, and
	 * workers nothing. 0: no check. Default 0. Environment:
	 * PINION_CQ_STALL_US.
	 */
	uint64_t cq_stall_us;

	/*
	 * One of enum pinion_fault_policy. Default isolate. Environment:
	 * PINION_FAULT_POLICY.
	 */
	uint32_t fault_policy;

	/* ---- the process and the machine ---- */

	/*
	 * 1: one worker for each hardware thread instead of each core. 0 or 1.
	 * Default 0. Environment: PINION_USE_SMT.
	 */
	uint32_t use_smt;

	/*
	 * Bytes of each worker's stack, 65536 … 1 GiB, a multiple of 4096; they
	 * are reserved, and used as far as tasks reach. 0: the process's
	 * default (`ulimit -s`). Default 0. Environment: PINION_STACK_BYTES.
	 */
	uint64_t stack_bytes;

	/*
	 * Seed of the generator that chooses the worker to steal from first;
	 * worker i uses seed ^ i * 0x9e3779b97f4a7c15. Any value. Default
	 * 0x853c49e6748fea9b. Environment: PINION_SEED.
	 */
	uint64_t seed;

	/*
	 * Microseconds that an idle CPU may take to run again: the runtime asks
	 * the kernel for it while it exists, 0 … 2000000000. It holds for the
	 * whole machine: its CPUs sleep less deeply, and draw more power; with
	 * 0 they poll, and none is given back to the host of a virtual machine.
	 * Wakes of workers become faster; nothing else changes. Needs write
	 * access to /dev/cpu_dma_latency, as root has, and an idle driver,
	 * which some virtual machines lack; without either there is one warning
	 * in `log`, and all else works. Children that the process forks keep
	 * the request, until they end or call exec. Default
	 * PINION_CPU_LATENCY_ANY: the runtime does not ask. Environment:
	 * PINION_CPU_LATENCY_US.
	 * Source: of the kernel's documents power/pm_qos_interface;
	 * docs/PERFORMANCE.md, "A wake".
	 */
	uint64_t cpu_latency_us;

	/*
	 * Allocates the runtime's memory, except its arenas, which are mapped,
	 * and the stacks of threads. NULL: the C library does. Copied. Default
	 * NULL.
	 */
	const struct pinion_allocator *allocator;

	/*
	 * Give the workers' arenas memory of the caller's. Both NULL: the
	 * library maps it. `arena_unmap` alone may be NULL: the library then
	 * leaves the memory as it is. Defaults NULL.
	 */
	pinion_arena_map_fn arena_map;
	pinion_arena_unmap_fn arena_unmap;
	void *arena_arg;

	/*
	 * Milliseconds that memory of a worker's buffers rests before it is
	 * given back to the kernel, 1 … 86400000; the worker looks once in that
	 * time, so it may take twice as long. Memory is taken, and registered
	 * with the worker's ring, in steps of 2 MiB (buffers of
	 * `small_buffer_bytes`: 256 KiB) as buffers are acquired; at the start
	 * there is only address space. 0: all of it is taken and registered
	 * when the runtime is created, and kept; so it is in any case with
	 * `arena_map`, where the administrator has set aside huge pages for all
	 * of it, and for `pool_bytes`. Default 1000. Environment:
	 * PINION_BUFFER_REST_MS.
	 * Source: docs/decisions/memory.md, "Arenas grow and shrink".
	 */
	uint64_t buffer_rest_ms;

	/* ---- metrics ---- */

	/*
	 * Absolute path of a file that has the runtime's metrics page, of at
	 * most 256 KiB, and stays when the process ends or is killed; it takes
	 * the place of an older one at once, and of an empty file. Anything
	 * else of that name is left, with no page. Mode 0600. Best in memory,
	 * as in /run: a worker that writes to it waits for its disk. It must
	 * not be cut while the runtime uses it. NULL: an anonymous file
	 * instead, which others find in /proc/PID/fd. Where it cannot be made
	 * the runtime goes on without, and `log` says so. Default NULL.
	 * Environment: PINION_METRICS_FILE; its text is used in place, as that
	 * of PINION_LANES; "none" is NULL.
	 * Source: docs/decisions/observing.md, "The page is memory, not a
	 * socket".
	 */
	const char *metrics_file;

	/*
	 * 1: the counts and histograms of metrics.h are also in a page that
	 * other processes of the same user can read, pinion-metrics(5), as
	 * `pinion top` does. 0 or 1. Default 1. Environment:
	 * PINION_METRICS_PAGE.
	 */
	uint32_t metrics_page;

	/*
	 * Events that the trace of each worker keeps, the latest ones, 32 bytes
	 * each: a power of two, 16 … 1048576; 0: there is no trace. Another
	 * ring of that length is for all other threads. The program and other
	 * processes of the same user read them: trace.h, pinion-trace(1). A
	 * task that is traced costs some 100 ns more, a request 100 ns.
	 * Default 0. Environment: PINION_TRACE_EVENTS.
	 */
	uint32_t trace_events;
};

/*
 * Writes every default; the macro passes the size this program was compiled
 * with.
 *
 * Context: any thread; never blocks.
 * Since: 0.1
 */
PINION_API void pinion_tuning_init_sized(struct pinion_tuning *tuning, uint32_t size);
#define pinion_tuning_init(tuning) \
	pinion_tuning_init_sized((tuning), (uint32_t)sizeof(struct pinion_tuning))

PINION_END_DECLS

#endif

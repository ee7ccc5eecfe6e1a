/* SPDX-License-Identifier: MIT */
/*
 * Everything a runtime can be told at creation. Each field has a default that
 * suits an ordinary machine; pinion_config_init() writes them all, so they can
 * be printed before anything is started.
 */
#ifndef PINION_CONFIG_H
#define PINION_CONFIG_H

#include <pinion/allocator.h>
#include <pinion/hooks.h>
#include <pinion/log.h>
#include <pinion/policy.h>
#include <stddef.h>
#include <stdint.h>

PINION_BEGIN_DECLS

/*
 * Shape: size-versioned; only ever appended to. Initialise with
 * pinion_config_init(), then set what should differ.
 * Owns: nothing; `log_arg` and `arena_arg` stay the caller's and must outlive
 * the runtime.
 * Since: 0.1
 */
struct pinion_config {
	/*
	 * Bytes of this struct the caller knows. Set by pinion_config_init().
	 */
	uint32_t size;

	/*
	 * Workers, 0 … 4096. 0: one per physical core this process may use, and
	 * no more than its cgroup CPU quota, rounded up. More than the allowed
	 * CPUs is legal; such workers share CPUs and are not bound.
	 * Default 0. Environment: PINION_WORKERS.
	 */
	uint32_t worker_count;

	/*
	 * One worker per hardware thread instead of per core: 0 or 1. Default
	 * 0. Environment: PINION_SMT.
	 */
	uint32_t use_smt;

	/*
	 * Of enum pinion_bind: what each worker is bound to. Cores that other
	 * runtimes of this process have are taken last, also to find a node.
	 * Never done while a CPU quota smaller than the allowed CPUs is in
	 * force, since the kernel would then throttle one core while others
	 * idle. The library owns the affinity of workers that it has bound: a
	 * worker that the kernel lets run elsewhere, since its CPU was offline,
	 * or another program does, is bound again within 100 ms of running
	 * tasks (`workers_rebound` counts). To set affinity from outside,
	 * choose none. Default core. Environment: PINION_BIND.
	 */
	uint32_t bind_workers;

	/*
	 * Submission queue entries per ring, 8 … 32768, power of two. Default
	 * 256. Environment: PINION_RING_ENTRIES.
	 */
	uint32_t ring_entries;

	/*
	 * Threads the kernel may add per ring for what would block (opening
	 * cold files), 1 … 1024. Default 16: enough to keep a disk's queue
	 * filled with inode reads, far below what an uncapped ring may start.
	 * Environment: PINION_RING_HELPERS.
	 * Source: docs/decisions/workers.md, "The kernel's helper threads stay
	 * on their worker's node".
	 */
	uint32_t ring_helper_count;

	/*
	 * Task polls per loop before completions are looked at, 1 … 65535.
	 * Default 128. Environment: PINION_BUDGET_POLLS.
	 */
	uint32_t budget_polls;

	/*
	 * Microseconds per loop before completions are looked at, 1 … 1000000.
	 * Default 500. Environment: PINION_BUDGET_US.
	 */
	uint32_t budget_us;

	/*
	 * The arena of each worker: `buffer_count` large and
	 * `small_buffer_count` small buffers, each count 1 … 65536, each size a
	 * multiple of 4096 bytes up to 256 MiB. Defaults: 1 MiB and 48 of
	 * 64 KiB. A `buffer_count` of 0, the default, means 28 and a share of
	 * 32 more that all workers divide: some 32 MiB for each worker, and
	 * 32 MiB once. Environment: PINION_BUFFER_BYTES, PINION_BUFFERS,
	 * PINION_SMALL_BUFFER_BYTES, PINION_SMALL_BUFFERS.
	 * Source: docs/decisions/memory.md, "A worker has 28 large buffers and
	 * a share of 32".
	 */
	uint32_t buffer_bytes;
	uint32_t buffer_count;
	uint32_t small_buffer_bytes;
	uint32_t small_buffer_count;

	/*
	 * One of enum pinion_io_level. Default auto. Environment:
	 * PINION_IO_LEVEL.
	 */
	uint32_t io_level;

	/*
	 * One of enum pinion_ring_sharing. Default own. Environment:
	 * PINION_RING_SHARING.
	 * Source: docs/decisions/stalls.md, "Other workers can reap the ring of
	 * a stalled worker".
	 */
	uint32_t ring_sharing;

	/* Receives messages; NULL: they are dropped. Default NULL. */
	pinion_log_fn log;
	void *log_arg;

	/*
	 * Of the generator that chooses whom to steal from first; worker i uses
	 * seed ^ i * 0x9e3779b97f4a7c15. Any value. Default 0x853c49e6748fea9b.
	 * Environment: PINION_SEED.
	 */
	uint64_t seed;

	/*
	 * One of enum pinion_queue_order. Default fifo. Environment:
	 * PINION_QUEUE_ORDER.
	 */
	uint32_t queue_order;

	/*
	 * Tasks a worker's own queue holds, 4 … 65536, power of two; half of
	 * them move to the queue all share when it is full. Default 256.
	 * Environment: PINION_QUEUE_TASKS.
	 */
	uint32_t queue_tasks;

	/*
	 * How many times in a row a worker may run the task it spawned last
	 * before others have their turn, 0 … 65535. 0: it queues like all
	 * others. Only in FIFO order. Default 3. Environment:
	 * PINION_LIFO_POLLS.
	 */
	uint32_t lifo_polls;

	/*
	 * Spawns of a worker into its own queue after which it wakes another,
	 * 1 … 65535; it does so earlier when what waits there is longer than a
	 * wake takes. Default 32. Environment: PINION_HOARD_SPAWNS.
	 */
	uint32_t hoard_spawns;

	/*
	 * Rounds through all other workers' queues before a worker gives up,
	 * 1 … 1024. Default 4. Environment: PINION_STEAL_TRIES.
	 */
	uint32_t steal_tries;

	/*
	 * Looks for new work, 30 to 50 ns apart, before a worker sleeps, where
	 * experience says that it pays, 0 … 65535. Up to four times as many
	 * where it says that these pay, and rarely sixteen times, to find out.
	 * 0: never spin. Default 200.
	 * Environment: PINION_SPIN_ITERS.
	 */
	uint32_t spin_iters;

	/*
	 * Microseconds after which a sleeping worker looks around by itself,
	 * 0 … 60000000. 0: never, nothing depends on it. A safety net whose
	 * catch is counted as park_timeout_found_work. Default 0. Environment:
	 * PINION_PARK_TIMEOUT_US.
	 */
	uint32_t park_timeout_us;

	/*
	 * How long a task may wait in the queue all share while every worker is
	 * busy with its own, microseconds, 1 … 1000000; it sets how often they
	 * look there, every `interval_min` … `interval_max` tasks (1 … 65535).
	 * Defaults 1000, 8, 255. Environment: PINION_INJECTOR_TARGET_US,
	 * PINION_INTERVAL_MIN, PINION_INTERVAL_MAX.
	 */
	uint32_t injector_target_us;
	uint32_t interval_min;
	uint32_t interval_max;

	/*
	 * How fast the average task time follows, thousandths, 1 … 999, and
	 * what it is before the first task, ns, 1 … 1000000000. Defaults 100,
	 * 50000. Environment: PINION_EWMA_ALPHA_PERMILLE, PINION_TASK_NS.
	 */
	uint32_t ewma_alpha_permille;
	uint32_t task_ns;

	/*
	 * One of enum pinion_wake_policy. Default near. Environment:
	 * PINION_WAKE.
	 */
	uint32_t wake_policy;

	/*
	 * One of enum pinion_fault_policy. Default isolate. Environment:
	 * PINION_FAULT_POLICY.
	 */
	uint32_t fault_policy;

	/*
	 * Bytes of each worker's arena set aside for the buffers of pools that
	 * are created later, 0 … 64 GiB, a multiple of 4096; they are mapped,
	 * placed and touched with the rest of it. Headroom does not count here:
	 * a sixteenth more is set aside for it, which is 4096 bytes in front of
	 * each 64 KiB. A pool with more headroom than that takes the rest out
	 * of these bytes. Default 0. Environment: PINION_POOL_BYTES.
	 */
	uint64_t pool_bytes;

	/*
	 * The memory of the workers' arenas, where it is the caller's. Both
	 * NULL: the library maps it. `arena_unmap` alone may be NULL: the
	 * memory is then simply left. Defaults NULL.
	 */
	pinion_arena_map_fn arena_map;
	pinion_arena_unmap_fn arena_unmap;
	void *arena_arg;

	/*
	 * How long tasks, and timers that are due, may wait behind a task that
	 * blocks or computes for long on their worker while another sleeps:
	 * microseconds, 0 … 60000000. Then a sleeper is woken for them. A
	 * thread looks after that, twice in this time while any worker that
	 * spawns is awake. 0: there is no such thread, and they wait until the
	 * task ends. What is for one worker alone (pinion_task_spawn_on(), and,
	 * without `ring_sharing`, completions of requests) waits in any case.
	 * Default 10000. Environment: PINION_SENTRY_US.
	 * Source: docs/decisions/stalls.md, "A watchdog finds tasks kept by a
	 * stalled worker".
	 */
	uint32_t sentry_us;

	/*
	 * Bits of enum pinion_io_feature that are not used even where the
	 * kernel has them, for tests and to keep clear of a kernel's fault.
	 * Default 0. Environment: PINION_IO_WITHOUT, a list with commas.
	 */
	uint32_t io_without;

	/*
	 * Which workers serve which lanes (lane.h), and in which order: tiers
	 * with a comma between them, each the letters h, n (or m) and l and a
	 * number of workers, which the last tier may leave out: "h:1,hn:2,hnl".
	 * Workers are numbered through the tiers; up to 4 of these; each lane
	 * must be served by one. The numbers make up `worker_count`, or have to
	 * agree with it. NULL or "": all serve all, "hnl".
	 * Default NULL. Environment: PINION_LANES, whose text is then used in
	 * place: create the runtime before changing the environment.
	 * Owns: the text is the caller's, and not needed once the runtime is
	 * created.
	 */
	const char *lanes;

	/*
	 * Of so many tasks a worker runs at least one is of a lane that waits
	 * behind others, if there is work in it, 2 … 65535; 0: never, the order
	 * of lanes is strict. What is bound to one worker has 1 in 16 in any
	 * case.
	 * Default 16. Environment: PINION_LANE_FLOOR.
	 */
	uint32_t lane_floor;

	/*
	 * Work that has waited in the low lane for so many milliseconds comes
	 * first at its worker, 0 … 86400000. Up to a quarter later than said,
	 * and never by interrupting a task. 0: it may be delayed for ever, but
	 * for `lane_floor`. Default 0. Environment: PINION_LOW_MAX_WAIT_MS.
	 */
	uint32_t low_max_wait_ms;

	/*
	 * One of enum pinion_assist: whether a worker without work in its own
	 * lanes takes one task at a time from another lane, as long as
	 * `assist_reserve` others of its tier (0 … 4096) have nothing to do.
	 * Defaults off, 1. Environment: PINION_ASSIST, PINION_ASSIST_RESERVE.
	 */
	uint32_t assist;
	uint32_t assist_reserve;

	/*
	 * So many tasks waiting in a lane are worth a warning, sent to `log`
	 * once and again only after it has fallen to half of that; 0: none. In
	 * the normal lane those count that wait in the queue that all share.
	 * Defaults 100, 0, 0. Environment: PINION_HIGH_WARN_DEPTH,
	 * PINION_NORMAL_WARN_DEPTH, PINION_LOW_WARN_DEPTH.
	 */
	uint32_t high_warn_depth;
	uint32_t normal_warn_depth;
	uint32_t low_warn_depth;

	/*
	 * One of enum pinion_polled: each worker then has a second ring
	 * (IORING_SETUP_IOPOLL), for reads and writes of up to 128 KiB past the
	 * page cache. While it has any of these in flight a worker runs what
	 * there is to run and asks the device in between, but does not sleep:
	 * shorter latencies, for a CPU that is never idle. They cannot be
	 * cancelled once begun. What the ring, the kernel or the device refuses
	 * goes the usual way. Without meaning where rings are shared
	 * (`ring_sharing`), and without io_uring. Default never. Environment:
	 * PINION_POLLED.
	 * Source: docs/decisions/rings.md, "Polled completions have a ring of
	 * their own".
	 */
	uint32_t polled;

	/*
	 * Hooks of each worker, any of them NULL, with `hook_arg` as their
	 * first argument. `before_park`: the worker has nothing to do and is
	 * about to sleep, or to find after all that it has; what it spawns is
	 * run first. `before_stop`: the last call on the thread, when all tasks
	 * are over. `on_tick`: see below. Defaults NULL.
	 */
	pinion_after_start_fn after_start;
	pinion_worker_hook_fn before_park;
	pinion_worker_hook_fn before_stop;
	pinion_worker_hook_fn on_tick;
	void *hook_arg;

	/*
	 * Milliseconds between two calls of `on_tick` on a worker, 1 …
	 * 3600000; the next is due so long after the last one began. It comes
	 * on every worker, busy or idle, where it ends a sleep, and never later
	 * than that and one loop of the worker, that is `budget_us` or the task
	 * in hand; and once more at the end, before `before_stop`. Without
	 * `on_tick` no sleep ends for it. Default 1000. Environment:
	 * PINION_TICK_INTERVAL_MS.
	 */
	uint32_t tick_interval_ms;

	/*
	 * Files that the ring of each worker can register, a power of two from
	 * 8 on, or 0: none. Those that pinion_file_open() and its kin opened
	 * for reading alone are, on rings where they have been read a few
	 * times; what finds no room is read by its descriptor, which costs some
	 * CPU.
	 * No more than RLIMIT_NOFILE allows. Default 256. Environment:
	 * PINION_REGISTERED_FILES.
	 */
	uint32_t registered_files;

	/*
	 * Bytes of each worker's stack, 65536 … 1 GiB, a multiple of 4096; it
	 * is reserved, and used as far as tasks reach. 0: the process's default
	 * (`ulimit -s`). Default 0. Environment: PINION_STACK_BYTES.
	 */
	uint64_t stack_bytes;

	/*
	 * Workers of each tier up to which a thread pool may grow
	 * (thread_pool.h), 0 … 1024; those it begins with are always fine. Each
	 * costs some KiB while it is not there. Of other runtimes no meaning.
	 * Default 0. Environment: PINION_CREW_MAX.
	 */
	uint32_t thread_pool_max;

	/*
	 * Whether jobs of admissions, and calls of pinion_call_run() and its
	 * kin, are told to `log` at level debug, each three times: as it is
	 * handed over, begins and ends. 0 or 1. Default 0. Environment:
	 * PINION_JOB_LOG.
	 */
	uint32_t job_log;

	/*
	 * The limits of admissions (admission.h) that leave theirs at 0: jobs
	 * that may be in, of each lane, 0 … 1048575, and of all, 0 … 3145725.
	 * 0: the highest; of all: the sum of these. Defaults 0. Environment:
	 * PINION_MAX_TASKS_HIGH, PINION_MAX_TASKS_NORMAL, PINION_MAX_TASKS_LOW,
	 * PINION_MAX_TASKS_TOTAL.
	 */
	uint32_t max_tasks_high;
	uint32_t max_tasks_normal;
	uint32_t max_tasks_low;
	uint32_t max_tasks_total;

	/*
	 * Reads and writes in one device at once, of all workers together, 0 …
	 * 1048575, and the bytes they ask for, 0 … 1 TiB. Both 0: found out
	 * while the device works, between `depth_min` (1 … 65536) and
	 * `depth_count_max` (1 … 1048575) requests and at most
	 * `depth_bytes_max` (64 KiB … 1 TiB) bytes; a request of more than
	 * 64 KiB counts as several. A drive with heads to move is given
	 * `depth_rotational` requests instead, 0 … 65536; 0: it is like all
	 * others. pinion_runtime_set_limits() changes the first two.
	 * Defaults 0, 0, 8, 1024, 64 MiB, 4. Environment: PINION_DEPTH,
	 * PINION_DEPTH_BYTES, PINION_DEPTH_MIN, PINION_DEPTH_MAX,
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
	 * no limit. pinion_runtime_set_limits() changes them.
	 * Defaults 0. Environment: PINION_BYTES_PER_SECOND,
	 * PINION_REQUESTS_PER_SECOND.
	 */
	uint64_t bytes_per_second;
	uint64_t requests_per_second;

	/*
	 * Milliseconds that a task may run without progress, 0 … 86400000;
	 * then it is named in `log`, once, at level warning, with its worker
	 * and lane, at most ten a second. A job makes progress by
	 * pinion_job_set_progress(). Costs a thread that looks twice in that
	 * time. 0: nobody looks. Default 0. Environment: PINION_STALL_MS.
	 */
	uint64_t stall_ms;

	/*
	 * Tasks that a worker moves into its own queue at once from the one all
	 * share: its part of those there, at least `injector_batch_min` and at
	 * most `injector_batch_max`, 1 … 65536 each, as far as there is room.
	 * Where workers serve different lanes it is one at a time. Defaults 4,
	 * 64. Environment: PINION_INJECTOR_BATCH_MIN,
	 * PINION_INJECTOR_BATCH_MAX.
	 */
	uint32_t injector_batch_min;
	uint32_t injector_batch_max;

	/*
	 * Tasks of each lane that may wait in the queue of that lane which all
	 * workers share, up to 2^40; 0: no limit. While so many do, a spawn
	 * into the lane from outside is refused with -EAGAIN, and so is a call,
	 * also that of another runtime's task; other lanes keep their room.
	 * Tasks that workers spawn are never refused, though they take room
	 * there, nor are jobs and work items, which have limits of their own.
	 * Timers, requests and tasks for one worker wait elsewhere. Default
	 * 65536. Environment: PINION_INJECTOR_TASKS.
	 */
	uint64_t injector_tasks;

	/*
	 * Of a hundred workers that serve the same lanes, how many look for
	 * others' work at once, 1 … 100; one may always. A rule of thumb: for
	 * an instant there may be one more. Default 50. Environment:
	 * PINION_SEARCHERS_PERCENT.
	 */
	uint32_t searchers_percent;

	/*
	 * Microseconds of work in a worker's own queue, by its average task,
	 * that are worth waking somebody for, 0 … 1000000; so many spawns as
	 * `hoard_spawns` are in any case. Default 20, about what a wake costs
	 * both sides. Environment: PINION_WAKE_WORTH_US.
	 */
	uint32_t wake_worth_us;

	/*
	 * Of enum pinion_io_priority, for reads and writes of the high and of
	 * the low lane that ask for none by `priority`; of normal they have the
	 * thread's. A request's lane is that of its task's flags, else that of
	 * the task that submits it. Defaults none and be7: nobody waits for low
	 * work, and be7 yields to all others but is served. Environment:
	 * PINION_IO_PRIORITY_HIGH, PINION_IO_PRIORITY_LOW.
	 * Source: ioprio_set(2); docs/decisions/devices.md, "Low requests get a
	 * low I/O priority".
	 */
	uint32_t io_priority_high;
	uint32_t io_priority_low;

	/*
	 * Has workers that serve lower lanes make way for those that do not: so
	 * much is a thread nicer for each lane that the lowest it serves is
	 * below that of the topmost tier, 19 at most. With "h:1,hn:2,hnl:1" and
	 * 5 the second tier's have 5 more than the first's, the third's 10. 20:
	 * they run only where no other thread, of whatever process, wants the
	 * CPU: SCHED_IDLE. For tiers that share CPUs. All of it is beyond what
	 * the thread has that creates the runtime, or resizes the thread pool:
	 * that should not be a worker of a lower tier. Where the kernel
	 * refuses, threads stay as they are. 0 … 20, default 0. Environment:
	 * PINION_TIER_NICE.
	 * Source: sched(7); docs/PERFORMANCE.md, "A thread pool on fewer CPUs
	 * than it has threads".
	 */
	uint64_t class_nice;

	/*
	 * Where the runtime's memory comes from, but for its arenas, which are
	 * mapped, and stacks of threads; NULL: from the C library. Copied.
	 * Default NULL.
	 */
	const struct pinion_allocator *allocator;

	/*
	 * Microseconds that completions may wait in a worker's rings while it
	 * is awake and takes none out, 0 … 86400000000: it is in a long task,
	 * and unless `ring_sharing` lets others nobody can do it instead. Where
	 * it has to ask a device for them (`polled`), what is in flight waits
	 * as long as it does not ask. Beyond, that is counted (`cq_stalls`,
	 * `cq_stall_us` of the counters) and told once in `log`, at level
	 * warning, with the task, at most ten a second together with what
	 * `stall_ms` tells. Costs a thread that looks twice in that time,
	 * workers nothing. 0: nobody looks. Default 0.
	 * Environment: PINION_CQ_STALL_US.
	 */
	uint64_t cq_stall_us;

	/*
	 * Microseconds that an idle CPU may take to run again, asked of the
	 * kernel for as long as the runtime is there, 0 … 2000000000. It holds
	 * for the whole machine: its CPUs sleep less deeply, and draw more
	 * power; with 0 they poll, and none is given back to the host of a
	 * virtual machine. The wake of a worker is the sooner for it, which is
	 * all that changes. Needs write access to /dev/cpu_dma_latency, as root
	 * has, and an idle driver, which some virtual machines lack; without
	 * either that is told once in `log`, at level warning, and all else
	 * works. Children that a process forks ask for it as well,
	 * until they end or call exec. Default PINION_CPU_LATENCY_ANY: nothing
	 * is asked for. Environment: PINION_CPU_LATENCY_US.
	 * Source: of the kernel's documents power/pm_qos_interface;
	 * docs/PERFORMANCE.md, "A wake".
	 */
	uint64_t cpu_latency_us;
};

/*
 * Writes every default. Call it as pinion_config_init(&config): the macro
 * passes the size this program was compiled with.
 *
 * Context: any thread; never blocks.
 * Since: 0.1
 */
PINION_API void pinion_config_init_sized(struct pinion_config *config, uint32_t size);
#define pinion_config_init(config) \
	pinion_config_init_sized((config), (uint32_t)sizeof(struct pinion_config))

/*
 * Overwrites fields from the PINION_* variables named above. The library reads
 * the environment here and nowhere else. A PINION_* variable that nobody reads
 * is a warning to `config->log`, with the name nearest to it: once in a
 * process, by the first call that has a log.
 *
 * Errors: -EINVAL: a variable has a value outside its field's range; the
 * message sent to `config->log` names it. Fields before it are already set.
 * Context: any thread; not while another thread changes the environment.
 * Since: 0.1
 */
PINION_API int pinion_config_from_env(struct pinion_config *config);

PINION_END_DECLS

#endif

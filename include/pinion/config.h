/* SPDX-License-Identifier: MIT */
/*
 * Everything a runtime can be told at creation. Each field has a default that
 * suits an ordinary machine; pinion_config_init() writes them all, so they can
 * be printed before anything is started.
 */
#ifndef PINION_CONFIG_H
#define PINION_CONFIG_H

#include <pinion/log.h>
#include <stdint.h>

PINION_BEGIN_DECLS

/* How workers do I/O. */
enum pinion_io_level {
	PINION_IO_AUTO = 0,	/* io_uring where it can be had, else the fallback */
	PINION_IO_FALLBACK = 1, /* pread in the worker, never io_uring */
	PINION_IO_RING = 2,	/* io_uring or an error from pinion_runtime_create */
};

/* In which order a worker runs the tasks in its own queue. */
enum pinion_queue_order {
	/*
	 * Oldest first, after the one spawned last (`lifo_polls`); others steal
	 * the older half.
	 */
	PINION_QUEUE_FIFO = 0,
	/*
	 * Newest first; others steal the oldest, one at a time. For trees of
	 * tasks (fork and join), whose breadth would overflow the queue.
	 */
	PINION_QUEUE_LIFO = 1,
};

/* What a task that fails does to the others. */
enum pinion_fault_policy {
	PINION_FAULT_ISOLATE = 0, /* nothing */
	PINION_FAIL_FAST = 1,	  /* as if pinion_runtime_stop() had been called */
};

/* Which of the workers that sleep is woken for work that any may do. */
enum pinion_wake_policy {
	PINION_WAKE_NEAR = 0,	/* same L3 as the waker, same node, any; then lowest */
	PINION_WAKE_LOWEST = 1, /* lowest index, so that few workers stay warm */
	PINION_WAKE_ROTATE = 2, /* the next one round, so that all take part */
};

/*
 * Shape: size-versioned; only ever appended to. Initialise with
 * pinion_config_init(), then set what should differ.
 * Owns: nothing but `log_arg`, which stays the caller's and must outlive the
 * runtime.
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
	 * Bind each worker to its core: 0 or 1. Never done while a CPU quota
	 * smaller than the allowed CPUs is in force, since the kernel would
	 * then throttle one core while others idle. Default 1. Environment:
	 * PINION_BIND.
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
	 * Source: docs/DECISIONS.md, "io-wq is capped".
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
	 * Source: docs/DECISIONS.md, "Large buffers".
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

	/* Zero. Keeps the pointers below aligned. */
	uint32_t reserved;

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
	 * Looks for new work, some 50 ns apart, before a worker sleeps, where
	 * experience says that it pays, 0 … 65535. 0: never spin. Default 200.
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
 * the environment here and nowhere else.
 *
 * Errors: -EINVAL: a variable has a value outside its field's range; the
 * message sent to `config->log` names it. Fields before it are already set.
 * Context: any thread; not while another thread changes the environment.
 * Since: 0.1
 */
PINION_API int pinion_config_from_env(struct pinion_config *config);

PINION_END_DECLS

#endif

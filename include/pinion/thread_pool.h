/* SPDX-License-Identifier: MIT */
/*
 * A thread pool: a runtime whose number of workers may change while it works.
 * By default it has no rings, for jobs that compute for long or block, so that
 * they delay no completions of the runtime that does I/O; with an `io_level` of
 * its configuration it has rings, and is a read pool. It is a runtime like any
 * other, made by configuration: pinion_task_spawn() with a lane in the task's
 * flags, pinion_call_run() and all other calls work on it.
 *
 * Its workers are of three classes: those for high run high jobs only, those
 * for medium high before medium, those for low all, low last; strictly.
 */
#ifndef PINION_THREAD_POOL_H
#define PINION_THREAD_POOL_H

#include <pinion/runtime.h>

PINION_BEGIN_DECLS

enum pinion_thread_pool_preset {
	PINION_THREAD_POOL_CONSERVATIVE = 0, /* half of the CPUs left to others */
	PINION_THREAD_POOL_BALANCED = 1,     /* the default: 1, 2, 1 */
	PINION_THREAD_POOL_AGGRESSIVE = 2,   /* most of the CPUs */
};

/*
 * Workers of each class: `high` and `medium` 0 … 1024, `low` 1 … 1024, since at
 * least one worker has to run low jobs.
 * Since: 0.1
 */
struct pinion_thread_pool_sizes {
	uint32_t high;
	uint32_t medium;
	uint32_t low;
};

/*
 * Writes the sizes of a preset on a machine of `cpu_count` CPUs; 0: of this
 * one.
 *
 * Conservative: 1, a quarter of the CPUs, a quarter, each at least 1. Balanced:
 * 1, 2, 1. Aggressive: 2, half of the CPUs and at least 2, half and at least 1.
 *
 * Context: any thread; may read /sys.
 * Errors: -EINVAL: no such preset. Those of finding out the CPUs.
 * Source: the founding document of the worker pool, "Sizing".
 * Since: 0.1
 */
PINION_API int pinion_thread_pool_sizes_init(
	struct pinion_thread_pool_sizes *out_sizes, uint32_t preset, uint32_t cpu_count);

/*
 * Overwrites sizes from PINION_THREAD_POOL_HIGH, PINION_THREAD_POOL_MEDIUM,
 * PINION_THREAD_POOL_LOW; where one is not set, from WORKER_POOL_HIGH,
 * WORKER_POOL_MEDIUM, WORKER_POOL_LOW.
 *
 * Context: any thread; not while another thread changes the environment.
 * Errors: -EINVAL: a value is no number, or out of range; the message sent to
 * `log`, which may be NULL, names the variable, and no size is changed.
 * Since: 0.1
 */
PINION_API int pinion_thread_pool_sizes_from_env(
	struct pinion_thread_pool_sizes *sizes, pinion_log_fn log, void *log_arg);

/*
 * Writes the defaults of a thread pool: those of pinion_config_init(), but no
 * io_uring, the smallest arenas, and workers that are not bound to cores.
 *
 * Context: any thread; never blocks.
 * Since: 0.1
 */
PINION_API void pinion_thread_pool_config_init_sized(struct pinion_config *config, uint32_t size);
#define pinion_thread_pool_config_init(config) \
	pinion_thread_pool_config_init_sized((config), (uint32_t)sizeof(struct pinion_config))

/*
 * Writes the defaults of a thread pool's tuning: those of pinion_tuning_init(),
 * but a strict order of lanes, a warning at 100 waiting jobs in any lane, and
 * no warning of long jobs.
 *
 * Context: any thread; never blocks.
 * Since: 0.1
 */
PINION_API void pinion_thread_pool_tuning_init_sized(struct pinion_tuning *tuning, uint32_t size);
#define pinion_thread_pool_tuning_init(tuning) \
	pinion_thread_pool_tuning_init_sized((tuning), (uint32_t)sizeof(struct pinion_tuning))

/*
 * Starts a thread pool; to be ended like any runtime. `config` may be NULL: as
 * pinion_thread_pool_config_init(); so may its `tuning`: as
 * pinion_thread_pool_tuning_init(). Its `lanes` and `worker_count` are not
 * used: they follow from `sizes`; NULL: balanced.
 *
 * Context and Errors: as pinion_runtime_create(); -EINVAL also for sizes out of
 * range, with a message that names the field and its value.
 * Since: 0.1
 */
PINION_API int pinion_thread_pool_create(const struct pinion_config *config,
	const struct pinion_thread_pool_sizes *sizes, struct pinion_runtime **out_runtime);

/*
 * Resizes a thread pool to `sizes`, larger or smaller, while it works. New
 * workers have begun when this returns. Workers that are too many take no
 * further job; their waiting jobs go to the others, in order or not. Each
 * leaves when its current job, and everything its jobs have begun to wait for,
 * has ended. No job is lost or run twice. With rings the same holds for
 * requests: a worker leaves when its requests in flight have ended, those that
 * their tasks submit there among them, and its ring goes with it; a new worker
 * has a ring of its own.
 *
 * A job for one worker (pinion_task_spawn_on()) that has left runs on the first
 * worker of low. pinion_runtime_worker_count() stays the number of all that
 * there may be. Buffers of pinion_buffer_acquire() have to be released before
 * the job ends.
 *
 * Context: a thread that is no worker of any runtime; sleeps until the workers
 * have left.
 * Errors: -EINVAL: `sizes` is NULL or out of range; a message names the field
 * and its value in the latter case. -ERANGE: more of a class than it began
 * with, and than `thread_pool_max` of its tuning. -EOPNOTSUPP: no thread pool,
 * or one with `ring_sharing`. -EBUSY: another resize is under way. -ESHUTDOWN:
 * it is drained or stopped, or about to be. -EDEADLK: on a worker thread of any
 * runtime. -ECHILD: as pinion_task_spawn(). Those of starting a worker,
 * pinion_runtime_create()'s; where the thread pool has rings a new worker has
 * one, or the call fails, whatever `io_level` is. After an error nothing has
 * changed.
 * Since: 0.1
 */
PINION_API int pinion_thread_pool_resize(
	struct pinion_runtime *thread_pool, const struct pinion_thread_pool_sizes *sizes);

/*
 * Writes the sizes that the thread pool was created with or resized to. During
 * a resize: of a class that becomes smaller, those before.
 *
 * Context: any thread.
 * Errors: -EOPNOTSUPP: no thread pool.
 * Since: 0.1
 */
PINION_API int pinion_thread_pool_get_sizes(
	const struct pinion_runtime *thread_pool, struct pinion_thread_pool_sizes *out_sizes);

PINION_END_DECLS

#endif

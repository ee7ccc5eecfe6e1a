/* SPDX-License-Identifier: MIT */
/*
 * A pool: buffers of one size, allocated once and then handed round by workers
 * and any other thread. Acquire and release never allocate, and from a thread
 * with a cache of its own, as workers have, they touch no memory that others
 * touch.
 *
 * A thread gets the buffer that it released last, while it is warm. Free
 * buffers are found wherever they are: in the thread's own cache, outside of
 * all caches, in the caches of others. So -EAGAIN means that at one instant
 * inside the call no buffer was free.
 */
#ifndef PINION_POOL_H
#define PINION_POOL_H

#include <pinion/allocator.h>
#include <pinion/buffer.h>
#include <pinion/log.h>
#include <pinion/wait.h>
#include <stdbool.h>

PINION_BEGIN_DECLS

struct pinion_pool;

enum pinion_pool_flags {
	/* Zeroes each buffer when it is released, headroom included. */
	PINION_POOL_ZERO = 1,
	/*
	 * Takes all rights from the pages of free buffers, so that a touch
	 * faults: for finding mistakes. Two system calls for each use. Has no
	 * effect, with a warning, where buffers are parts of huge pages that
	 * the administrator reserved.
	 */
	PINION_POOL_GUARD = 2,
};

/*
 * Shape: size-versioned; only ever appended to. Initialise with
 * pinion_pool_config_init(), then change fields.
 * Since: 0.1
 */
struct pinion_pool_config {
	/* Bytes of this struct the caller knows. */
	uint32_t size;

	/*
	 * Caches that hold buffers from the start, 0 … 4096. With a runtime 0,
	 * which means one for each of its workers, or that number. Without one
	 * at least 1; threads that attach get them. Default 0.
	 */
	uint32_t worker_count;

	/*
	 * More caches, empty at first, for threads that attach, 0 … 4096.
	 * Default 4.
	 */
	uint32_t thread_count;

	/*
	 * Buffers that a cache holds, 1 … 65536. Default 4. Buffers of another
	 * node go home in batches of this many, or 64, when a worker or an
	 * attached thread releases them, and earlier when the worker is idle.
	 * Source: 4 to 8 keep most uses local; more keep buffers from others.
	 */
	uint32_t local_count;

	/*
	 * Buffers in all, 1 … 16777216, and no fewer than caches for workers.
	 * 0: as pinion_pool_recommend() says for no requests in flight. Fewer
	 * than worker_count times local_count are legal, and warned about: some
	 * caches then stay empty. Default 0.
	 */
	uint32_t buffer_count;

	/*
	 * Bytes of each buffer, a multiple of 4096, up to 256 MiB. Default
	 * 64 KiB.
	 */
	uint32_t buffer_bytes;

	/*
	 * Bytes in front of each buffer, beyond `buffer_bytes`, a multiple of
	 * 4096, up to 16 MiB: room before the data that is read into it, such
	 * as for a chunk's prefix. Default 4096.
	 */
	uint32_t headroom_bytes;

	uint32_t flags; /* enum pinion_pool_flags; default 0 */

	/*
	 * Receives messages; NULL: the runtime's receives them, if there is
	 * one. Default NULL. `log_arg` must outlive the pool.
	 */
	pinion_log_fn log;
	void *log_arg;

	/*
	 * Allocates what the pool keeps about its buffers; the buffers' memory
	 * is mapped or an arena's. NULL: the runtime's allocator, if there is
	 * one, otherwise the C library. Copied. Default NULL.
	 */
	const struct pinion_allocator *allocator;
};

PINION_API void pinion_pool_config_init_sized(struct pinion_pool_config *config, uint32_t size);
#define pinion_pool_config_init(config) \
	pinion_pool_config_init_sized((config), (uint32_t)sizeof(struct pinion_pool_config))

/*
 * Returns how many buffers keep `worker_count` workers busy that have
 * `depth_count` requests in flight, all together: a quarter more than their
 * caches hold, and at least the requests and two more for each worker; rounded
 * up to the same number for each worker, so that the memory of each holds as
 * many. Saturates.
 *
 * Context: any thread.
 * Since: 0.1
 */
PINION_API uint32_t pinion_pool_recommend(
	uint32_t worker_count, uint32_t local_count, uint32_t depth_count);

/*
 * Returns how many buffers all workers' caches hold when full. Saturates.
 * Since: 0.1
 */
PINION_API uint32_t pinion_pool_config_local_capacity(const struct pinion_pool_config *config);

/*
 * `peak_bytes` and `headroom_bytes_total` of struct pinion_pool_info as they
 * will be of such a pool without a runtime, exactly. 0 for an invalid one.
 * Since: 0.1
 */
PINION_API uint64_t pinion_pool_config_peak_bytes(const struct pinion_pool_config *config);
PINION_API uint64_t pinion_pool_config_headroom_bytes_total(
	const struct pinion_pool_config *config);

/*
 * The most that `mapped_bytes` of struct pinion_pool_info will be of such a
 * pool without a runtime: the two figures above, rounded up to 2 MiB, as on
 * huge pages. On small pages it will be their sum. 0 for an invalid one.
 * Since: 0.1
 */
PINION_API uint64_t pinion_pool_config_mapped_bytes_max(const struct pinion_pool_config *config);

/*
 * Makes a pool and all its buffers.
 *
 * With a runtime the buffers are cut from its workers' arenas, each worker's
 * share from its own, so they are on its node and registered with its ring; set
 * `pool_bytes` of the runtime's configuration to a worker's share of
 * `peak_bytes` to have room. Without a runtime they are a mapping of their own,
 * on huge pages where those are available.
 *
 * Owns: `config` is copied; NULL: every default. The pool belongs to the caller
 * until pinion_pool_destroy(), which comes before that of its runtime. Memory
 * cut from an arena returns to it only if nothing was cut since.
 * Context: any thread; blocks, allocates.
 * Errors: -EINVAL: a field is out of range, the message names it. -E2BIG: the
 * struct is newer than the library and an unknown field is set. -ENOMEM: the
 * message has the bytes available and the bytes asked for. -ECHILD: the runtime
 * belongs to the process that this one was forked from.
 * Since: 0.1
 */
PINION_API int pinion_pool_create(struct pinion_runtime *runtime,
	const struct pinion_pool_config *config, struct pinion_pool **out_pool);

/*
 * Adds an owner: the pool needs one more call of pinion_pool_destroy(). Returns
 * the same pool.
 *
 * Context: any thread that holds the pool; never blocks.
 * Since: 0.1
 */
PINION_API struct pinion_pool *pinion_pool_share(struct pinion_pool *pool);

/*
 * Frees the pool, if the caller was its last owner. NULL is accepted. It comes
 * before pinion_runtime_destroy() of its runtime, which refuses until then. A
 * call more than there are owners aborts, with a message.
 *
 * Context: any thread, the last one while no other call is under way.
 * Errors: -EBUSY: buffers are in use, or waits for one are under way; nothing
 * has happened, and the messages name the last holders. -ECHILD: as for create.
 * Since: 0.1
 */
PINION_API int pinion_pool_destroy(struct pinion_pool *pool);

/*
 * Gives the calling thread a cache of its own until pinion_pool_detach().
 * Workers of the pool's runtime always have one. When a thread ends without
 * detaching, its cache stays taken; others find the buffers in it.
 *
 * Context: any thread but those workers'; never blocks. A thread's first attach
 * allocates some 300 bytes, which the thread keeps until it ends.
 * Errors: -ENOMEM: it could not. -EALREADY: the thread has a cache. -EAGAIN:
 * all caches are taken, see `thread_count`. -EMFILE: the thread is attached to
 * 8 pools. -ECHILD.
 * Since: 0.1
 */
PINION_API int pinion_pool_attach(struct pinion_pool *pool);

/*
 * Gives the cache back, and its buffers to all threads.
 *
 * Errors: -EPERM: the thread is not attached. -ECHILD.
 * Since: 0.1
 */
PINION_API int pinion_pool_detach(struct pinion_pool *pool);

/*
 * Takes a buffer, if one is free.
 *
 * Context: any thread; never allocates. Blocks only while another thread, too,
 * finds free buffers in the caches of others alone.
 * Errors: -EAGAIN: at one instant inside the call none was free. -ECHILD.
 * Since: 0.1
 */
PINION_API int pinion_pool_try_acquire(struct pinion_pool *pool, struct pinion_buffer *out_buffer);

/*
 * Takes a buffer, and waits until `deadline_ns` on the clock of
 * pinion_clock_now_ns(), if none is free; UINT64_MAX: no deadline. Waits of
 * threads and tasks are served in the order in which they began, with the
 * buffer just released.
 *
 * Context: a thread that is no worker of any runtime; blocks.
 * Errors: -ETIME: none until then. -ESHUTDOWN: pinion_pool_close() was called,
 * or the pool's runtime is being stopped; free buffers can still be taken.
 * -EDEADLK: on a worker of the pool's runtime; on a worker of another, unless a
 * buffer is free: use pinion_pool_acquire_async(). -ECHILD.
 * Since: 0.1
 */
PINION_API int pinion_pool_acquire_wait(
	struct pinion_pool *pool, uint64_t deadline_ns, struct pinion_buffer *out_buffer);

/*
 * A task's wait for a buffer.
 *
 * Shape: embeddable; set `wait.task.run` and `wait.deadline_ns`, zero the rest.
 * Owns: as pinion_wait.
 * Since: 0.1
 */
struct pinion_pool_wait {
	struct pinion_wait wait;
	/* Output, when `wait.result` is 0: the task's own from then on. */
	struct pinion_buffer buffer;
	struct pinion_pool *private_pool;
	uint64_t private_begin_ns;
};

/*
 * Waits for a buffer in a task: the wait's task runs as soon as it has one, at
 * the latest at its deadline. `wait.result`: 0, -ETIME, -ECANCELED as in
 * pinion_wait; -ESHUTDOWN: pinion_pool_close() was called, or the pool's
 * runtime is being stopped.
 *
 * Context: a task on a worker of `runtime`, which may be another than the
 * pool's; never blocks or allocates.
 * Errors: -EPERM: not on a worker of it. -EINVAL: a field of `wait.wait` is not
 * as pinion_wait requires. -EBUSY: the wait is under way already. -ESHUTDOWN:
 * the runtime is being stopped. -ECHILD.
 * Since: 0.1
 */
PINION_API int pinion_pool_acquire_async(
	struct pinion_runtime *runtime, struct pinion_pool *pool, struct pinion_pool_wait *wait);

/*
 * Ends all waits for buffers of this pool, also those that begin later, with
 * -ESHUTDOWN. Buffers can still be taken without waiting, and be released.
 *
 * Context: any thread; never blocks.
 * Since: 0.1
 */
PINION_API void pinion_pool_close(struct pinion_pool *pool);

/*
 * Gives a buffer back and clears the handle.
 *
 * Context: any thread, also another than the one that took it; never allocates.
 * A system call for a wait that is served; another, once, for a buffer that a
 * thread with a cache took and another thread releases.
 * Errors: each is a mistake of the caller's, reported by a message that names
 * the buffer's last holder, and has no effect. -EALREADY: the buffer was
 * released before, by this handle or a copy. -EBUSY: a request that uses it is
 * in flight. -EINVAL: not a buffer of this pool. -ECHILD. Of two threads that
 * release the same handle in the same instant one gets an error.
 * Since: 0.1
 */
PINION_API int pinion_pool_release(struct pinion_pool *pool, struct pinion_buffer *buffer);

/*
 * Returns the address of the buffer's bytes if the handle is good, otherwise
 * NULL, with a message: for code that is handed a buffer and wants to check it.
 * The whole buffer is `pinion_pool_buffer_bytes` long and may hold old bytes of
 * others; a chunk says which are valid.
 *
 * Context: any thread.
 * Since: 0.1
 */
PINION_API uint8_t *pinion_pool_bytes(struct pinion_pool *pool, const struct pinion_buffer *buffer);

/*
 * Zeroes the whole buffer, headroom included, in a way that no compiler leaves
 * out.
 *
 * Errors: as pinion_pool_release().
 * Since: 0.1
 */
PINION_API int pinion_pool_clear(struct pinion_pool *pool, const struct pinion_buffer *buffer);

/*
 * Return the size of each buffer and of the room in front of it: calls of a few
 * nanoseconds, for code that asks for each buffer that it uses.
 *
 * Context: any thread.
 * Since: 0.1
 */
PINION_API uint32_t pinion_pool_buffer_bytes(const struct pinion_pool *pool);
PINION_API uint32_t pinion_pool_headroom_bytes(const struct pinion_pool *pool);

/*
 * How large a pool is. None of it changes while the pool is there.
 *
 * Shape: size-versioned; pass sizeof(*out_info).
 * Since: 0.1
 */
struct pinion_pool_info {
	/* As configured; a 0 there is replaced by its meaning. */
	uint32_t worker_count;
	uint32_t buffer_count;
	uint32_t buffer_bytes;
	uint32_t headroom_bytes;
	/* The size that was asked for: buffer_count * buffer_bytes. */
	uint64_t peak_bytes;
	/* Bytes beyond that: buffer_count * headroom_bytes. */
	uint64_t headroom_bytes_total;
	/*
	 * Bytes of memory that the pool takes, size and headroom. With a
	 * runtime they are cut from the arenas; without one, on huge pages,
	 * they are rounded up to 2 MiB.
	 */
	uint64_t mapped_bytes;
};

/*
 * Writes the sizes of `pool` to *out_info.
 *
 * Context: any thread; never blocks.
 * Since: 0.1
 */
PINION_API void pinion_pool_get_info(
	const struct pinion_pool *pool, struct pinion_pool_info *out_info, size_t size);

/*
 * Counts since the creation, and how many buffers are free now. Each number is
 * a moment's reading; they are exact while no call uses the pool.
 *
 * Shape: size-versioned; pass sizeof(*out_stats).
 * Since: 0.1
 */
struct pinion_pool_stats {
	uint64_t local_hits; /* buffers taken from the own cache */
	uint64_t refills;    /* times a cache took some that were in no cache */
	uint64_t spills;     /* times a cache gave some up */
	uint64_t steals;     /* times a thread took the free ones of another's cache */
	uint64_t outside;    /* buffers taken by threads without a cache */
	uint64_t exhausted;  /* tries that found none free; a call that waits tries again */
	uint64_t misuses;    /* releases and uses refused for a mistake */
	/* Free buffers now: all of them, and those in no cache. */
	uint64_t free_count;
	uint64_t shared_count;
	/*
	 * Near 0. Every 16th time that none was free the library checks whether
	 * a buffer had been free for 10 ms; this counts the times that it had:
	 * its thread had no CPU while it gave the buffer back, or the library
	 * has a fault.
	 */
	uint64_t false_nulls;
};

/*
 * Writes the numbers of `pool` to *out_stats.
 *
 * Context: any thread; never blocks. Counting takes longer the more buffers
 * there are.
 * Since: 0.1
 */
PINION_API void pinion_pool_get_stats(
	const struct pinion_pool *pool, struct pinion_pool_stats *out_stats, size_t size);

/*
 * Counts the free buffers of one cache, with those that are about to go home
 * from there. The caches of workers come first, then those of attached threads;
 * 0 for a cache that does not exist.
 *
 * Context: any thread; as pinion_pool_get_stats().
 * Since: 0.1
 */
PINION_API uint32_t pinion_pool_available_local(const struct pinion_pool *pool, uint32_t cache);

/* ---- buffers that go back by themselves ---- */

/* The library's, for PINION_AUTO_BUFFER. */
struct pinion_auto_buffer {
	struct pinion_pool *pool;
	struct pinion_buffer buffer;
};

static inline void pinion_auto_buffer_release(struct pinion_auto_buffer *automatic)
{
	if (automatic->buffer.bytes != NULL) {
		pinion_pool_release(automatic->pool, &automatic->buffer);
	}
}

/*
 * Declares `name`, a pointer to an empty handle of `pool_`; the buffer in it is
 * released when the scope is left, by whatever path. To keep a buffer, copy the
 * handle and clear this one.
 *
 *     PINION_AUTO_BUFFER(buffer, pool);
 *     int rc = pinion_pool_try_acquire(pool, buffer);
 *
 * Since: 0.1
 */
#define PINION_AUTO_BUFFER(name, pool_) \
	__attribute__((cleanup( \
		pinion_auto_buffer_release))) struct pinion_auto_buffer name##_automatic = { \
		(pool_), {NULL, 0, 0}}; \
	struct pinion_buffer *const name = &name##_automatic.buffer

struct pinion_buffer_task;

/*
 * The work of a task with a buffer, as pinion_task_fn; `buffer` is the task's
 * own. It is released when this returns, unless the function has cleared the
 * handle to keep the buffer.
 *
 * Owns: `task` is the caller's again as soon as this is entered; `buffer` is
 * good until it returns.
 */
typedef int (*pinion_buffer_task_fn)(struct pinion_buffer_task *task, struct pinion_buffer *buffer);

/*
 * A task that owns a buffer: it is given back when the task has run, or is
 * cancelled.
 *
 * Shape: embeddable; all fields are set by pinion_buffer_task_init().
 * Owns: as pinion_task.
 * Since: 0.1
 */
struct pinion_buffer_task {
	struct pinion_task task; /* to be spawned */
	pinion_buffer_task_fn run;
	void (*cancel)(struct pinion_buffer_task *task); /* may be NULL */
	struct pinion_pool *pool;
	struct pinion_buffer buffer;
};

/*
 * Makes the task, which takes the buffer over: the handle is cleared. If the
 * task is never spawned the buffer is still in `task->buffer`.
 *
 * Context: any thread.
 * Since: 0.1
 */
PINION_API void pinion_buffer_task_init(struct pinion_buffer_task *task, struct pinion_pool *pool,
	struct pinion_buffer *buffer, pinion_buffer_task_fn run,
	void (*cancel)(struct pinion_buffer_task *task));

PINION_END_DECLS

#endif

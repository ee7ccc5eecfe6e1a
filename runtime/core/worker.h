/* SPDX-License-Identifier: MIT */
/*
 * A worker and the step it repeats.
 *
 * A worker owns everything it touches on the hot path: queue, ring, arena,
 * counters. Others reach it in three ways: they put tasks into its inbox, they
 * steal from its queue, they end its sleep. Its loop is pin_worker_step() and
 * nothing else; whoever drives it, threads, tests or a simulator, calls that.
 *
 * One step runs up to a budget of tasks, then submits and reaps the ring; when
 * neither found anything it sleeps, by the protocol told in sched/parker.h.
 * A task comes from the first of these that has one:
 *
 *     injector    every N-th time and at least every millisecond (tuner.h)
 *     LIFO slot   what this worker spawned last; three in a row at most
 *     deque       its own queue, in turns with
 *     ready       completions and what else must run here; never shared
 *     inbox       from others, for this worker
 *     injector    from outside, for any worker
 *     others'     the older half of another worker's deque (search.h)
 *
 * The end: the gate is closed, and a worker that is about to sleep finds that
 * all that was ever admitted, spawned and submitted has also been run. Reading
 * first every "run" and then every "admitted", with counters that only grow,
 * makes equality proof: nothing was left at the moment between the two. (An
 * admission that is forgone was too much while it stood, so it cannot make
 * them equal too early.)
 * [END-1] a worker counts its last task (release), fences, and only then reads
 * the others' counters; of two workers that finish at the same time one comes
 * second and sees all. Without the fence both could miss the other's count.
 */
#ifndef PIN_CORE_WORKER_H
#define PIN_CORE_WORKER_H

#include "runtime/core/worker_state.h"

#include <pinion/timer.h>

enum pin_step {
	PIN_STEP_RAN,  /* did something, or was woken: step again */
	PIN_STEP_EXIT, /* the runtime has ended */
};

/* [own] each thread's; only through the function below. */
extern _Thread_local struct pin_worker *pin_worker_self PIN_TLS_INITIAL;

/* The worker that runs the calling code, NULL on any other thread. */
static inline struct pin_worker *pin_worker_current(void)
{
	return pin_worker_self;
}

/* In a forked child: the thread that lives on is no worker there. */
void pin_worker_forget(void);

/* Before its thread starts; index, place and shared are set. -ENOMEM. */
int pin_worker_init(struct pin_worker *worker);

/* Thread entry: sets itself up, counts itself started, steps until the end. */
void *pin_worker_main(void *worker);

/* Frees what init and main set up, after its thread was joined. */
void pin_worker_fini(struct pin_worker *worker);

enum pin_step pin_worker_step(struct pin_worker *worker);

/*
 * Queues a task on the calling worker, where others may steal it. -ESHUTDOWN.
 */
int pin_worker_spawn(struct pin_worker *worker, struct pinion_task *task);

/* Queues `count` tasks likewise. -ESHUTDOWN: none. */
int pin_worker_spawn_batch(
	struct pin_worker *worker, struct pinion_task *const *tasks, uint32_t count);

/* As pinion_should_yield(). */
bool pin_worker_should_yield(struct pin_worker *worker);

/*
 * As pin_worker_spawn(), but never refused: when the runtime is being stopped
 * the task is given to its `cancel`.
 */
void pin_worker_respawn(struct pin_worker *worker, struct pinion_task *task);

/* Queues a task for any worker; `worker` is the calling one. -ESHUTDOWN. */
int pin_worker_spawn_shared(struct pin_worker *worker, struct pinion_task *task);

/* Queues a task that `target` and nobody else is to run. -ESHUTDOWN. */
int pin_worker_spawn_on(
	struct pin_worker *worker, struct pin_worker *target, struct pinion_task *task);

/* Starts a claimed timer on the calling worker. */
void pin_worker_timer_start(struct pin_worker *worker, struct pinion_timer *timer);

/* Tells `target` of a cancelled timer of its; `worker` calls, or NULL. */
void pin_worker_timer_cancelled(
	struct pin_worker *worker, struct pin_worker *target, struct pinion_timer *timer);

/*
 * Queues a task on the calling worker and nowhere else: the continuation of
 * something that owns the worker's buffers. Never refused.
 */
void pin_worker_spawn_bound(struct pin_worker *worker, struct pinion_task *task);

/* As pinion_read_submit(), on the calling worker. */
int pin_worker_read(struct pin_worker *worker, struct pinion_request *request);
int pin_worker_open(struct pin_worker *worker, struct pin_open *open);

/* NULL when none is free; `bytes` at most the configuration's buffer_bytes. */
uint8_t *pin_worker_buffer_acquire(struct pin_worker *worker, size_t bytes, uint32_t *out_index);

/*
 * As above, but when none is free `waiter` joins the queue: the first buffer
 * released while it is at the front is its own, and its task runs. False: it
 * waits; it must stay in place.
 */
bool pin_worker_buffer_await(
	struct pin_worker *worker, size_t bytes, struct pin_buffer_waiter *waiter);

/*
 * Gives a buffer to the first in the queue for its size, or back to the pool.
 */
void pin_worker_buffer_release(struct pin_worker *worker, uint8_t *bytes, uint32_t index);

/* Begins to stop: refuses work, cancels what is queued, wakes everybody. */
void pin_shared_stop(struct pin_shared *shared);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A worker and the step it repeats.
 *
 * A worker owns everything it touches on the hot path: queue, ring, arena,
 * counters. Others reach it in two ways: they put work into the injector that
 * all workers share, and they end its sleep. Its loop is pin_worker_step() and
 * nothing else; whoever drives it, threads, tests or a simulator, calls that.
 *
 * One step runs up to a budget of tasks, then submits and reaps the ring; when
 * neither found anything it sleeps, by the protocol told in sched/parker.h.
 * Completions become tasks on the `ready` list, which is never shared: a
 * callback runs on the worker that submitted its request.
 *
 * The end: the gate is closed, and a worker that is about to sleep finds that
 * all that was ever admitted, spawned and submitted has also been run. Reading
 * first every "run" and then every "admitted", with counters that only grow,
 * makes equality proof: nothing was left at the moment between the two.
 * [END-1] a worker counts its last task (release), fences, and only then reads
 * the others' counters; of two workers that finish at the same time one comes
 * second and sees all. Without the fence both could miss the other's count.
 */
#ifndef PIN_CORE_WORKER_H
#define PIN_CORE_WORKER_H

#include "runtime/core/task.h"
#include "runtime/host/kernel.h"
#include "runtime/host/topology.h"
#include "runtime/io/file.h"
#include "runtime/io/request.h"
#include "runtime/io/ring.h"
#include "runtime/memory/arena.h"
#include "runtime/memory/pool.h"
#include "runtime/sched/deque.h"
#include "runtime/sched/gate.h"
#include "runtime/sched/idle.h"
#include "runtime/sched/injector.h"
#include "runtime/sched/parker.h"

#include <pinion/config.h>
#include <pinion/runtime.h>

struct pin_worker;

/* What all workers of a runtime have in common. */
struct pin_shared {
	/* [const] after start */
	const struct pin_host *host;
	struct pin_log log;
	struct pinion_config config;
	struct pin_kernel kernel;
	bool is_fallback;
	uint32_t worker_count;
	struct pin_worker *workers;
	/* [W:any R:any], each in its own line or rarely written */
	struct pin_gate gate PIN_CACHE_ALIGNED;
	struct pin_injector injector PIN_CACHE_ALIGNED;
	struct pin_idle idle PIN_CACHE_ALIGNED;
	struct pin_atomic_u32 started_count PIN_CACHE_ALIGNED; /* futex of the creator */
	struct pin_atomic_u32 is_stopping;		       /* set once, before the close */
	struct pin_atomic_u32 has_ended;		       /* set once, by the last worker */
};

enum pin_step {
	PIN_STEP_RAN,  /* did something, or was woken: step again */
	PIN_STEP_EXIT, /* the runtime has ended */
};

/* Who gets a buffer, now or later. */
struct pin_buffer_waiter {
	struct pin_link link;
	struct pinion_task *task; /* bound to the worker when its turn comes */
	uint8_t *bytes;
	uint32_t index;
};

struct pin_worker {
	/* [const] after start */
	struct pin_shared *shared;
	uint32_t index;
	bool is_bound;
	bool is_registered;
	int start_error;
	struct pin_cpu_place place;
	bool has_place;
	pthread_t thread;
	bool has_thread;
	/* [W:any R:any] */
	struct pin_parker parker PIN_CACHE_ALIGNED;
	/* [W:owner R:any] */
	struct pin_meter meter;
	/* [own] */
	struct pin_deque deque PIN_CACHE_ALIGNED;
	struct pin_list ready; /* tasks bound to this worker, completions first of all */
	uint32_t poll_count;
	bool cancel_sent;
	struct pin_ring ring;
	struct pin_arena arena;
	struct pin_pool buffers;
	struct pin_pool small_buffers;
	struct pin_list buffer_queue; /* waiters, oldest first */
	struct pin_list small_buffer_queue;
	struct pin_device_cache devices;
};

_Static_assert(offsetof(struct pin_worker, meter) % PIN_CACHE_LINE == 0, "own line");
_Static_assert(offsetof(struct pin_worker, deque) % PIN_CACHE_LINE == 0, "own line");

/* The worker that runs the calling code, NULL on any other thread. */
struct pin_worker *pin_worker_current(void);

/* Thread entry: sets itself up, counts itself started, steps until the end. */
void *pin_worker_main(void *worker);

/* Frees what pin_worker_main set up, after its thread was joined. */
void pin_worker_fini(struct pin_worker *worker);

enum pin_step pin_worker_step(struct pin_worker *worker);

/* Queues a task on the calling worker itself. -ESHUTDOWN. */
int pin_worker_spawn(struct pin_worker *worker, struct pinion_task *task);

/* Queues a task for any worker; `worker` is the calling one. -ESHUTDOWN. */
int pin_worker_spawn_shared(struct pin_worker *worker, struct pinion_task *task);

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

/*
 * The wake rule: after work was published, wakes one sleeper if there is any.
 */
void pin_shared_wake_one(struct pin_shared *shared, struct pin_worker *waker);
void pin_shared_wake_all(struct pin_shared *shared);

#endif

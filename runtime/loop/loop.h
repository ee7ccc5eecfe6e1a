/* SPDX-License-Identifier: MIT */
/*
 * A worker's thread and the step that it repeats, a section for each file of
 * this folder: thread.c, driven.c, loop.c, park.c, retire.c.
 */
#ifndef PIN_LOOP_LOOP_H
#define PIN_LOOP_LOOP_H

#include "runtime/worker/state.h"

/* ---- the thread ---- */

/*
 * A worker and the step it repeats.
 *
 * A worker owns everything it touches on the hot path: queue, ring, arena,
 * counters. Others reach it in three ways: they put tasks into its inbox, they
 * steal from its queue, they end its sleep. Its loop is pin_worker_step() and
 * nothing else; threads, tests and the simulator all call that.
 *
 * One step runs up to a budget of tasks, then submits and reaps the ring; when
 * neither found anything it sleeps, by the protocol of queue/parker.h. A task
 * comes from the first of these that has one:
 *
 *     injector    every N-th time and at least every millisecond
 *                 (policy/queue_interval.h)
 *     LIFO slot   what this worker spawned last; three in a row at most
 *     deque       its own queue, in turns with
 *     ready       completions and what else must run here; never shared
 *     inbox       from others, for this worker
 *     injector    from outside, for any worker
 *     others'     the older half of another worker's deque (steal.c)
 *
 * Where there are lanes, tasks of ended urgent requests come before all these
 * (next_task.c).
 */

/* In a forked child: the thread that lives on is no worker there. */
void pin_worker_forget(void);

/* Before its thread starts; index, place and shared are set. -ENOMEM. */
int pin_worker_init(struct pin_worker *worker);

/* Thread entry: sets itself up, counts itself started, steps until the end. */
void *pin_worker_main(void *worker);

/*
 * The parts of that, for driven.c as well. Begin sets `start_error`, and makes
 * the calling thread the worker's; open follows where there is none.
 */
void pin_worker_begin(struct pin_worker *worker, struct pin_thread *record);
void pin_worker_open(struct pin_worker *worker);

/* Calls `steps` until it returns, again after each task that unwinds it. */
void pin_worker_guard(struct pin_worker *worker, struct pin_guard *guard, void (*steps)(void *arg));

/* The last call on its thread, which is the worker's no more. */
void pin_worker_end(struct pin_worker *worker);

/*
 * After its thread was joined, which had left: ready for another. Counters,
 * arena and queues stay.
 */
void pin_worker_reset(struct pin_worker *worker);

/* Frees what init and main set up, after its thread was joined. */
void pin_worker_fini(struct pin_worker *worker);

/* ---- a worker whose thread is the embedder's ---- */

/*
 * A driven worker: the only one of a runtime that starts no thread for it. The
 * thread that created the runtime is its owner, and runs the worker's steps in
 * calls of its own, between which it does whatever it likes, such as sleeping
 * on the worker's wake set with a loop of its own. In a call it is the worker;
 * between calls it is a thread from outside. driven.c has the protocol.
 */

/* By the owner: all that a worker's thread does before its first step. */
int pin_driven_start(struct pin_worker *worker);

/* Whether the calling thread is the owner. */
bool pin_driven_is_owner(const struct pin_worker *worker);

/*
 * By the owner, outside of any worker's code: runs up to `max_tasks`, and waits
 * until `deadline_ns` for the first; 0: not at all. How many it ran, `cancel`
 * functions among them; it may return earlier, and then the wake set is
 * readable, or a signal has come. -ESHUTDOWN: the runtime has ended.
 */
int pin_driven_poll(struct pin_worker *worker, uint32_t max_tasks, uint64_t deadline_ns);

/*
 * By the owner, in the same way, after the end of the runtime has begun: runs
 * all that is left. -ETIME.
 */
int pin_driven_finish(struct pin_worker *worker, uint64_t deadline_ns);

/* When no thread can wake it any more: the end of its wake set. */
void pin_driven_fini(struct pin_worker *worker);

/* ---- binding to CPUs ---- */

/*
 * Keeps each worker on the CPUs that it was bound to.
 *
 * When the last CPU a thread may use goes offline, or leaves its cpuset, the
 * kernel lets the thread run on all others, and older kernels leave it so when
 * the CPU is back: the worker would run far from its memory, and share a CPU
 * with another. So each worker compares its affinity with what it was bound to,
 * ten times a second while it runs tasks, and binds itself again: one system
 * call for some 100 ms of work. A worker that sleeps does so when it next runs
 * tasks.
 *
 * The library owns the affinity of its workers: what another program sets for
 * them beyond these CPUs does not last. Fewer of the CPUs of a node are left as
 * they are. `bind_workers` none leaves all to others.
 *
 * A CPU that is still gone is tried again each time; the log says so once, and
 * once when the worker is back. All of it on the worker's own thread.
 */

/* Before the worker touches its memory, so that this is near. */
void pin_binding_start(struct pin_worker *worker);

/* Before it starts once more: it is not bound. */
void pin_binding_reset(struct pin_worker *worker);

/* Apart: between two of these are 100 ms. */
void pin_binding_look(struct pin_worker *worker);

static inline bool pin_binding_is_due(const struct pin_worker *worker)
{
	PIN_DCHECK(worker->has_place || worker->binding.look_ns == PIN_NO_DEADLINE);
	return PIN_UNLIKELY(worker->now_ns >= worker->binding.look_ns);
}

/* ---- the loop ---- */

/*
 * The step a worker repeats: the one loop body that threads, the simulator and
 * the model tests all run.
 */

enum pin_step {
	PIN_STEP_RAN,  /* did something, or was woken: step again */
	PIN_STEP_EXIT, /* the runtime has ended, or the worker has left */
};

enum pin_step pin_worker_step(struct pin_worker *worker);

/*
 * The rest of a step whose batch was cut short by a task that did not return:
 * others are woken, completions collected, as ever.
 */
void pin_worker_end_loop(struct pin_worker *worker);

/* As pinion_worker_should_yield(). */
bool pin_worker_should_yield(struct pin_worker *worker);

/* ---- sleeping ---- */

/*
 * A worker goes to sleep: on its futex, or in its ring if anything is in
 * flight there, until it is woken, a completion comes, or a timer is due.
 *
 * queue/parker.h [PARK-1] [PARK-2] and worker/wake.h [SEARCH-1] have the
 * protocol. A worker about to sleep may also find that the runtime has come to
 * its end [END-1]; park.c has that.
 */

/* Everything that could make this worker run; the re-check of [PARK-1]. */
bool pin_park_has_work(const struct pin_worker *worker);

/*
 * After a fence: if all that was ever admitted is over, notifies all waiters,
 * unless another worker has; true then, too. [END-1] [END-2]
 */
bool pin_park_look_for_end(struct pin_shared *shared);

/*
 * Sleeps, or not if there is work. A driven worker returns at once, and sleeps
 * until the other.
 */
void pin_park(struct pin_worker *worker);
void pin_park_get_up(struct pin_worker *worker);

/* Its steps, for a worker that leaves: "leaving" below. */

/*
 * Chooses how to sleep, and makes ready for it. False: there is room in the
 * ring for requests that wait for that.
 */
bool pin_park_choose_mode(struct pin_worker *worker, enum pin_park_state *out_mode);

/* Between pin_parker_prepare() and pin_park_finish(). */
void pin_park_sleep_until(
	struct pin_worker *worker, enum pin_park_state mode, uint64_t deadline_ns);

/* Awake again, slept or not. */
void pin_park_finish(struct pin_worker *worker);

/*
 * Instead of that, by a worker that has found nothing to do and has to poll a
 * device (extra_rings.c): makes way for a moment. It is no longer relied on as
 * a searcher, or has seen what for and is one still.
 */
void pin_park_undo(struct pin_worker *worker);

/* ---- leaving ---- */

/*
 * How a worker leaves while its runtime goes on: when a thread pool becomes
 * smaller (api/internal.h). Called on the worker. retire.c has the protocol.
 */

static inline bool pin_retire_is_asked(const struct pin_worker *worker)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	return pin_load_acquire_u32(&worker->service) != PIN_SERVICE_IN; /* [RETIRE-2] */
}

/* By the resizer, of a worker whose thread was joined: every doorbell rang. */
static inline bool pin_retire_has_rung(const struct pin_worker *worker)
{
	uint32_t still_due =
		worker->rings_due - pin_load_acquire_u32(&worker->rung); /* [RETIRE-3] */

	PIN_DCHECK(still_due <= INT32_MAX); /* none rings that the worker has not counted */
	return still_due == 0;
}

/* Gives to others what they may run. Again and again is fine. */
void pin_retire_hand_over(struct pin_worker *worker);

/* After that. False: something is bound to it. */
bool pin_retire_try_leave(struct pin_worker *worker);

/* Until there is something for it alone. */
void pin_retire_sleep(struct pin_worker *worker);

#endif

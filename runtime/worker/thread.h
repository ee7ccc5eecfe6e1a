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
 * neither found anything it sleeps, by the protocol told in queue/parker.h.
 * A task comes from the first of these that has one:
 *
 *     injector    every N-th time and at least every millisecond
 *                 (policy/queue_interval.h)
 *     LIFO slot   what this worker spawned last; three in a row at most
 *     deque       its own queue, in turns with
 *     ready       completions and what else must run here; never shared
 *     inbox       from others, for this worker
 *     injector    from outside, for any worker
 *     others'     the older half of another worker's deque (steal.h)
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
 * [END-2] it says so in a word (RMW, release) and wakes who sleeps on that; who
 * ends the runtime by a deadline looks at the word (acquire) and sleeps while
 * it is not set. Without the wake that sleep would last until the deadline.
 * When it is set there is nothing to wait for but the threads' way out.
 * Of several that find so at the same time exactly one was the first to set it,
 * and does all this; the others just leave.
 */
#ifndef PIN_WORKER_THREAD_H
#define PIN_WORKER_THREAD_H

#include "runtime/worker/state.h"

/* In a forked child: the thread that lives on is no worker there. */
void pin_worker_forget(void);

/* Before its thread starts; index, place and shared are set. -ENOMEM. */
int pin_worker_init(struct pin_worker *worker);

/* Thread entry: sets itself up, counts itself started, steps until the end. */
void *pin_worker_main(void *worker);

/*
 * After its thread was joined, which had left: ready for another. Counters,
 * arena and queues stay.
 */
void pin_worker_reset(struct pin_worker *worker);

/* Frees what init and main set up, after its thread was joined. */
void pin_worker_fini(struct pin_worker *worker);

#endif

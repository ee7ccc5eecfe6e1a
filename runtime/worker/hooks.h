/* SPDX-License-Identifier: MIT */
/*
 * The configuration's hooks: what the embedder has done on each worker's own
 * thread, and when.
 *
 *     after_start   in the worker's start, before it counts itself started
 *     on_tick       before a batch of tasks, when it is due, and at the end
 *     before_park   before the worker publishes that it sleeps, so that what
 *                   the hook spawns is found by the re-check of [PARK-1]
 *     before_stop   behind the last step
 *
 * The tick's time is a deadline of the worker's sleep as timers are: where no
 * tick is asked for it is PIN_NO_DEADLINE, and costs the loop one comparison.
 *
 * A hook is no task, so nothing keeps the runtime from ending while one runs
 * [END-1]. Therefore a thread in a hook counts as one from outside: what it
 * spawns passes the gate, and is refused once that is closed.
 *
 * Called on the worker.
 */
#ifndef PIN_WORKER_HOOKS_H
#define PIN_WORKER_HOOKS_H

#include "runtime/worker/state.h"

/* after_start; its error. */
int pin_hooks_start(struct pin_worker *worker);

/* on_tick, which is due. */
void pin_hooks_tick(struct pin_worker *worker);

static inline bool pin_hooks_is_tick_due(const struct pin_worker *worker)
{
	return PIN_UNLIKELY(worker->now_ns >= worker->tick_ns);
}

/* For what lands out of a hook: the thread is the worker's again. */
void pin_hooks_leave(struct pin_worker *worker);

/* before_park. */
void pin_hooks_park(struct pin_worker *worker);

/* The last on_tick, then before_stop; no task is left, none can come. */
void pin_hooks_stop(struct pin_worker *worker);

#endif

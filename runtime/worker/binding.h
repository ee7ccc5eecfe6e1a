/* SPDX-License-Identifier: MIT */
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
#ifndef PIN_WORKER_BINDING_H
#define PIN_WORKER_BINDING_H

#include "runtime/worker/state.h"

/* Before the worker touches its memory, so that this is near. */
void pin_binding_start(struct pin_worker *worker);

/* Before it starts once more: it is not bound. */
void pin_binding_reset(struct pin_worker *worker);

/* Apart: between two of these are 100 ms. */
void pin_binding_look(struct pin_worker *worker);

static inline bool pin_binding_is_due(const struct pin_worker *worker)
{
	return PIN_UNLIKELY(worker->now_ns >= worker->binding.look_ns);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Knots: workers that block in tasks, and wait for each other.
 *
 * A task that blocks until the workers of another runtime have done something
 * is blocked for good if these wait for its own runtime in turn, and neither
 * has anything left to run. Nobody but the library sees that, so it ends one of
 * the waits, which gets -EDEADLK.
 *
 * All blocked workers of the process are listed, with the runtime they wait
 * for. A runtime is stuck if some of its workers block and
 *
 *     all it was ever given is over, but for the tasks that block, or
 *     none of its workers runs anything: each blocks, and none helps (help.h)
 *
 * and none is about to leave (retire.h), unless in its own wait: somebody may
 * wait for that, and it is no task.
 *
 * A knot is a set of stuck runtimes all whose blocked workers wait for
 * runtimes of that set. Who waits for a runtime of nobody knows which is in no
 * knot, nor is who was served already. So a wait that is ended this way has had
 * nobody left in its runtimes to serve it; what threads from outside were still
 * going to do is not seen.
 *
 * What completes a knot is that a worker blocks, or that one runs out of work
 * before it goes to sleep. So both look:
 *
 *     one that blocks                 one that goes to sleep
 *     a  count itself as blocked      1  count its tasks as run
 *     b  seq_cst fence                2  seq_cst fence
 *     c  look at the others' counts   3  somebody blocks: take the lock, look
 *
 * [KNOT-1] b against 2: of two fences one is first; either c sees that nothing
 * is left to run, or 3 sees that somebody blocks. Two that block look under the
 * same lock.
 *
 * Only the topmost wait of a worker can be ended; that of one who destroys a
 * runtime only where the knot has no other. A call that waits for a task
 * of its own cannot be ended at all, since the task is in the other's queue
 * (execute.h); so it looks whether it would complete a knot before it begins.
 *
 * Off the hot path: who sleeps pays for one load while nobody blocks.
 * Lock: rank 4, those of waiters come after it.
 */
#ifndef PIN_CORE_KNOT_H
#define PIN_CORE_KNOT_H

#include "runtime/core/worker_state.h"

/* Whose wait is ended first, of a knot. */
enum pin_blocked_end {
	PIN_BLOCKED_NEVER = 0, /* what it waits for is in a queue */
	PIN_BLOCKED_LAST,      /* its caller cannot be told */
	PIN_BLOCKED_FIRST,
};

/* One worker that blocks; its frames hold it. */
struct pin_blocked {
	struct pin_blocked *next; /* [lock:knots] older ones */
	struct pin_blocked *previous;
	/* [const] while it is listed */
	struct pin_worker *worker;
	const struct pin_shared *target; /* whom it waits for; NULL: not known */
	struct pin_waiter *waiter;
	struct pin_blocked *below; /* of the same worker */
	bool is_in_task;	   /* not in a hook */
	bool helps;
	enum pin_blocked_end end;
	bool has_failed; /* [lock:knots] */
};

/* [W:lock R:any] of those that block */
extern struct pin_atomic_u32 pin_knot_blocked_count;

/*
 * On its worker, when its wait has begun; ends one of a knot, perhaps this one.
 */
void pin_knot_enter(struct pin_blocked *blocked);

/*
 * Likewise, by one that is about to give a task to `target`. False: it would
 * complete a knot in which nobody ran that, and is not listed.
 */
bool pin_knot_enter_call(struct pin_blocked *blocked);

/* When its wait is over. */
void pin_knot_leave(struct pin_blocked *blocked);

/* Steps 2 and 3 by one that is about to sleep; the fence is the caller's. */
void pin_knot_look(const struct pin_host *host);

static inline void pin_knot_note_idle(const struct pin_shared *shared)
{
	if (PIN_UNLIKELY(pin_load_relaxed_u32(&pin_knot_blocked_count) != 0)) { /* [KNOT-1] */
		pin_knot_look(shared->host);
	}
}

/* In a child after fork(2), which has none of them. */
void pin_knot_forget(void);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The private parts of the public objects that are built from tasks, a section
 * each: budgets, channels, futures, groups, work.
 */
#ifndef PIN_TASK_INTERNAL_H
#define PIN_TASK_INTERNAL_H

#include "runtime/base/atomic.h"
#include "runtime/queue/ready_fd.h"
#include "runtime/worker/wait.h"

#include <pinion/budget.h>
#include <pinion/channel.h>
#include <pinion/future.h>
#include <pinion/group.h>
#include <pinion/work.h>

/* ---- budgets ---- */

/*
 * The lock of a budget's waiters protects all of it, so one step takes several
 * kinds: no task holds a part of its amounts while it waits for the rest, and
 * there is no deadlock. A waiter's demand is the address of its amounts.
 */
struct pin_budget {
	struct pin_waiters waiters;
	struct pinion_runtime *runtime;	      /* [const] may be NULL */
	uint32_t kind_count;		      /* [const] */
	uint64_t totals[PINION_BUDGET_KINDS]; /* [const] */
	/* [lock:waiters] at most the totals */
	uint64_t available[PINION_BUDGET_KINDS];
};

_Static_assert(sizeof(struct pin_budget) <= sizeof(struct pinion_budget), "fits");
_Static_assert(sizeof(struct pinion_budget) == 192, "released size");

/* ---- channels ---- */

/*
 * What a channel consists of: a ring of messages and two queues of waiters, of
 * senders and of receivers, all under one lock.
 *
 * Invariant: when the lock is free, no sender waits while there is room, no
 * receiver while there is a message, and no thread when it is closed. A taken
 * message makes room, and a sent one a message, so both queues are served in
 * turns until neither has anything to do: settle(). Only between a wait's
 * beginning, which serves one queue, and the call of settle() that follows it
 * on the same thread, this may be otherwise for a moment.
 *
 * What a waiter demands is an address: of its message, or where it goes.
 *
 * A receiver in a loop that waits in epoll has the readiness descriptor instead
 * of a place in the queue: settle() signals it for a message that no receiver
 * waits for, and for the close; a receive that finds no message, in whatever
 * way, resets it.
 */

struct pin_channel {
	struct pin_waiters senders;
	struct pin_waiters receivers;	/* with the lock of the senders */
	struct pinion_runtime *runtime; /* [const] may be NULL */
	uint8_t *messages;		/* [const], the bytes in them [lock:senders] */
	size_t message_bytes;		/* [const] */
	uint32_t capacity;		/* [const] */
	/* [lock:senders] */
	uint32_t oldest;
	uint32_t count;
	bool is_closed;
	struct pin_ready_fd ready_fd; /* signalled while there is something to receive */
};

_Static_assert(sizeof(struct pin_channel) <= sizeof(struct pinion_channel), "fits");
_Static_assert(sizeof(struct pinion_channel) == 256, "released size");

/* ---- futures ---- */

/*
 * What a future consists of. All of it is protected by the lock of its waiters,
 * also the mere question whether it is done: a thread that gets "yes" has had
 * that lock after the setter, which touches the future no more.
 */

struct pin_future {
	struct pin_waiters waiters;
	struct pinion_runtime *runtime; /* [const] may be NULL */
	/* [lock:waiters] */
	pinion_future_release_fn release; /* NULL: not detached */
	uint8_t value[PINION_FUTURE_BYTES];
	int32_t error; /* of a done future; 0: the value counts */
	bool is_done;
};

static inline struct pin_future *pin_future_of(struct pinion_future *future)
{
	return (struct pin_future *)(void *)future->private_;
}

_Static_assert(sizeof(struct pin_future) <= sizeof(struct pinion_future), "fits");
_Static_assert(sizeof(struct pinion_future) == 128, "released size");
_Static_assert(sizeof(struct pinion_future_callback) == 96, "released size");
_Static_assert(sizeof(struct pin_waiter) <= sizeof(((struct pinion_future_callback *)0)->private_),
	"a waiter fits into a callback");

/* ---- groups ---- */

/*
 * What a group consists of: the count of its tasks that are not over, and those
 * who wait until that is 0.
 *
 * A thread that learns that it is 0 may free the group. So it becomes 0 only
 * under the lock of the waiters, which a reader takes as well: the last task
 * lets go of the lock, and that was its last touch. All other changes of the
 * count are without the lock.
 *
 *     task                                joiner
 *     count > 1: CAS to count - 1         lock; count is 0: it is over
 *     count is 1: lock, subtract, serve,  else queue, unlock
 *                 unlock
 *
 * [GROUP-1] a task ends (RMW, acq_rel) -> the next (RMW, acq_rel), and the last
 * by the lock -> joiner: it sees what all of them wrote, and the first failure.
 */

struct pin_group {
	struct pin_waiters waiters;
	struct pinion_runtime *runtime;	     /* [const] */
	uint32_t flags;			     /* [const] */
	struct pin_atomic_u32 is_cancelled;  /* [W:any R:any] set once */
	struct pin_atomic_u32 first_failure; /* [W:any R:any] its errno; 0: none */
	struct pin_atomic_u64 task_count;    /* [W:any R:any] not over; 0: under the lock */
};

_Static_assert(sizeof(struct pin_group) <= sizeof(struct pinion_group), "fits");
_Static_assert(sizeof(struct pinion_group) == 128, "released size");
_Static_assert(sizeof(struct pinion_group_task) == 64, "released size");

/* ---- work ---- */

/*
 * The states of a work item, and the events that move it from one to the next.
 *
 * A work item has one task, which can be in one queue at a time, and one word,
 * its state. Whatever happens to it is an event; pin_work_next() is the table
 * of what each event makes of each state, and change(), in work.c, the only
 * function that writes the word. The thread that makes the step into SCHEDULED
 * queues the task; the thread that makes the step into ENDED calls `end`, or
 * returns that to its caller where it is a cancel. Steps are atomic, so each of
 * these happens once.
 *
 * Invariants: 1. the task is in a queue, or about to be, iff the state is
 * SCHEDULED or CANCELLED; 2. `run` is under way iff it is RUNNING, NOTIFIED or
 * RUNNING_CANCELLED; 3. nothing leaves ENDED.
 *
 * No refusal comes after scheduling: a waker that finds the work idle first
 * reserves a place in the runtime, and gives it back if another was faster.
 * Were the state changed first and the task refused then, a wake in between
 * would have relied on a run that never comes.
 *
 * Progress: lock-free. Wake and cancel: any thread. The other events are of the
 * worker that took the task from its queue.
 */

/*
 * [WORK-1] wake (CAS, acq_rel) -> enter (CAS, acq_rel): the run that follows a
 * wake sees what the waker wrote before. So a wake writes the word also where
 * it leaves the state as it is; a mere look would order nothing.
 * [WORK-2] leave (CAS, acq_rel) -> the next enter, or the cancel of idle work
 * (CAS, acq_rel): what a run wrote is seen there, whichever thread that is on.
 * Between two of these are read-modify-writes only, which pass on earlier
 * releases.
 */
enum pin_work_state {
	PIN_WORK_NONE,		    /* of no work: a struct that was never initialised */
	PIN_WORK_IDLE,		    /* by a wake to SCHEDULED, by a cancel to ENDED */
	PIN_WORK_SCHEDULED,	    /* by its worker to RUNNING, or ENDED where that stops */
	PIN_WORK_CANCELLED,	    /* scheduled, and cancelled: by its worker to ENDED */
	PIN_WORK_RUNNING,	    /* by its worker to IDLE, SCHEDULED or ENDED */
	PIN_WORK_NOTIFIED,	    /* running, and woken: by its worker to SCHEDULED or ENDED */
	PIN_WORK_RUNNING_CANCELLED, /* by its worker to ENDED */
	PIN_WORK_ENDED,
	PIN_WORK_STATES, /* their number */
};

enum pin_work_event {
	PIN_WORK_WAKE,
	PIN_WORK_CANCEL,
	PIN_WORK_ENTER,	  /* the worker has the task */
	PIN_WORK_STOP,	  /* as ENTER, while its runtime is being stopped */
	PIN_WORK_IS_IDLE, /* the run is over: it waits for a wake */
	PIN_WORK_IS_BUSY, /* the run is over: it wants another */
	PIN_WORK_IS_DONE, /* the run is over: it was the last */
	PIN_WORK_EVENTS,  /* their number */
};

/* PIN_WORK_NONE where the event cannot happen. */
enum pin_work_state pin_work_next(enum pin_work_state state, enum pin_work_event event);

/* What `private_` of a work item holds. */
struct pin_work_word {
	struct pin_atomic_u32 state; /* [W:any R:any] one of enum pin_work_state */
};

_Static_assert(sizeof(struct pin_work_word) <= sizeof(((struct pinion_work *)0)->private_),
	"the state fits into a work item");
_Static_assert(sizeof(struct pinion_work) == 64, "released size");

#endif

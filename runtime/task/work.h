/* SPDX-License-Identifier: MIT */
/*
 * The states of a work item, and what moves it from one to the next.
 *
 * A work item has one task, which can stand in one queue at a time, and one
 * word, its state. Whatever happens to it is an event; pin_work_next() is the
 * table of what each event makes of each state, and change(), in work.c, the
 * only function that writes the word. Who makes the step into SCHEDULED queues
 * the task; who makes the step into ENDED calls `end`, or tells its caller
 * where that is a cancel. Steps are atomic, so each of these happens once.
 *
 * Invariants: 1. the task is in a queue, or about to be, iff the state is
 * SCHEDULED or CANCELLED; 2. `run` is under way iff it is RUNNING, NOTIFIED or
 * RUNNING_CANCELLED; 3. nothing leaves ENDED.
 *
 * Nobody schedules what may be refused: who finds the work idle first reserves
 * a place in the runtime, and gives it back if another was faster. Were the
 * state changed first and the task refused then, a wake in between would have
 * relied on a run that never comes.
 *
 * Progress: lock-free. Wake and cancel: any thread. The other events are of the
 * worker that took the task from its queue.
 */
#ifndef PIN_TASK_WORK_H
#define PIN_TASK_WORK_H

#include "runtime/base/atomic.h"

#include <pinion/work.h>

/*
 * [WORK-1] wake (CAS, acq_rel) -> enter (CAS, acq_rel): the run that follows a
 * wake sees what the waker wrote before. So a wake writes the word also where
 * it leaves the state as it is; a mere look would order nothing.
 * [WORK-2] leave (CAS, acq_rel) -> the next enter, or the cancel of idle work
 * (CAS, acq_rel): what a run wrote is seen there, whichever thread that is on.
 * Between two of these are read-modify-writes only, which pass on what was
 * released before them.
 */
enum pin_work_state {
	PIN_WORK_NONE,		    /* of no work: one that was never initialised */
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
	PIN_WORK_STOP,	  /* likewise, but its runtime is being stopped */
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

/* SPDX-License-Identifier: MIT */
/*
 * Bugs planted in the product for a mutant: the same run with one of them must
 * fail, else the simulator is blind to that kind of mistake.
 *
 * The files product_*.c compile the real sources with calls replaced that a
 * defect spoils. Without a defect they are the real sources.
 */
#ifndef SIM_DEFECT_H
#define SIM_DEFECT_H

#include <stdbool.h>
#include <stdint.h>

enum defect {
	DEFECT_NONE,
	DEFECT_WAKE_SKIPPED,	       /* a parked worker is sometimes not claimed */
	DEFECT_NO_RECHECK,	       /* the shared queue is not looked at before a sleep */
	DEFECT_COMPLETION_LOST,	       /* a completion is sometimes dropped */
	DEFECT_TASK_TWICE,	       /* a task is sometimes queued twice */
	DEFECT_SHORT_READ_TAKEN,       /* a short read counts as whole */
	DEFECT_DOORBELL_NOT_ARMED,     /* a ring sleep without its doorbell */
	DEFECT_SHARED_QUEUE_STARVES,   /* the shared queue is looked at too rarely */
	DEFECT_CREDIT_UNBOUNDED,       /* more requests than completion entries */
	DEFECT_COMPLETION_MISCOUNTED,  /* a completion sometimes counts twice */
	DEFECT_RING_LEAKS,	       /* a ring is not given back */
	DEFECT_WATCHDOG_UNTOLD,	       /* the watchdog does not know of the saved timers */
	DEFECT_WATCHDOG_BLIND,	       /* it wakes no worker */
	DEFECT_EXTERNAL_LEFT,	       /* no worker takes over from a stalled one */
	DEFECT_MESSAGE_LOST,	       /* a request's message is sometimes dropped */
	DEFECT_DEADLINE_NOT_AWAITED,   /* a sleep does not end for a deadline */
	DEFECT_SUCCESSOR_UNTOLD,       /* the last searcher does not look at the lanes */
	DEFECT_FLOOR_LOST,	       /* no lane has a turn for being passed by */
	DEFECT_AGING_LOST,	       /* nor for waiting */
	DEFECT_ASSIST_UNASKED,	       /* no worker is woken to help */
	DEFECT_ASSIST_BLIND,	       /* a sleep without a check for lanes that need help */
	DEFECT_REMOTE_REAP_LOST,       /* no worker reaps a stalled worker's ring */
	DEFECT_DOORBELL_NOT_REARMED,   /* nor after others were in the ring */
	DEFECT_LEAVES_WITH_WAKE,       /* a worker that leaves keeps a wake to itself */
	DEFECT_LEAVES_WITH_TASKS,      /* what it has queued goes with it */
	DEFECT_CREDIT_KEPT,	       /* an idle worker keeps credit beyond a new limit */
	DEFECT_PARKS_IN_NO_RING,       /* one without rings seems to sleep in its ring */
	DEFECT_POLLED_NOT_ASKED,       /* a worker that polls a device sleeps all the same */
	DEFECT_POLLED_REFUSAL_LOST,    /* unpolled transfers are not done at all */
	DEFECT_COMMANDS_UNWATCHED,     /* a sleep beside another ring ends for the first only */
	DEFECT_CALL_WHILE_SEARCHING,   /* others rely on who waits in a call */
	DEFECT_COMMAND_REFUSAL_LOST,   /* what a ring does not take is not done at all */
	DEFECT_COMMAND_STATUS_IGNORED, /* what a device says of a command is not heard */
	DEFECT_CANCEL_NOT_REPEATED,    /* a cancel that missed is taken to have hit */
	DEFECT_INTERVAL_UNBOUNDED,     /* a worker that learns from tasks forgets the bounds */
	DEFECT_WAIT_UNTOLD,	       /* a worker whose wait is served sleeps on */
	DEFECT_WAKE_UNSENT,	       /* a spawn from outside sometimes wakes no worker */
	DEFECT_CLAIM_UNTOLD,	       /* a worker claimed for a wake is sometimes not woken */
	DEFECT_GIVES_BACK_REGISTERED,  /* memory goes that a ring still knows */
	DEFECT_SPAWN_UNTOLD,	       /* a lone spawn wakes no worker */
	DEFECT_URGENT_LAST,	       /* tasks of urgent requests go after the ready ones */
	DEFECT_URGENT_UNBOUNDED,       /* or pass others for ever */
	DEFECT_STALL_UNSEEN,	       /* a worker that gets up wakes no watchdog */
	DEFECT_POLL_KEPT,	       /* without a ring a cancel leaves a poll waiting */
	DEFECT_COUNT,
};

extern enum defect defect_planted;

static inline bool defect_is(enum defect defect)
{
	return defect_planted == defect;
}

/* One call in `interval` is spoilt. */
bool defect_strikes(enum defect defect, uint32_t interval);

#endif

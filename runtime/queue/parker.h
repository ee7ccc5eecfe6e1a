/* SPDX-License-Identifier: MIT */
/*
 * The parker: how one worker sleeps, and how others end its sleep.
 *
 * The state word says where the worker waits: nowhere (RUNNING), on the word
 * itself as a futex, or in its ring. NOTIFIED beside it is a token a waker
 * leaves: it makes the next attempt to park fail, so a wake that comes too
 * early is not lost, and only the waker that leaves it on a sleeper pays a
 * system call.
 *
 * The lost wake-up, and why it cannot happen:
 *
 *     sleeper                            waker
 *     finds every queue empty
 *                                        pushes work
 *                                        looks for a parked worker: none
 *     publishes its bit, sleeps          (work waits, no worker comes)
 *
 * So both sides write first, fence, then look:
 *
 *     1 state := PARK_*                  a  push work
 *     2 publish its bit                  b  seq_cst fence
 *     3 seq_cst fence                    c  claim a bit; none: done
 *     4 look at every source again       d  state |= NOTIFIED
 *     5 sleep while state == PARK_*      e  it was PARK_*: wake it
 *
 * [PARK-1] 2-3-4 against a-b-c: of two fences one is first; either the waker
 * sees the bit or the sleeper sees the work. Without either fence, neither may.
 * [PARK-2] d (RMW) against 1 and 5: the kernel compares the word before it
 * sleeps (futex), or finds the doorbell's completion (ring). A ring sleeper
 * set PARK_RING in step 1, before the bit that led the waker here, so the
 * waker never mistakes it for a futex sleeper.
 *
 * A worker that looks again in 4 and finds work runs on; a token or doorbell
 * meant for it then costs one extra look later. Since it searches all sources
 * before it parks anew, it has swallowed nothing.
 */
#ifndef PIN_QUEUE_PARKER_H
#define PIN_QUEUE_PARKER_H

#include "runtime/base/check.h"
#include "runtime/host/host.h"

enum pin_park_state {
	PIN_RUNNING = 0,    /* its worker moves it to PARK_*, by prepare */
	PIN_PARK_FUTEX = 1, /* its worker moves it to RUNNING, by finish */
	PIN_PARK_RING = 2,  /* its worker moves it to RUNNING, by finish */
	PIN_NOTIFIED = 4,   /* added to any of them by a waker; taken by the worker */
};

struct pin_parker {
	struct pin_atomic_u32 state; /* [W:any R:any] */
};

static inline void pin_parker_init(struct pin_parker *parker)
{
	pin_store_release_u32(&parker->state, PIN_RUNNING);
}

/*
 * Step 1, by the worker. False: a token was there and is taken, do not sleep.
 */
static inline bool pin_parker_prepare(struct pin_parker *parker, enum pin_park_state mode)
{
	uint32_t state = PIN_RUNNING;

	PIN_CHECK(mode == PIN_PARK_FUTEX || mode == PIN_PARK_RING);
	if (pin_cas_seq_cst_u32(&parker->state, &state, mode)) { /* [PARK-2] */
		return true;
	}
	PIN_CHECK(state == PIN_NOTIFIED);
	pin_exchange_seq_cst_u32(&parker->state, PIN_RUNNING);
	return false;
}

/*
 * Step 5 for PARK_FUTEX, by the worker, until `deadline_ns` at most. May return
 * without reason.
 */
static inline void pin_parker_sleep(
	struct pin_parker *parker, const struct pin_host *host, uint64_t deadline_ns)
{
	host->futex_wait(&parker->state, PIN_PARK_FUTEX, deadline_ns); /* [PARK-2] */
}

/*
 * Back to RUNNING after prepare, slept or not, by the worker. True: a waker
 * has found it in PARK_RING, so one doorbell rings, or has rung.
 */
static inline bool pin_parker_finish(struct pin_parker *parker)
{
	uint32_t state = pin_exchange_seq_cst_u32(&parker->state, PIN_RUNNING);

	PIN_CHECK((state & (PIN_PARK_FUTEX | PIN_PARK_RING)) != 0);
	return state == (PIN_PARK_RING | PIN_NOTIFIED);
}

/* Whether it sleeps or is about to; by a waker, after its fence. */
static inline bool pin_parker_is_parked(const struct pin_parker *parker)
{
	uint32_t state = pin_load_acquire_u32(&parker->state); /* [PARK-1] */

	return state == PIN_PARK_FUTEX || state == PIN_PARK_RING;
}

/*
 * Whether it is between prepare and finish: it sleeps, is about to, or has been
 * notified and has not run since. For those who watch. By any thread.
 */
static inline bool pin_parker_is_down(const struct pin_parker *parker)
{
	/* Relaxed: a figure. */
	return (pin_load_relaxed_u32(&parker->state) & (PIN_PARK_FUTEX | PIN_PARK_RING)) != 0;
}

/*
 * Where it sleeps or is about to; RUNNING when it does not, or a waker has
 * come. For those who watch: nothing follows from it. By any thread.
 */
static inline enum pin_park_state pin_parker_place(const struct pin_parker *parker)
{
	/* Relaxed: a figure. */
	uint32_t state = pin_load_relaxed_u32(&parker->state);

	PIN_DCHECK((state & ~(uint32_t)(PIN_PARK_FUTEX | PIN_PARK_RING | PIN_NOTIFIED)) == 0);
	return (state & PIN_NOTIFIED) != 0 ? PIN_RUNNING : (enum pin_park_state)state;
}

/*
 * Steps d and e, by a waker. Wakes a futex sleeper itself; returns true when
 * the worker sleeps in its ring and its doorbell must be rung.
 */
static inline bool pin_parker_notify(struct pin_parker *parker, const struct pin_host *host)
{
	uint32_t before = pin_fetch_or_seq_cst_u32(&parker->state, PIN_NOTIFIED); /* [PARK-2] */

	PIN_DCHECK((before & (PIN_PARK_FUTEX | PIN_PARK_RING)) != (PIN_PARK_FUTEX | PIN_PARK_RING));
	if (before == PIN_PARK_FUTEX) {
		host->futex_wake(&parker->state, 1);
	}
	return before == PIN_PARK_RING;
}

#endif

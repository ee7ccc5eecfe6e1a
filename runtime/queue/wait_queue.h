/* SPDX-License-Identifier: MIT */
/*
 * Waiters: those who want something that others give back, oldest first.
 *
 * The object of the wait, a buffer, bytes of a budget, the value of a future,
 * is kept elsewhere; `take` gets some of it for one waiter, or says that there
 * is too little. No thread polls: the thread that gives something back serves
 * the waiters, that is, takes for the oldest and hands over, as long as there
 * is enough. A new waiter serves as well, after it has queued, so later callers
 * do not overtake queued ones, and the check that has to follow queueing is
 * that same step. The oldest holds up all others, however little they want;
 * when it leaves unserved the next are checked, so none is stranded.
 *
 * A waiter is a thread that sleeps on its own word, or anything else, a task in
 * most cases, whose `over` is called. It leaves the queue under the lock, by
 * being served or by withdrawing, so exactly one of them happens; and as values
 * are taken under that lock, for a waiter that is still there, none is lost.
 *
 *     releaser                        waiter
 *     a  give back                    1  queue, count
 *     b  fence (light)                2  fence (all threads)
 *     c  count is 0: done             3  take for the oldest, perhaps itself
 *        else serve                   4  sleep until it is over
 *
 * [WAIT-1] a-b-c against 1-2-3: of "give back" and "count" one comes first for
 * both, so the releaser serves or the waiter takes. Without a fence on either
 * side a waiter could sleep beside what it wants. PIN_WAITERS_RELEASE_LIGHT:
 * step 2 is the host's fence_all and b costs nothing, for those who give back
 * with every task; where the kernel has no such fence, and with
 * PIN_WAITERS_EVEN, both are seq_cst fences. Step b is in pin_waiters_any().
 * With PIN_WAITERS_LOCKED none of this is needed: the object of the wait
 * changes under the lock only, and one critical section is steps 1 and 3.
 * [WAIT-2] a server's last store to a thread's word (release) -> its load
 * (acquire): it finds its value. `over` has to order the same for others.
 *
 * Invariants: 1. a waiter is in the queue, or it is over, or the thread that
 * took it out is about to notify it; 2. a server touches neither the struct
 * below after its lock is free, nor a waiter after its notification: both may
 * be gone, so the struct may be freed as soon as all waits for it are over.
 *
 * Progress: blocking, by the lock, but for pin_waiters_any(). Any thread.
 * `take` is called under the lock and may neither wait nor come back here.
 */
#ifndef PIN_QUEUE_WAIT_QUEUE_H
#define PIN_QUEUE_WAIT_QUEUE_H

#include "runtime/base/check.h"
#include "runtime/host/host.h"

/* The value handed over: as large as a buffer's handle. */
struct pin_waiters_value {
	uint64_t words[2];
};

/* Gets `demand` of the object. False: too little, nothing taken. */
typedef bool (*pin_waiters_take_fn)(
	void *arg, uint64_t demand, struct pin_waiters_value *out_value);

enum pin_waiters_fences {
	PIN_WAITERS_EVEN,
	PIN_WAITERS_RELEASE_LIGHT,
	PIN_WAITERS_LOCKED,
};

struct pin_waiters;

struct pin_waiter {
	struct pin_waiter *next; /* [lock:waiters] or of the thread that serves it */
	struct pin_waiter *previous;
	struct pin_waiters *waiters; /* [const] while it waits */
	uint64_t demand;	     /* [const] while it waits; for `take` */
	struct pin_waiters_value value;
	/* Called on any thread, without the lock; NULL: a thread waits. */
	void (*over)(struct pin_waiter *waiter);
	struct pin_atomic_u32 state; /* [W:server R:thread] its futex */
	bool is_queued;		     /* [lock:waiters] */
};

struct pin_waiters {
	/* [const] */
	const struct pin_host *host;
	pin_waiters_take_fn take;
	void *arg;
	enum pin_waiters_fences fences;
	struct pin_atomic_u32 count; /* [W:lock R:any] of those in the queue */
	struct pin_lock own_lock;
	struct pin_lock *lock;	   /* [const] the own one, or another queue's */
	struct pin_waiter *oldest; /* [lock:lock] */
	struct pin_waiter *newest;
};

/* Nothing to undo. RELEASE_LIGHT costs a fence_all here, to see if it works. */
void pin_waiters_init(struct pin_waiters *waiters, const struct pin_host *host,
	pin_waiters_take_fn take, void *arg, enum pin_waiters_fences fences);

/*
 * Right after init, both being PIN_WAITERS_LOCKED: it has the lock of `other`,
 * so that those who wait for the two ends of the same thing are under one.
 */
void pin_waiters_share_lock(struct pin_waiters *waiters, struct pin_waiters *other);

/* ---- who gives back ---- */

/* Steps b and c, after something was given back: whether to serve. */
static inline bool pin_waiters_any(const struct pin_waiters *waiters)
{
	if (waiters->fences == PIN_WAITERS_RELEASE_LIGHT) {
		pin_fence_light(); /* [WAIT-1] */
	} else {
		pin_fence_seq_cst(); /* [WAIT-1] */
	}
	/* Relaxed: only the number matters, the lock orders what follows. */
	return pin_load_relaxed_u32(&waiters->count) != 0;
}

/* The same, where it is known to be RELEASE_LIGHT still. */
static inline bool pin_waiters_any_light(const struct pin_waiters *waiters)
{
	PIN_DCHECK(waiters->fences == PIN_WAITERS_RELEASE_LIGHT);
	pin_fence_light(); /* [WAIT-1] */
	return pin_load_relaxed_u32(&waiters->count) != 0;
}

/* Serves as many as there is enough for; returns their number. */
uint32_t pin_waiters_serve(struct pin_waiters *waiters);

/*
 * For what the lock itself protects: look at it, or change it, between these.
 * The last serves, then lets go of the lock, then notifies those served.
 */
void pin_waiters_lock(struct pin_waiters *waiters);
void pin_waiters_unlock(struct pin_waiters *waiters);
uint32_t pin_waiters_serve_unlock(struct pin_waiters *waiters);

/*
 * Waiters that were taken out of queues and have to be notified; zeroed, none.
 */
struct pin_waiters_served {
	struct pin_waiter *first;
	struct pin_waiter *last;
};

/*
 * The same in steps, for queues that share a lock: take out those of one there
 * is enough for, under the lock; true: any. Then unlock, then notify.
 */
bool pin_waiters_pop_served(struct pin_waiters *waiters, struct pin_waiters_served *out_served);
uint32_t pin_waiters_tell(const struct pin_host *host, const struct pin_waiters_served *served);

/*
 * Takes out each waiter whose demand `ends` ends, also after others that stay,
 * with the value that `ends` leaves; under the lock. The caller serves the rest
 * afterwards, as one of those taken out may have been the oldest.
 */
void pin_waiters_pop_ended(struct pin_waiters *waiters, pin_waiters_take_fn ends,
	struct pin_waiters_served *out_served);

/* ---- who waits ---- */

/* `over` NULL: for pin_waiters_wait(). */
void pin_waiter_init(
	struct pin_waiter *waiter, uint64_t demand, void (*over)(struct pin_waiter *waiter));

/* Takes at once, unless others wait already. True: `value` is there. */
bool pin_waiters_try(struct pin_waiters *waiters, struct pin_waiter *waiter);

/*
 * Steps 1 to 3. Its end may be notified before this returns; then, with
 * PIN_WAITERS_LOCKED, the struct may be gone as well.
 */
void pin_waiters_enter(struct pin_waiters *waiters, struct pin_waiter *waiter);

/*
 * True: it waits no more and gets no notification. False: it was served, and is
 * notified soon unless that has happened.
 */
bool pin_waiter_withdraw(struct pin_waiter *waiter);

/*
 * The same of a waiter that has perhaps not entered yet, by a caller that knows
 * the queue; then false.
 */
bool pin_waiter_withdraw_from(struct pin_waiters *waiters, struct pin_waiter *waiter);

/*
 * Steps 1 to 4 for a thread. 0: `value` is there. -ETIME: not until
 * `deadline_ns`; with a past deadline it takes at once or not at all.
 */
int pin_waiters_wait(struct pin_waiters *waiters, struct pin_waiter *waiter, uint64_t deadline_ns);

#endif

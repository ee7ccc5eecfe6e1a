/* SPDX-License-Identifier: MIT */
/*
 * The LIFO slot: one place for the task its worker spawned last, which it runs
 * next, while its data is warm.
 *
 * Its owner passes through it with every task, so that side takes no locked
 * instruction and no fence. A thief comes only as a last resort, when a task
 * here waits for a long one; it pays for both with the host's fence_all, which
 * makes all other threads pass a fence.
 *
 *     owner                          thief
 *     busy := 1                      closed |= THIEF, if it was not there
 *     light fence                    fence_all
 *     closed: leave it alone         busy set: leave it alone
 *     exchange the link              take the link
 *     busy := 0                      closed &= ~THIEF
 *
 * The other bits of `closed` are the embedder's: reasons for which a spawned
 * task goes another way, so that all of them cost the usual way one test. They
 * close the slot to puts, not to takes.
 *
 * [LIFO-1] of "busy := 1" and "closed |= THIEF" one comes first, and the other
 * side sees it: either before fence_all, and then the thief does, or after it,
 * and then the owner does.
 * [LIFO-2] each leaves by a release (the owner's store, the thief's RMW) that
 * the other reads (acquire), so the link it finds is the newest.
 *
 * Progress: wait-free on both sides. An owner who finds a thief in it goes by:
 * it keeps what it wanted to put in, or finds nothing to take.
 */
#ifndef PIN_QUEUE_LIFO_SLOT_H
#define PIN_QUEUE_LIFO_SLOT_H

#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/base/list.h"
#include "runtime/host/host.h"

/* Bits of `closed`. */
#define PIN_LIFO_THIEF UINT32_C(1) /* one is in it */
#define PIN_LIFO_ALL UINT32_MAX	   /* that, and whatever the embedder has */

struct pin_lifo {
	struct pin_atomic_u32 busy;   /* [W:owner R:thieves] */
	struct pin_atomic_u32 closed; /* [W:any R:any] why the owner keeps out; 0: it need not */
	struct pin_atomic_u64 link;   /* [W:owner thief R:any] 0: empty */
};

/* By the owner: goes in, unless one of `reasons` is set: then false. */
static PIN_INLINE bool pin_lifo_enter(struct pin_lifo *lifo, uint32_t reasons)
{
	pin_store_relaxed_u32(&lifo->busy, 1); /* [LIFO-1] */
	pin_fence_light();
	if (PIN_LIKELY((pin_load_acquire_u32(&lifo->closed) & reasons) == 0)) { /* [LIFO-1] */
		return true;							/* [LIFO-2] */
	}
	pin_store_release_u32(&lifo->busy, 0); /* [LIFO-2] */
	return false;
}

/*
 * By the owner, inside: puts `link` there, returns the former one, and leaves.
 */
static PIN_INLINE struct pin_link *pin_lifo_exchange(struct pin_lifo *lifo, struct pin_link *link)
{
	uint64_t before = pin_load_relaxed_u64(&lifo->link);

	PIN_DCHECK(link == NULL || before != (uintptr_t)link); /* it is there already */
	pin_store_relaxed_u64(&lifo->link, (uintptr_t)link);
	pin_store_release_u32(&lifo->busy, 0); /* [LIFO-2] */
	return (struct pin_link *)(uintptr_t)before;
}

/*
 * By the owner, whatever the embedder's reasons: puts `link` in and returns the
 * former one, which may be NULL; returns `link` itself when a thief is in.
 */
static inline struct pin_link *pin_lifo_replace(struct pin_lifo *lifo, struct pin_link *link)
{
	return pin_lifo_enter(lifo, PIN_LIFO_THIEF) ? pin_lifo_exchange(lifo, link) : link;
}

/*
 * Any thread: a reason more, for what the owner puts in from then on. In one
 * step, as a thief's bit is in the same word; nothing else is ordered by it.
 */
static inline void pin_lifo_close(struct pin_lifo *lifo, uint32_t reason)
{
	PIN_DCHECK(reason != 0);
	PIN_DCHECK((reason & PIN_LIFO_THIEF) == 0); /* a thief's bit is that thief's */
	pin_fetch_or_seq_cst_u32(&lifo->closed, reason);
}

/* Any thread: one less. */
static inline void pin_lifo_open(struct pin_lifo *lifo, uint32_t reason)
{
	PIN_DCHECK((reason & PIN_LIFO_THIEF) == 0);
	pin_fetch_and_seq_cst_u32(&lifo->closed, ~reason);
}

/* Any thread: all reasons there are, the thief's too. */
static inline uint32_t pin_lifo_closed_for(const struct pin_lifo *lifo)
{
	/* Relaxed: what a thief leaves is read after an entry. */
	return pin_load_relaxed_u32(&lifo->closed);
}

/* 0 if it is empty: several can be ORed into one test. */
static inline uint64_t pin_lifo_bits(const struct pin_lifo *lifo)
{
	return pin_load_relaxed_u64(&lifo->link);
}

static inline bool pin_lifo_is_empty(const struct pin_lifo *lifo)
{
	return pin_lifo_bits(lifo) == 0;
}

/* Any thread, after a fence_all: the owner is in it, or was an instant ago. */
static inline bool pin_lifo_is_entered(const struct pin_lifo *lifo)
{
	return pin_load_acquire_u32(&lifo->busy) != 0; /* [LIFO-1] */
}

/* By the owner: takes the link; NULL: none, or a thief is in. */
static inline struct pin_link *pin_lifo_take(struct pin_lifo *lifo)
{
	return pin_lifo_is_empty(lifo) ? NULL : pin_lifo_replace(lifo, NULL);
}

/*
 * By any other thread. NULL: empty, or a thread is in it, or no fence_all here.
 */
static inline struct pin_link *pin_lifo_steal(struct pin_lifo *lifo, const struct pin_host *host)
{
	struct pin_link *link = NULL;

	if (pin_lifo_is_empty(lifo) ||
		(pin_fetch_or_seq_cst_u32(&lifo->closed, PIN_LIFO_THIEF) & PIN_LIFO_THIEF) != 0) {
		return NULL;
	}
	if (host->fence_all() && pin_load_acquire_u32(&lifo->busy) == 0) { /* [LIFO-1] */
		link = (struct pin_link *)(uintptr_t)pin_load_relaxed_u64(&lifo->link);
		pin_store_relaxed_u64(&lifo->link, 0);
	}
	pin_fetch_and_seq_cst_u32(&lifo->closed, ~PIN_LIFO_THIEF); /* [LIFO-2] */
	return link;
}

#endif

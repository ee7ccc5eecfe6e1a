/* SPDX-License-Identifier: MIT */
/*
 * The parked set: one bit per worker that is about to sleep or asleep.
 *
 * A waker picks a set bit with ctz and clears it with fetch_and. The value
 * that fetch_and returns, and nothing else, decides who got the worker: two
 * wakers never spend their wake on the same one. A worker that returns by
 * itself withdraws its bit; finding it gone only means that a wake is on its
 * way, which is harmless (parker.h).
 *
 * Up to 64 workers are the bits of one word, `top`. Of more, 128 are a group,
 * two words in a line of their own; bit g of `top` says that group g may have
 * sleepers, and the upper half of `top` counts publications. So claiming costs
 * two words whatever the number of workers, and an empty set shows in one.
 *
 * Invariants: (1) a worker that has published and was not taken out since shows
 * in `top`: there a 0 is right, a 1 may be out of date. (2) a bit is taken out
 * as often as it was published, by a claim or by its owner. (3) a group's bit
 * that is out of date is cleared by the next claim that meets it.
 *
 * Progress: publish, withdraw and a check are wait-free; claim is lock-free.
 *
 *                publish  withdraw  claim    -: free. o: free for different
 *     publish    o        o         -        workers; a worker's own publish
 *     withdraw   o        o         -        and withdraw take turns.
 *     claim      -        -         -
 *
 * Bits are what the caller numbers workers by: indices, or ranks
 * (policy/steal_order.h).
 */
#ifndef PIN_QUEUE_IDLE_SET_H
#define PIN_QUEUE_IDLE_SET_H

#include "runtime/base/atomic.h"
#include "runtime/base/base.h"

/*
 * [PARK-1] parker.h has the protocol: the sleeper publishes, fences and checks
 * for work; the waker adds work, fences and claims. It rests on invariant 1.
 *
 * Why a group's bit cannot just be cleared when the group has become empty, nor
 * even when it is looked at again afterwards and set again:
 *
 *     claimer                    sleeper                waker
 *     takes the last bit
 *     sees the group empty
 *                                its bit := 1
 *                                top has g already
 *                                no work: sleeps
 *     clears g in top
 *                                                       adds work
 *                                                       top is 0: no thread
 *     sees the group, sets g     (work waits, no worker comes)
 *
 * [IDLE-1] The clearing thread reads `top`, then the group, and clears with a
 * CAS on all of `top`; a publishing worker sets its bit, then adds to the count
 * in `top`. An addition after that read makes the CAS fail. One before it was
 * seen by that read, so the group's bit is seen by what follows, and nothing is
 * cleared. A sleeper whose addition found g clear sets g: no thread clears it
 * again before the sleeper is taken out, for the same reason. The count wraps
 * after 2^32 publications; a claimer would have to pause between read and CAS
 * for exactly as many.
 *
 * That a sleeper adds even when g is set is what it costs: with more than 64
 * workers they all write one word when they park. The same count in the bits'
 * own words would not do, as there the claimer's CAS is on another word.
 */
#define PIN_IDLE_WORKERS_MAX 4096u
#define PIN_IDLE_GROUP_WORKERS 128u
#define PIN_IDLE_GROUP_WORDS (PIN_IDLE_GROUP_WORKERS / 64u)
#define PIN_IDLE_GROUPS (PIN_IDLE_WORKERS_MAX / PIN_IDLE_GROUP_WORKERS)
#define PIN_IDLE_NONE UINT32_MAX

struct pin_idle_group {
	struct pin_atomic_u64 words[PIN_IDLE_GROUP_WORDS]; /* [W:any R:any] */
} PIN_CACHE_ALIGNED;

struct pin_idle {
	uint32_t worker_count;			       /* [const] */
	uint64_t top_mask;			       /* [const] the bits of `top` in use */
	struct pin_atomic_u64 top PIN_CACHE_ALIGNED;   /* [W:any R:any] */
	struct pin_idle_group groups[PIN_IDLE_GROUPS]; /* unused up to 64 workers */
};

_Static_assert(PIN_IDLE_GROUPS == 32, "half of `top` has a bit per group");
_Static_assert(sizeof(struct pin_idle_group) == PIN_CACHE_LINE, "a line per group");

/* 1 … PIN_IDLE_WORKERS_MAX. */
void pin_idle_init(struct pin_idle *idle, uint32_t worker_count);

/*
 * By the worker itself, which is not in the set. True: no other of its word was
 * there, so of workers that come into an empty set the first learns it.
 */
bool pin_idle_publish(struct pin_idle *idle, uint32_t worker_index);

/* By the worker itself. False: it was claimed, and a wake is on its way. */
bool pin_idle_withdraw(struct pin_idle *idle, uint32_t worker_index);

/*
 * Each of these takes a worker out of the set, or returns PIN_IDLE_NONE. By any
 * thread, after a seq_cst fence; then NONE means that no worker had published
 * before a fence that precedes this one, and was not taken since.
 *
 * pin_idle_claim: the lowest.
 * pin_idle_claim_from: the lowest from `start` on, else the lowest; a `start`
 * beyond the last is 0. Going on after the last one claimed spreads wakes.
 * pin_idle_claim_in: the lowest in the first range that has any. For all
 * workers to be considered, the last range must hold all.
 */
uint32_t pin_idle_claim(struct pin_idle *idle);
uint32_t pin_idle_claim_from(struct pin_idle *idle, uint32_t start);
uint32_t pin_idle_claim_in(
	struct pin_idle *idle, const struct pin_range *ranges, uint32_t range_count);

/*
 * Reads one word. True is as good as NONE from a claim; false may be out of
 * date.
 */
static inline bool pin_idle_is_empty(const struct pin_idle *idle)
{
	return (pin_load_acquire_u64(&idle->top) & idle->top_mask) == 0; /* [PARK-1] */
}

/* The lowest, which stays in the set, or PIN_IDLE_NONE; a guess. */
uint32_t pin_idle_first(const struct pin_idle *idle);

/* By the worker itself, between its two moves. False: it has been claimed. */
bool pin_idle_holds(const struct pin_idle *idle, uint32_t worker_index);

#endif

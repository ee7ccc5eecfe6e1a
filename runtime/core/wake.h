/* SPDX-License-Identifier: MIT */
/*
 * Whom to wake when there is new work, and when to wake nobody.
 *
 * A worker without work of its own searches the others' queues before it
 * sleeps. While anybody searches, new work needs no wake: the searcher finds
 * it, or somebody does whom the last searcher wakes. So every wake makes its
 * target a searcher, counted by the waker already, and a searcher that finds
 * work, if it was the last one, wakes the next: a chain, as long as there is
 * work, instead of a crowd.
 *
 *     pusher                               searcher S
 *     a  push work                         1  publish its bit
 *     b  seq_cst fence                     2  searching -= 1
 *     c  no bit published: done            3  seq_cst fence
 *     d  searching: 0 -> 1, else done      4  look at its own sources;
 *     e  claim a bit, notify                  nobody searches: at all queues
 *
 * [SEARCH-1] a-b against 2-3-4: a pusher that goes without waking because S
 * still counts made its push before 2, so S, or whoever searches last, sees it
 * in 4. A worker that was refused as a searcher takes part in 4 as well: those
 * who searched may have ended before it published its bit.
 * [SEARCH-2] d is a compare-and-swap: of several pushers one wakes. If it then
 * finds no bit to claim it counts back, and looks again if it was the last: who
 * pushed meanwhile has relied on it.
 *
 * [PARK-1] as told in sched/parker.h.
 *
 * Source: docs/DECISIONS.md, "Who wakes whom".
 */
#ifndef PIN_CORE_WAKE_H
#define PIN_CORE_WAKE_H

#include "runtime/core/worker_state.h"

/*
 * To be called after work was made visible; `waker` is the calling worker or
 * NULL. At most one system call.
 */
void pin_wake_one(struct pin_shared *shared, struct pin_worker *waker);

/* Whether there is anybody to wake; a guess, unless behind a fence. */
static inline bool pin_wake_sees_sleeper(const struct pin_shared *shared)
{
	return !pin_idle_is_empty(&shared->parked[PIN_PARKED_FUTEX]) || /* [PARK-1] */
		!pin_idle_is_empty(&shared->parked[PIN_PARKED_RING]);	/* [PARK-1] */
}

/* Ends the sleep of a worker whose inbox was pushed to. */
void pin_wake_worker(struct pin_worker *target, struct pin_worker *waker);

void pin_wake_all(struct pin_shared *shared);

/* False: enough of them search already. */
bool pin_search_begin(struct pin_worker *worker);

/* Found something: the last searcher wakes the next. */
void pin_search_succeed(struct pin_worker *worker);

/* Step 2. */
void pin_search_give_up(struct pin_worker *worker);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Assistance: a worker whose own lanes are empty takes one task of another
 * lane, as long as enough of its tier stay free for their own.
 *
 * `assist = idle` turns it on. A tier counts those of its workers that are
 * free: that have nothing to run, awake or asleep. Who would assist takes
 * itself out of that count by compare-and-swap, and only if `assist_reserve`
 * are left; who looks into its own lanes takes itself out without asking, and
 * comes back when there was nothing. So of two that would assist at once, with
 * one to stay, one does, and never less than the reserve is left by assisting.
 *
 * [ASSIST-1] push, fence, look at `free_count` and for sleepers; come back to
 * it, fence, look for others' work. One sees the other, as in [PARK-1]; so work
 * that a free worker may assist with does not wait while it sleeps.
 *
 * Only what lies in the queues that all share is assisted with: what a worker
 * has queued for itself is its tier's.
 *
 * Called by the worker itself, unless said otherwise.
 */
#ifndef PIN_WORKER_WAKE_ASSIST_H
#define PIN_WORKER_WAKE_ASSIST_H

#include "runtime/worker/state.h"

static inline bool pin_assist_is_on(const struct pin_shared *shared)
{
	return shared->config.assist == PINION_ASSIST_IDLE;
}

/*
 * Whether one more of the tier may assist now; a guess, unless behind a fence.
 */
static inline bool pin_assist_has_room(const struct pin_shared *shared, const struct pin_tier *tier)
{
	return pin_load_acquire_u32(&tier->free_count) > /* [ASSIST-1] */
		shared->config.assist_reserve;
}

/* It has nothing to run. Again and again is the same as once. */
void pin_assist_enter(struct pin_worker *worker);

/* It may have. */
void pin_assist_leave(struct pin_worker *worker);

/* Takes it out to assist; false: it has to stay. */
bool pin_assist_try_leave(struct pin_worker *worker);

/* Whether it should not sleep; behind its fence. */
bool pin_assist_sees_work(const struct pin_worker *worker);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A worker goes to sleep: on its futex, or in its ring if anything is in
 * flight there, until it is woken, a completion comes, or a timer is due.
 *
 * The protocol is told in queue/parker.h [PARK-1] [PARK-2] and worker/wake.h
 * [SEARCH-1]. A worker about to sleep is also the one who may find that the
 * runtime has come to its end [END-1], see worker/thread.h.
 */
#ifndef PIN_WORKER_PARK_H
#define PIN_WORKER_PARK_H

#include "runtime/worker/state.h"

/* Everything that could make this worker run; the re-check of [PARK-1]. */
bool pin_park_has_work(const struct pin_worker *worker);

/*
 * Behind a fence: if all that was ever admitted is over, says so to everybody,
 * unless another worker has; true then, too. [END-1] [END-2]
 */
bool pin_park_look_for_end(struct pin_shared *shared);

/* Sleeps, or not if there is work. */
void pin_park(struct pin_worker *worker);

/* ---- its steps, for a worker that leaves: retire.h ---- */

/*
 * Chooses how to sleep, and makes ready for it. False: there is room in the
 * ring for requests that wait for that.
 */
bool pin_park_choose_mode(struct pin_worker *worker, enum pin_park_state *out_mode);

/* Between pin_parker_prepare() and pin_park_finish(). */
void pin_park_sleep_until(
	struct pin_worker *worker, enum pin_park_state mode, uint64_t deadline_ns);

/* Awake again, slept or not. */
void pin_park_finish(struct pin_worker *worker);

/*
 * Instead of that, by one that has found nothing to do and has to ask a device
 * (extra_rings.h): makes way for a moment. It is no longer relied on as a
 * searcher, or has seen what for and is one still.
 */
void pin_park_forgo(struct pin_worker *worker);

#endif

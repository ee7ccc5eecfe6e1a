/* SPDX-License-Identifier: MIT */
/*
 * What a worker does that has run dry: it looks into the others' queues, then
 * for a short while it spins, then it sleeps.
 *
 * How long it spins is the business of its patience (policy/spin.h), which
 * learns from what spinning catches. Where workers of a runtime share CPUs none
 * of them spins.
 */
#ifndef PIN_WORKER_STEAL_H
#define PIN_WORKER_STEAL_H

#include "runtime/worker/state.h"

/*
 * Steals from other workers; what comes with the returned element is in the
 * worker's own deque. NULL: nothing found, or enough others search already.
 */
struct pin_link *pin_search_others(struct pin_worker *worker);

/*
 * What is visible in other workers' queues: to be asked before sleeping, when
 * nobody searches.
 */
bool pin_search_sees_work(const struct pin_worker *worker);

enum {
	/*
	 * Looks of a thief at what others hand over or show, to one at all that
	 * there may be: a theft is late by what lies between two of them.
	 */
	PIN_SEARCH_LOOKS_TO_FULL = 4,
};

/*
 * Waits awake, if that pays. True when something came: `has_work` said so, it
 * is in the inbox or the injector, or *out_link was stolen, else NULL.
 */
bool pin_search_spin(struct pin_worker *worker, bool (*has_work)(const struct pin_worker *worker),
	struct pin_link **out_link);

/* Whether a worker has ended no task for some microseconds; another asks. */
bool pin_search_is_stuck(const struct pin_worker *victim);

#endif

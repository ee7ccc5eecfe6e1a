/* SPDX-License-Identifier: MIT */
/*
 * Reads of NVMe namespaces by commands (io/request.h), on a wide ring of
 * the worker's, or by calls.
 *
 * That ring is made when the first such read comes, so that who reads none has
 * none. The first ring watches it while the worker sleeps there, so one wait is
 * for both, and for all that else ends it:
 *
 *     worker                               device
 *     a  publishes that it sleeps          1  completes: wide ring's queue
 *     b  wide ring's queue empty?          2  armed? first ring's queue
 *     c  arms the watch, which looks
 *        at the wide ring's queue again
 *     d  waits in the first ring
 *
 * What comes between b and c is seen by the kernel's look in c; what comes
 * later fires the watch. That is one poll for each sleep, and none for a worker
 * that has more to do. A watch that was armed for an earlier sleep, and has not
 * fired since, is as good as a new one.
 *
 * Calls take its place, one after the other and with the worker blocked, where
 * the kernel has no such ring or its driver does not take commands from one,
 * where rings are shared, without io_uring, and while the wide ring is full.
 *
 * The ring takes no cancels: what is on it ends when its device ends it.
 *
 * On the worker alone.
 */
#ifndef PIN_WORKER_EXTRA_RINGS_COMMANDS_H
#define PIN_WORKER_EXTRA_RINGS_COMMANDS_H

#include "runtime/worker/state.h"

/* One that has been admitted, in no list: begins it, or is done with it. */
void pin_commands_begin(struct pin_worker *worker, struct pinion_request *request);

/*
 * Submits what has gathered, and takes in what is over; how much that was.
 * Never waits.
 */
uint32_t pin_commands_poll(struct pin_worker *worker);

/* The last call on the worker's thread; nothing is in flight. */
void pin_commands_end(struct pin_worker *worker);

/* Some are in flight on the wide ring. */
static inline bool pin_commands_is_busy(const struct pin_worker *worker)
{
	return PIN_UNLIKELY(worker->aside_count > 0) && worker->wide.in_flight > 0;
}

/* pin_commands_poll() would find something to do. Loads only. */
static inline bool pin_commands_has_work(const struct pin_worker *worker)
{
	return pin_commands_is_busy(worker) && pin_ring_has_work(&worker->wide);
}

/* Before a wait in the first ring, which what is over then ends: c above. */
static inline void pin_commands_watch(struct pin_worker *worker)
{
	if (pin_commands_is_busy(worker)) {
		pin_ring_watch(&worker->ring, &worker->wide);
	}
}

#endif

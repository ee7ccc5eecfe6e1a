/* SPDX-License-Identifier: MIT */
/*
 * Polled transfers: those whose completions a worker asks the device for, on a
 * second ring, instead of being interrupted for them.
 *
 * Which transfers: where the configuration's `polled` says so, reads and writes
 * past the page cache, of a size that is worth it, of a disk that has queues
 * for it as sysfs tells, or of any. They have been admitted like all others
 * (device_queue.h); where the second ring is full they go to the first, so
 * nothing ever waits for room in it. What is refused, by the file system or the
 * device, goes to the first ring too, and a ledger whose device did so is not
 * tried again.
 *
 * While any is in flight the worker runs tasks and asks in between, each time
 * round its loop, and instead of a sleep makes way for others
 * (pin_park_forgo()). Nothing interrupts it, so a sleep would have no end.
 *
 * The ring takes no cancels, and the device would not hear of them. Cancelled,
 * or past its deadline, a transfer ends when its device ends it, with what came
 * of it, unless it has to be tried again. A stop waits for that.
 *
 * On the worker alone: where rings are shared there is none.
 */
#ifndef PIN_WORKER_EXTRA_RINGS_H
#define PIN_WORKER_EXTRA_RINGS_H

#include "runtime/worker/state.h"

/*
 * Sets the ring up, if it is wanted; where that fails, says so and does
 * without. The worker's first ring is there.
 */
void pin_polled_start(struct pin_worker *worker);

/* The last call on the worker's thread. */
void pin_polled_end(struct pin_worker *worker);

/* True: it is in flight, and in that list. False: it is for the first ring. */
bool pin_polled_submit(struct pin_worker *worker, struct pinion_request *request);

/*
 * Submits what has gathered, and asks for what is over; how much that was.
 * Never waits.
 */
uint32_t pin_polled_poll(struct pin_worker *worker);

/* Something is in flight: the worker has to ask, and must not sleep. */
static inline bool pin_polled_is_busy(const struct pin_worker *worker)
{
	return worker->polled.in_flight > 0;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * When a transfer may start: a worker between its requests and the credit and
 * rates of their disks (io/device.h).
 *
 * A read or write starts when the rates have been kept and there is credit;
 * else it lines up, behind others of its file, and is in none of the lists of
 * worker/request.h but this. Rates come first, so credit is never held by what
 * may not start yet. The first of a line-up waits for one of these:
 *
 *     a rate      until an instant that is known: a timer of the worker's wheel
 *     credit      for the end of another request of this worker on that disk,
 *                 or for its turn among the workers that are queued
 *     a change    of limits, by another thread
 *
 * What comes from others, credit or a change, is a nudge: a flag of the worker,
 * set before its sleep is ended. The worker looks at it before it sleeps, as it
 * looks into its inbox, takes the flag off and then looks at all line-ups.
 *
 *     who grants, who sets limits       worker
 *     a  credit, epoch of limits        1  finds neither, lines up
 *     b  nudged := 1 (release)          2  publishes that it sleeps
 *     c  fence; asleep? wake it         3  fence; nudged? look again
 *
 * [THROTTLE-1] a, b -> the worker takes the flag (RMW, acquire): it finds what
 * it was nudged for. b-c against 2-3 is [PARK-1].
 *
 * The deadline of a request goes on while it is lined up, and ends it there.
 * The library's own may set `stops_clock` instead: a file's timeout is the
 * file's, not that of the limits that its user has set.
 *
 * A long request pays for its parts one by one (io/request.h), so that it
 * keeps nobody waiting for the price of all of it: between two of them it has
 * lined up again, and gives its credit back.
 *
 * On the worker, or by who has its ring's lock: pin_throttle_end() and what is
 * about parts only.
 */
#ifndef PIN_WORKER_DEVICE_QUEUE_H
#define PIN_WORKER_DEVICE_QUEUE_H

#include "runtime/worker/state.h"

void pin_throttle_init(struct pin_worker *worker);

/* True: it may start now. False: it has lined up. */
bool pin_throttle_admit(struct pin_worker *worker, struct pinion_request *request);

/* There are rates for it, which what the page cache has need not keep. */
bool pin_throttle_has_rates(struct pin_worker *worker, const struct pinion_request *request);

/* Of one in flight, before its next part: that has to be paid for first. */
bool pin_throttle_owes_part(const struct pin_worker *worker, struct pinion_request *request);

/*
 * It lines up for that part, and leaves the device to others meanwhile; it is
 * in no list. By who has its ring's lock.
 */
void pin_throttle_defer_part(
	struct pin_worker *worker, struct pin_worker *taker, struct pinion_request *request);

/* There may be something to start, which pin_throttle_next() tells. */
static inline bool pin_throttle_has_news(const struct pin_worker *worker)
{
	return worker->throttle.must_look || pin_load_relaxed_u32(&worker->nudged) != 0;
}

/* The next that has lined up and may start now, in no list; NULL: none. */
struct pinion_request *pin_throttle_next(struct pin_worker *worker);

/* Of one that pin_throttle_admit() has seen, by the function below. */
void pin_throttle_end_admitted(
	struct pin_worker *worker, struct pin_worker *taker, struct pinion_request *request);

/*
 * A transfer ends, whether it has started or not, while it is still in its
 * list; `taker` is the calling worker.
 */
static inline void pin_throttle_end(
	struct pin_worker *worker, struct pin_worker *taker, struct pinion_request *request)
{
	if (pin_request_of(request)->toll.ledger_place != 0) {
		pin_throttle_end_admitted(worker, taker, request);
	}
}

/*
 * On its worker, which leaves and has no transfers any more: others get what it
 * kept. False: credit is being granted to it, of which it is told soon.
 */
bool pin_throttle_give_up(struct pin_worker *worker);

/* On its worker: the time of a line-up has come. */
void pin_throttle_expire(struct pin_worker *worker, struct pin_timer *timer);

/* Has each worker look again, as limits are others. Any thread. */
void pin_throttle_nudge_all(struct pin_shared *shared);

/* Of one disk, all workers together. */
struct pin_disk_sums pin_throttle_sums(
	const struct pin_shared *shared, const struct pin_disk *disk);

#endif

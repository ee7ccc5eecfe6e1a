/* SPDX-License-Identifier: MIT */
/*
 * The queue limit: how many tasks of the normal lane from outside may wait in
 * the queue that all workers share. The other lanes have a limit each, by the
 * claims of queue/lane_queue.h.
 *
 * The gate counts admissions, the poppers count departures; the difference
 * waits. To compare the two for each task would have every spawn read what a
 * worker has just written. So an queue limit keeps the end up to which the gate
 * may count by its last view, beside the gate's own word, and only a thread
 * that gets there reads anew. The end that is known never is too far, as what
 * leaves only moves it on.
 *
 * Pushes of workers themselves are never refused, since a running task may need
 * them to finish. It takes room all the same, from the next check on, of which
 * there are sixteen at least while a whole limit is admitted.
 *
 * Admitted work that never gets into this queue, that of other lanes too, is
 * counted in `elsewhere` once it can no longer be undone. In the instant
 * before, it takes room here: a spawn at the very limit may be refused for it.
 *
 * Invariant: of the work admitted by this end, never more than `limit` wait.
 *
 * Progress: lock-free. Any thread from outside.
 *
 * [QLIMIT-1] counts follow the events they count (release) -> a thread that
 * checks anew (acquire): a departure is seen only if its admission, or its
 * worker's count, is seen as well. So departures are read first.
 */
#ifndef PIN_QUEUE_GATE_INTAKE_H
#define PIN_QUEUE_GATE_INTAKE_H

#include "runtime/queue/gate.h"

struct pin_queue_limit {
	uint64_t limit;		   /* [const] of each lane; UINT64_MAX: none */
	struct pin_atomic_u64 end; /* [W:outside R:outside] of the gate's count */
	/* [W:outside R:outside] admitted, and not for this queue */
	struct pin_atomic_u64 elsewhere;
	struct pin_atomic_u64 refused; /* [W:outside R:any] */
};

/* `limit` 0: none. */
void pin_queue_limit_init(struct pin_queue_limit *queue_limit, uint64_t limit);

/*
 * To be called after the admission of work that never gets into this queue, and
 * that is not undone any more.
 */
static inline void pin_queue_limit_note_elsewhere(
	struct pin_queue_limit *queue_limit, uint64_t count)
{
	pin_fetch_add_acq_rel_u64(&queue_limit->elsewhere, count); /* [QLIMIT-1] */
}

/* For the gate; a guess, and no more than it may be. */
static inline uint64_t pin_queue_limit_end(const struct pin_queue_limit *queue_limit)
{
	return pin_load_relaxed_u64(&queue_limit->end);
}

/* Counts of the queue, read in this order. */
struct pin_queue_limit_view {
	uint64_t admitted; /* the gate's count */
	uint64_t popped;
	uint64_t pushed_inside;
};

/*
 * Moves the end to where `count` more fit, by the view just read. False: they
 * do not fit, as *out_waiting tasks wait.
 */
bool pin_queue_limit_renew(struct pin_queue_limit *queue_limit,
	const struct pin_queue_limit_view *view, uint64_t count, uint64_t *out_waiting);

#endif

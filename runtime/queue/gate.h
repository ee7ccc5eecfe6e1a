/* SPDX-License-Identifier: MIT */
/*
 * The gate: one word that decides whether outside work is still admitted and
 * counts the admissions; and the queue limit, up to which it may count.
 *
 * Bit 0 says "accepting", the rest counts admissions ever made. Both in one
 * word, so that no admission can slip past a close: after pin_gate_close() the
 * count grows no more. Finished tasks are counted by the workers, each in its
 * own meter, so completing a task writes nothing shared.
 *
 * An admission may be undone, as if it had never been. Until then the count is
 * too high, which can only delay the end, never hasten it; so when the gate is
 * closed already, a thread that waits for the end has to check once more.
 *
 * Progress: admit is lock-free, the others are wait-free. Any thread.
 *
 * [GATE-1] close (RMW, seq_cst) -> admit (CAS, seq_cst): an admission either
 * comes before the close and is in its count, or fails.
 */
#ifndef PIN_QUEUE_GATE_H
#define PIN_QUEUE_GATE_H

#include "runtime/base/atomic.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"

struct pin_gate {
	struct pin_atomic_u64 word; /* [W:any R:any] */
};

enum {
	PIN_GATE_ACCEPTING = 1,
	PIN_GATE_UNIT = 2,
};

enum pin_gate_answer {
	PIN_GATE_ADMITTED,
	PIN_GATE_CLOSED,
	PIN_GATE_FULL,
};

static inline void pin_gate_init(struct pin_gate *gate)
{
	pin_store_release_u64(&gate->word, PIN_GATE_ACCEPTING);
}

/*
 * Counts `count` admissions, if there are `end` in all then at most; otherwise
 * nothing is counted. When closed it says so, whatever the count. Inline, since
 * every task from outside passes through here.
 */
static inline enum pin_gate_answer pin_gate_admit_until(
	struct pin_gate *gate, uint64_t count, uint64_t end)
{
	uint64_t word = pin_load_acquire_u64(&gate->word);
	uint64_t next;

	do {
		if (PIN_UNLIKELY((word & PIN_GATE_ACCEPTING) == 0)) {
			return PIN_GATE_CLOSED;
		}
		PIN_DCHECK(count <= (UINT64_MAX - word) / PIN_GATE_UNIT);
		next = word + count * PIN_GATE_UNIT;
		if (PIN_UNLIKELY(next / PIN_GATE_UNIT > end)) {
			return PIN_GATE_FULL;
		}
	} while (!pin_cas_seq_cst_u64(&gate->word, &word, next)); /* [GATE-1] */
	return PIN_GATE_ADMITTED;
}

/* The same without an end; false: closed. */
static inline bool pin_gate_admit(struct pin_gate *gate, uint64_t count)
{
	return pin_gate_admit_until(gate, count, UINT64_MAX) == PIN_GATE_ADMITTED;
}

/*
 * Takes back `count` admissions for which nothing was done yet. True: the gate
 * is closed, and workers that sleep have to be woken to look at the count.
 */
static inline bool pin_gate_undo(struct pin_gate *gate, uint64_t count)
{
	uint64_t before = pin_fetch_sub_acq_rel_u64(&gate->word, count * PIN_GATE_UNIT);

	PIN_DCHECK(count > 0);
	PIN_CHECK(before / PIN_GATE_UNIT >= count);
	return (before & PIN_GATE_ACCEPTING) == 0;
}

/* Ends admission; further calls change nothing. */
static inline void pin_gate_close(struct pin_gate *gate)
{
	pin_fetch_and_seq_cst_u64(&gate->word, ~(uint64_t)PIN_GATE_ACCEPTING); /* [GATE-1] */
}

static inline bool pin_gate_is_open(const struct pin_gate *gate)
{
	return (pin_load_acquire_u64(&gate->word) & PIN_GATE_ACCEPTING) != 0;
}

/* Admissions so far that were not undone; falls only, once it is closed. */
static inline uint64_t pin_gate_admitted(const struct pin_gate *gate)
{
	return pin_load_acquire_u64(&gate->word) / PIN_GATE_UNIT;
}

/* ---- the queue limit ---- */

/*
 * The queue limit: how many tasks of the normal lane from outside may wait in
 * the queue that all workers share. The other lanes have a limit each, by the
 * claims of queue/lane_queue.h.
 *
 * The gate counts admissions, the poppers count departures; the difference
 * waits. To compare the two for each task would have every spawn read what a
 * worker has just written. So the queue limit keeps the end up to which the
 * gate may count by its last view, beside the gate's own word, and only a
 * thread that gets there reads both counts again. The known end is never too
 * far, since departures only move it on.
 *
 * Pushes of workers themselves are never refused, since a running task may need
 * them to finish. They take room all the same, from the next check on; there
 * are at least sixteen checks while a whole limit is admitted.
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

enum {
	/* Checks while a whole limit is admitted. */
	PIN_QUEUE_LIMIT_CHECKS = 16,
};

struct pin_queue_limit {
	uint64_t limit;		   /* [const] of each lane; UINT64_MAX: none */
	struct pin_atomic_u64 end; /* [W:outside R:outside] of the gate's count */
	/* [W:outside R:outside] admitted, and not for this queue */
	struct pin_atomic_u64 elsewhere;
	struct pin_atomic_u64 refused; /* [W:outside R:any] */
};

/* `limit` 0: none. */
static inline void pin_queue_limit_init(struct pin_queue_limit *queue_limit, uint64_t limit)
{
	*queue_limit = (struct pin_queue_limit){.limit = limit == 0 ? UINT64_MAX : limit};
	/*
	 * Relaxed: no other thread uses it yet. No gate counts as far as the
	 * first of these, and what other lanes add to it does not wrap.
	 */
	pin_store_relaxed_u64(&queue_limit->end, limit == 0 ? UINT64_MAX / PIN_GATE_UNIT : 0);
}

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
static inline bool pin_queue_limit_renew(struct pin_queue_limit *queue_limit,
	const struct pin_queue_limit_view *view, uint64_t count, uint64_t *out_waiting)
{
	/* Of limit, popped and elsewhere each is part of the new end. */
	uint64_t end = queue_limit->limit + view->popped +
		pin_load_acquire_u64(&queue_limit->elsewhere); /* [QLIMIT-1] */
	uint64_t next;

	PIN_DCHECK(queue_limit->limit > 0);
	end = end > view->pushed_inside ? end - view->pushed_inside : 0;
	if (view->admitted + count > end) {
		*out_waiting = view->admitted + queue_limit->limit - end;
		return false;
	}
	next = view->admitted + count + queue_limit->limit / PIN_QUEUE_LIMIT_CHECKS;
	/* Relaxed: whatever end was right once is right. */
	pin_store_relaxed_u64(&queue_limit->end, next < end ? next : end);
	return true;
}

#endif

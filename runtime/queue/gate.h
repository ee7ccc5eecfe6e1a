/* SPDX-License-Identifier: MIT */
/*
 * The gate: one word that decides whether outside work is still admitted and
 * counts the admissions.
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

void pin_gate_init(struct pin_gate *gate);

enum {
	PIN_GATE_ACCEPTING = 1,
	PIN_GATE_UNIT = 2,
};

enum pin_gate_answer {
	PIN_GATE_ADMITTED,
	PIN_GATE_CLOSED,
	PIN_GATE_FULL,
};

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
bool pin_gate_undo(struct pin_gate *gate, uint64_t count);

/* Ends admission; further calls change nothing. */
void pin_gate_close(struct pin_gate *gate);

bool pin_gate_is_open(const struct pin_gate *gate);

/* Admissions so far that were not forgone; falls only, once it is closed. */
uint64_t pin_gate_admitted(const struct pin_gate *gate);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The gate: one word that decides whether outside work is still admitted and
 * counts what has been.
 *
 * Bit 0 says "accepting", the rest counts admissions ever made. Both in one
 * word, so that no admission can slip past a close: after pin_gate_close() the
 * count grows no more. What is finished is counted by the workers, each in its
 * own meter, so completing a task writes nothing shared.
 *
 * Whoever was admitted may forgo it, as if it had never been. Until then the
 * count is too high, which can only delay the end, never hasten it; so when the
 * gate is closed already, whoever waits for the end has to look once more.
 *
 * Progress: admit is lock-free, the others are wait-free. Any thread.
 *
 * [GATE-1] close (RMW, seq_cst) -> admit (CAS, seq_cst): an admission either
 * comes before the close and is in its count, or fails.
 */
#ifndef PIN_SCHED_GATE_H
#define PIN_SCHED_GATE_H

#include "runtime/base/atomic.h"

struct pin_gate {
	struct pin_atomic_u64 word; /* [W:any R:any] */
};

void pin_gate_init(struct pin_gate *gate);

/* Counts `count` admissions; false when closed, and then nothing is counted. */
bool pin_gate_admit(struct pin_gate *gate, uint64_t count);

/*
 * Takes back `count` admissions for which nothing was done yet. True: the gate
 * is closed, and workers that sleep have to be woken to look at the count.
 */
bool pin_gate_forgo(struct pin_gate *gate, uint64_t count);

/* Ends admission; further calls change nothing. */
void pin_gate_close(struct pin_gate *gate);

bool pin_gate_is_open(const struct pin_gate *gate);

/* Admissions so far that were not forgone; falls only, once it is closed. */
uint64_t pin_gate_admitted(const struct pin_gate *gate);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The gate's operations on its word, but for admissions.
 */
#include "runtime/queue/gate.h"
#include "runtime/base/check.h"

void pin_gate_init(struct pin_gate *gate)
{
	pin_store_release_u64(&gate->word, PIN_GATE_ACCEPTING);
}

bool pin_gate_undo(struct pin_gate *gate, uint64_t count)
{
	uint64_t before = pin_fetch_sub_acq_rel_u64(&gate->word, count * PIN_GATE_UNIT);

	PIN_CHECK(before / PIN_GATE_UNIT >= count);
	return (before & PIN_GATE_ACCEPTING) == 0;
}

void pin_gate_close(struct pin_gate *gate)
{
	pin_fetch_and_seq_cst_u64(&gate->word, ~(uint64_t)PIN_GATE_ACCEPTING); /* [GATE-1] */
}

bool pin_gate_is_open(const struct pin_gate *gate)
{
	return (pin_load_acquire_u64(&gate->word) & PIN_GATE_ACCEPTING) != 0;
}

uint64_t pin_gate_admitted(const struct pin_gate *gate)
{
	return pin_load_acquire_u64(&gate->word) / PIN_GATE_UNIT;
}

/* SPDX-License-Identifier: MIT */
/*
 * Learns from the length of calls how much one call may submit.
 *
 * The ring reports its calls while requests of the high lane come; pure
 * arithmetic.
 */
#include "runtime/policy/submit_bound.h"
#include "runtime/base/check.h"

enum {
	/* A call that is too long lowers the limit by one part in this. */
	LOWER_PART = 8,
	/* A full call that is short raises it by one part in this. */
	RAISE_PART = 16,
	/* Short: below that. */
	SHORT_NS = PIN_SUBMIT_BOUND_NS / 4 * 3,
};

/* Rounded up, so that every limit moves. */
static uint32_t part_of(uint32_t limit, uint32_t part)
{
	return (limit + part - 1) / part;
}

void pin_submit_bound_note_call(struct pin_submit_bound *bound, uint64_t took_ns)
{
	bool is_full = bound->gathered >= bound->limit;

	if (took_ns > PIN_SUBMIT_BOUND_NS) {
		bound->limit -= part_of(bound->limit, LOWER_PART);
	} else if (is_full && took_ns < SHORT_NS) {
		bound->limit += part_of(bound->limit, RAISE_PART);
	}
	if (bound->limit < PIN_SUBMIT_UNITS_MIN) {
		bound->limit = PIN_SUBMIT_UNITS_MIN;
	}
	if (bound->limit > PIN_SUBMIT_UNITS_MAX) {
		bound->limit = PIN_SUBMIT_UNITS_MAX;
	}
	bound->gathered = 0;
}

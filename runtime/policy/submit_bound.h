/* SPDX-License-Identifier: MIT */
/*
 * The submit bound: how much a worker submits in one system call while requests
 * of the high lane come, so that the call takes some 100 us at most.
 *
 * Some devices copy while the kernel submits (zram, the page cache): a call
 * with 2 MiB takes half a millisecond there, and a request that comes meanwhile
 * waits for all of it. What a page costs is not known before, and differs by a
 * factor of 100 between devices. So the limit follows the calls themselves: a
 * call that takes longer than the bound lowers it by an eighth, a full call
 * that takes less than three quarters of the bound raises it by a sixteenth.
 * In between it stays, and a call that was not full and short says nothing.
 *
 * A call may be long because another thread had the CPU. It counts like any
 * other that was too long, however long it was: three full calls make up for
 * one such. So only if more than a quarter of the calls is interrupted does the
 * limit fall, and never below one request of 64 KiB.
 *
 * The unit is a page; each request counts one more, since it costs something
 * whatever its length.
 *
 * Policy only: no atomics, no clock, integers throughout. One per ring, used by
 * its holder, which adds each request that gathers, makes the call when it is
 * due, and reports how long it took.
 *
 * Source: docs/decisions/devices.md, "A call is bounded while urgent requests
 * come".
 *
 * Invariants: 1. MIN <= limit <= MAX. 2. `gathered` is what the next call has.
 */
#ifndef PIN_POLICY_SUBMIT_BOUND_H
#define PIN_POLICY_SUBMIT_BOUND_H

#include "runtime/base/check.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	/* What a call may take. */
	PIN_SUBMIT_BOUND_NS = 100 * 1000,
	/* In units. One request of 64 KiB, and more than any ring holds. */
	PIN_SUBMIT_UNITS_MIN = 17,
	PIN_SUBMIT_UNITS_MAX = 1 << 20,
	/* Before the first call: what a device that copies may do in time. */
	PIN_SUBMIT_UNITS_START = 5 * PIN_SUBMIT_UNITS_MIN,
	PIN_SUBMIT_UNIT_BYTES = 4096,
	/* A call that is too long lowers the limit by one part in this. */
	PIN_SUBMIT_LOWER_PART = 8,
	/* A full call that is short raises it by one part in this. */
	PIN_SUBMIT_RAISE_PART = 16,
	/* Short: below that. */
	PIN_SUBMIT_SHORT_NS = PIN_SUBMIT_BOUND_NS / 4 * 3,
};

struct pin_submit_bound {
	uint32_t limit;	   /* units of one call; the last request may exceed it */
	uint32_t gathered; /* units since the last call */
};

static inline void pin_submit_bound_init(struct pin_submit_bound *bound)
{
	*bound = (struct pin_submit_bound){.limit = PIN_SUBMIT_UNITS_START};
}

/* A request of that length has gathered. True: the call is due. */
static inline bool pin_submit_bound_add(struct pin_submit_bound *bound, uint32_t bytes)
{
	PIN_DCHECK(bound->limit >= PIN_SUBMIT_UNITS_MIN && bound->limit <= PIN_SUBMIT_UNITS_MAX);
	PIN_DCHECK(bytes <= UINT32_MAX - PIN_SUBMIT_UNIT_BYTES);
	bound->gathered += 1 + (bytes + PIN_SUBMIT_UNIT_BYTES - 1) / PIN_SUBMIT_UNIT_BYTES;
	return bound->gathered >= bound->limit;
}

/* Rounded up, so that every limit moves. */
static inline uint32_t pin_submit_part_of(uint32_t limit, uint32_t part)
{
	return (limit + part - 1) / part;
}

/* The gathered requests were submitted, by a call that took `took_ns`. */
static inline void pin_submit_bound_note_call(struct pin_submit_bound *bound, uint64_t took_ns)
{
	bool is_full = bound->gathered >= bound->limit;

	if (took_ns > PIN_SUBMIT_BOUND_NS) {
		bound->limit -= pin_submit_part_of(bound->limit, PIN_SUBMIT_LOWER_PART);
	} else if (is_full && took_ns < PIN_SUBMIT_SHORT_NS) {
		bound->limit += pin_submit_part_of(bound->limit, PIN_SUBMIT_RAISE_PART);
	}
	if (bound->limit < PIN_SUBMIT_UNITS_MIN) {
		bound->limit = PIN_SUBMIT_UNITS_MIN;
	}
	if (bound->limit > PIN_SUBMIT_UNITS_MAX) {
		bound->limit = PIN_SUBMIT_UNITS_MAX;
	}
	bound->gathered = 0;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The plainest thing that waiters can wait for: units in a word. For models as
 * well.
 */
#ifndef PIN_TESTS_SUPPORT_UNITS_H
#define PIN_TESTS_SUPPORT_UNITS_H

#include "runtime/queue/wait_queue.h"

static struct pin_atomic_u32 units;

/* A pin_waiters_take_fn; the value's first word says how many it was. */
static inline bool units_take(void *arg, uint64_t demand, struct pin_waiters_value *out_value)
{
	uint32_t available = pin_load_acquire_u32(&units);

	(void)arg;
	while (available >= demand) {
		if (pin_cas_acq_rel_u32(&units, &available, available - (uint32_t)demand)) {
			out_value->words[0] = demand;
			return true;
		}
	}
	return false;
}

#endif

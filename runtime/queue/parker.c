/* SPDX-License-Identifier: MIT */
/*
 * The four moves on a parker's state word.
 */
#include "runtime/queue/parker.h"
#include "runtime/base/check.h"

void pin_parker_init(struct pin_parker *parker)
{
	pin_store_release_u32(&parker->state, PIN_RUNNING);
}

bool pin_parker_prepare(struct pin_parker *parker, enum pin_park_state mode)
{
	uint32_t state = PIN_RUNNING;

	PIN_CHECK(mode == PIN_PARK_FUTEX || mode == PIN_PARK_RING);
	if (pin_cas_seq_cst_u32(&parker->state, &state, mode)) { /* [PARK-2] */
		return true;
	}
	PIN_CHECK(state == PIN_NOTIFIED);
	pin_exchange_seq_cst_u32(&parker->state, PIN_RUNNING);
	return false;
}

void pin_parker_sleep(struct pin_parker *parker, const struct pin_host *host, uint64_t deadline_ns)
{
	host->futex_wait(&parker->state, PIN_PARK_FUTEX, deadline_ns); /* [PARK-2] */
}

bool pin_parker_finish(struct pin_parker *parker)
{
	uint32_t state = pin_exchange_seq_cst_u32(&parker->state, PIN_RUNNING);

	PIN_CHECK((state & (PIN_PARK_FUTEX | PIN_PARK_RING)) != 0);
	return state == (PIN_PARK_RING | PIN_NOTIFIED);
}

bool pin_parker_notify(struct pin_parker *parker, const struct pin_host *host)
{
	uint32_t before = pin_fetch_or_seq_cst_u32(&parker->state, PIN_NOTIFIED); /* [PARK-2] */

	PIN_DCHECK((before & (PIN_PARK_FUTEX | PIN_PARK_RING)) != (PIN_PARK_FUTEX | PIN_PARK_RING));
	if (before == PIN_PARK_FUTEX) {
		host->futex_wake(&parker->state, 1);
	}
	return before == PIN_PARK_RING;
}

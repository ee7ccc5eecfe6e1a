/* SPDX-License-Identifier: MIT */
/*
 * A count budget: so many of something, and those who want one when there is
 * none wait asleep. Threads outside the runtime wait; workers only give back.
 *
 * [BUDGET-1] release adds, then looks for waiters; a waiter announces itself,
 * then looks at the count, and the futex compares it once more. Both sides are
 * seq_cst, so one of them sees the other; without that a waiter could sleep on
 * a unit that was given back between its look and its announcement.
 */
#ifndef PIN_CORE_BUDGET_H
#define PIN_CORE_BUDGET_H

#include "runtime/base/base.h"
#include "runtime/host/host.h"

struct pin_budget {
	const struct pin_host *host;			   /* [const] */
	struct pin_atomic_u32 available PIN_CACHE_ALIGNED; /* [W:any R:any] */
	struct pin_atomic_u32 waiters;			   /* [W:waiters R:any] */
};

void pin_budget_init(struct pin_budget *budget, const struct pin_host *host, uint32_t units);

bool pin_budget_try_acquire(struct pin_budget *budget);

/* Waits for a unit. Not on a worker. */
void pin_budget_acquire(struct pin_budget *budget);

void pin_budget_release(struct pin_budget *budget);

#endif

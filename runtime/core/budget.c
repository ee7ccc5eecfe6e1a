/* SPDX-License-Identifier: MIT */
/*
 * A counter, a waiter count and a futex.
 */
#include "runtime/core/budget.h"

void pin_budget_init(struct pin_budget *budget, const struct pin_host *host, uint32_t units)
{
	*budget = (struct pin_budget){.host = host};
	pin_store_release_u32(&budget->available, units);
}

bool pin_budget_try_acquire(struct pin_budget *budget)
{
	uint32_t available = pin_load_acquire_u32(&budget->available);

	while (available > 0) {
		if (pin_cas_seq_cst_u32(&budget->available, &available, available - 1)) {
			return true;
		}
	}
	return false;
}

void pin_budget_acquire(struct pin_budget *budget)
{
	if (pin_budget_try_acquire(budget)) {
		return;
	}
	pin_fetch_add_seq_cst_u32(&budget->waiters, 1); /* [BUDGET-1] */
	while (!pin_budget_try_acquire(budget)) {
		budget->host->futex_wait(&budget->available, 0, PIN_NO_DEADLINE);
	}
	pin_fetch_add_seq_cst_u32(&budget->waiters, UINT32_MAX);
}

void pin_budget_release(struct pin_budget *budget)
{
	pin_fetch_add_seq_cst_u32(&budget->available, 1); /* [BUDGET-1] */
	pin_fence_seq_cst();
	if (pin_load_acquire_u32(&budget->waiters) > 0) { /* [BUDGET-1] */
		budget->host->futex_wake(&budget->available, 1);
	}
}

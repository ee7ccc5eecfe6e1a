/* SPDX-License-Identifier: MIT */
/*
 * What a budget consists of. All of it is protected by the lock of its waiters,
 * so several kinds are taken in one step: nobody ever holds a part of what it
 * wants while it waits for the rest, and there is nothing to deadlock on.
 *
 * What a waiter demands is the address of its amounts.
 */
#ifndef PIN_TASK_BUDGET_H
#define PIN_TASK_BUDGET_H

#include "runtime/worker/wait.h"

#include <pinion/budget.h>

struct pin_budget {
	struct pin_waiters waiters;
	struct pinion_runtime *runtime;	      /* [const] may be NULL */
	uint32_t kind_count;		      /* [const] */
	uint64_t totals[PINION_BUDGET_KINDS]; /* [const] */
	/* [lock:waiters] at most the totals */
	uint64_t available[PINION_BUDGET_KINDS];
};

_Static_assert(sizeof(struct pin_budget) <= sizeof(struct pinion_budget), "fits");
_Static_assert(sizeof(struct pinion_budget) == 192, "released size");

#endif

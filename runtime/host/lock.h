/* SPDX-License-Identifier: MIT */
/*
 * A lock for short, rare critical sections: one word, one futex.
 *
 * 0 free, 1 held, 2 held and somebody may be asleep on it. It lives on the host
 * seam rather than in pthreads so that a model or a simulation sees it.
 *
 * [LOCK-1] release (exchange, release half) -> acquire (CAS or exchange,
 * acquire half): what the last holder wrote is visible to the next; without it
 * two holders could both see the state before.
 */
#ifndef PIN_HOST_LOCK_H
#define PIN_HOST_LOCK_H

#include "runtime/host/host.h"

struct pin_lock {
	struct pin_atomic_u32 word; /* [W:any R:any] */
};

static inline void pin_lock_acquire(struct pin_lock *lock, const struct pin_host *host)
{
	uint32_t free_word = 0;

	if (pin_cas_acquire_u32(&lock->word, &free_word, 1)) { /* [LOCK-1] */
		return;
	}
	while (pin_exchange_acq_rel_u32(&lock->word, 2) != 0) { /* [LOCK-1] */
		host->futex_wait(&lock->word, 2, PIN_NO_DEADLINE);
	}
}

/* False: another has it. */
static inline bool pin_lock_try(struct pin_lock *lock)
{
	uint32_t free_word = 0;

	return pin_cas_acquire_u32(&lock->word, &free_word, 1); /* [LOCK-1] */
}

static inline void pin_lock_release(struct pin_lock *lock, const struct pin_host *host)
{
	if (pin_exchange_acq_rel_u32(&lock->word, 0) == 2) { /* [LOCK-1] */
		host->futex_wake(&lock->word, 1);
	}
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The parked set: one bit per worker that is about to sleep or asleep.
 *
 * A waker picks a set bit with ctz and clears it with fetch_and. The value
 * that fetch_and returns, and nothing else, decides who got the worker: two
 * wakers never spend their wake on the same one. A worker that returns by
 * itself withdraws its bit; finding it gone only means that a wake is on its
 * way, which is harmless (parker.h).
 *
 * Progress: publish and withdraw are wait-free; claim is lock-free. Any thread
 * may claim, publish and withdraw belong to the worker itself.
 *
 * Orderings: parker.h tells the protocol, [PARK-1] and [PARK-2].
 */
#ifndef PIN_SCHED_IDLE_H
#define PIN_SCHED_IDLE_H

#include "runtime/base/atomic.h"
#include "runtime/base/base.h"

#define PIN_IDLE_WORDS 64u
#define PIN_IDLE_WORKERS_MAX (PIN_IDLE_WORDS * 64u)
#define PIN_IDLE_NONE UINT32_MAX

struct pin_idle {
	uint32_t word_count;					       /* [const] */
	struct pin_atomic_u64 words[PIN_IDLE_WORDS] PIN_CACHE_ALIGNED; /* [W:any R:any] */
};

void pin_idle_init(struct pin_idle *idle, uint32_t worker_count);
void pin_idle_publish(struct pin_idle *idle, uint32_t worker_index);
void pin_idle_withdraw(struct pin_idle *idle, uint32_t worker_index);

/* Takes the lowest parked worker out of the set, or PIN_IDLE_NONE. */
uint32_t pin_idle_claim(struct pin_idle *idle);

/* Number of set bits; exact only while nothing changes. */
uint32_t pin_idle_count(const struct pin_idle *idle);

#endif

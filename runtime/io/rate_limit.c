/* SPDX-License-Identifier: MIT */
/*
 * Rates of bytes and requests that all workers keep together: reservations of
 * time under one lock.
 *
 * worker/device_queue.c reserves before it starts transfers, about once in a
 * millisecond; public calls change the rates (rate_limit.h).
 */
#include "runtime/io/rate_limit.h"
#include "runtime/base/check.h"

enum {
	/* A reservation is one of this number of parts of a second. */
	PARTS = 1000,
};

void pin_limiter_set(struct pin_limiter *limiter, const struct pin_host *host,
	const uint64_t per_second[PIN_LIMITED_KINDS])
{
	uint64_t now_ns = host->now_ns();
	uint32_t is_on = pin_load_relaxed_u64(&limiter->slow_ns) != 0;

	pin_lock_acquire(&limiter->lock, host);
	for (uint32_t i = 0; i < PIN_LIMITED_KINDS; i++) {
		pin_rate_set(&limiter->rates[i], per_second[i], now_ns);
		is_on |= per_second[i] != 0;
	}
	pin_limiter_begin_epoch(limiter);
	pin_store_release_u32(&limiter->is_on, is_on);
	pin_lock_release(&limiter->lock, host);
}

/*
 * At least a part of a second's amount at once, so that a worker takes the lock
 * rarely.
 */
static void reserve_kind(struct pin_rate *rate, struct pin_allowance *allowance, uint32_t kind,
	uint64_t now_ns, uint64_t wanted)
{
	uint64_t amount;

	PIN_DCHECK(kind < PIN_LIMITED_KINDS);
	if (rate->per_second == 0) {
		allowance->left[kind] = UINT64_MAX;
		return;
	}
	if (allowance->left[kind] >= wanted) {
		return;
	}
	amount = wanted - allowance->left[kind];
	amount = amount < rate->per_second / PARTS ? rate->per_second / PARTS : amount;
	allowance->usable_ns[kind] = pin_rate_reserve(rate, now_ns, amount);
	PIN_DCHECK(allowance->usable_ns[kind] >= now_ns);
	PIN_DCHECK(amount <= UINT64_MAX - allowance->left[kind]);
	allowance->left[kind] += amount;
	PIN_DCHECK(allowance->left[kind] >= wanted);
}

static bool has_enough(const struct pin_limiter *limiter, const struct pin_allowance *allowance,
	const uint64_t wanted[PIN_LIMITED_KINDS])
{
	for (uint32_t i = 0; i < PIN_LIMITED_KINDS; i++) {
		if (allowance->left[i] < wanted[i]) {
			return false;
		}
	}
	/* [LIMIT-1] */
	return allowance->epoch == pin_load_acquire_u32(&limiter->epoch);
}

/*
 * Takes the lock only if the worker's earlier reservation is used up or void.
 * Returns when the slowest kind allows the start, 0 for now.
 */
uint64_t pin_limiter_reserve(struct pin_limiter *limiter, const struct pin_host *host,
	struct pin_allowance *allowance, const uint64_t wanted[PIN_LIMITED_KINDS])
{
	uint64_t now_ns = host->now_ns();
	uint64_t due_ns = 0;

	if (!has_enough(limiter, allowance, wanted)) {
		pin_lock_acquire(&limiter->lock, host);
		if (allowance->epoch != pin_load_relaxed_u32(&limiter->epoch)) {
			*allowance = (struct pin_allowance){
				.epoch = pin_load_relaxed_u32(&limiter->epoch),
			};
		}
		for (uint32_t i = 0; i < PIN_LIMITED_KINDS; i++) {
			reserve_kind(&limiter->rates[i], allowance, i, now_ns, wanted[i]);
		}
		pin_lock_release(&limiter->lock, host);
	}
	for (uint32_t i = 0; i < PIN_LIMITED_KINDS; i++) {
		due_ns = allowance->usable_ns[i] > due_ns ? allowance->usable_ns[i] : due_ns;
	}
	return due_ns <= now_ns ? 0 : due_ns;
}

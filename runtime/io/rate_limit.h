/* SPDX-License-Identifier: MIT */
/*
 * A limiter: rates of bytes and of requests that all workers keep together, and
 * that may be changed at any time.
 *
 * A worker reserves as much as it needs, or what a millisecond has, and uses
 * that up by itself: so the lock, and the line it is in, are touched about once
 * in a millisecond however many requests there are. It learns from when on it
 * may use it, and waits by its own timer, without a wake. Only a change of the
 * rates sends wakes: earlier reservations are void then, and the thread that
 * has changed them has each worker check again (worker/request.h).
 *
 * [LIMIT-1] a thread that sets rates changes `epoch` with them, under the lock,
 * then has the workers check (release) -> a worker that checks (acquire) finds
 * another epoch and reserves anew. A worker that reserves meanwhile has the
 * lock before or after; its earlier reservation is void, and a later one is by
 * the new rates.
 *
 * Invariant: the amount that may be used in any span of T is at most that of
 * the rate in T, and 10 ms, and for each worker, and once more, one
 * reservation.
 */
#ifndef PIN_IO_RATE_LIMIT_H
#define PIN_IO_RATE_LIMIT_H

#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/host/host.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- rate ---- */

/*
 * A rate: a number of bytes, or requests, in a second and no more.
 *
 * It is kept as one instant, until when everything is spoken for. A caller
 * reserves an amount and learns from when on it may use it; the instant moves
 * on by the amount's time at this rate. So a waiter knows for how long, and
 * needs no wake. Unused time of the last PIN_RATE_BURST_NS may be made up for,
 * no more.
 *
 * Arithmetic only: no atomics, no clock; the caller holds the limiter's lock.
 *
 * Invariant: of reserved amounts, the part that may be used in any span of T ns
 * is at most per_second * (T + PIN_RATE_BURST_NS) / 1e9, and one reservation.
 */

#define PIN_RATE_BURST_NS (UINT64_C(10) * 1000 * 1000)

struct pin_rate {
	uint64_t per_second; /* 0: no limit */
	uint64_t free_ns;    /* until then all is spoken for */
};

/* Nothing is spoken for, and nothing to be made up for. */
static inline void pin_rate_set(struct pin_rate *rate, uint64_t per_second, uint64_t now_ns)
{
	rate->per_second = per_second;
	rate->free_ns = now_ns;
}

/* The time of that amount, rounded up; at most 2^61 ns. */
static inline uint64_t pin_rate_cost_ns(const struct pin_rate *rate, uint64_t amount)
{
	const uint64_t second_ns = 1000000000;
	PIN_DCHECK(rate->per_second > 0);
	uint64_t seconds = amount / rate->per_second;
	uint64_t rest = amount % rate->per_second;

	if (seconds >= (UINT64_C(1) << 31)) {
		return UINT64_C(1) << 61;
	}
	/* What would not fit, rounding included; the shift loses a little. */
	if (rest > (UINT64_MAX - rate->per_second) / second_ns) {
		return seconds * second_ns + (rest >> 30) * second_ns / (rate->per_second >> 30) +
			1;
	}
	return seconds * second_ns + (rest * second_ns + rate->per_second - 1) / rate->per_second;
}

/* Reserves `amount`; returns when it may be used, `now_ns` at the earliest. */
static inline uint64_t pin_rate_reserve(struct pin_rate *rate, uint64_t now_ns, uint64_t amount)
{
	uint64_t start_ns = rate->free_ns;

	if (start_ns + PIN_RATE_BURST_NS < now_ns) {
		start_ns = now_ns - PIN_RATE_BURST_NS;
	}
	rate->free_ns = start_ns + pin_rate_cost_ns(rate, amount);
	PIN_DCHECK(rate->free_ns > start_ns || amount == 0); /* it only moves on */
	return start_ns < now_ns ? now_ns : start_ns;
}

/* ---- rate limit ---- */

enum pin_limited {
	PIN_LIMITED_BYTES,
	PIN_LIMITED_REQUESTS,
	PIN_LIMITED_KINDS,
};

struct pin_limiter {
	struct pin_atomic_u32 is_on; /* [W:lock R:any] a rate, or slow_ns */
	struct pin_atomic_u32 epoch; /* [W:lock R:any] of the rates */
	/* [W:lock of disks R:any] a longer request is slow; 0: none */
	struct pin_atomic_u64 slow_ns;
	struct pin_lock lock PIN_CACHE_ALIGNED;
	struct pin_rate rates[PIN_LIMITED_KINDS]; /* [lock:lock] */
};

/* [own] What a worker has reserved and not used. */
struct pin_allowance {
	uint64_t left[PIN_LIMITED_KINDS]; /* without a rate, a large number */
	uint64_t usable_ns[PIN_LIMITED_KINDS];
	uint32_t epoch;
};

/* Any thread; 0: no limit. */
void pin_limiter_set(struct pin_limiter *limiter, const struct pin_host *host,
	const uint64_t per_second[PIN_LIMITED_KINDS]);

/* Voids all reservations; under the lock. */
static inline void pin_limiter_begin_epoch(struct pin_limiter *limiter)
{
	pin_store_release_u32(
		&limiter->epoch, pin_load_relaxed_u32(&limiter->epoch) + 1); /* [LIMIT-1] */
}

/* Slow way of the next one. */
uint64_t pin_limiter_reserve(struct pin_limiter *limiter, const struct pin_host *host,
	struct pin_allowance *allowance, const uint64_t wanted[PIN_LIMITED_KINDS]);

/*
 * When that amount may be used, 0: now; then the caller goes on with
 * pin_limiter_spend(), or leaves it.
 */
static inline uint64_t pin_limiter_due(struct pin_limiter *limiter, const struct pin_host *host,
	struct pin_allowance *allowance, const uint64_t wanted[PIN_LIMITED_KINDS])
{
	if (PIN_LIKELY(pin_load_relaxed_u32(&limiter->is_on) == 0)) {
		return 0;
	}
	return pin_limiter_reserve(limiter, host, allowance, wanted);
}

static inline void pin_limiter_spend(
	struct pin_allowance *allowance, const uint64_t amounts[PIN_LIMITED_KINDS])
{
	for (uint32_t i = 0; i < PIN_LIMITED_KINDS; i++) {
		uint64_t left = allowance->left[i];

		/* Without a limiter there is none. */
		allowance->left[i] = left > amounts[i] ? left - amounts[i] : 0;
	}
}

#endif

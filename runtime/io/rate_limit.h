/* SPDX-License-Identifier: MIT */
/*
 * A limiter: rates of bytes and of requests that all workers keep together, and
 * that may be changed at any time.
 *
 * A worker reserves as much as it needs, or the amount of a millisecond, and
 * uses that up by itself: so the lock, and the line it is in, are touched about
 * once in a millisecond however many requests there are. The reservation says
 * from when on the worker may use it; it waits for that by its own timer,
 * without a wake.
 *
 * An amount is saved up before it may be used: at any moment time that has
 * passed has paid for all that could start. So a change of a rate owes nothing
 * to earlier starts and gives nothing away: it changes the slope from that
 * moment on. Time that has passed unused counts at the rate that was in force.
 * Reservations that could not be used yet are void, and the thread that has set
 * the rates has each worker check again (worker/request.h). Of older
 * reservations that it could use, a worker then keeps no more than it would
 * reserve now, and gives the rest back. Setting the same rate again changes
 * nothing.
 *
 * [LIMIT-1] a thread that changes rates changes `epoch` with them, under the
 * lock, then has the workers check (release) -> a worker that checks (acquire)
 * finds another epoch and reserves anew. A worker that reserves meanwhile has
 * the lock before or after; its earlier reservation is void, and a later one is
 * by the new rates.
 *
 * Invariant: the amount that may be used in any span is at most the sum of the
 * rates over that span, and 10 ms or one reservation more, and for each worker
 * one reservation that it has not used at once, however often rates change.
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
 * It is kept as two instants. Until `free_ns` all time is reserved: a caller
 * reserves an amount, which moves it on by the amount's time at this rate, and
 * may use the amount when that instant has come. So a waiter knows for how
 * long, and needs no wake. Unused time may be made up for: the last
 * PIN_RATE_BURST_NS, or one reservation of any size, so that after a pause each
 * request starts at once.
 *
 * Until `taken_ns` time is used up by amounts that could be used. A change of
 * the rate goes on from there, and so forgets those that could not.
 *
 * Arithmetic only: no atomics, no clock; the caller holds the limiter's lock.
 *
 * Invariants: 1. `free_ns` - `taken_ns` is the time of reservations that are
 * not taken. 2. of reserved amounts, the part that may be used in any span of T
 * ns is at most per_second * (T + PIN_RATE_BURST_NS) / 1e9, or one reservation
 * in place of the burst.
 */

#define PIN_RATE_BURST_NS (UINT64_C(10) * 1000 * 1000)

struct pin_rate {
	uint64_t per_second; /* 0: no limit */
	uint64_t taken_ns;
	uint64_t free_ns;
	uint32_t changed; /* the epoch that this rate is of */
	uint32_t begun;	  /* the epoch since when there is one, or none */
	bool is_unused;	  /* nothing was reserved since */
};

/*
 * Goes on at another rate from now on. Where there was none all earlier time is
 * unused.
 */
static inline void pin_rate_set(
	struct pin_rate *rate, uint64_t per_second, uint64_t now_ns, uint32_t epoch)
{
	double unused_ns = rate->taken_ns < now_ns ? (double)(now_ns - rate->taken_ns) : 0;

	if (rate->per_second == 0 || per_second == 0) {
		unused_ns = (double)now_ns;
		rate->begun = epoch;
		rate->is_unused = true;
	} else {
		unused_ns *= (double)rate->per_second / (double)per_second;
	}
	rate->per_second = per_second;
	rate->changed = epoch;
	rate->taken_ns = unused_ns < (double)now_ns ? now_ns - (uint64_t)unused_ns : 0;
	rate->free_ns = rate->taken_ns;
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
	/* A cost too large, rounding included; the shift loses a little. */
	if (rest > (UINT64_MAX - rate->per_second) / second_ns) {
		return seconds * second_ns + (rest >> 30) * second_ns / (rate->per_second >> 30) +
			1;
	}
	return seconds * second_ns + (rest * second_ns + rate->per_second - 1) / rate->per_second;
}

/* Reserves an amount of that time; returns when it may be used. */
static inline uint64_t pin_rate_reserve(struct pin_rate *rate, uint64_t now_ns, uint64_t cost_ns)
{
	uint64_t most_ns = cost_ns < PIN_RATE_BURST_NS ? PIN_RATE_BURST_NS : cost_ns;

	PIN_DCHECK(rate->taken_ns <= rate->free_ns);
	if (rate->free_ns + most_ns < now_ns) {
		uint64_t lost_ns = now_ns - most_ns - rate->free_ns;

		rate->free_ns += lost_ns;
		rate->taken_ns += lost_ns;
	}
	rate->free_ns += cost_ns;
	if (rate->is_unused) {
		rate->is_unused = false;
		return now_ns; /* also where the clock is younger than its time */
	}
	return rate->free_ns;
}

/* A reservation of that time may be used: whatever rates come, it is spent. */
static inline void pin_rate_take(struct pin_rate *rate, uint64_t cost_ns)
{
	rate->taken_ns += cost_ns;
	PIN_DCHECK(rate->taken_ns <= rate->free_ns);
}

/* Time of a reservation that was taken and is not used after all. */
static inline void pin_rate_give_back(struct pin_rate *rate, uint64_t unused_ns)
{
	unused_ns = unused_ns < rate->taken_ns ? unused_ns : rate->taken_ns;
	rate->taken_ns -= unused_ns;
	rate->free_ns -= unused_ns;
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
	/* [W:lock R:any] the most a request pays for at once; 0: any */
	struct pin_atomic_u64 part_bytes;
	uint32_t worker_count; /* [const] that keep the rates together */
	struct pin_lock lock PIN_CACHE_ALIGNED;
	struct pin_rate rates[PIN_LIMITED_KINDS]; /* [lock:lock] */
};

/* [own] What a worker has reserved and not used. */
struct pin_allowance {
	uint64_t left[PIN_LIMITED_KINDS];   /* usable; without a rate, a large number */
	uint64_t coming[PIN_LIMITED_KINDS]; /* usable from that instant on, ... */
	uint64_t usable_ns[PIN_LIMITED_KINDS];
	uint64_t coming_ns[PIN_LIMITED_KINDS]; /* ... and the time that it takes */
	uint32_t epoch;
};

/* Any thread; 0: no limit. */
void pin_limiter_set(struct pin_limiter *limiter, const struct pin_host *host,
	const uint64_t per_second[PIN_LIMITED_KINDS]);

/* Has reservations checked; under the lock. */
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

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
	/*
	 * What all workers may hold, each a part of a request, and one part
	 * more, is one of this number of parts of a second.
	 */
	HELD_PARTS = 50,
};

/* A rate of 0 has no parts; any other at least a byte. */
static uint64_t part_of(const struct pin_limiter *limiter, uint64_t bytes_per_second)
{
	uint64_t part_bytes = bytes_per_second / HELD_PARTS / (limiter->worker_count + 1);

	return part_bytes == 0 && bytes_per_second != 0 ? 1 : part_bytes;
}

void pin_limiter_set(struct pin_limiter *limiter, const struct pin_host *host,
	const uint64_t per_second[PIN_LIMITED_KINDS])
{
	uint32_t is_on = pin_load_relaxed_u64(&limiter->slow_ns) != 0;
	bool has_changed = false;
	uint64_t now_ns;
	uint32_t next;

	pin_lock_acquire(&limiter->lock, host);
	/* In the lock: no reservation was made at a later time. */
	now_ns = host->now_ns();
	next = pin_load_relaxed_u32(&limiter->epoch) + 1;
	for (uint32_t i = 0; i < PIN_LIMITED_KINDS; i++) {
		if (limiter->rates[i].per_second != per_second[i]) {
			pin_rate_set(&limiter->rates[i], per_second[i], now_ns, next);
			has_changed = true;
		}
		is_on |= per_second[i] != 0;
	}
	if (has_changed) {
		pin_limiter_begin_epoch(limiter);
	}
	/* A part of the former size, or without a rate's: relaxed. */
	pin_store_relaxed_u64(
		&limiter->part_bytes, part_of(limiter, per_second[PIN_LIMITED_BYTES]));
	pin_store_release_u32(&limiter->is_on, is_on);
	pin_lock_release(&limiter->lock, host);
}

static bool is_before(uint32_t epoch, uint32_t other)
{
	return (int32_t)(epoch - other) < 0;
}

/* At least a part of a second's amount. */
static uint64_t at_least_share(const struct pin_rate *rate, uint64_t amount)
{
	return amount < rate->per_second / PARTS ? rate->per_second / PARTS : amount;
}

/*
 * A reservation from before the last change of its rate: the worker keeps as
 * much of the usable amount as it would reserve now, and gives the rest back,
 * at the present rate. It keeps nothing where there was no rate meanwhile;
 * amounts not yet usable are void.
 */
static void renew_kind(struct pin_rate *rate, struct pin_allowance *allowance,
	enum pin_limited kind, uint64_t wanted)
{
	uint64_t left = allowance->left[kind];
	uint64_t kept = at_least_share(rate, wanted);

	if (!is_before(allowance->epoch, rate->changed)) {
		return;
	}
	if (is_before(allowance->epoch, rate->begun)) {
		kept = 0;
	} else if (left > kept) {
		/* A cost is rounded up. */
		pin_rate_give_back(rate, pin_rate_cost_ns(rate, left - kept) - 1);
	}
	allowance->left[kind] = left < kept ? left : kept;
	allowance->coming[kind] = 0;
	allowance->coming_ns[kind] = 0;
}

static void take_kind(struct pin_rate *rate, struct pin_allowance *allowance, enum pin_limited kind,
	uint64_t now_ns)
{
	if (allowance->coming[kind] != 0 && allowance->usable_ns[kind] <= now_ns) {
		pin_rate_take(rate, allowance->coming_ns[kind]);
		allowance->left[kind] += allowance->coming[kind];
		allowance->coming[kind] = 0;
		allowance->coming_ns[kind] = 0;
	}
}

/*
 * Not less than a share at once, so that a worker takes the lock rarely.
 * Returns when the wanted amount may be used, 0 for now.
 */
static uint64_t reserve_kind(struct pin_rate *rate, struct pin_allowance *allowance,
	enum pin_limited kind, uint64_t now_ns, uint64_t wanted)
{
	uint64_t amount;
	uint64_t cost_ns;

	renew_kind(rate, allowance, kind, wanted);
	if (rate->per_second == 0) {
		allowance->left[kind] = UINT64_MAX;
		return 0;
	}
	take_kind(rate, allowance, kind, now_ns);
	if (allowance->left[kind] >= wanted) {
		return 0;
	}
	if (wanted - allowance->left[kind] > allowance->coming[kind]) {
		amount = at_least_share(
			rate, wanted - allowance->left[kind] - allowance->coming[kind]);
		cost_ns = pin_rate_cost_ns(rate, amount);
		allowance->usable_ns[kind] = pin_rate_reserve(rate, now_ns, cost_ns);
		PIN_DCHECK(amount <= UINT64_MAX - allowance->coming[kind]);
		allowance->coming[kind] += amount;
		allowance->coming_ns[kind] += cost_ns;
		take_kind(rate, allowance, kind, now_ns);
	}
	PIN_DCHECK(allowance->coming[kind] != 0 || allowance->left[kind] >= wanted);
	return allowance->left[kind] >= wanted ? 0 : allowance->usable_ns[kind];
}

/*
 * Returns when the worker's own reservations allow the start; 0: at once;
 * UINT64_MAX: only the limiter knows.
 */
static uint64_t known_due(const struct pin_limiter *limiter, const struct pin_allowance *allowance,
	const uint64_t wanted[PIN_LIMITED_KINDS])
{
	uint64_t due_ns = 0;

	/* [LIMIT-1] */
	if (allowance->epoch != pin_load_acquire_u32(&limiter->epoch)) {
		return UINT64_MAX;
	}
	for (uint32_t i = 0; i < PIN_LIMITED_KINDS; i++) {
		if (allowance->left[i] >= wanted[i]) {
			continue;
		}
		if (wanted[i] - allowance->left[i] > allowance->coming[i]) {
			return UINT64_MAX;
		}
		due_ns = allowance->usable_ns[i] > due_ns ? allowance->usable_ns[i] : due_ns;
	}
	return due_ns;
}

/*
 * Takes the lock only if the worker's earlier reservation is used up or void,
 * or has become usable. Returns when the slowest kind allows the start, 0 for
 * now.
 */
uint64_t pin_limiter_reserve(struct pin_limiter *limiter, const struct pin_host *host,
	struct pin_allowance *allowance, const uint64_t wanted[PIN_LIMITED_KINDS])
{
	uint64_t due_ns = known_due(limiter, allowance, wanted);
	uint64_t now_ns;

	if (due_ns == 0) {
		return 0;
	}
	now_ns = host->now_ns();
	if (due_ns != UINT64_MAX && due_ns > now_ns) {
		return due_ns;
	}
	due_ns = 0;
	pin_lock_acquire(&limiter->lock, host);
	for (uint32_t i = 0; i < PIN_LIMITED_KINDS; i++) {
		uint64_t kind_ns = reserve_kind(
			&limiter->rates[i], allowance, (enum pin_limited)i, now_ns, wanted[i]);

		due_ns = kind_ns > due_ns ? kind_ns : due_ns;
	}
	allowance->epoch = pin_load_relaxed_u32(&limiter->epoch);
	pin_lock_release(&limiter->lock, host);
	return due_ns;
}

/* SPDX-License-Identifier: MIT */
/*
 * A rate: so many bytes, or requests, in a second and no more.
 *
 * It is kept as one instant, until when everything is spoken for. Who wants
 * something reserves it and is told from when on it may be used; the instant
 * moves on by what that takes at this rate. So whoever waits knows for how
 * long, and nobody has to wake it. What was not used in the last
 * PIN_RATE_BURST_NS may be made up for, no more.
 *
 * Arithmetic only: no atomics, no clock; who calls it holds the limiter's lock.
 *
 * Invariant: of what was reserved, that which may be used in any span of T ns
 * is at most per_second * (T + PIN_RATE_BURST_NS) / 1e9, and one reservation.
 */
#ifndef PIN_IO_RATE_H
#define PIN_IO_RATE_H

#include <stdint.h>

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

/* What so much takes, rounded up; at most 2^61 ns. */
static inline uint64_t pin_rate_cost_ns(const struct pin_rate *rate, uint64_t amount)
{
	const uint64_t second_ns = 1000000000;
	uint64_t seconds = amount / rate->per_second;
	uint64_t rest = amount % rate->per_second;

	if (seconds >= (UINT64_C(1) << 31)) {
		return UINT64_C(1) << 61;
	}
	/* Rates of more than 16 GB/s lose a little by the shift. */
	if (rest > UINT64_MAX / second_ns) {
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
	return start_ns < now_ns ? now_ns : start_ns;
}

#endif

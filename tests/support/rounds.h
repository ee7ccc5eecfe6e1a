/* SPDX-License-Identifier: MIT */
/*
 * How often a test repeats what shows more the more often it is tried: as often
 * as it wants to, or for as long as it may. A round in which threads wait for
 * each other lasts some microseconds, and a thousand times as long where others
 * want the CPU as well; a fixed count of them then meets the time limit.
 */
#ifndef PIN_TESTS_SUPPORT_ROUNDS_H
#define PIN_TESTS_SUPPORT_ROUNDS_H

#include "runtime/host/host.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct rounds {
	uint32_t wanted;
	uint32_t least; /* the number made in any case */
	uint64_t end_ns;
};

/* The share of repetitions: with STRESS_PART=4 a quarter, of more than four. */
static inline uint64_t rounds_part(uint64_t whole)
{
	const char *given = getenv("STRESS_PART");
	uint64_t parts = given == NULL ? 1 : strtoul(given, NULL, 10);

	return parts > 1 && whole > parts ? whole / parts : whole;
}

static inline struct rounds rounds_begin(uint32_t wanted, uint32_t least, uint32_t seconds)
{
	return (struct rounds){
		.wanted = wanted,
		.least = least,
		.end_ns = pin_host_linux.now_ns() + rounds_part(seconds * UINT64_C(1000000000)),
	};
}

/* Whether there is to be another round after `done`. By any thread. */
static inline bool rounds_go_on(const struct rounds *rounds, uint32_t done)
{
	return done < rounds->least ||
		(done < rounds->wanted && pin_host_linux.now_ns() < rounds->end_ns);
}

#endif

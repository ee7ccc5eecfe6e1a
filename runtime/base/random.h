/* SPDX-License-Identifier: MIT */
/*
 * Random numbers for decisions that only need to be spread: the first victim of
 * a thief, the sleeper of a wake. The same seed gives the same numbers, so that
 * a run with one worker can be repeated exactly.
 *
 * xorshift64 with shifts 13, 7, 17 (Marsaglia, "Xorshift RNGs", 2003, one of
 * its full-period triples): every state but 0 comes once in 2^64 - 1 steps, and
 * 0 would stay 0, so it is never a state. Not for secrets.
 *
 * A number below a limit is the high half of a product (Lemire, "Fast Random
 * Integer Generation in an Interval", 2019), without his rejection step: some
 * numbers come more often than others by at most limit / 2^32, one in a million
 * for 4096 workers, and there is neither a loop nor a division.
 *
 * Each generator belongs to one thread.
 */
#ifndef PIN_BASE_RANDOM_H
#define PIN_BASE_RANDOM_H

#include "runtime/base/check.h"

#include <stdint.h>

#define PIN_RANDOM_SEED_DEFAULT UINT64_C(0x853c49e6748fea9b)
/* 2^64 divided by the golden ratio: indices become unlike bit patterns. */
#define PIN_RANDOM_INDEX_FACTOR UINT64_C(0x9e3779b97f4a7c15)

struct pin_random {
	uint64_t state; /* [own] never 0 */
};

/*
 * Generators of different indices differ, with one exception that does not
 * matter: the one index whose state would be 0, as 0 with seed 0, starts from
 * the default seed instead.
 */
static inline void pin_random_init(struct pin_random *random, uint64_t seed, uint32_t worker_index)
{
	random->state = seed ^ worker_index * PIN_RANDOM_INDEX_FACTOR;
	if (random->state == 0) {
		random->state = PIN_RANDOM_SEED_DEFAULT;
	}
	PIN_DCHECK(random->state != 0);
}

static inline uint64_t pin_random_next(struct pin_random *random)
{
	PIN_DCHECK(random->state != 0); /* initialised: it would stay 0 */
	random->state ^= random->state << 13;
	random->state ^= random->state >> 7;
	random->state ^= random->state << 17;
	return random->state;
}

/* 0 … limit - 1; limit 0 gives 0. */
static inline uint32_t pin_random_below(struct pin_random *random, uint32_t limit)
{
	uint32_t number = (uint32_t)((pin_random_next(random) >> 32) * limit >> 32);

	PIN_DCHECK(number < limit || limit == 0);
	return number;
}

#endif

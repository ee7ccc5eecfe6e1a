/* SPDX-License-Identifier: MIT */
/*
 * Random numbers for tests: the seed is printed before anything else, and
 * PINION_SEED repeats a run.
 */
#ifndef PIN_TESTS_SUPPORT_RANDOM_H
#define PIN_TESTS_SUPPORT_RANDOM_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct random_source {
	uint64_t state;
};

/* splitmix64 (Steele, Lea, Flood 2014). */
static inline uint64_t random_next(struct random_source *source)
{
	uint64_t mixed;

	source->state += UINT64_C(0x9e3779b97f4a7c15);
	mixed = source->state;
	mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
	return mixed ^ (mixed >> 31);
}

/* 0 … limit - 1. */
static inline uint64_t random_below(struct random_source *source, uint64_t limit)
{
	return random_next(source) % limit;
}

static inline uint64_t random_begin(struct random_source *source)
{
	const char *given = getenv("PINION_SEED");
	uint64_t seed = given != NULL ? strtoull(given, NULL, 10)
				      : (uint64_t)time(NULL) * 1000 + (uint64_t)getpid() % 1000;

	printf("seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	source->state = seed;
	return seed;
}

#endif

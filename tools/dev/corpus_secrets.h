/* SPDX-License-Identifier: MIT */
/*
 * What the corpus is made from at random: numbers, and secrets to plant.
 */
#ifndef PINION_TOOLS_DEV_CORPUS_SECRETS_H
#define PINION_TOOLS_DEV_CORPUS_SECRETS_H

#include <stdint.h>

enum {
	CORPUS_SECRET_COUNT = 32,
	CORPUS_SECRET_BYTES_MAX = 2048,
};

void corpus_random_seed(uint64_t seed);
uint32_t corpus_random_below(uint32_t bound);
uint32_t corpus_random_between(uint32_t low, uint32_t high);

/* The id of the built-in rule that finds the secret. */
const char *corpus_secret_rule(uint32_t index);

/* Makes another secret of that kind and returns its length. */
uint32_t corpus_secret_make(uint32_t index, char *out_bytes);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * --shard: which of several runs over the same files this is. A run reads the
 * files whose paths hash to its shard: those of a tree by the path below it
 * (walk.h), others by the path as it was given.
 */
#ifndef PINION_TOOLS_SHARDING_H
#define PINION_TOOLS_SHARDING_H

#include <stdbool.h>
#include <stdint.h>

enum { SHARDING_COUNT_MAX = 1 << 20 };

struct sharding {
	uint32_t index; /* 0 to `count` - 1 */
	uint32_t count; /* 0: all files */
};

/*
 * Takes K/N, or with `is_from_environment` N, K being the index that a job
 * array has given the process. False: bad, which is reported.
 */
bool sharding_parse(struct sharding *sharding, const char *value, bool is_from_environment);

/* K/N alone; for texts that programs have written. */
bool sharding_read(const char *text, struct sharding *out_sharding);

/* Whether a path that is in no tree is left to another run. */
bool sharding_leaves_out(const struct sharding *sharding, const char *path);

#endif

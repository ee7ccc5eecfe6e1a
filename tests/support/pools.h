/* SPDX-License-Identifier: MIT */
/*
 * Pools over plain memory, for tests of their internals.
 */
#ifndef PIN_TESTS_SUPPORT_POOLS_H
#define PIN_TESTS_SUPPORT_POOLS_H

#include "tests/support/expect.h"

#include "runtime/base/metrics.h"
#include "runtime/host/host.h"
#include "runtime/memory/pool.h"
#include "runtime/memory/pool_internal.h"

enum {
	POOLS_BUFFER_BYTES = 4096,
	POOLS_BUFFERS_MAX = 64,
};

static uint8_t pools_memory[POOLS_BUFFERS_MAX * POOLS_BUFFER_BYTES] __attribute__((aligned(4096)));
/* All messages since the last pools_init(), one per line. */
static char pools_log[4096];
/* What the calling thread gave back last, without a magazine. */
static _Thread_local struct pin_pool_listed pools_listed;

static inline void pools_note(void *arg, enum pinion_log_level level, const char *message)
{
	size_t length = strlen(pools_log);

	(void)arg;
	(void)level;
	snprintf(pools_log + length, sizeof(pools_log) - length, "%s\n", message);
}

/* `buffer_count` buffers, `magazine_count` magazines of `capacity`. */
static inline void pools_init(struct pin_pool *pool, uint32_t buffer_count, uint32_t magazine_count,
	uint32_t capacity, uint32_t flags)
{
	struct pin_pool_region region = {.memory = pools_memory, .buffer_count = buffer_count};
	struct pin_pool_setup setup = {
		.host = &pin_host_linux,
		.log = {.fn = pools_note},
		.buffer_bytes = POOLS_BUFFER_BYTES,
		.magazine_count = magazine_count,
		.magazine_capacity = capacity,
		.seeded_count = magazine_count,
		.node_count = 1,
		.flags = flags,
		.regions = &region,
		.region_count = 1,
	};

	pools_log[0] = '\0';
	pools_listed = (struct pin_pool_listed){0};
	expect_number("pool init", 0, pin_pool_init(pool, &setup));
}

/* As users do: the short way first, if there is one. */
static inline bool pools_try(struct pin_pool *pool, uint32_t magazine, struct pinion_buffer *out)
{
	bool is_found = pin_pool_has_short_way(pool) &&
		(magazine == PIN_POOL_OUTSIDE ? pin_pool_acquire_listed(pool, 0, &pools_listed, out)
					      : pin_pool_acquire_own(pool,
							&pool->magazines[magazine], magazine, out));

	return is_found || pin_pool_acquire(pool, magazine, 0, out);
}

static inline int pools_return(
	struct pin_pool *pool, uint32_t magazine, const struct pinion_buffer *buffer)
{
	struct pin_magazine *own = &pool->magazines[magazine];
	bool is_given = false;

	if (!pin_pool_has_short_way(pool)) {
		return pin_pool_release(pool, magazine, buffer);
	}
	if (magazine == PIN_POOL_OUTSIDE) {
		is_given = pin_pool_release_listed(pool, buffer, &pools_listed);
	} else {
		is_given = pin_pool_release_own(pool, own, magazine, buffer);
	}
	return is_given ? 0 : pin_pool_release(pool, magazine, buffer);
}

/* Acquires a buffer that must be there. */
static inline struct pinion_buffer pools_take(struct pin_pool *pool, uint32_t magazine)
{
	struct pinion_buffer buffer = {0};

	expect_true("a buffer is free", pools_try(pool, magazine, &buffer));
	return buffer;
}

static inline void pools_give(
	struct pin_pool *pool, uint32_t magazine, const struct pinion_buffer *buffer)
{
	expect_number("release", 0, pools_return(pool, magazine, buffer));
}

static inline bool pools_is_empty(struct pin_pool *pool, uint32_t magazine)
{
	struct pinion_buffer buffer;

	return !pools_try(pool, magazine, &buffer);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A stack of free indices and a flag per buffer.
 */
#include "runtime/memory/pool.h"
#include "runtime/base/check.h"

#include <errno.h>
#include <stdlib.h>

int pin_pool_init(
	struct pin_pool *pool, uint8_t *memory, uint32_t buffer_bytes, uint32_t buffer_count)
{
	*pool = (struct pin_pool){
		.memory = memory,
		.buffer_bytes = buffer_bytes,
		.buffer_count = buffer_count,
		.free_indices = calloc(buffer_count, sizeof(*pool->free_indices)),
		.in_use = calloc(buffer_count, sizeof(*pool->in_use)),
	};
	if (pool->free_indices == NULL || pool->in_use == NULL) {
		pin_pool_fini(pool);
		return -ENOMEM;
	}
	/*
	 * Lowest index on top: the first buffers used lie next to each other.
	 */
	for (uint32_t i = buffer_count; i > 0; i--) {
		pool->free_indices[pool->free_count] = i - 1;
		pool->free_count++;
	}
	return 0;
}

void pin_pool_fini(struct pin_pool *pool)
{
	free(pool->free_indices);
	free(pool->in_use);
	*pool = (struct pin_pool){0};
}

uint8_t *pin_pool_acquire(struct pin_pool *pool, uint32_t *out_index)
{
	uint32_t index;

	if (pool->free_count == 0) {
		return NULL;
	}
	pool->free_count--;
	index = pool->free_indices[pool->free_count];
	PIN_CHECK(!pool->in_use[index]); /* invariant 1 */
	pool->in_use[index] = true;
	*out_index = index;
	return pool->memory + (size_t)index * pool->buffer_bytes;
}

void pin_pool_release(struct pin_pool *pool, const uint8_t *bytes, uint32_t index)
{
	PIN_CHECK(index < pool->buffer_count);
	PIN_CHECK(bytes == pool->memory + (size_t)index * pool->buffer_bytes);
	PIN_CHECK(pool->in_use[index]); /* invariant 1 */
	pool->in_use[index] = false;
	pool->free_indices[pool->free_count] = index;
	pool->free_count++;
}

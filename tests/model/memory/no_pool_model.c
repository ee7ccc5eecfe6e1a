/* SPDX-License-Identifier: MIT */
/*
 * Pools without a buffer, for models of whole runtimes, which take none;
 * tests/model/memory/pool_model.c has the real ones.
 */
#include "runtime/memory/pool.h"
#include "tests/model/explorer.h"
#include "tests/model/heap.h"

#include <errno.h>

int pin_pool_init(struct pin_pool *pool, const struct pin_pool_setup *setup)
{
	*pool = (struct pin_pool){.buffer_bytes = setup->buffer_bytes};
	return 0;
}

void pin_pool_fini(struct pin_pool *pool)
{
	(void)pool;
}

bool pin_pool_acquire(
	struct pin_pool *pool, uint32_t magazine, uint32_t node, struct pinion_buffer *out_buffer)
{
	(void)pool;
	(void)magazine;
	(void)node;
	(void)out_buffer;
	return false;
}

int pin_pool_release(struct pin_pool *pool, uint32_t magazine, const struct pinion_buffer *buffer)
{
	(void)pool;
	(void)magazine;
	(void)buffer;
	model_fail("a buffer is given to a pool without any");
}

int pin_pool_check_explain(struct pin_pool *pool, const struct pinion_buffer *buffer)
{
	(void)pool;
	(void)buffer;
	return -EINVAL;
}

void pin_pool_share(struct pin_pool *pool, uint32_t index)
{
	(void)pool;
	(void)index;
}

void pin_pool_check_is_free(struct pin_pool *pool, uint32_t index)
{
	(void)pool;
	(void)index;
}

void pin_pool_check_hide_pages(const struct pin_pool *pool, const struct pin_entry *entry)
{
	(void)pool;
	(void)entry;
}

void pin_pool_check_show_pages(const struct pin_pool *pool, const struct pin_entry *entry)
{
	(void)pool;
	(void)entry;
}

uint32_t pin_pool_count_magazine(const struct pin_pool *pool, uint32_t magazine)
{
	(void)pool;
	(void)magazine;
	return 0;
}

static void look_into(const struct pin_pool *pool)
{
	model_point();
	MODEL_CHECK(!model_is_freed(pool));
}

void pin_pool_send_home(struct pin_pool *pool, uint32_t magazine)
{
	(void)magazine;
	look_into(pool);
}

struct pin_entry *pin_pool_find(const struct pin_pool *pool, const uint8_t *address, uint32_t hint)
{
	(void)address;
	(void)hint;
	look_into(pool);
	return NULL;
}

void pin_recent_forget(void)
{
}

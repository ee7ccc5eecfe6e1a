/* SPDX-License-Identifier: MIT */
/*
 * What a pool does about buffers that are used wrongly: it finds out at the
 * call that is wrong, names who had the buffer last, and refuses.
 *
 * While a buffer is free no code may touch it. AddressSanitizer marks it in its
 * builds, and with PIN_POOL_GUARD the MMU in all: then a touch faults.
 */
#ifndef PIN_MEMORY_POOL_CHECK_H
#define PIN_MEMORY_POOL_CHECK_H

#include "runtime/base/base.h"
#include "runtime/memory/pool_internal.h"

/* Whether a tool has to learn of each buffer that changes hands. */
#ifdef PIN_ASAN
#define PIN_MISUSE_WATCHES 1
#else
#define PIN_MISUSE_WATCHES 0
#endif

/* Explains why a handle is wrong. */
int pin_pool_check_explain(struct pin_pool *pool, const struct pinion_buffer *buffer);

/* A request was to use buffer `index`, which is free. */
void pin_pool_check_is_free(struct pin_pool *pool, uint32_t index);

/* Logs who took the buffers that are still out; how many. */
uint32_t pin_pool_check_report_in_use(const struct pin_pool *pool);

/* Before any is hidden: gives up a guard that the memory does not take. */
void pin_pool_check_settle(struct pin_pool *pool);

void pin_pool_check_hide_pages(const struct pin_pool *pool, const struct pin_entry *entry);
void pin_pool_check_show_pages(const struct pin_pool *pool, const struct pin_entry *entry);

/* 0, or an error as pin_pool_release() returns it, logged. */
static inline int pin_pool_check_check(struct pin_pool *pool, const struct pinion_buffer *buffer)
{
	if (PIN_LIKELY(buffer->index < pool->buffer_count)) {
		const struct pin_entry *entry = &pool->entries[buffer->index];

		if (entry->bytes == buffer->bytes && (buffer->generation & 1) != 0 &&
			pin_entry_is_as_given(
				pin_load_acquire_u64(&entry->state), buffer->generation) &&
			!pin_entry_has_own(pin_load_relaxed_u32(&entry->holder))) {
			return 0;
		}
	}
	return pin_pool_check_explain(pool, buffer);
}

/* No code may touch it from here on; `entry` is about to be free. */
static inline void pin_pool_check_hide(const struct pin_pool *pool, const struct pin_entry *entry)
{
	PIN_DCHECK((size_t)(entry - pool->entries) < pool->buffer_count);
	if (PIN_UNLIKELY((pool->flags & PIN_POOL_BETWEEN) != 0)) {
		pin_pool_check_hide_pages(pool, entry);
	}
	PIN_ASAN_POISON(entry->bytes - pool->headroom_bytes,
		(size_t)pool->headroom_bytes + pool->buffer_bytes);
}

/* Its new owner may. */
static inline void pin_pool_check_show(const struct pin_pool *pool, const struct pin_entry *entry)
{
	PIN_DCHECK((size_t)(entry - pool->entries) < pool->buffer_count);
	PIN_ASAN_UNPOISON(entry->bytes - pool->headroom_bytes,
		(size_t)pool->headroom_bytes + pool->buffer_bytes);
	if (PIN_UNLIKELY((pool->flags & PIN_POOL_BETWEEN) != 0)) {
		pin_pool_check_show_pages(pool, entry);
	}
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Reports wrong uses of buffers: names the mistake and the last holder, and
 * counts it.
 *
 * The releasing call has refused already when it comes here, so nothing of this
 * is on a hot path. With a guarded pool, free buffers are also made
 * inaccessible here.
 */
#include "runtime/base/check.h"
#include "runtime/memory/pool_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum {
	NAME_BYTES = 48,
	/* Buffers that are named when a pool is destroyed too early. */
	REPORTED_MAX = 8,
};

static const char *holder_name(
	const struct pin_pool *pool, const struct pin_entry *entry, char out_name[NAME_BYTES])
{
	uint32_t holder = pin_load_relaxed_u32(&entry->holder);
	uint32_t number = pin_entry_number(holder);

	if ((uint32_t)pin_load_relaxed_u64(&entry->state) == 0) {
		snprintf(out_name, NAME_BYTES, "no thread yet");
	} else if (holder == PIN_POOL_OUTSIDE) {
		snprintf(out_name, NAME_BYTES, "a thread that is not attached");
	} else if (number < pool->seeded_count) {
		snprintf(out_name, NAME_BYTES, "worker %u", number);
	} else {
		PIN_CHECK(number < pool->magazine_count);
		snprintf(out_name, NAME_BYTES, "attached thread %u", number - pool->seeded_count);
	}
	return out_name;
}

/* Which place a pointer has that is not where a buffer begins. */
static int explain_pointer(const struct pin_pool *pool, const struct pinion_buffer *buffer)
{
	char name[NAME_BYTES];

	for (uint32_t i = 0; i < pool->buffer_count; i++) {
		const struct pin_entry *entry = &pool->entries[i];

		/*
		 * Unsigned, so that an address before it becomes far too large.
		 */
		if ((uintptr_t)buffer->bytes - (uintptr_t)entry->bytes < pool->buffer_bytes) {
			pin_log(&pool->log, PINION_LOG_ERROR,
				"%p is inside buffer %u of the pool, not its handle's; "
				"taken last by %s",
				(void *)buffer->bytes, i, holder_name(pool, entry, name));
			return -EINVAL;
		}
	}
	pin_log(&pool->log, PINION_LOG_ERROR, "%p is not a buffer of this pool",
		(void *)buffer->bytes);
	return -EINVAL;
}

/*
 * Reads the state only to explain: the refusal was decided before, by a compare
 * of the whole word.
 */
int pin_pool_check_explain(struct pin_pool *pool, const struct pinion_buffer *buffer)
{
	char name[NAME_BYTES];
	const struct pin_entry *entry;
	uint32_t generation;

	pin_fetch_add_relaxed_u64(&pool->misuses, 1);
	if (buffer->index >= pool->buffer_count ||
		pool->entries[buffer->index].bytes != buffer->bytes) {
		return explain_pointer(pool, buffer);
	}
	entry = &pool->entries[buffer->index];
	generation = (uint32_t)pin_load_relaxed_u64(&entry->state);
	if (generation == buffer->generation && (generation & 1) != 0) {
		pin_log(&pool->log, PINION_LOG_ERROR,
			"buffer %u is the kernel's until its request has completed; taken by %s",
			buffer->index, holder_name(pool, entry, name));
		return -EBUSY;
	}
	pin_log(&pool->log, PINION_LOG_ERROR, "buffer %u was given back before%s; taken last by %s",
		buffer->index, (generation & 1) != 0 ? ", and is in use again" : "",
		holder_name(pool, entry, name));
	return -EALREADY;
}

void pin_pool_check_is_free(struct pin_pool *pool, uint32_t index)
{
	char name[NAME_BYTES];

	PIN_CHECK(index < pool->buffer_count);
	pin_fetch_add_relaxed_u64(&pool->misuses, 1);
	pin_log(&pool->log, PINION_LOG_ERROR,
		"a request was to use buffer %u, which is free; taken last by %s", index,
		holder_name(pool, &pool->entries[index], name));
}

static void protect(const struct pin_pool *pool, const struct pin_entry *entry, int rights)
{
	int saved_errno = errno;
	int rc = mprotect(entry->bytes - pool->headroom_bytes,
		(size_t)pool->headroom_bytes + pool->buffer_bytes, rights);

	/* Else pin_pool_check_settle() has given up the guard. */
	PIN_DCHECK((uintptr_t)(entry->bytes - pool->headroom_bytes) % PIN_PAGE_BYTES == 0);
	if (rc != 0) {
		pin_log(&pool->log, PINION_LOG_WARN,
			"a free buffer cannot be guarded (errno %d); raise vm.max_map_count",
			errno);
		/* Taking the guard away merges mappings; it needs none. */
		PIN_CHECK(rights == PROT_NONE);
	}
	errno = saved_errno;
}

/*
 * Each buffer is as far from a page as the first of its region; no thread has
 * any yet.
 */
static bool can_guard(const struct pin_pool *pool)
{
	int saved_errno = errno;
	bool can = true;

	for (uint32_t i = 0; i < pool->region_count && can; i++) {
		const struct pin_pool_region *region = &pool->regions[i];

		if (region->buffer_count == 0) {
			continue;
		}
		/* Rights that it has already would be granted for any part. */
		can = mprotect(region->memory, pool->stride, PROT_NONE) == 0 || errno != EINVAL;
		(void)mprotect(region->memory, pool->stride, PROT_READ | PROT_WRITE);
	}
	errno = saved_errno;
	return can;
}

void pin_pool_check_settle(struct pin_pool *pool)
{
	if ((pool->flags & PIN_POOL_GUARD) != 0 && !can_guard(pool)) {
		pin_log(&pool->log, PINION_LOG_WARN,
			"free buffers cannot be guarded: they are parts of huge pages that were "
			"set aside; sysctl vm.nr_hugepages=0, or buffers of multiples of 2 MiB");
		pool->flags &= ~(uint32_t)PIN_POOL_GUARD;
	}
}

void pin_pool_check_hide_pages(const struct pin_pool *pool, const struct pin_entry *entry)
{
	if ((pool->flags & PIN_POOL_ZERO) != 0) {
		explicit_bzero(entry->bytes - pool->headroom_bytes,
			(size_t)pool->headroom_bytes + pool->buffer_bytes);
	}
	if ((pool->flags & PIN_POOL_GUARD) != 0) {
		protect(pool, entry, PROT_NONE);
	}
}

void pin_pool_check_show_pages(const struct pin_pool *pool, const struct pin_entry *entry)
{
	if ((pool->flags & PIN_POOL_GUARD) != 0) {
		protect(pool, entry, PROT_READ | PROT_WRITE);
	}
}

uint32_t pin_pool_check_report_in_use(const struct pin_pool *pool)
{
	char name[NAME_BYTES];
	uint32_t count = 0;

	for (uint32_t i = 0; i < pool->buffer_count; i++) {
		const struct pin_entry *entry = &pool->entries[i];

		if ((pin_load_acquire_u64(&entry->state) & 1) == 0) {
			continue;
		}
		count++;
		if (count <= REPORTED_MAX) {
			pin_log(&pool->log, PINION_LOG_ERROR, "buffer %u is still out; taken by %s",
				i, holder_name(pool, entry, name));
		}
	}
	return count;
}

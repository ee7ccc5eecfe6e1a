/* SPDX-License-Identifier: MIT */
/*
 * Makes and ends a pool: its parts, and where each buffer is at first.
 *
 * api/pool_create.c and each worker's start call it, before any other thread
 * knows of the pool.
 */
#include "runtime/memory/pool.h"
#include "runtime/base/check.h"
#include "runtime/host/heap.h"
#include "runtime/memory/pool_internal.h"

#include <errno.h>
#include <string.h>

/* Not in the header: atomics of a checker may be larger. */
_Static_assert(sizeof(struct pin_entry) == 32, "two to a cache line");

static void *zeroed_lines(const struct pin_pool *pool, size_t count, size_t bytes)
{
	return pin_heap_zeroed(pool->host, PIN_CACHE_LINE, count, bytes);
}

static void release_lines(const struct pin_pool *pool, void *memory, size_t count, size_t bytes)
{
	pin_heap_release(pool->host, memory, PIN_CACHE_LINE, count, bytes);
}

/* Magazines in order, each as full as its region allows; the rest is free. */
static void seed(struct pin_pool *pool, const struct pin_pool_setup *setup)
{
	uint32_t index = 0;
	uint32_t magazine = 0;

	for (uint32_t i = 0; i < setup->region_count; i++) {
		const struct pin_pool_region *region = &setup->regions[i];
		uint32_t end = index + region->buffer_count;
		uint32_t last = setup->region_count == 1 ? setup->seeded_count : i + 1;

		PIN_CHECK(region->node < pool->node_count);
		for (; magazine < last; magazine++) {
			while (index < end && pin_magazine_put(&pool->magazines[magazine], index)) {
				index++;
			}
		}
		/* The first of them on top. */
		for (uint32_t left = end; left > index; left--) {
			uint32_t pushed = left - 1;

			pin_freelist_push(
				&pool->freelists[region->node], pool->entries, &pushed, 1);
		}
		index = end;
	}
	PIN_CHECK(index == pool->buffer_count); /* each is in one place */
}

static void fill_entries(struct pin_pool *pool, const struct pin_pool_setup *setup)
{
	size_t stride = (size_t)setup->headroom_bytes + setup->buffer_bytes;
	uint32_t index = 0;

	for (uint32_t i = 0; i < setup->region_count; i++) {
		const struct pin_pool_region *region = &setup->regions[i];

		for (uint32_t j = 0; j < region->buffer_count; j++) {
			struct pin_entry *entry = &pool->entries[index];

			entry->bytes = region->memory + j * stride + setup->headroom_bytes;
			entry->node = region->node;
			pin_store_relaxed_u32(&entry->holder, PIN_POOL_OUTSIDE);
			pin_pool_check_hide(pool, entry);
			index++;
		}
	}
	PIN_CHECK(index == pool->buffer_count);
}

/* Whose stash the owner of magazine `i` checks first: a near one's. */
static uint32_t nearest_giver(struct pin_pool *pool, uint32_t i)
{
	struct pin_victims_round round;
	uint32_t giver = (i + 1) % pool->magazine_count;

	if (pool->victims != NULL && i < pool->victims->worker_count) {
		pin_victims_begin(&round, pool->victims, i, &pool->random);
		pin_victims_next(&round, &giver);
	}
	PIN_CHECK(giver < pool->magazine_count);
	return giver;
}

/* A batch goes home at once. */
static uint32_t capacity_of(const struct pin_pool_setup *setup, bool is_remote_batch)
{
	return is_remote_batch && setup->magazine_capacity > PIN_POOL_BATCH_MAX
		? PIN_POOL_BATCH_MAX
		: setup->magazine_capacity;
}

static void init_magazines(struct pin_pool *pool, const struct pin_pool_setup *setup)
{
	uint32_t thief = setup->host->fence_all() ? 0 : PIN_MAGAZINE_FENCED;
	uint32_t line = PIN_CACHE_LINE / sizeof(uint32_t);
	uint32_t apart = (uint32_t)pin_round_up(setup->magazine_capacity, line);

	for (uint32_t i = 0; i < pool->place_count; i++) {
		struct pin_magazine *magazine = &pool->magazines[i];
		uint32_t owner = i % setup->magazine_count;

		magazine->indices = pool->magazine_memory + (size_t)i * apart;
		magazine->capacity = capacity_of(setup, i >= setup->magazine_count);
		magazine->node = setup->nodes == NULL ? 0 : setup->nodes[owner];
		PIN_CHECK(magazine->node < pool->node_count);
		PIN_CHECK(magazine->capacity <= apart); /* they do not overlap */
		magazine->giver = nearest_giver(pool, owner);
		/* Nothing is gathered before a home has some to spare. */
		pin_store_relaxed_u32(&magazine->thief,
			i < setup->seeded_count ? thief : thief | PIN_MAGAZINE_ROBBED);
	}
}

/* Of indices in all magazines, each from a line on. */
static size_t magazine_indices(const struct pin_pool *pool)
{
	size_t line = PIN_CACHE_LINE / sizeof(uint32_t);

	return pool->place_count * pin_round_up(pool->magazine_capacity, line);
}

static size_t seen_count(const struct pin_pool *pool)
{
	return (size_t)pool->place_count + pool->magazine_count + pool->node_count;
}

static int allocate(struct pin_pool *pool)
{
	pool->entries = zeroed_lines(pool, pool->buffer_count, sizeof(*pool->entries));
	pool->magazines = zeroed_lines(pool, pool->place_count, sizeof(*pool->magazines));
	pool->magazine_memory =
		zeroed_lines(pool, magazine_indices(pool), sizeof(*pool->magazine_memory));
	pool->freelists = zeroed_lines(pool, pool->node_count, sizeof(*pool->freelists));
	pool->seen = zeroed_lines(pool, seen_count(pool), sizeof(*pool->seen));
	pool->regions = zeroed_lines(pool, pool->region_count, sizeof(*pool->regions));
	return pool->entries == NULL || pool->magazines == NULL || pool->magazine_memory == NULL ||
			pool->freelists == NULL || pool->seen == NULL || pool->regions == NULL
		? -ENOMEM
		: 0;
}

/*
 * Derives all that a release needs, such as the shift from an address to an
 * index, so that the hot paths divide nothing.
 */
int pin_pool_init(struct pin_pool *pool, const struct pin_pool_setup *setup)
{
	uint32_t stride = setup->headroom_bytes + setup->buffer_bytes;

	PIN_CHECK(setup->buffer_bytes > 0);
	PIN_CHECK(stride > setup->headroom_bytes); /* it did not wrap */
	*pool = (struct pin_pool){
		.host = setup->host,
		.log = setup->log,
		.buffer_bytes = setup->buffer_bytes,
		.headroom_bytes = setup->headroom_bytes,
		.magazine_count = setup->magazine_count,
		.place_count = setup->magazine_count * (setup->node_count > 1 ? 2 : 1),
		.magazine_capacity = setup->magazine_capacity,
		.seeded_count = setup->seeded_count,
		.node_count = setup->node_count,
		.region_count = setup->region_count,
		.stride = stride,
		.stride_shift = pin_is_power_of_two(stride) ? (uint32_t)__builtin_ctz(stride) : 0,
		.first_memory = setup->regions[0].memory,
		.first_bytes = (uint64_t)setup->regions[0].buffer_count * stride,
		.flags = setup->flags,
		.victims = setup->victims,
	};
	PIN_CHECK(setup->region_count == 1 || setup->region_count == setup->seeded_count);
	PIN_CHECK(setup->seeded_count <= setup->magazine_count);
	PIN_CHECK(setup->victims == NULL || setup->victims->worker_count <= setup->magazine_count);
	PIN_CHECK(setup->magazine_count > 0 && setup->magazine_capacity > 0);
	PIN_CHECK(setup->magazine_count < PIN_ENTRY_NUMBERS);
	PIN_CHECK(setup->node_count > 0);
	PIN_CHECK(!setup->is_closed || setup->magazine_count == 1);
	for (uint32_t i = 0; i < setup->region_count; i++) {
		pool->buffer_count += setup->regions[i].buffer_count;
	}
	PIN_CHECK(pool->buffer_count < 1u << PIN_FREELIST_INDEX_BITS);
	pin_random_init(&pool->random, setup->seed, 0);
	if (allocate(pool) != 0) {
		pin_pool_fini(pool);
		return -ENOMEM;
	}
	memcpy(pool->regions, setup->regions, setup->region_count * sizeof(*pool->regions));
	pin_pool_check_settle(pool);
	init_magazines(pool, setup);
	fill_entries(pool, setup);
	if (!setup->is_closed) {
		seed(pool, setup);
		pool->open_count = pool->buffer_count;
	}
	return 0;
}

/*
 * A closed buffer is in no magazine, and free by its state: a handle of it is
 * stale, and a request into it is refused.
 */
void pin_pool_open(struct pin_pool *pool, uint32_t count)
{
	struct pin_magazine *own = &pool->magazines[0];
	bool is_inside = pin_magazine_enter_slowly(own);

	PIN_CHECK(is_inside); /* no thread robs the only magazine */
	PIN_CHECK(pool->magazine_count == 1);
	PIN_CHECK(count <= pool->buffer_count - pool->open_count);
	for (uint32_t i = count; i > 0; i--) {
		bool is_put = pin_magazine_put(own, pool->open_count + i - 1);

		PIN_CHECK(is_put); /* there is room for all */
	}
	pool->open_count += count;
	pin_magazine_leave(own);
}

bool pin_pool_close(struct pin_pool *pool, uint32_t first)
{
	struct pin_magazine *own = &pool->magazines[0];
	bool is_inside = pin_magazine_enter_slowly(own);
	uint32_t count = pin_magazine_count(own);
	uint32_t kept = 0;
	uint32_t found = 0;

	PIN_CHECK(is_inside);
	PIN_CHECK(pool->magazine_count == 1);
	PIN_CHECK(first <= pool->open_count);
	for (uint32_t i = 0; i < count; i++) {
		found += pin_load_relaxed_u32(&own->indices[i]) >= first ? 1 : 0;
	}
	PIN_CHECK(found <= pool->open_count - first); /* each is in it once */
	if (found == pool->open_count - first) {
		for (uint32_t i = 0; i < count; i++) {
			uint32_t index = pin_load_relaxed_u32(&own->indices[i]);

			if (index < first) {
				pin_store_relaxed_u32(&own->indices[kept], index);
				kept++;
			}
		}
		pin_magazine_settle(own, kept);
		pool->open_count = first;
	}
	pin_magazine_leave(own);
	return pool->open_count == first;
}

void pin_pool_fini(struct pin_pool *pool)
{
	for (uint32_t i = 0; pool->entries != NULL && i < pool->buffer_count; i++) {
		if (pool->entries[i].bytes != NULL) {
			pin_pool_check_show(pool, &pool->entries[i]);
		}
	}
	release_lines(pool, pool->entries, pool->buffer_count, sizeof(*pool->entries));
	release_lines(pool, pool->magazines, pool->place_count, sizeof(*pool->magazines));
	release_lines(pool, pool->magazine_memory, magazine_indices(pool),
		sizeof(*pool->magazine_memory));
	release_lines(pool, pool->freelists, pool->node_count, sizeof(*pool->freelists));
	release_lines(pool, pool->seen, seen_count(pool), sizeof(*pool->seen));
	release_lines(pool, pool->regions, pool->region_count, sizeof(*pool->regions));
	*pool = (struct pin_pool){0};
}

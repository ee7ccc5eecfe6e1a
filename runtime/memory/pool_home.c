/* SPDX-License-Identifier: MIT */
/*
 * Into a magazine, onto a tray, or into a list.
 */
#include "runtime/base/check.h"
#include "runtime/base/metrics.h"
#include "runtime/memory/pool_internal.h"

/* Each group of one home at once. */
static void push_home(struct pin_pool *pool, uint32_t *indices, uint32_t count)
{
	while (count > 0) {
		uint32_t node = pool->entries[indices[0]].node;
		uint32_t group[PIN_POOL_BATCH_MAX];
		uint32_t group_count = 0;
		uint32_t rest_count = 0;

		for (uint32_t i = 0; i < count; i++) {
			if (pool->entries[indices[i]].node == node) {
				group[group_count++] = indices[i];
			} else {
				indices[rest_count++] = indices[i];
			}
		}
		pin_freelist_push(&pool->freelists[node], pool->entries, group, group_count);
		count = rest_count;
	}
}

void pin_pool_pass_on(struct pin_pool *pool, struct pin_magazine *magazine, uint32_t count)
{
	uint32_t indices[PIN_POOL_BATCH_MAX];

	count = count < PIN_POOL_BATCH_MAX ? count : PIN_POOL_BATCH_MAX;
	pin_magazine_look_oldest(magazine, indices, count);
	push_home(pool, indices, count);
	pin_magazine_drop_oldest(magazine, count);
}

void pin_pool_pass_all_on(struct pin_pool *pool, struct pin_magazine *magazine)
{
	uint32_t count;

	while ((count = pin_magazine_count(magazine)) > 0) {
		pin_pool_pass_on(pool, magazine, count);
	}
}

/* Inside a full one: half of it. */
static void spill(struct pin_pool *pool, struct pin_magazine *magazine)
{
	pin_pool_pass_on(pool, magazine, (magazine->capacity + 1) / 2);
	pin_meter_add(&magazine->spills, 1);
}

/*
 * Of a robbed magazine: lays one out for others, as long as they want it: until
 * half a magazine lies there, what the tray does not hold being in the list.
 * The list may look shorter or longer than it is; that costs time, nothing
 * else.
 */
static bool lay_out(struct pin_pool *pool, struct pin_magazine *magazine, uint32_t index)
{
	struct pin_freelist *list = &pool->freelists[magazine->node];
	uint32_t half = (magazine->capacity + 1) / 2;
	uint32_t most = half < PIN_TRAY_PLACES ? half : PIN_TRAY_PLACES;

	if (pin_tray_put(&magazine->tray, index, most)) {
		return true;
	}
	if (pin_freelist_count(list, pool->entries) < half - most) {
		pin_freelist_push(list, pool->entries, &index, 1);
		return true;
	}
	return false;
}

/* Of a robbed bundle: straight home, as long as fewer lie there than fit it. */
static bool send_straight(struct pin_pool *pool, const struct pin_magazine *bundle, uint32_t index)
{
	struct pin_freelist *list = &pool->freelists[pool->entries[index].node];

	if (pin_freelist_count(list, pool->entries) >= bundle->capacity) {
		return false;
	}
	pin_freelist_push(list, pool->entries, &index, 1);
	return true;
}

/* Inside one with room. */
static void put_near(struct pin_pool *pool, struct pin_magazine *own, uint32_t index)
{
	if (!pin_magazine_put(own, index)) {
		bool has_room;

		spill(pool, own);
		has_room = pin_magazine_put(own, index);
		PIN_CHECK(has_room);
	}
}

/* Inside; the last one that fits takes all others along. */
static void put_far(struct pin_pool *pool, struct pin_magazine *bundle, uint32_t index)
{
	bool has_room = pin_magazine_put(bundle, index);

	PIN_CHECK(has_room);
	if (pin_magazine_count(bundle) == bundle->capacity) {
		pin_pool_pass_all_on(pool, bundle);
		pin_meter_add(&bundle->spills, 1);
	}
}

void pin_pool_put(struct pin_pool *pool, uint32_t magazine, uint32_t index)
{
	struct pin_entry *entry = &pool->entries[index];
	struct pin_magazine *own = magazine == PIN_POOL_OUTSIDE ? NULL : &pool->magazines[magazine];
	bool is_far = own != NULL && own->node != entry->node;
	bool is_unwanted = false; /* what is laid out, or sent straight */

	if (is_far) {
		own = pin_pool_bundle(pool, magazine);
	}
	if (own == NULL) {
		pin_freelist_push(&pool->freelists[entry->node], pool->entries, &index, 1);
		return;
	}
	if (PIN_UNLIKELY(pin_magazine_is_robbed(own))) {
		if (is_far ? send_straight(pool, own, index) : lay_out(pool, own, index)) {
			return;
		}
		is_unwanted = true;
	}
	if (!pin_magazine_enter_slowly(own)) {
		pin_freelist_push(&pool->freelists[entry->node], pool->entries, &index, 1);
		return;
	}
	if (PIN_UNLIKELY(pin_magazine_is_robbed(own))) {
		if (!is_unwanted) {
			/* A thief has just left. */
			pin_magazine_leave(own);
			pin_freelist_push(&pool->freelists[entry->node], pool->entries, &index, 1);
			return;
		}
		pin_magazine_forget_theft(own);
	}
	if (is_far) {
		put_far(pool, own, index);
	} else {
		put_near(pool, own, index);
	}
	pin_magazine_leave_slowly(own);
}

/* SPDX-License-Identifier: MIT */
/*
 * Looks at all places, and a theft.
 */
#include "runtime/memory/pool_internal.h"

bool pin_pool_take_listed(struct pin_pool *pool, uint32_t node, uint32_t *out_index)
{
	uint32_t at = node;

	for (uint32_t i = 0; i < pool->node_count; i++) {
		if (pin_freelist_pop(&pool->freelists[at], pool->entries, out_index, 1) == 1) {
			return true;
		}
		at = at + 1 == pool->node_count ? 0 : at + 1;
	}
	return false;
}

bool pin_pool_take_laid_out(
	struct pin_pool *pool, uint32_t node, uint32_t *out_index, uint32_t *giver)
{
	uint32_t at = *giver;

	for (uint32_t i = 0; i < (pool->node_count > 1 ? 2 : 1) * pool->magazine_count; i++) {
		bool is_far = i >= pool->magazine_count;
		struct pin_magazine *from = &pool->magazines[at];

		if ((from->node != node) == is_far &&
			pin_tray_take(&from->tray, out_index, 1) == 1) {
			*giver = at;
			return true;
		}
		at = at + 1 == pool->magazine_count ? 0 : at + 1;
	}
	return false;
}

/*
 * Breaks in, takes the oldest, and leaves all others in the free list: breaking
 * in costs far more than what is there, and so the next one need not.
 */
static bool rob(struct pin_pool *pool, struct pin_magazine *victim, uint32_t *out_index)
{
	bool has_taken = false;

	pin_magazine_break_in(victim, pool->host);
	if (pin_magazine_count(victim) > 0) {
		pin_magazine_look_oldest(victim, out_index, 1);
		pin_magazine_drop_oldest(victim, 1);
		has_taken = true;
	}
	pin_pool_pass_all_on(pool, victim);
	pin_magazine_get_out(victim);
	return has_taken;
}

/* Notes what it finds in place `i`, as the first look, and takes from it. */
static bool look_into_place(struct pin_pool *pool, uint32_t i, uint32_t *out_index)
{
	struct pin_magazine *victim = &pool->magazines[i];

	pool->seen[i] = pin_magazine_state(victim); /* [POOL-1] */
	if ((uint32_t)pool->seen[i] == 0 || !rob(pool, victim, out_index)) {
		return false;
	}
	pin_fetch_add_relaxed_u64(&pool->steals, 1);
	return true;
}

/* As above, into magazine `i`, then its owner's bundle. */
static bool look_into(struct pin_pool *pool, uint32_t i, uint32_t *out_index)
{
	return look_into_place(pool, i, out_index) ||
		(pin_pool_bundle(pool, i) != NULL &&
			look_into_place(pool, pool->magazine_count + i, out_index));
}

/* As above, all workers: the nearest first, at last `own`, which is empty. */
static bool take_from_workers(struct pin_pool *pool, uint32_t own, uint32_t *out_index)
{
	struct pin_victims_round round;
	uint32_t i;

	pin_victims_begin(&round, pool->victims, own, &pool->random);
	while (pin_victims_next(&round, &i)) {
		if (look_into(pool, i, out_index)) {
			return true;
		}
	}
	return look_into(pool, own, out_index);
}

/* Likewise, from number `first` on: those of the node, then the others. */
static bool take_from_range(
	struct pin_pool *pool, uint32_t first, uint32_t node, uint32_t *out_index)
{
	uint32_t count = pool->magazine_count - first;
	uint32_t start = count > 1 ? pin_random_below(&pool->random, count) : 0;

	for (int is_far = 0; is_far < 2; is_far++) {
		for (uint32_t j = 0; j < count; j++) {
			uint32_t i = first + (start + j) % count;

			if ((pool->magazines[i].node != node) == (is_far != 0) &&
				look_into(pool, i, out_index)) {
				return true;
			}
		}
	}
	return false;
}

/* Attached threads move about: to a worker they are as far as can be. */
static bool take_from_others(
	struct pin_pool *pool, uint32_t own, uint32_t node, uint32_t *out_index)
{
	if (pool->victims == NULL || own >= pool->victims->worker_count) {
		return take_from_range(pool, 0, node, out_index);
	}
	return take_from_workers(pool, own, out_index) ||
		take_from_range(pool, pool->victims->worker_count, node, out_index);
}

/* The rest of the first look; true: all places were empty. */
static bool note_rest(struct pin_pool *pool)
{
	uint64_t *trays = pool->seen + pool->place_count;
	uint64_t *lists = trays + pool->magazine_count;
	bool is_empty = true;

	for (uint32_t i = 0; i < pool->place_count; i++) {
		is_empty = is_empty && (uint32_t)pool->seen[i] == 0;
	}
	for (uint32_t i = 0; i < pool->magazine_count; i++) {
		const struct pin_tray *tray = &pool->magazines[i].tray;

		trays[i] = pin_tray_state(tray); /* [TRAY-3] */
		is_empty = is_empty && pin_tray_state_is_empty(tray, trays[i]);
	}
	for (uint32_t i = 0; i < pool->node_count; i++) {
		uint64_t state = pin_freelist_state(&pool->freelists[i]); /* [POOL-1] */

		lists[i] = state;
		is_empty = is_empty && pin_freelist_state_is_empty(state);
	}
	return is_empty;
}

static bool is_as_noted(const struct pin_pool *pool)
{
	const uint64_t *trays = pool->seen + pool->place_count;
	const uint64_t *lists = trays + pool->magazine_count;

	for (uint32_t i = 0; i < pool->place_count; i++) {
		if (pin_magazine_state(&pool->magazines[i]) != pool->seen[i]) {
			return false;
		}
	}
	for (uint32_t i = 0; i < pool->magazine_count; i++) {
		if (pin_tray_state(&pool->magazines[i].tray) != trays[i]) { /* [TRAY-3] */
			return false;
		}
	}
	for (uint32_t i = 0; i < pool->node_count; i++) {
		if (pin_freelist_state(&pool->freelists[i]) != lists[i]) {
			return false;
		}
	}
	return true;
}

/* All places but those of `own` are marked: [MAG-3]. */
static bool are_robbed(const struct pin_pool *pool, uint32_t own)
{
	for (uint32_t i = 0; i < pool->place_count; i++) {
		if (i % pool->magazine_count != own &&
			!pin_magazine_is_robbed(&pool->magazines[i])) {
			return false;
		}
	}
	return true;
}

/*
 * Whether nothing was free at the end of the first of two looks. The first
 * fence shows what was laid out and listed before it, and whose mark was taken
 * off; the second what owners put into their magazines: nothing is on its way
 * into those that are marked.
 */
static bool is_exhausted(struct pin_pool *pool, uint32_t own)
{
	if (!note_rest(pool)) {
		return false;
	}
	pin_fence_seq_cst(); /* [TRAY-4] [FREE-3] [MAG-3] */
	if (!are_robbed(pool, own)) {
		pool->host->fence_all();
	}
	return is_as_noted(pool);
}

bool pin_pool_search(struct pin_pool *pool, uint32_t own, uint32_t node, uint32_t *out_index)
{
	uint32_t giver;
	bool is_found;

	pin_lock_acquire(&pool->lock, pool->host);
	giver = pin_random_below(&pool->random, pool->magazine_count);
	do {
		is_found = pin_pool_take_listed(pool, node, out_index) ||
			pin_pool_take_laid_out(pool, node, out_index, &giver) ||
			take_from_others(pool, own, node, out_index);
	} while (!is_found && !is_exhausted(pool, own));
	pin_lock_release(&pool->lock, pool->host);
	return is_found;
}

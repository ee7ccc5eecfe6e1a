/* SPDX-License-Identifier: MIT */
/*
 * Where a buffer comes from and where it goes back to.
 */
#include "runtime/memory/pool.h"
#include "runtime/base/check.h"
#include "runtime/memory/misuse.h"
#include "runtime/observe/meter.h"

#include <errno.h>

enum {
	/* Buffers that move between a magazine and a free list at once. */
	BATCH_MAX = 64,
};

/* ---- acquire ---- */

/*
 * How many to bring into an empty magazine at once: half of it, but no more
 * than a fair share of what there is.
 */
static uint32_t refill_count(const struct pin_pool *pool, const struct pin_freelist *list)
{
	uint32_t share = pin_freelist_count(list, pool->entries) / pool->magazine_count;
	uint32_t most = (pool->magazine_capacity + 1) / 2;

	most = most < BATCH_MAX ? most : BATCH_MAX;
	share = share < most ? share : most;
	return share == 0 ? 1 : share;
}

/* The first goes out at once, the others into the magazine, which promised. */
static void keep_rest(struct pin_magazine *magazine, const uint32_t *indices, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++) {
		/* The first of the list ends up on top. */
		pin_store_relaxed_u32(&magazine->indices[count - 1 - i], indices[i]);
	}
	pin_magazine_settle(magazine, count > 0 ? count - 1 : 0);
}

/* Both inside an empty magazine: what they bring from elsewhere. */

static uint32_t draw_listed(
	struct pin_pool *pool, struct pin_magazine *magazine, uint32_t *out_indices)
{
	struct pin_freelist *list = &pool->freelists[magazine->node];
	uint32_t wanted;
	uint32_t count;

	if (pin_freelist_state_is_empty(pin_freelist_state(list))) {
		return 0;
	}
	wanted = refill_count(pool, list);
	pin_magazine_promise(magazine, wanted); /* [POOL-1] */
	count = pin_freelist_pop(list, pool->entries, out_indices, wanted);
	keep_rest(magazine, out_indices, count);
	return count;
}

/* Half of it, as thieves do, so that the owner has its line longer. */
static uint32_t draw_laid_out(
	struct pin_magazine *magazine, struct pin_tray *tray, uint32_t *out_indices)
{
	uint32_t wanted = (pin_tray_count(tray) + 1) / 2;
	uint32_t most = (magazine->capacity + 1) / 2;
	uint32_t count;

	if (wanted <= 1 || most == 1) {
		return wanted == 0 ? 0 : pin_tray_take(tray, out_indices, 1);
	}
	wanted = wanted < most ? wanted : most;
	pin_magazine_promise(magazine, wanted); /* [POOL-1] */
	count = pin_tray_take(tray, out_indices, wanted);
	keep_rest(magazine, out_indices, count);
	return count;
}

/* Into the magazine, which the caller is inside and which is empty. */
static bool refill(struct pin_pool *pool, struct pin_magazine *magazine, uint32_t *out_index)
{
	struct pin_magazine *giver = &pool->magazines[magazine->giver];
	uint32_t indices[BATCH_MAX];
	uint32_t count = draw_laid_out(magazine, &magazine->tray, indices);

	if (count == 0) {
		count = draw_listed(pool, magazine, indices);
	}
	if (count == 0 && giver->node == magazine->node) {
		count = draw_laid_out(magazine, &giver->tray, indices);
	}
	if (count == 0) {
		return false;
	}
	if (pin_magazine_is_robbed(magazine)) {
		pin_magazine_forget_theft(magazine);
	}
	pin_meter_add(&magazine->refills, 1);
	*out_index = indices[0];
	return true;
}

/* One from any free list, the caller's own node first. */
static bool take_listed(struct pin_pool *pool, uint32_t node, uint32_t *out_index)
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

/* One from any tray, likewise; from *giver on round, and tells whose it was. */
static bool take_laid_out(
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

/* Inside: the oldest, up to BATCH_MAX, go to the list, always to be seen. */
static void pass_on(struct pin_pool *pool, struct pin_magazine *magazine, uint32_t count)
{
	uint32_t indices[BATCH_MAX];

	pin_magazine_look_oldest(magazine, indices, count);
	pin_freelist_push(&pool->freelists[magazine->node], pool->entries, indices, count);
	pin_magazine_drop_oldest(magazine, count);
}

/*
 * Breaks in, takes the oldest, and leaves all others in the free list: breaking
 * in costs far more than what is there, and so the next one need not.
 */
static bool rob(struct pin_pool *pool, struct pin_magazine *victim, uint32_t *out_index)
{
	bool has_taken = false;
	uint32_t count;

	pin_magazine_break_in(victim, pool->host);
	if (pin_magazine_count(victim) > 0) {
		pin_magazine_look_oldest(victim, out_index, 1);
		pin_magazine_drop_oldest(victim, 1);
		has_taken = true;
	}
	while ((count = pin_magazine_count(victim)) > 0) {
		pass_on(pool, victim, count < BATCH_MAX ? count : BATCH_MAX);
	}
	pin_magazine_get_out(victim);
	return has_taken;
}

/* Notes what it finds in magazine `i`, as the first look, and takes from it. */
static bool look_into(struct pin_pool *pool, uint32_t i, uint32_t *out_index)
{
	struct pin_magazine *victim = &pool->magazines[i];

	pool->seen[i] = pin_magazine_state(victim); /* [POOL-1] */
	if ((uint32_t)pool->seen[i] == 0 || !rob(pool, victim, out_index)) {
		return false;
	}
	pin_fetch_add_relaxed_u64(&pool->steals, 1);
	return true;
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
	uint64_t *trays = pool->seen + pool->magazine_count;
	uint64_t *lists = trays + pool->magazine_count;
	bool is_empty = true;

	for (uint32_t i = 0; i < pool->magazine_count; i++) {
		const struct pin_tray *tray = &pool->magazines[i].tray;

		trays[i] = pin_tray_state(tray); /* [TRAY-3] */
		is_empty = is_empty && (uint32_t)pool->seen[i] == 0 &&
			pin_tray_state_is_empty(tray, trays[i]);
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
	const uint64_t *trays = pool->seen + pool->magazine_count;
	const uint64_t *lists = trays + pool->magazine_count;

	for (uint32_t i = 0; i < pool->magazine_count; i++) {
		if (pin_magazine_state(&pool->magazines[i]) != pool->seen[i] ||
			pin_tray_state(&pool->magazines[i].tray) != trays[i]) { /* [TRAY-3] */
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

/* All magazines but `own` are marked: [MAG-3]. */
static bool are_robbed(const struct pin_pool *pool, uint32_t own)
{
	for (uint32_t i = 0; i < pool->magazine_count; i++) {
		if (i != own && !pin_magazine_is_robbed(&pool->magazines[i])) {
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

/*
 * With the lock: from lists, from trays, from magazines, or nowhere. Each round
 * that ends with neither was spoilt by somebody's release. An owner who comes
 * here has an empty magazine: it saw that itself, or found a thief inside, who
 * leaves nothing and was done before the lock was free.
 */
static bool search(struct pin_pool *pool, uint32_t own, uint32_t node, uint32_t *out_index)
{
	uint32_t giver;
	bool is_found;

	pin_lock_acquire(&pool->lock, pool->host);
	giver = pin_random_below(&pool->random, pool->magazine_count);
	do {
		is_found = take_listed(pool, node, out_index) ||
			take_laid_out(pool, node, out_index, &giver) ||
			take_from_others(pool, own, node, out_index);
	} while (!is_found && !is_exhausted(pool, own));
	pin_lock_release(&pool->lock, pool->host);
	return is_found;
}

/* The only magazine, seen empty by its owner, then its tray, then the list. */
static bool is_alone(const struct pin_pool *pool, bool was_inside)
{
	return was_inside && pool->magazine_count == 1 && pool->node_count == 1;
}

static bool take_as_owner(struct pin_pool *pool, uint32_t magazine, uint32_t *out_index)
{
	struct pin_magazine *own = &pool->magazines[magazine];
	bool is_inside = pin_magazine_enter_slowly(own);
	bool is_found;

	if (is_inside) {
		bool is_hit = pin_magazine_take(own, out_index);

		is_found = is_hit || refill(pool, own, out_index);
		pin_magazine_leave(own);
		if (is_found) {
			pin_meter_add(is_hit ? &own->hits : &own->misses, 1);
			return true;
		}
	}
	is_found = take_laid_out(pool, own->node, out_index, &own->giver);
	if (is_found || !is_alone(pool, is_inside)) {
		is_found = is_found || take_listed(pool, own->node, out_index) ||
			search(pool, magazine, own->node, out_index);
	} else {
		/* Nobody else puts into its tray, so that is still empty. */
		do {
			is_found = take_listed(pool, own->node, out_index);
		} while (!is_found && !pin_freelist_is_empty_now(&pool->freelists[own->node]));
	}
	pin_meter_add(&own->misses, is_found);
	return is_found;
}

/*
 * Where one without a magazine begins to look, who remembers nothing: as the
 * list's count of changes has it, so that not all begin with the first.
 */
static uint32_t first_giver(const struct pin_pool *pool, uint32_t node)
{
	struct pin_random random;
	uint64_t changes = pin_freelist_state(&pool->freelists[node]) >> PIN_FREELIST_INDEX_BITS;

	pin_random_init(&random, PIN_RANDOM_SEED_DEFAULT, (uint32_t)changes);
	return pin_random_below(&random, pool->magazine_count);
}

static bool find(struct pin_pool *pool, uint32_t magazine, uint32_t node, uint32_t *out_index)
{
	if (magazine == PIN_POOL_OUTSIDE) {
		uint32_t giver;

		if (take_listed(pool, node, out_index)) {
			return true;
		}
		giver = first_giver(pool, node);
		return take_laid_out(pool, node, out_index, &giver) ||
			search(pool, magazine, node, out_index);
	}
	return take_as_owner(pool, magazine, out_index);
}

/* What is to be known of who takes a buffer. */
static uint32_t holder_of(const struct pin_pool *pool, uint32_t magazine, uint32_t index)
{
	bool is_far = magazine != PIN_POOL_OUTSIDE &&
		pool->magazines[magazine].node != pool->entries[index].node;

	return is_far ? magazine | PIN_POOL_FAR : magazine;
}

bool pin_pool_acquire(
	struct pin_pool *pool, uint32_t magazine, uint32_t node, struct pinion_buffer *out_buffer)
{
	/* A list that misuse made a circle yields the same ones for ever. */
	uint32_t tries_left = pool->buffer_count + 1;
	uint32_t index;

	for (; tries_left > 0 && find(pool, magazine, node, &index); tries_left--) {
		struct pin_entry *entry = &pool->entries[index];
		uint64_t state = pin_load_relaxed_u64(&entry->state);
		uint32_t holder = holder_of(pool, magazine, index);

		if (!pin_pool_is_used(state)) {
			pin_pool_hand_out(entry, state, holder, index, out_buffer);
			pin_misuse_show(pool, entry);
			return true;
		}
		pin_misuse_was_free_twice(pool, index);
	}
	pin_fetch_add_relaxed_u64(&pool->exhausted, 1);
	return false;
}

/* ---- release ---- */

/* Inside a full one: half of it. */
static void spill(struct pin_pool *pool, struct pin_magazine *magazine)
{
	uint32_t count = (magazine->capacity + 1) / 2;

	count = count < BATCH_MAX ? count : BATCH_MAX;
	pass_on(pool, magazine, count);
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

static void put(struct pin_pool *pool, uint32_t magazine, uint32_t index)
{
	struct pin_entry *entry = &pool->entries[index];
	struct pin_magazine *own = magazine == PIN_POOL_OUTSIDE ? NULL : &pool->magazines[magazine];
	bool is_unwanted = false; /* what is laid out */

	if (own == NULL || own->node != entry->node) {
		pin_freelist_push(&pool->freelists[entry->node], pool->entries, &index, 1);
		return;
	}
	if (PIN_UNLIKELY(pin_magazine_is_robbed(own))) {
		if (lay_out(pool, own, index)) {
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
	if (!pin_magazine_put(own, index)) {
		bool has_room;

		spill(pool, own);
		has_room = pin_magazine_put(own, index);
		PIN_CHECK(has_room);
	}
	pin_magazine_leave_slowly(own);
}

int pin_pool_release(struct pin_pool *pool, uint32_t magazine, const struct pinion_buffer *buffer)
{
	uint64_t state = buffer->generation;
	int rc;

	if (magazine != PIN_POOL_OUTSIDE && pin_magazine_is_robbed(&pool->magazines[magazine])) {
		/* Both lines were others', and come at the same time. */
		pin_prefetch_write(&pool->magazines[magazine].tray);
	}
	rc = pin_misuse_check(pool, buffer);
	if (rc != 0) {
		return rc;
	}
	if (!pin_cas_acq_rel_u64(
		    &pool->entries[buffer->index].state, &state, state + 1)) { /* invariant 2 */
		return pin_misuse_check(pool, buffer);
	}
	pin_misuse_hide(pool, &pool->entries[buffer->index]);
	put(pool, magazine, buffer->index);
	return 0;
}

bool pin_pool_owns(struct pin_pool *pool, const struct pinion_buffer *buffer)
{
	int rc = pin_misuse_check(pool, buffer);

	return rc == 0 || rc == -EBUSY;
}

void pin_pool_claim(struct pin_pool *pool, uint32_t magazine, const struct pinion_buffer *buffer)
{
	pin_store_relaxed_u32(
		&pool->entries[buffer->index].holder, holder_of(pool, magazine, buffer->index));
}

static bool is_in(const struct pin_pool *pool, uint32_t region, const uint8_t *address)
{
	return (uintptr_t)address - (uintptr_t)pool->regions[region].memory <
		(uint64_t)pool->regions[region].buffer_count * pool->stride;
}

struct pin_entry *pin_pool_find(const struct pin_pool *pool, const uint8_t *address, uint32_t hint)
{
	uint32_t region = hint < pool->region_count && is_in(pool, hint, address) ? hint : 0;
	uint32_t first = 0;

	while (region < pool->region_count && !is_in(pool, region, address)) {
		region++;
	}
	if (region == pool->region_count) {
		return NULL;
	}
	for (uint32_t i = 0; i < region; i++) {
		first += pool->regions[i].buffer_count;
	}
	return &pool->entries[first +
		(uint64_t)(address - pool->regions[region].memory) / pool->stride];
}

void pin_pool_flush(struct pin_pool *pool, uint32_t magazine)
{
	struct pin_magazine *own = &pool->magazines[magazine];
	uint32_t count;

	while (!pin_magazine_enter_slowly(own)) {
		pool->host->yield();
	}
	while ((count = pin_magazine_count(own)) > 0) {
		pass_on(pool, own, count < BATCH_MAX ? count : BATCH_MAX);
	}
	pin_magazine_leave(own);
	pin_magazine_mark_robbed(own);
}

/* ---- looks from outside ---- */

uint32_t pin_pool_count_lists(const struct pin_pool *pool)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < pool->node_count; i++) {
		count += pin_freelist_count(&pool->freelists[i], pool->entries);
	}
	for (uint32_t i = 0; i < pool->magazine_count; i++) {
		count += pin_tray_count(&pool->magazines[i].tray);
	}
	return count;
}

uint32_t pin_pool_count_magazine(const struct pin_pool *pool, uint32_t magazine)
{
	return pin_magazine_count(&pool->magazines[magazine]);
}

uint64_t pin_pool_count_acquires(const struct pin_pool *pool)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < pool->buffer_count; i++) {
		count +=
			((uint64_t)(uint32_t)pin_load_relaxed_u64(&pool->entries[i].state) + 1) / 2;
	}
	return count;
}

uint32_t pin_pool_count(const struct pin_pool *pool)
{
	uint32_t count = 0;

	/* Of generations, since one on its way is nowhere, or in two places. */
	for (uint32_t i = 0; i < pool->buffer_count; i++) {
		count += (pin_load_acquire_u64(&pool->entries[i].state) & 1) == 0;
	}
	return count;
}

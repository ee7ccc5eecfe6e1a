/* SPDX-License-Identifier: MIT */
/*
 * Searches all places of a pool for a free buffer, and robs a magazine if it
 * must; and the slow ways of a buffer home.
 *
 * A thread comes here when its own cache and the free lists of its node had
 * nothing, one thread at a time for thefts.
 *
 * Invariant: "nothing is free" is reported only after all places were empty in
 * two checks with a fence between, in which no place changed.
 */
#include "runtime/base/check.h"
#include "runtime/base/metrics.h"
#include "runtime/memory/pool_internal.h"

bool pin_pool_take_listed(struct pin_pool *pool, uint32_t node, uint32_t *out_index)
{
	uint32_t at = node;

	PIN_DCHECK(node < pool->node_count);
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

	PIN_DCHECK(at < pool->magazine_count);
	for (uint32_t i = 0; i < (pool->node_count > 1 ? 2 : 1) * pool->magazine_count; i++) {
		bool is_far = i >= pool->magazine_count;
		struct pin_magazine *from = &pool->magazines[at];

		if ((from->node != node) == is_far &&
			pin_stash_take(&from->stash, out_index, 1) == 1) {
			PIN_DCHECK(*out_index < pool->buffer_count);
			*giver = at;
			return true;
		}
		at = at + 1 == pool->magazine_count ? 0 : at + 1;
	}
	return false;
}

/*
 * Breaks in, takes the oldest, and leaves all others in the free list: breaking
 * in costs far more than the buffers, and so the next one need not.
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

/* Notes the state of place `i`, as the first check, and takes from it. */
static bool look_into_place(struct pin_pool *pool, uint32_t i, uint32_t *out_index)
{
	struct pin_magazine *victim = &pool->magazines[i];

	PIN_DCHECK(i < pool->place_count);
	pool->seen[i] = pin_magazine_state(victim); /* [POOL-1] */
	PIN_DCHECK((uint32_t)pool->seen[i] <= victim->capacity);
	if ((uint32_t)pool->seen[i] == 0 || !rob(pool, victim, out_index)) {
		return false;
	}
	pin_fetch_add_relaxed_u64(&pool->steals, 1);
	return true;
}

/* As above, into magazine `i`, then its owner's batch. */
static bool look_into(struct pin_pool *pool, uint32_t i, uint32_t *out_index)
{
	PIN_DCHECK(i < pool->magazine_count);
	return look_into_place(pool, i, out_index) ||
		(pin_pool_remote_batch(pool, i) != NULL &&
			look_into_place(pool, pool->magazine_count + i, out_index));
}

/* As above, all workers: the nearest first, at last `own`, which is empty. */
static bool take_from_workers(struct pin_pool *pool, uint32_t own, uint32_t *out_index)
{
	struct pin_victims_round round;
	uint32_t i;

	PIN_DCHECK(own < pool->victims->worker_count);
	pin_victims_begin(&round, pool->victims, own, &pool->random);
	while (pin_victims_next(&round, &i)) {
		if (look_into(pool, i, out_index)) {
			return true;
		}
	}
	return look_into(pool, own, out_index);
}

/* The same, from number `first` on: those of the node, then the others. */
static bool take_from_range(
	struct pin_pool *pool, uint32_t first, uint32_t node, uint32_t *out_index)
{
	uint32_t count = pool->magazine_count - first;
	uint32_t start = count > 1 ? pin_random_below(&pool->random, count) : 0;

	PIN_DCHECK(first <= pool->magazine_count);
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

/* The rest of the first check; true: all places were empty. */
static bool note_rest(struct pin_pool *pool)
{
	uint64_t *stashes = pool->seen + pool->place_count;
	uint64_t *lists = stashes + pool->magazine_count;
	bool is_empty = true;

	for (uint32_t i = 0; i < pool->place_count; i++) {
		is_empty = is_empty && (uint32_t)pool->seen[i] == 0;
	}
	for (uint32_t i = 0; i < pool->magazine_count; i++) {
		const struct pin_stash *stash = &pool->magazines[i].stash;

		stashes[i] = pin_stash_state(stash); /* [STASH-3] */
		is_empty = is_empty && pin_stash_state_is_empty(stash, stashes[i]);
	}
	for (uint32_t i = 0; i < pool->node_count; i++) {
		uint64_t state = pin_freelist_state(&pool->freelists[i]); /* [POOL-1] */

		lists[i] = state;
		is_empty = is_empty && pin_freelist_state_is_empty(state);
	}
	return is_empty;
}

/*
 * The second of the two checks: each place counts its changes, so an unchanged
 * word means that it stayed empty in between.
 */
static bool is_as_noted(const struct pin_pool *pool)
{
	const uint64_t *stashes = pool->seen + pool->place_count;
	const uint64_t *lists = stashes + pool->magazine_count;

	for (uint32_t i = 0; i < pool->place_count; i++) {
		if (pin_magazine_state(&pool->magazines[i]) != pool->seen[i]) {
			return false;
		}
	}
	for (uint32_t i = 0; i < pool->magazine_count; i++) {
		if (pin_stash_state(&pool->magazines[i].stash) != stashes[i]) { /* [STASH-3] */
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
 * fence shows buffers published and listed before it, and marks taken off
 * before it; the second shows puts of owners into their magazines: nothing is
 * on its way into marked ones.
 */
static bool is_exhausted(struct pin_pool *pool, uint32_t own)
{
	if (!note_rest(pool)) {
		return false;
	}
	pin_fence_seq_cst(); /* [STASH-4] [FREE-3] [MAG-3] */
	if (!are_robbed(pool, own)) {
		pool->host->fence_all();
	}
	return is_as_noted(pool);
}

/* ---- doubts ---- */

enum {
	/* Few shortages pay for it, and none of a model. */
	DOUBT_SHORTAGES = 16,
	DOUBT_BUFFERS = 16,
	/* Longer than any way home, unless its thread has no CPU. */
	DOUBT_NS = 10 * 1000 * 1000,
};

/* The next buffers: the first that is free is doubtful. */
static void begin_doubt(struct pin_pool *pool, uint64_t now_ns)
{
	struct pin_pool_doubt *doubt = &pool->doubt;

	doubt->since_ns = 0;
	for (uint32_t i = 0; i < DOUBT_BUFFERS && doubt->since_ns == 0; i++) {
		doubt->index = doubt->index + 1 < pool->buffer_count ? doubt->index + 1 : 0;
		/* Relaxed: with its generation it says all that is asked. */
		doubt->state = pin_load_relaxed_u64(&pool->entries[doubt->index].state);
		doubt->since_ns = pin_entry_is_used(doubt->state) ? 0 : now_ns;
	}
}

/*
 * By another witness than the places: a buffer that has been free since a
 * shortage 10 ms ago, and all the time, was free during this one. Counts it. A
 * pool with one cache alone has no search, and no doubts.
 */
static void doubt_shortage(struct pin_pool *pool)
{
	struct pin_pool_doubt *doubt = &pool->doubt;
	uint64_t now_ns;
	uint64_t state;

	if (++doubt->shortages % DOUBT_SHORTAGES != 0) {
		return;
	}
	now_ns = pool->host->now_ns();
	state = pin_load_relaxed_u64(&pool->entries[doubt->index].state);
	if (doubt->since_ns == 0 || state != doubt->state) {
		begin_doubt(pool, now_ns);
	} else if (now_ns - doubt->since_ns >= DOUBT_NS) {
		pin_fetch_add_relaxed_u64(&pool->false_nulls, 1);
		begin_doubt(pool, now_ns);
	}
}

bool pin_pool_search(struct pin_pool *pool, uint32_t own, uint32_t node, uint32_t *out_index)
{
	uint32_t giver;
	bool is_found;

	PIN_DCHECK(own < pool->magazine_count || own == PIN_POOL_OUTSIDE);
	pin_lock_acquire(&pool->lock, pool->host);
	giver = pin_random_below(&pool->random, pool->magazine_count);
	do {
		is_found = pin_pool_take_listed(pool, node, out_index) ||
			pin_pool_take_laid_out(pool, node, out_index, &giver) ||
			take_from_others(pool, own, node, out_index);
	} while (!is_found && !is_exhausted(pool, own));
	PIN_DCHECK(!is_found || *out_index < pool->buffer_count);
	if (!is_found) {
		doubt_shortage(pool);
	}
	pin_lock_release(&pool->lock, pool->host);
	return is_found;
}

/* ---- buffers that come home ---- */

/*
 * Into a magazine, onto a stash, or into a list.
 */

/* Each group of one home at once. */
static void push_home(struct pin_pool *pool, uint32_t *indices, uint32_t count)
{
	while (count > 0) {
		uint32_t node = pool->entries[indices[0]].node;
		uint32_t group[PIN_POOL_BATCH_MAX];
		uint32_t group_count = 0;
		uint32_t rest_count = 0;

		PIN_DCHECK(node < pool->node_count);
		PIN_DCHECK(count <= PIN_POOL_BATCH_MAX);
		for (uint32_t i = 0; i < count; i++) {
			if (pool->entries[indices[i]].node == node) {
				group[group_count++] = indices[i];
			} else {
				indices[rest_count++] = indices[i];
			}
		}
		PIN_DCHECK(group_count > 0); /* so this ends */
		pin_freelist_push(&pool->freelists[node], pool->entries, group, group_count);
		count = rest_count;
	}
}

void pin_pool_pass_on(struct pin_pool *pool, struct pin_magazine *magazine, uint32_t count)
{
	uint32_t indices[PIN_POOL_BATCH_MAX];

	PIN_DCHECK(count > 0);
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
 * Of a robbed magazine: publishes one for others, as long as they want it:
 * until half a magazine is there, with those that do not fit the stash in the
 * list. The list may look shorter or longer than it is; that costs time,
 * nothing else.
 */
static bool lay_out(struct pin_pool *pool, struct pin_magazine *magazine, uint32_t index)
{
	struct pin_freelist *list = &pool->freelists[magazine->node];
	uint32_t half = (magazine->capacity + 1) / 2;
	uint32_t most = half < PIN_STASH_SLOTS ? half : PIN_STASH_SLOTS;

	PIN_DCHECK(pool->entries[index].node == magazine->node);
	if (pin_stash_put(&magazine->stash, index, most)) {
		return true;
	}
	if (pin_freelist_count(list, pool->entries) < half - most) {
		pin_freelist_push(list, pool->entries, &index, 1);
		return true;
	}
	return false;
}

/* Of a robbed batch: straight home, as long as fewer are there than fit it. */
static bool send_straight(
	struct pin_pool *pool, const struct pin_magazine *remote_batch, uint32_t index)
{
	struct pin_freelist *list = &pool->freelists[pool->entries[index].node];

	PIN_DCHECK(pool->entries[index].node != remote_batch->node);
	if (pin_freelist_count(list, pool->entries) >= remote_batch->capacity) {
		return false;
	}
	pin_freelist_push(list, pool->entries, &index, 1);
	return true;
}

/* Inside one with room. */
static void put_near(struct pin_pool *pool, struct pin_magazine *own, uint32_t index)
{
	PIN_DCHECK(pool->entries[index].node == own->node);
	if (!pin_magazine_put(own, index)) {
		bool has_room;

		spill(pool, own);
		has_room = pin_magazine_put(own, index);
		PIN_CHECK(has_room);
	}
}

/* Inside; the last buffer that fits takes all others along. */
static void put_far(struct pin_pool *pool, struct pin_magazine *remote_batch, uint32_t index)
{
	bool has_room = pin_magazine_put(remote_batch, index);

	PIN_CHECK(has_room);
	PIN_DCHECK(pool->entries[index].node != remote_batch->node);
	if (pin_magazine_count(remote_batch) == remote_batch->capacity) {
		pin_pool_pass_all_on(pool, remote_batch);
		pin_meter_add(&remote_batch->spills, 1);
	}
}

/*
 * The slow release: a buffer of another node, a robbed owner, a thief inside,
 * or a full magazine. In doubt the buffer goes to the free list of its node,
 * where every thread finds it.
 */
void pin_pool_put(struct pin_pool *pool, uint32_t magazine, uint32_t index)
{
	struct pin_entry *entry = &pool->entries[index];
	struct pin_magazine *own = magazine == PIN_POOL_OUTSIDE ? NULL : &pool->magazines[magazine];
	bool is_far = own != NULL && own->node != entry->node;
	bool is_unwanted = false; /* those published, or sent straight */

	PIN_DCHECK(index < pool->buffer_count);
	PIN_DCHECK(entry->node < pool->node_count);
	if (is_far) {
		own = pin_pool_remote_batch(pool, magazine);
		PIN_DCHECK(own != NULL); /* several nodes: each owner has a batch */
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

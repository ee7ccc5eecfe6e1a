/* SPDX-License-Identifier: MIT */
/*
 * Takes buffers from a pool and gives them back, for threads with and without a
 * cache, and counts the free ones.
 *
 * The public calls (api/pool.c) and the workers' own buffers use it. The fast
 * paths are inline in pool.h; this file has what follows when the own magazine
 * is empty or full.
 *
 * Invariant: a buffer is in one place at each instant that a searcher can
 * observe, so "none is free" is never wrong.
 */
#include "runtime/memory/pool.h"
#include "runtime/base/check.h"
#include "runtime/base/metrics.h"
#include "runtime/memory/pool_internal.h"

#include <errno.h>

enum {
	/*
	 * A fence of all threads costs some thousand times what a shared use
	 * costs more than a plain one.
	 */
	SHARED_ENDS_MAX = 4096,
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

	most = most < PIN_POOL_BATCH_MAX ? most : PIN_POOL_BATCH_MAX;
	share = share < most ? share : most;
	return share == 0 ? 1 : share;
}

/* The first goes out at once, the others into the magazine, which promised. */
static void keep_rest(struct pin_magazine *magazine, const uint32_t *indices, uint32_t count)
{
	PIN_DCHECK(count <= magazine->capacity);
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

	PIN_DCHECK(magazine->node < pool->node_count);
	if (pin_freelist_state_is_empty(pin_freelist_state(list))) {
		return 0;
	}
	wanted = refill_count(pool, list);
	PIN_DCHECK(wanted <= PIN_POOL_BATCH_MAX); /* as large as `out_indices` */
	pin_magazine_promise(magazine, wanted);	  /* [POOL-1] */
	count = pin_freelist_pop(list, pool->entries, out_indices, wanted);
	keep_rest(magazine, out_indices, count);
	return count;
}

/* Half of it, as thieves do, so that the owner has its line longer. */
static uint32_t draw_laid_out(
	struct pin_magazine *magazine, struct pin_stash *stash, uint32_t *out_indices)
{
	uint32_t wanted = (pin_stash_count(stash) + 1) / 2;
	uint32_t most = (magazine->capacity + 1) / 2;
	uint32_t count;

	if (wanted <= 1 || most == 1) {
		return wanted == 0 ? 0 : pin_stash_take(stash, out_indices, 1);
	}
	wanted = wanted < most ? wanted : most;
	PIN_DCHECK(wanted <= PIN_STASH_SLOTS);
	pin_magazine_promise(magazine, wanted); /* [POOL-1] */
	count = pin_stash_take(stash, out_indices, wanted);
	keep_rest(magazine, out_indices, count);
	return count;
}

/* Into the magazine, which the caller is inside and which is empty. */
static bool refill(struct pin_pool *pool, struct pin_magazine *magazine, uint32_t *out_index)
{
	struct pin_magazine *giver = &pool->magazines[magazine->giver];
	uint32_t indices[PIN_POOL_BATCH_MAX];
	uint32_t count = draw_laid_out(magazine, &magazine->stash, indices);

	PIN_DCHECK(magazine->giver < pool->magazine_count);
	if (count == 0) {
		count = draw_listed(pool, magazine, indices);
	}
	if (count == 0 && giver->node == magazine->node) {
		count = draw_laid_out(magazine, &giver->stash, indices);
	}
	if (count == 0) {
		return false;
	}
	if (pin_magazine_is_robbed(magazine)) {
		pin_magazine_forget_theft(magazine);
	}
	PIN_DCHECK(count <= PIN_POOL_BATCH_MAX);
	pin_meter_add(&magazine->refills, 1);
	PIN_DCHECK(indices[0] < pool->buffer_count);
	*out_index = indices[0];
	return true;
}

/* The only magazine, seen empty by its owner, then its stash, then the list. */
static bool is_alone(const struct pin_pool *pool, bool was_inside)
{
	return was_inside && pool->magazine_count == 1 && pool->node_count == 1;
}

/* What it was about to send home. */
static bool take_remote_batchd(struct pin_pool *pool, uint32_t magazine, uint32_t *out_index)
{
	struct pin_magazine *remote_batch = pin_pool_remote_batch(pool, magazine);
	bool is_found;

	if (remote_batch == NULL || pin_magazine_count(remote_batch) == 0 ||
		!pin_magazine_enter_slowly(remote_batch)) {
		return false;
	}
	is_found = pin_magazine_take(remote_batch, out_index);
	PIN_DCHECK(!is_found || pool->entries[*out_index].node != remote_batch->node);
	pin_magazine_leave(remote_batch);
	return is_found;
}

/*
 * From the nearest place to the farthest: own magazine, stash, gathered buffers
 * of other nodes, free lists, other magazines. A pool that no other thread uses
 * needs only the list.
 */
static bool take_as_owner(struct pin_pool *pool, uint32_t magazine, uint32_t *out_index)
{
	struct pin_magazine *own = &pool->magazines[magazine];
	bool is_inside = pin_magazine_enter_slowly(own);
	bool is_found;

	PIN_DCHECK(magazine < pool->magazine_count);
	if (is_inside) {
		bool is_hit = pin_magazine_take(own, out_index);

		is_found = is_hit || refill(pool, own, out_index);
		pin_magazine_leave(own);
		if (is_found) {
			pin_meter_add(is_hit ? &own->hits : &own->misses, 1);
			return true;
		}
	}
	is_found = pin_pool_take_laid_out(pool, own->node, out_index, &own->giver);
	if (is_found || !is_alone(pool, is_inside)) {
		is_found = is_found || take_remote_batchd(pool, magazine, out_index) ||
			pin_pool_take_listed(pool, own->node, out_index) ||
			pin_pool_search(pool, magazine, own->node, out_index);
	} else {
		/*
		 * No other thread puts into its stash, so that is still empty.
		 */
		do {
			is_found = pin_pool_take_listed(pool, own->node, out_index);
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

	PIN_DCHECK(node < pool->node_count);
	pin_random_init(&random, PIN_RANDOM_SEED_DEFAULT, (uint32_t)changes);
	return pin_random_below(&random, pool->magazine_count);
}

static bool find(struct pin_pool *pool, uint32_t magazine, uint32_t node, uint32_t *out_index)
{
	if (magazine == PIN_POOL_OUTSIDE) {
		uint32_t giver;

		if (pin_pool_take_listed(pool, node, out_index)) {
			return true;
		}
		giver = first_giver(pool, node);
		return pin_pool_take_laid_out(pool, node, out_index, &giver) ||
			pin_pool_search(pool, magazine, node, out_index);
	}
	return take_as_owner(pool, magazine, out_index);
}

/* The holder's name that a taker of a buffer stores. */
static uint32_t holder_of(const struct pin_pool *pool, uint32_t magazine, uint32_t index)
{
	bool is_far = magazine != PIN_POOL_OUTSIDE &&
		pool->magazines[magazine].node != pool->entries[index].node;

	return is_far ? magazine | PIN_ENTRY_FAR : magazine;
}

bool pin_pool_acquire(
	struct pin_pool *pool, uint32_t magazine, uint32_t node, struct pinion_buffer *out_buffer)
{
	struct pin_entry *entry;
	uint32_t index;

	if (!find(pool, magazine, node, &index)) {
		pin_fetch_add_relaxed_u64(&pool->exhausted, 1);
		return false;
	}
	PIN_DCHECK(index < pool->buffer_count);
	entry = &pool->entries[index];
	pin_pool_hand_out(entry, holder_of(pool, magazine, index), index, out_buffer);
	pin_pool_check_show(pool, entry);
	return true;
}

/* ---- release ---- */

/* Until its holder is not about to store what follows from an older look. */
static void await_holder(struct pin_pool *pool, const struct pin_entry *entry)
{
	uint32_t holder = pin_load_relaxed_u32(&entry->holder); /* [POOL-3] */
	struct pin_magazine *own;

	if (!pin_entry_has_owner(holder)) {
		return;
	}
	PIN_DCHECK(pin_entry_number(holder) < pool->magazine_count);
	own = &pool->magazines[pin_entry_number(holder)];
	if (!pin_magazine_is_fenced(own)) {
		pool->host->fence_all(); /* [POOL-2] */
		pin_magazine_await_owner(own, pool->host);
	}
}

/* In this use; false: it is shared already, or over. */
static bool mark(struct pin_entry *entry, uint32_t generation, uint64_t bit)
{
	uint64_t state = pin_load_acquire_u64(&entry->state); /* [POOL-3] */

	PIN_DCHECK(pin_entry_is_used(generation));
	PIN_DCHECK(bit == PIN_ENTRY_CLOSING || bit == PIN_ENTRY_SHARED);
	while ((uint32_t)state == generation && (state & PIN_ENTRY_SHARED) == 0) {
		if (pin_cas_acq_rel_u64(&entry->state, &state, state | bit)) { /* [POOL-2] */
			return true;
		}
	}
	return false;
}

void pin_pool_share(struct pin_pool *pool, uint32_t index)
{
	struct pin_entry *entry = &pool->entries[index];
	uint64_t state = pin_load_acquire_u64(&entry->state);

	PIN_DCHECK(index < pool->buffer_count);
	if (pin_entry_is_used(state) && mark(entry, (uint32_t)state, PIN_ENTRY_CLOSING)) {
		await_holder(pool, entry);
		mark(entry, (uint32_t)state, PIN_ENTRY_SHARED);
	}
}

/* [POOL-2] Whether its owner makes one plain again that was shared. */
static bool is_to_be_plain(
	struct pin_pool *pool, uint32_t magazine, const struct pin_entry *entry, uint64_t state)
{
	struct pin_magazine *own;

	if (state >> 32 == 0 || magazine == PIN_POOL_OUTSIDE ||
		pin_load_relaxed_u32(&entry->holder) != magazine) {
		return false;
	}
	PIN_DCHECK(magazine < pool->magazine_count);
	own = &pool->magazines[magazine];
	own->shared_ends++;
	if (own->shared_ends < SHARED_ENDS_MAX) {
		return false;
	}
	own->shared_ends = 0;
	return true;
}

/* Its use `generation`; false: that has ended, or a request has it. */
static bool end_use(struct pin_pool *pool, uint32_t magazine, uint32_t index, uint32_t generation)
{
	struct pin_entry *entry = &pool->entries[index];
	uint64_t state = pin_load_acquire_u64(&entry->state); /* [POOL-3] */

	while (pin_entry_is_as_given(state, generation)) {
		uint32_t holder = pin_load_acquire_u32(&entry->holder); /* [POOL-3] [POOL-4] */
		uint64_t next;

		if (pin_pool_must_share(state, holder, magazine)) {
			pin_pool_share(pool, index);
			state = pin_load_acquire_u64(&entry->state);
			continue;
		}
		/* Of a shared buffer that count only falls. */
		if (pin_entry_has_own(holder)) {
			return false;
		}
		next = is_to_be_plain(pool, magazine, entry, state) ? (uint32_t)(state + 1)
								    : pin_entry_end_use(state);
		PIN_DCHECK(!pin_entry_is_used(next));
		if (pin_cas_acq_rel_u64(&entry->state, &state, next)) { /* invariant 2 */
			return true;
		}
	}
	return false;
}

/*
 * The handle is checked first and the use ended in one step, so that of two
 * releases of one buffer exactly one succeeds.
 */
int pin_pool_release(struct pin_pool *pool, uint32_t magazine, const struct pinion_buffer *buffer)
{
	int rc;

	PIN_DCHECK(magazine < pool->magazine_count || magazine == PIN_POOL_OUTSIDE);
	if (magazine != PIN_POOL_OUTSIDE && pin_magazine_is_robbed(&pool->magazines[magazine])) {
		/* Both lines were others', and come at the same time. */
		pin_prefetch_write(&pool->magazines[magazine].stash);
	}
	rc = pin_pool_check_check(pool, buffer);
	if (rc != 0) {
		return rc;
	}
	if (!end_use(pool, magazine, buffer->index, buffer->generation)) {
		/* Given back just now, or a request's, which may be over. */
		return pin_pool_check_explain(pool, buffer);
	}
	pin_pool_check_hide(pool, &pool->entries[buffer->index]);
	pin_pool_put(pool, magazine, buffer->index);
	return 0;
}

bool pin_pool_owns(struct pin_pool *pool, const struct pinion_buffer *buffer)
{
	int rc = pin_pool_check_check(pool, buffer);

	return rc == 0 || rc == -EBUSY;
}

void pin_pool_disclaim(struct pin_pool *pool, const struct pinion_buffer *buffer)
{
	PIN_DCHECK(buffer->index < pool->buffer_count);
	/* On the thread whose plain stores that ends. */
	pin_fetch_or_seq_cst_u64(
		&pool->entries[buffer->index].state, PIN_ENTRY_SHARED); /* [POOL-3] */
}

void pin_pool_claim(struct pin_pool *pool, uint32_t magazine, const struct pinion_buffer *buffer)
{
	struct pin_entry *entry = &pool->entries[buffer->index];

	PIN_DCHECK(buffer->index < pool->buffer_count);
	PIN_DCHECK((pin_load_relaxed_u64(&entry->state) & PIN_ENTRY_SHARED) != 0);
	pin_store_relaxed_u32(&entry->holder, holder_of(pool, magazine, buffer->index));
}

static bool is_in(const struct pin_pool *pool, uint32_t region, const uint8_t *address)
{
	return (uintptr_t)address - (uintptr_t)pool->regions[region].memory <
		(uint64_t)pool->regions[region].buffer_count * pool->stride;
}

struct pin_entry *pin_pool_find(const struct pin_pool *pool, const uint8_t *address, uint32_t hint)
{
	uint32_t region = hint < pool->region_count && is_in(pool, hint, address) ? hint : 0;
	uint32_t index = 0;

	while (region < pool->region_count && !is_in(pool, region, address)) {
		region++;
	}
	if (region == pool->region_count) {
		return NULL;
	}
	for (uint32_t i = 0; i < region; i++) {
		index += pool->regions[i].buffer_count;
	}
	index += (uint32_t)((uint64_t)(address - pool->regions[region].memory) / pool->stride);
	PIN_DCHECK(index < pool->buffer_count);
	PIN_DCHECK((size_t)(address - pool->entries[index].bytes + pool->headroom_bytes) <
		pool->stride);
	return &pool->entries[index];
}

static void flush(struct pin_pool *pool, struct pin_magazine *own)
{
	while (!pin_magazine_enter_slowly(own)) {
		pool->host->yield();
	}
	pin_pool_pass_all_on(pool, own);
	pin_magazine_leave(own);
	pin_magazine_mark_robbed(own);
}

void pin_pool_flush(struct pin_pool *pool, uint32_t magazine)
{
	struct pin_magazine *remote_batch = pin_pool_remote_batch(pool, magazine);

	flush(pool, &pool->magazines[magazine]);
	if (remote_batch != NULL) {
		flush(pool, remote_batch);
	}
}

void pin_pool_send_home(struct pin_pool *pool, uint32_t magazine)
{
	struct pin_magazine *remote_batch = pin_pool_remote_batch(pool, magazine);

	/* A thief leaves nothing in it. */
	if (remote_batch != NULL && pin_magazine_count(remote_batch) > 0 &&
		pin_magazine_enter_slowly(remote_batch)) {
		pin_pool_pass_all_on(pool, remote_batch);
		pin_magazine_leave(remote_batch);
	}
}

/* ---- looks from outside ---- */

uint32_t pin_pool_count_lists(const struct pin_pool *pool)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < pool->node_count; i++) {
		uint32_t listed = pin_freelist_count(&pool->freelists[i], pool->entries);

		PIN_CHECK(listed <= pool->buffer_count); /* none is in it twice */
		count += listed;
	}
	for (uint32_t i = 0; i < pool->magazine_count; i++) {
		count += pin_stash_count(&pool->magazines[i].stash);
	}
	return count;
}

uint32_t pin_pool_count_magazine(const struct pin_pool *pool, uint32_t magazine)
{
	const struct pin_magazine *remote_batch = pin_pool_remote_batch(pool, magazine);

	return pin_magazine_count(&pool->magazines[magazine]) +
		(remote_batch == NULL ? 0 : pin_magazine_count(remote_batch));
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

/* ---- the thread cache ---- */

_Thread_local struct pin_recent pin_recent PIN_TLS_INITIAL;

void pin_recent_forget(void)
{
	pin_recent.number = 0;
	pin_recent.without = 0;
}

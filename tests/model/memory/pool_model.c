/* SPDX-License-Identifier: MIT */
/*
 * The real sources of runtime/memory that a pool consists of, with steps that a
 * mutant may leave out or turn round.
 */
#include "runtime/base/atomic.h"
#include "tests/model/explorer.h"

static uint32_t first_of(uint64_t state);

/* NO_COMPARE: the head counts as unchanged when the first index is the same. */
static bool cas_head(
	struct pin_atomic_u64 *head, uint64_t *expected, uint64_t value, const char *site)
{
	if (model_is_spoilt(MODEL_NO_COMPARE, site, NULL) &&
		first_of(head->value) == first_of(*expected)) {
		*expected = head->value;
	}
	return model_cas_u64(head, expected, value, MODEL_ORDER_ACQ_REL, site);
}

#pragma push_macro("pin_cas_acq_rel_u64")
#undef pin_cas_acq_rel_u64
#define pin_cas_acq_rel_u64(atomic, expected, value) cas_head(atomic, expected, value, __func__)
#include "runtime/memory/free_list.h"
#pragma pop_macro("pin_cas_acq_rel_u64")

/* SKIP: a published buffer may still be in the store buffer afterwards. */
static void exchange_put(struct pin_atomic_u64 *put, uint64_t value, const char *site)
{
	if (model_is_spoilt(MODEL_SKIP, site, "barrier")) {
		model_store_u64(put, value, MODEL_ORDER_RELEASE, site);
	} else {
		model_update_u64(put, MODEL_EXCHANGE, value, MODEL_ORDER_SEQ_CST, site);
	}
}

#pragma push_macro("pin_exchange_seq_cst_u64")
#undef pin_exchange_seq_cst_u64
#define pin_exchange_seq_cst_u64(atomic, value) exchange_put(atomic, value, __func__)
#include "runtime/memory/magazine.h"
#pragma pop_macro("pin_exchange_seq_cst_u64")

static uint32_t first_of(uint64_t state)
{
	return pin_freelist_first(state);
}

#include "runtime/base/check.h"
#include "runtime/memory/pool_internal.h"

/*
 * SKIP: a holder's plain stores are not thought of; or CLOSING counts for
 * SHARED, though no thread may have waited yet.
 */
static bool must_share(uint64_t state, uint32_t holder, uint32_t magazine, const char *site)
{
	if (model_is_spoilt(MODEL_SKIP, site, "PIN_ENTRY_SHARED") &&
		(state & PIN_ENTRY_CLOSING) != 0) {
		return false;
	}
	return !model_is_spoilt(MODEL_SKIP, site, "pin_pool_must_share") &&
		pin_pool_must_share(state, holder, magazine);
}

/* SKIP: no check whether a request of the holder has it. */
static bool has_own(uint32_t holder, const char *site)
{
	return pin_entry_has_own(holder) && !model_is_spoilt(MODEL_SKIP, site, "pin_entry_has_own");
}

/* SKIP: the owner does not say that it is inside. */
static bool enter(struct pin_magazine *magazine, const char *site)
{
	return model_is_spoilt(MODEL_SKIP, site, "pin_magazine_enter") ||
		pin_magazine_enter(magazine);
}

/* SKIP: the name is the same whatever requests its bearer has. */
static uint32_t load_relaxed(const struct pin_atomic_u32 *atomic, const char *site)
{
	uint32_t value = model_load_u32(atomic, MODEL_ORDER_RELAXED, site);

	return model_is_spoilt(MODEL_SKIP, site, "PIN_ENTRY_OWN") ? pin_entry_number(value) : value;
}

#define pin_pool_must_share(state, holder, magazine) must_share(state, holder, magazine, __func__)
#define pin_entry_has_own(holder) has_own(holder, __func__)
#define pin_magazine_enter(magazine) enter(magazine, __func__)
#pragma push_macro("pin_load_relaxed_u32")
#undef pin_load_relaxed_u32
#define pin_load_relaxed_u32(atomic) load_relaxed(atomic, __func__)
#include "runtime/memory/pool.h"
#pragma pop_macro("pin_load_relaxed_u32")
#undef pin_magazine_enter
#include "runtime/base/metrics.h"
#include "tests/model/heap.h"
#include "tests/model/memory/pool_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/memory/magazine.c"
#include "runtime/memory/pool_check.c"

/* SKIP: what leaves a list is in no place until it is in the magazine. */
static void promise(struct pin_magazine *magazine, uint32_t count, const char *site)
{
	if (!model_is_spoilt(MODEL_SKIP, site, "pin_magazine_promise")) {
		pin_magazine_promise(magazine, count);
	}
}

/* EARLY: a buffer for a list has left the magazine before it is there. */
static void look_oldest(
	struct pin_magazine *magazine, uint32_t *out_indices, uint32_t count, const char *site)
{
	pin_magazine_look_oldest(magazine, out_indices, count);
	if (model_is_spoilt(MODEL_EARLY, site, "pin_magazine_drop_oldest")) {
		pin_magazine_drop_oldest(magazine, count);
	}
}

static void drop_oldest(struct pin_magazine *magazine, uint32_t count, const char *site)
{
	if (!model_is_spoilt(MODEL_EARLY, site, "pin_magazine_drop_oldest")) {
		pin_magazine_drop_oldest(magazine, count);
	}
}

/*
 * NO_COMPARE: a check sees how many there are, not whether any came and went.
 * SKIP: there is no second look, all is as it was found to be: empty.
 */
static uint64_t look(const struct pin_magazine *magazine, uint64_t seen, const char *site)
{
	uint64_t word;

	if (model_is_spoilt(MODEL_SKIP, site, "look")) {
		return seen;
	}
	word = model_load_u64(&magazine->word, MODEL_ORDER_ACQUIRE, site);
	return model_is_spoilt(MODEL_NO_COMPARE, "look", NULL) ? (uint32_t)word : word;
}

/* SKIP: what a robbed owner passes on it keeps. */
static bool is_robbed(const struct pin_magazine *magazine, const char *site)
{
	return pin_magazine_is_robbed(magazine) &&
		!model_is_spoilt(MODEL_SKIP, site, "pin_magazine_is_robbed");
}

/* SKIP: a search there sees no batches. */
static struct pin_magazine *remote_batch_of(
	const struct pin_pool *pool, uint32_t magazine, const char *site)
{
	return model_is_spoilt(MODEL_SKIP, site, "pin_pool_remote_batch")
		? NULL
		: pin_pool_remote_batch(pool, magazine);
}

/*
 * SKIP: the holder stores a value that it loaded when no thread waits for that.
 */
static void await_owner(
	struct pin_magazine *magazine, const struct pin_host *host, const char *site)
{
	if (!model_is_spoilt(MODEL_SKIP, site, "pin_magazine_await_owner")) {
		pin_magazine_await_owner(magazine, host);
	}
}

/* LATE: why a release failed is asked of the buffer's later state. */
static int explain(struct pin_pool *pool, const struct pinion_buffer *buffer, const char *site)
{
	return model_is_spoilt(MODEL_LATE, site, "pin_pool_check_explain")
		? pin_pool_check_check(pool, buffer)
		: pin_pool_check_explain(pool, buffer);
}

#define pin_pool_check_explain(pool, buffer) explain(pool, buffer, __func__)
#define pin_magazine_await_owner(magazine, host) await_owner(magazine, host, __func__)
#define pin_pool_remote_batch(pool, magazine) remote_batch_of(pool, magazine, __func__)
#define pin_magazine_is_robbed(magazine) is_robbed(magazine, __func__)
#define pin_magazine_promise(magazine, count) promise(magazine, count, __func__)
#define pin_magazine_look_oldest(magazine, out_indices, count) \
	look_oldest(magazine, out_indices, count, __func__)
#define pin_magazine_drop_oldest(magazine, count) drop_oldest(magazine, count, __func__)
/* Both looks have these names where they look. */
#define pin_magazine_state(magazine) look(magazine, pool->seen[i], __func__)

/* SKIP: a buffer acquired for another is not shared by that. */
static void set_bits(struct pin_atomic_u64 *state, uint64_t bits, const char *site)
{
	if (!model_is_spoilt(MODEL_SKIP, site, "PIN_ENTRY_SHARED")) {
		model_update_u64(state, MODEL_OR, bits, MODEL_ORDER_SEQ_CST, site);
	}
}

#pragma push_macro("pin_fetch_or_seq_cst_u64")
#undef pin_fetch_or_seq_cst_u64
#define pin_fetch_or_seq_cst_u64(atomic, bits) set_bits(atomic, bits, __func__)
#include "runtime/memory/pool.c"
#pragma pop_macro("pin_fetch_or_seq_cst_u64")
#include "runtime/memory/pool_refill.c"
#include "runtime/memory/pool_setup.c"

bool pool_model_acquire_shortly(struct pin_pool *pool, uint32_t magazine,
	const struct pin_pool_listed *own, struct pinion_buffer *out_buffer)
{
	return magazine == PIN_POOL_OUTSIDE
		? pin_pool_acquire_listed(pool, 0, own, out_buffer)
		: pin_pool_acquire_own(pool, &pool->magazines[magazine], magazine, out_buffer);
}

bool pool_model_release_shortly(struct pin_pool *pool, uint32_t magazine,
	const struct pinion_buffer *buffer, struct pin_pool_listed *out_own)
{
	/* SKIP: its owner does not see that the short way is closed. */
	if (magazine != PIN_POOL_OUTSIDE &&
		model_is_spoilt(MODEL_SKIP, __func__, "pin_magazine_is_fenced")) {
		pool->magazines[magazine].thief.value = 0;
	}
	return magazine == PIN_POOL_OUTSIDE
		? pin_pool_release_listed(pool, buffer, out_own)
		: pin_pool_release_own(pool, &pool->magazines[magazine], magazine, buffer);
}

enum pin_pool_borrowed pool_model_borrow(struct pin_entry *entry, uint32_t magazine)
{
	return pin_pool_borrow(entry, magazine);
}

bool pool_model_borrow_own(struct pin_pool *pool, uint32_t magazine, struct pin_entry *entry)
{
	/* SKIP: its owner does not see that the short way is closed. */
	if (model_is_spoilt(MODEL_SKIP, __func__, "pin_magazine_is_fenced")) {
		pool->magazines[magazine].thief.value = 0;
	}
	return pin_pool_borrow_own(&pool->magazines[magazine], magazine, entry);
}

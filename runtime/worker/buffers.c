/* SPDX-License-Identifier: MIT */
/*
 * The buffers of a worker's arena: taken and given back by code on the worker,
 * and borrowed by requests, which holds them for I/O.
 *
 * Tasks call the first part by pinion_buffer_acquire() and its relatives;
 * submit.c and complete.c call the second part for each transfer. A buffer is
 * found by its address: in the worker's own pools first, then in other workers'
 * arenas, then in the pools of the program.
 *
 * [IO-1] the maker of a pool stores it in `pools` (release) -> a worker loads
 * it (acquire): it finds the pool complete. An ended pool has no buffer out, so
 * no request uses one, but requests on other memory search it: it is taken out
 * of `pools`, and freed when the searches that could still see it are over.
 * Before the first, `has_pools` is set for good; a holder of a buffer of it
 * sees that.
 *
 * [IO-2] a worker searches within its lock `cancels`, as its owner, also before
 * it sends home the buffers it has gathered (memory/pool.h); the end of a pool
 * takes that lock of each worker once, between taking the pool out and freeing
 * it: [BIASED-1].
 * [IO-3] elsewhere: pool_searches + 1, fence, look, pool_searches - 1 (release)
 * -> taken out, fence, pool_searches (acquire) is 0: either the search sees the
 * pool taken out, or its end is waited for.
 *
 * [IO-4] each worker makes its arena and its buffers before it counts itself as
 * started; the thread that has awaited all sets `arenas_beyond` (release) -> a
 * request's worker, or its poster, loads it (acquire), and may read all of
 * them: they stay as they are. Before that no worker has another's buffer.
 * Where threads come and go, in a thread pool, it is never set.
 *
 * Invariant: no thread can release a borrowed buffer until the request has
 * ended, so the kernel never writes into a buffer with a new holder.
 */
#include "runtime/base/check.h"
#include "runtime/worker/arena_growth.h"
#include "runtime/worker/metrics.h"
#include "runtime/worker/request.h"
#include "runtime/worker/spawn.h"
#include "runtime/worker/worker.h"

#include <errno.h>

enum {
	/* Marks the index of a small buffer. */
	SMALL_BUFFER = 1u << 31,
};

/*
 * None is in the magazine: takes memory for more. That fails the acquire only
 * if no release would help.
 */
static PIN_APART int acquire_slowly(
	struct pin_worker *worker, enum pin_grown_kind kind, struct pinion_buffer *out_buffer)
{
	struct pin_pool *pool = pin_arena_growth_pool(worker, kind);
	int rc = -EAGAIN;

	PIN_DCHECK(pin_worker_is_current(worker)); /* both pools are its own */
	if (pin_pool_count_magazine(pool, 0) == 0) {
		rc = pin_arena_grow(worker, kind);
	}
	if (pin_pool_acquire(pool, 0, 0, out_buffer)) {
		return 0;
	}
	return pool->open_count > 0 ? -EAGAIN : rc;
}

static inline int acquire(
	struct pin_worker *worker, enum pin_grown_kind kind, struct pinion_buffer *out_buffer)
{
	struct pin_pool *pool = pin_arena_growth_pool(worker, kind);

	return PIN_LIKELY(pin_pool_acquire_own(pool, &pool->magazines[0], 0, out_buffer))
		? 0
		: acquire_slowly(worker, kind, out_buffer);
}

static enum pin_grown_kind kind_for(const struct pin_worker *worker, size_t bytes)
{
	PIN_CHECK(bytes <= worker->buffers.buffer_bytes);
	return bytes > worker->small_buffers.buffer_bytes ? PIN_GROWN_LARGE : PIN_GROWN_SMALL;
}

int pin_worker_buffer_acquire(
	struct pin_worker *worker, size_t bytes, struct pinion_buffer *out_buffer)
{
	enum pin_grown_kind kind = kind_for(worker, bytes);
	int rc = acquire(worker, kind, out_buffer);

	if (rc == 0 && kind == PIN_GROWN_SMALL) {
		PIN_DCHECK((out_buffer->index & SMALL_BUFFER) == 0); /* the bit is free */
		out_buffer->index |= SMALL_BUFFER;
	}
	return rc;
}

int pin_worker_buffer_await(
	struct pin_worker *worker, size_t bytes, struct pin_buffer_waiter *waiter)
{
	int rc = pin_worker_buffer_acquire(worker, bytes, &waiter->buffer);

	if (rc == -EAGAIN) {
		PIN_DCHECK(waiter->task != NULL); /* it is spawned with the buffer */
		pin_meter_add(&worker->meter.buffer_waits, 1);
		waiter->since_ns = worker->shared->host->now_ns();
		pin_list_push(kind_for(worker, bytes) == PIN_GROWN_LARGE
				? &worker->buffer_queue
				: &worker->small_buffer_queue,
			&waiter->link);
	}
	return rc;
}

static PIN_COLD _Noreturn void report_not_out(const struct pinion_buffer *buffer)
{
	pin_check_misused(&pin_worker_current()->shared->log,
		"pinion_buffer_release() of a buffer that is not out, at %p: release each "
		"acquired buffer once",
		buffer->bytes);
}

static void put_back(struct pin_worker *worker, const struct pinion_buffer *buffer)
{
	struct pinion_buffer plain = *buffer;
	struct pin_pool *pool;

	plain.index &= ~(uint32_t)SMALL_BUFFER;
	pool = plain.index == buffer->index ? &worker->buffers : &worker->small_buffers;
	if (!pin_pool_release_own(pool, &pool->magazines[0], 0, &plain)) {
		int rc = pin_pool_release(pool, 0, &plain);

		if (rc != 0) {
			report_not_out(&plain);
		}
	}
}

/*
 * The buffer goes back first, which checks the handle; the oldest waiter takes
 * it from there.
 */
void pin_worker_buffer_release(struct pin_worker *worker, const struct pinion_buffer *buffer)
{
	bool is_small = (buffer->index & SMALL_BUFFER) != 0;
	struct pin_link *first =
		pin_list_pop(is_small ? &worker->small_buffer_queue : &worker->buffer_queue);

	PIN_DCHECK(pin_worker_is_current(worker));
	put_back(worker, buffer);
	if (first != NULL) {
		struct pin_buffer_waiter *waiter =
			PIN_CONTAINER_OF(first, struct pin_buffer_waiter, link);
		int rc = pin_worker_buffer_acquire(
			worker, is_small ? 1 : worker->buffers.buffer_bytes, &waiter->buffer);

		PIN_CHECK(rc == 0);
		pin_metrics_record(worker, PINION_TIMING_BUFFER,
			worker->shared->host->now_ns() - waiter->since_ns);
		pin_worker_spawn_bound(worker, waiter->task);
	}
}

/* ---- in flight ---- */

/* And in which pool. */
static struct pin_entry *find_pooled(
	const struct pin_worker *worker, const uint8_t *bytes, struct pin_pool **out_pool)
{
	struct pin_shared *shared = worker->shared;
	struct pin_entry *entry = NULL;

	for (uint32_t i = 0; i < PIN_POOLS_MAX && entry == NULL; i++) {
		uint64_t address = pin_load_acquire_u64(&shared->pools[i]); /* [IO-1] */

		if (address != 0) {
			*out_pool = (struct pin_pool *)(uintptr_t)address;
			entry = pin_pool_find(*out_pool, bytes, worker->index);
		}
	}
	return entry;
}

static inline struct pin_entry *find_own(struct pin_worker *worker, const uint8_t *bytes)
{
	struct pin_entry *entry = pin_pool_find_first(&worker->buffers, bytes);

	return entry != NULL ? entry : pin_pool_find_first(&worker->small_buffers, bytes);
}

/*
 * By the worker, whose own magazine is that number in the pool: for a request
 * that no other worker will end, as another might where rings are shared. The
 * short way of worker/submit.c, for a pool that the runtime made.
 */
static inline bool borrow_own(const struct pin_worker *worker, struct pin_magazine *own,
	uint32_t magazine, struct pin_entry *entry)
{
	return PIN_LIKELY(!worker->shares_ring) && pin_pool_borrow_own(own, magazine, entry);
}

/*
 * Borrows it, if it can. On the worker: the end of a pool waits for its return.
 */
static PIN_APART struct pin_entry *find_pooled_own(
	struct pin_worker *worker, const uint8_t *bytes, bool *out_is_borrowed)
{
	struct pin_pool *pool;
	struct pin_entry *entry;

	PIN_DCHECK(pin_worker_is_current(worker));
	pin_biased_enter(&worker->cancels, worker->shared->host); /* [IO-2] */
	entry = find_pooled(worker, bytes, &pool);
	*out_is_borrowed = entry != NULL &&
		borrow_own(worker, &pool->magazines[worker->index], worker->index, entry);
	pin_biased_leave(&worker->cancels); /* [IO-2] */
	return entry;
}

PIN_APART void pin_worker_send_home(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;

	PIN_DCHECK(pin_worker_is_current(worker));
	worker->has_remote_batches = false;
	pin_biased_enter(&worker->cancels, shared->host); /* [IO-2] */
	for (uint32_t i = 0; i < PIN_POOLS_MAX; i++) {
		uint64_t pool = pin_load_acquire_u64(&shared->pools[i]); /* [IO-1] */

		if (pool != 0) {
			pin_pool_send_home((struct pin_pool *)(uintptr_t)pool, worker->index);
		}
	}
	pin_biased_leave(&worker->cancels); /* [IO-2] */
}

/*
 * Publishes the range of all arenas, by which most foreign addresses are
 * recognised with two compares.
 */
void pin_worker_buffers_publish(struct pin_shared *shared)
{
	uint64_t start = UINT64_MAX;
	uint64_t end = 0;

	for (uint32_t i = 0; i < shared->worker_count; i++) {
		const struct pin_arena *arena = &shared->workers[i].arena;
		uint64_t first = (uintptr_t)arena->memory;

		if (arena->bytes > 0) {
			start = first < start ? first : start;
			end = first + arena->bytes > end ? first + arena->bytes : end;
		}
	}
	if (end > start) {
		pin_store_relaxed_u64(&shared->arenas_start, start);
		pin_store_release_u64(
			&shared->arenas_beyond, UINT64_MAX - (end - start - 1)); /* [IO-4] */
	}
}

static bool knows_arenas(const struct pin_shared *shared)
{
	return pin_load_acquire_u64(&shared->arenas_beyond) != 0; /* [IO-4] */
}

/* A buffer that a worker, this one or another, has for itself. */
static PIN_APART struct pin_entry *find_workers(
	const struct pin_shared *shared, const uint8_t *bytes)
{
	uint32_t count = knows_arenas(shared) ? shared->worker_count : 0;

	for (uint32_t i = 0; i < count; i++) {
		struct pin_worker *owner = &shared->workers[i];

		if ((uintptr_t)bytes - (uintptr_t)owner->arena.memory < owner->arena.bytes) {
			return find_own(owner, bytes);
		}
	}
	return NULL;
}

static PIN_APART struct pin_entry *find_pooled_outside(
	const struct pin_worker *worker, const uint8_t *bytes)
{
	struct pin_shared *shared = worker->shared;
	struct pin_pool *pool;
	struct pin_entry *entry;
	uint32_t before;

	pin_fetch_add_relaxed_u32(&shared->pool_searches, 1);
	pin_fence_seq_cst(); /* [IO-3] */
	entry = find_pooled(worker, bytes, &pool);
	before = pin_fetch_sub_acq_rel_u32(&shared->pool_searches, 1); /* [IO-3] */
	PIN_CHECK(before > 0);
	return entry;
}

static struct pin_pool *own_pool_of(struct pin_worker *worker, const struct pin_entry *entry)
{
	if (pin_worker_pool_has(&worker->buffers, entry)) {
		return &worker->buffers;
	}
	return pin_worker_pool_has(&worker->small_buffers, entry) ? &worker->small_buffers : NULL;
}

/*
 * The pool that an entry belongs to: the worker's own, another worker's, or one
 * of the program's. The caller holds off the end of pools ([IO-2], [IO-3]).
 */
static struct pin_pool *pool_of(struct pin_worker *worker, const struct pin_entry *entry)
{
	struct pin_shared *shared = worker->shared;
	struct pin_pool *own = own_pool_of(worker, entry);
	bool has_all = knows_arenas(shared);

	for (uint32_t i = 0; has_all && own == NULL && i < shared->worker_count; i++) {
		own = own_pool_of(&shared->workers[i], entry);
	}
	if (own != NULL) {
		return own;
	}
	for (uint32_t i = 0; i < PIN_POOLS_MAX; i++) {
		uint64_t address = pin_load_acquire_u64(&shared->pools[i]); /* [IO-1] */
		struct pin_pool *pool = (struct pin_pool *)(uintptr_t)address;

		if (pool != NULL && pin_worker_pool_has(pool, entry)) {
			return pool;
		}
	}
	return NULL;
}

/*
 * Notifies it of the buffer, whichever thread runs the worker's requests.
 * False: it is gone.
 */
static PIN_APART bool tell_of(struct pin_worker *worker, const struct pin_entry *entry,
	void (*tell)(struct pin_pool *pool, uint32_t index))
{
	struct pin_shared *shared = worker->shared;
	struct pin_pool *pool;
	uint32_t before;

	pin_fetch_add_relaxed_u32(&shared->pool_searches, 1);
	pin_fence_seq_cst(); /* [IO-3] */
	pool = pool_of(worker, entry);
	if (pool != NULL) {
		PIN_DCHECK(pin_worker_pool_has(pool, entry));
		tell(pool, (uint32_t)(entry - pool->entries));
	}
	before = pin_fetch_sub_acq_rel_u32(&shared->pool_searches, 1); /* [IO-3] */
	PIN_CHECK(before > 0);
	return pool != NULL;
}

/* A buffer that another thread has from a cache of its own. */
static PIN_APART enum pin_pool_borrowed borrow_anothers(
	struct pin_worker *worker, struct pin_entry *entry)
{
	enum pin_pool_borrowed borrowed = PIN_POOL_MUST_SHARE;

	while (borrowed == PIN_POOL_MUST_SHARE) {
		borrowed = tell_of(worker, entry, pin_pool_share)
			? pin_pool_borrow(entry, PIN_POOL_OUTSIDE)
			: PIN_POOL_IS_FREE;
	}
	return borrowed;
}

/* By the owner of that magazine of its pool. */
static inline enum pin_pool_borrowed borrow_entry(
	struct pin_worker *worker, struct pin_entry *entry, uint32_t magazine)
{
	enum pin_pool_borrowed borrowed = pin_pool_borrow(entry, magazine);

	return PIN_UNLIKELY(borrowed == PIN_POOL_MUST_SHARE) ? borrow_anothers(worker, entry)
							     : borrowed;
}

/* The same, or nothing, where there is none. A free buffer is reported. */
static PIN_APART enum pin_pool_borrowed borrow_found(struct pin_worker *worker,
	struct pin_entry *entry, uint32_t magazine, struct pin_entry **out_entry)
{
	*out_entry = entry;
	if (entry == NULL ||
		PIN_LIKELY(borrow_entry(worker, entry, magazine) == PIN_POOL_IS_BORROWED)) {
		return PIN_POOL_IS_BORROWED;
	}
	*out_entry = NULL;
	tell_of(worker, entry, pin_pool_check_is_free);
	return PIN_POOL_IS_FREE;
}

bool pin_worker_borrow_posted(
	struct pin_worker *worker, const uint8_t *bytes, struct pin_entry **out_entry)
{
	struct pin_entry *entry = NULL;

	if (pin_load_relaxed_u32(&worker->shared->has_pools) != 0) {
		entry = find_pooled_outside(worker, bytes);
	}
	if (entry == NULL && pin_worker_is_among_arenas(worker->shared, bytes)) {
		entry = find_workers(worker->shared, bytes);
	}
	return borrow_found(worker, entry, PIN_POOL_OUTSIDE, out_entry) == PIN_POOL_IS_BORROWED;
}

/* What the short way has not borrowed, of a pool where it has a magazine. */
static enum pin_pool_borrowed borrow_by_cas(struct pin_worker *worker, struct pin_entry *entry,
	uint32_t magazine, struct pin_entry **out_entry)
{
	PIN_DCHECK(entry != NULL); /* the search before has found it */
	return borrow_found(worker, entry,
		pin_worker_current() == worker ? magazine : PIN_POOL_OUTSIDE, out_entry);
}

/* In other memory than buffers of its own, where most is. */
static PIN_APART enum pin_pool_borrowed borrow_elsewhere(
	struct pin_worker *worker, const uint8_t *bytes, struct pin_entry **out_entry)
{
	if (pin_load_relaxed_u32(&worker->shared->has_pools) != 0) {
		bool is_borrowed;

		*out_entry = find_pooled_own(worker, bytes, &is_borrowed);
		if (*out_entry != NULL) {
			return is_borrowed
				? PIN_POOL_IS_BORROWED_OWN
				: borrow_by_cas(worker, *out_entry, worker->index, out_entry);
		}
	}
	return borrow_found(
		worker, find_workers(worker->shared, bytes), PIN_POOL_OUTSIDE, out_entry);
}

enum pin_pool_borrowed pin_worker_borrow(struct pin_worker *worker, const uint8_t *bytes,
	struct pin_entry *own, struct pin_entry **out_entry)
{
	PIN_DCHECK(own == NULL || pin_worker_owns_entry(worker, own));
	return own != NULL ? borrow_by_cas(worker, own, 0, out_entry)
			   : borrow_elsewhere(worker, bytes, out_entry);
}

/* ---- pools ---- */

int pin_worker_pools_add(
	struct pin_shared *shared, struct pin_pool *pool, struct pin_waiters *waiters)
{
	pin_store_relaxed_u32(&shared->has_pools, 1);
	for (uint32_t i = 0; i < PIN_POOLS_MAX; i++) {
		if (pin_load_acquire_u64(&shared->pools[i]) == 0) {
			shared->pool_waiters[i] = waiters;
			pin_store_release_u64(&shared->pools[i], (uintptr_t)pool); /* [IO-1] */
			return 0;
		}
	}
	return -EMFILE;
}

/* Until no thread searches a pool that is not in `pools` any more. */
static void await_searches(struct pin_shared *shared)
{
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		pin_requests_lock_cancels(&shared->workers[i]); /* [IO-2] */
		pin_biased_release(&shared->workers[i].cancels);
	}
	pin_fence_seq_cst(); /* [IO-3] */
	while (pin_load_acquire_u32(&shared->pool_searches) != 0) {
		shared->host->yield();
	}
}

void pin_worker_pools_remove(struct pin_shared *shared, const struct pin_pool *pool)
{
	uint32_t removed_count = 0;

	pin_pool_add_shortages(pool, &shared->ended_pools);
	for (uint32_t i = 0; i < PIN_POOLS_MAX; i++) {
		if (pin_load_acquire_u64(&shared->pools[i]) == (uintptr_t)pool) {
			pin_store_release_u64(&shared->pools[i], 0); /* [IO-1] */
			shared->pool_waiters[i] = NULL;
			removed_count++;
		}
	}
	PIN_CHECK(removed_count == 1); /* else a search could still find it */
	await_searches(shared);	       /* [IO-2] [IO-3] */
}

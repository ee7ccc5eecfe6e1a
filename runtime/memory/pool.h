/* SPDX-License-Identifier: MIT */
/*
 * A pool: buffers of one size, made once and handed round.
 *
 * Each worker, and each thread that attaches, has a magazine (magazine.h) of
 * its own; buffers in no magazine are in the free list (free_list.h) of their
 * node. An acquire tries the own magazine, then the free lists, nearest first,
 * then the shared stashes (magazine.h), then it robs another magazine, a near
 * one first (policy/steal_order.h): it leaves the other buffers of that in the
 * list, and its owner publishes its buffers on its stash from then on. A
 * release goes into the own magazine if the buffer is of that node and there is
 * room, else to the buffer's home. So a thread that acquires and releases
 * touches no line of others, and a thread that only releases buffers that
 * another acquires passes them on by the half magazine.
 *
 * Where there are several nodes, an owner gathers buffers that go to others in
 * its remote-free batch: a second magazine, as large, that goes home as a whole
 * when it is full, or when the owner has nothing to do. It is robbed as
 * magazines are, and marked then; a marked one's owner sends each buffer home
 * by itself until as many are there as fit into a batch. So buffers are kept
 * back only from a home that has some to spare.
 *
 * Threads without a magazine use the free lists, one buffer at a time. Such a
 * thread takes the buffer that it gave back last again without walking the
 * list, if no other changed that.
 *
 * Invariants: (1) a free buffer is in one magazine or batch, on one stash or in
 * one free list; one in use is in none of them. (2) its generation is odd while
 * it is in use; a handle with another generation is stale. (3) nothing is
 * written into the pages.
 *
 * That nothing is free is said only if it was so at one instant inside the
 * call. Checking one place after the other is no proof: a buffer could be given
 * back after the check of its place and another one taken before it.
 *
 *     looks at A: empty
 *                               release into A
 *                               acquire the last one of B
 *     looks at B: empty         (at no time was nothing free)
 *
 * So each place is checked twice, with a fence of all threads in between. All
 * places change their word with every buffer they get, so if each is empty and
 * unchanged the second time, then all were empty at the end of the first check;
 * the fence has made earlier releases visible. Where all are marked as robbed
 * an own fence is enough, as a buffer for a stash or a list passes one as well:
 * [STASH-4] [FREE-3]. Buffers on the way from a list or a stash into a magazine
 * are shown by the magazine before they leave it, and those on the way back
 * leave the magazine after they are in the list.
 *
 * [POOL-1] promise in the magazine, then pop (CAS) -> a check that finds the
 * list or the stash empty finds the promise, at the latest the second time.
 *
 * One handle may be given back twice, or given back as a request of the buffer
 * begins, by two threads in the same instant: a mistake, and one of the two is
 * refused in its call. All but the holder, who has the buffer from its own
 * magazine, change `state` by a compare-and-swap. The holder loads it, compares
 * and stores, inside its magazine. So before another thread changes the state
 * of what a magazine's owner holds, it ends that:
 *
 *     holder                         another
 *     busy := 1                      state |= CLOSING (CAS)
 *     light fence                    fence_all
 *     state == generation?           wait while busy
 *     state := free                  state |= SHARED (CAS), or it is free
 *     busy := 0
 *
 * [POOL-2] of "busy := 1" and CLOSING one comes first, and the other side sees
 * it: either the holder finds that the state is not plain, and goes by CAS as
 * well, or the other waits until it has stored. CLOSING alone does not say that
 * any thread has waited, so each passes the fence itself until it finds SHARED.
 * [POOL-3] the holder's name is stored before the state that says "in use"
 * (release) -> a thread that reads that state (acquire) knows which thread to
 * wait for. A thread that acquires a buffer for another sets SHARED before it
 * passes the buffer on.
 *
 * The holder's requests begin in the same way: where it stores the state above,
 * it counts one more in `holder`. Another thread that finds SHARED sees all
 * that have begun so, and no more will in this use.
 * [POOL-4] a request's end takes itself off that count (release) -> a thread
 * that finds none (acquire) gives back a buffer that the kernel is done with.
 *
 * SHARED outlives the use: a buffer that goes from thread to thread costs the
 * fence once. An owner that has given back many of them clears it from one, so
 * that buffers only it uses become plain again.
 *
 * Context: any thread; the owner of a magazine passes its number, others
 * PIN_POOL_OUTSIDE. Allocation-free after init. Acquire and release of an owner
 * are wait-free while its magazine serves them and lock-free while the free
 * lists do.
 */
#ifndef PIN_MEMORY_POOL_H
#define PIN_MEMORY_POOL_H

#include "runtime/base/check.h"
#include "runtime/base/metrics.h"
#include "runtime/memory/pool_internal.h"

struct pin_pool_setup {
	const struct pin_host *host;
	struct pin_log log;
	uint32_t buffer_bytes;
	uint32_t headroom_bytes; /* in front of each, part of its memory */
	uint32_t magazine_count;
	uint32_t magazine_capacity;
	uint32_t seeded_count; /* number of magazines that are filled at first */
	const uint32_t *nodes; /* of each magazine; NULL: 0 */
	uint32_t node_count;   /* free lists */
	/*
	 * Distances between the owners of the first magazines: outlives the
	 * pool. NULL: the nodes alone count.
	 */
	const struct pin_victims *victims;
	uint64_t seed; /* where thieves begin to look */
	uint32_t flags;
	bool is_closed; /* has no buffers until pin_pool_open() adds them; one magazine only */
	/* One for all, or one for each magazine that is seeded. */
	const struct pin_pool_region *regions;
	uint32_t region_count;
};

/* What a thread without a magazine knows of the list it last gave back to. */
struct pin_pool_listed {
	struct pin_freelist *list;
	uint64_t state;
};

/* The regions' memory outlives the pool. -ENOMEM. */
int pin_pool_init(struct pin_pool *pool, const struct pin_pool_setup *setup);

/* Accepts a zeroed struct. Buffers that are out are forgotten. */
void pin_pool_fini(struct pin_pool *pool);

/*
 * Whether the short ways below may be gone, which do nothing with a buffer
 * between its uses. Where they are closed all states change by CAS; requests of
 * the holder begin as always.
 */
static inline bool pin_pool_has_short_way(const struct pin_pool *pool)
{
	return (pool->flags & PIN_POOL_BETWEEN) == 0 && !PIN_MISUSE_WATCHES;
}

/*
 * [POOL-2] Ends the holder's plain stores, if it is in use. Not inside a
 * magazine: it may wait.
 */
void pin_pool_share(struct pin_pool *pool, uint32_t index);

/*
 * Of a pool with one magazine that began closed, by its owner: the next `count`
 * buffers can be acquired from here on, the first of them first.
 */
void pin_pool_open(struct pin_pool *pool, uint32_t count);

/*
 * Takes the buffers from number `first` on out again, up to the last that was
 * opened. False, and nothing has changed: one of them is out. After it no
 * request can use one of them: it was free, and stays so.
 */
bool pin_pool_close(struct pin_pool *pool, uint32_t first);

/* ---- acquire ---- */

/* Hands a free buffer to `holder`. */
static inline void pin_pool_hand_out(
	struct pin_entry *entry, uint32_t holder, uint32_t index, struct pinion_buffer *out_buffer)
{
	uint64_t state = pin_entry_begin_use(pin_load_relaxed_u64(&entry->state));

	PIN_DCHECK(!pin_entry_has_own(holder)); /* a taker has no requests yet */
	if (PIN_UNLIKELY(pin_load_relaxed_u32(&entry->holder) != holder)) {
		pin_store_relaxed_u32(&entry->holder, holder);
	}
	pin_store_release_u64(&entry->state, state); /* invariant 2 [POOL-3] */
	out_buffer->bytes = entry->bytes;
	out_buffer->index = index;
	out_buffer->generation = (uint32_t)state;
}

/*
 * The short way, from the caller's own magazine, number `magazine`. False: the
 * long way has to be gone, nothing has happened. Only if there is a short way.
 */
static inline bool pin_pool_acquire_own(struct pin_pool *pool, struct pin_magazine *own,
	uint32_t magazine, struct pinion_buffer *out_buffer)
{
	uint64_t word;
	uint32_t index;

	PIN_DCHECK(own == &pool->magazines[magazine]);
	PIN_DCHECK((pool->flags & PIN_POOL_BETWEEN) == 0);
	if (PIN_MISUSE_WATCHES || PIN_UNLIKELY(!pin_magazine_enter(own))) {
		return false;
	}
	if (PIN_UNLIKELY(!pin_magazine_look_newest(own, &word, &index))) {
		pin_magazine_leave(own);
		return false;
	}
	PIN_DCHECK(index < pool->buffer_count);
	pin_magazine_drop_newest(own, word);
	pin_magazine_leave(own);
	pin_pool_hand_out(&pool->entries[index], magazine, index, out_buffer);
	pin_meter_add(&own->hits, 1);
	return true;
}

/*
 * The short way for a thread without a magazine, from that list; false as
 * above. `own`: what the caller's last release by the short way said, or
 * zeroed.
 */
static inline bool pin_pool_acquire_listed(struct pin_pool *pool, uint32_t node,
	const struct pin_pool_listed *own, struct pinion_buffer *out_buffer)
{
	struct pin_freelist *list = &pool->freelists[node];
	uint32_t index;

	PIN_DCHECK(node < pool->node_count);
	PIN_DCHECK((pool->flags & PIN_POOL_BETWEEN) == 0);
	if (PIN_MISUSE_WATCHES) {
		return false;
	}
	if (PIN_LIKELY(own->list == list) &&
		PIN_LIKELY(pin_freelist_pop_own(list, pool->entries, own->state))) {
		index = pin_freelist_first(own->state) - 1;
	} else if (pin_freelist_pop(list, pool->entries, &index, 1) == 0) {
		return false;
	}
	PIN_DCHECK(index < pool->buffer_count);
	pin_pool_hand_out(&pool->entries[index], PIN_POOL_OUTSIDE, index, out_buffer);
	return true;
}

/*
 * Takes one; false: nothing was free. `node` is the caller's, for one without a
 * magazine.
 */
bool pin_pool_acquire(
	struct pin_pool *pool, uint32_t magazine, uint32_t node, struct pinion_buffer *out_buffer);

/* ---- release ---- */

/* The short way, for a buffer taken with the same magazine; false as above. */
static inline bool pin_pool_release_own(struct pin_pool *pool, struct pin_magazine *own,
	uint32_t magazine, const struct pinion_buffer *buffer)
{
	/* Read once: the stores below might change the caller's handle. */
	uint32_t index = buffer->index;
	uint32_t generation = buffer->generation;
	struct pin_entry *entry = &pool->entries[index];
	bool is_given;

	PIN_DCHECK(own == &pool->magazines[magazine]);
	PIN_DCHECK((pool->flags & PIN_POOL_BETWEEN) == 0);
	if (PIN_MISUSE_WATCHES || PIN_UNLIKELY(index >= pool->buffer_count) ||
		PIN_UNLIKELY(entry->bytes != buffer->bytes) ||
		PIN_UNLIKELY(pin_load_relaxed_u32(&entry->holder) != magazine) ||
		PIN_UNLIKELY(!pin_magazine_enter(own))) { /* [POOL-2] */
		return false;
	}
	/*
	 * No handle has an even generation, so an equal one says: in use. With
	 * requests of its own the holder's name is no number of a magazine.
	 */
	is_given = PIN_LIKELY(pin_load_relaxed_u64(&entry->state) == generation) && /* [POOL-2] */
		PIN_LIKELY(pin_magazine_put(own, index));
	if (PIN_LIKELY(is_given)) {
		pin_store_relaxed_u64(&entry->state, (uint32_t)(generation + 1)); /* invariant 2 */
	}
	pin_magazine_leave(own); /* [POOL-2] */
	return is_given;
}

/*
 * The short way for a thread without a magazine, to its home; false as above.
 */
static inline bool pin_pool_release_listed(
	struct pin_pool *pool, const struct pinion_buffer *buffer, struct pin_pool_listed *out_own)
{
	uint32_t index = buffer->index;
	struct pin_entry *entry = &pool->entries[index];
	struct pin_freelist *list;
	uint64_t state;
	uint32_t holder;

	PIN_DCHECK((pool->flags & PIN_POOL_BETWEEN) == 0);
	if (PIN_MISUSE_WATCHES || PIN_UNLIKELY(index >= pool->buffer_count) ||
		PIN_UNLIKELY(entry->bytes != buffer->bytes) ||
		PIN_UNLIKELY((buffer->generation & 1) == 0)) {
		return false;
	}
	state = pin_load_acquire_u64(&entry->state);   /* [POOL-3] */
	holder = pin_load_acquire_u32(&entry->holder); /* [POOL-3] [POOL-4] */
	if (PIN_UNLIKELY(!pin_entry_is_as_given(state, buffer->generation)) ||
		PIN_UNLIKELY(pin_pool_must_share(state, holder, PIN_POOL_OUTSIDE)) ||
		PIN_UNLIKELY(pin_entry_has_own(holder)) ||
		PIN_UNLIKELY(!pin_cas_acq_rel_u64(
			&entry->state, &state, pin_entry_end_use(state)))) { /* invariant 2 */
		return false;
	}
	PIN_DCHECK(entry->node < pool->node_count);
	list = &pool->freelists[entry->node];
	out_own->list = list;
	out_own->state = pin_freelist_push(list, pool->entries, &index, 1);
	return true;
}

/*
 * Gives one back. Errors, each logged with the last owner, and without effect:
 * -EINVAL: not the pool's, or not where a buffer begins. -EALREADY: it was
 * given back before. -EBUSY: a request that uses it is in flight.
 */
int pin_pool_release(struct pin_pool *pool, uint32_t magazine, const struct pinion_buffer *buffer);

/* ---- the rest ---- */

/* It was acquired by the calling thread for another, who is to claim it. */
void pin_pool_disclaim(struct pin_pool *pool, const struct pinion_buffer *buffer);
/* The calling thread has it now, from a thread that disclaimed it. */
void pin_pool_claim(struct pin_pool *pool, uint32_t magazine, const struct pinion_buffer *buffer);

/* The buffer that a handle stands for is in use by it. Logged if not. */
bool pin_pool_owns(struct pin_pool *pool, const struct pinion_buffer *buffer);

/*
 * The state of the buffer that holds `address`, or NULL. Looks into region
 * `hint` first.
 */
struct pin_entry *pin_pool_find(const struct pin_pool *pool, const uint8_t *address, uint32_t hint);

/* The same, in the first region only. */
static inline struct pin_entry *pin_pool_find_first(
	const struct pin_pool *pool, const uint8_t *address)
{
	uint64_t offset = (uintptr_t)address - (uintptr_t)pool->first_memory;

	if (offset >= pool->first_bytes) {
		return NULL;
	}
	PIN_DCHECK(pool->stride_shift == 0 || 1u << pool->stride_shift == pool->stride);
	/* A division is some 18 cycles. */
	return &pool->entries[PIN_LIKELY(pool->stride_shift != 0) ? offset >> pool->stride_shift
								  : offset / pool->stride];
}

enum pin_pool_borrowed {
	PIN_POOL_IS_BORROWED,
	PIN_POOL_IS_BORROWED_OWN, /* pin_pool_end_own_borrow() ends it, on the same thread */
	PIN_POOL_IS_FREE,	  /* it must not be borrowed, and was not */
	PIN_POOL_MUST_SHARE,	  /* call pin_pool_share(), then this again */
};

/*
 * A request borrows the buffer: from the first call to the second the buffer is
 * held for I/O, and no thread can release it. Several requests may borrow it at
 * once. By the owner of `magazine`; PIN_POOL_OUTSIDE by any thread. Any thread
 * may end it.
 */
static inline enum pin_pool_borrowed pin_pool_borrow(struct pin_entry *entry, uint32_t magazine)
{
	uint64_t state = pin_load_acquire_u64(&entry->state); /* [POOL-3] */

	while (PIN_LIKELY(pin_entry_is_used(state))) {
		uint32_t holder = pin_load_relaxed_u32(&entry->holder); /* [POOL-3] */

		if (PIN_UNLIKELY(pin_pool_must_share(state, holder, magazine))) {
			return PIN_POOL_MUST_SHARE;
		}
		/* One more would read as CLOSING. */
		PIN_DCHECK((state & PIN_ENTRY_REQUESTS_MASK) != PIN_ENTRY_REQUESTS_MASK);
		if (PIN_LIKELY(pin_cas_acq_rel_u64(
			    &entry->state, &state, state + PIN_ENTRY_REQUEST))) {
			return PIN_POOL_IS_BORROWED;
		}
	}
	return PIN_POOL_IS_FREE;
}

static inline void pin_pool_end_borrow(struct pin_entry *entry)
{
	/*
	 * It need not order anything: the thread that gives it back has the
	 * completion.
	 */
	uint64_t before = pin_fetch_sub_acq_rel_u64(&entry->state, PIN_ENTRY_REQUEST);

	PIN_CHECK((before & PIN_ENTRY_REQUESTS_MASK) != 0);
}

/*
 * The short way, for a buffer taken with the same magazine, number `magazine`.
 * False: pin_pool_borrow() has to be called, nothing has happened.
 */
static inline bool pin_pool_borrow_own(
	struct pin_magazine *own, uint32_t magazine, struct pin_entry *entry)
{
	uint64_t state;
	uint32_t holder;
	bool is_borrowed;

	if (PIN_UNLIKELY(!pin_magazine_enter(own))) { /* [POOL-2] */
		return false;
	}
	state = pin_load_acquire_u64(&entry->state); /* [POOL-2] [POOL-3] */
	holder = pin_load_relaxed_u32(&entry->holder);
	is_borrowed = PIN_LIKELY(state >> 32 == 0) && PIN_LIKELY(pin_entry_is_used(state)) &&
		PIN_LIKELY(pin_entry_is_held_by(holder, magazine)) &&
		PIN_LIKELY(holder + PIN_ENTRY_OWN < PIN_ENTRY_FAR);
	if (PIN_LIKELY(is_borrowed)) {
		PIN_DCHECK(pin_entry_has_own(holder + PIN_ENTRY_OWN));
		pin_store_relaxed_u32(&entry->holder, holder + PIN_ENTRY_OWN);
	}
	pin_magazine_leave(own); /* [POOL-2] */
	return is_borrowed;
}

/* The end of what began by the short way, on the same thread. */
static inline void pin_pool_end_own_borrow(struct pin_entry *entry)
{
	uint32_t holder = pin_load_relaxed_u32(&entry->holder);

	PIN_CHECK(pin_entry_has_own(holder));
	pin_store_release_u32(&entry->holder, holder - PIN_ENTRY_OWN); /* [POOL-4] */
}

/* Passes what its owner keeps on to the free lists, by the owner. */
void pin_pool_flush(struct pin_pool *pool, uint32_t magazine);
/* The same, only for buffers of other nodes; it may go on with it. */
void pin_pool_send_home(struct pin_pool *pool, uint32_t magazine);

/* Acquires so far that got a buffer. */
uint64_t pin_pool_count_acquires(const struct pin_pool *pool);

/*
 * How many are free: listed or published, in one magazine and its owner's
 * batch, in all; a snapshot.
 */
uint32_t pin_pool_count_lists(const struct pin_pool *pool);
uint32_t pin_pool_count_magazine(const struct pin_pool *pool, uint32_t magazine);
uint32_t pin_pool_count(const struct pin_pool *pool);

/* Of one pool or several. */
struct pin_pool_shortages {
	uint64_t exhausted;
	uint64_t false_nulls;
	uint64_t waits;
	uint64_t wait_ns;
};

/* Adds the pool's. Any thread. */
static inline void pin_pool_add_shortages(
	const struct pin_pool *pool, struct pin_pool_shortages *sum)
{
	/* Relaxed: figures. */
	sum->exhausted += pin_load_relaxed_u64(&pool->exhausted);
	sum->false_nulls += pin_load_relaxed_u64(&pool->false_nulls);
	sum->waits += pin_load_relaxed_u64(&pool->waits);
	sum->wait_ns += pin_load_relaxed_u64(&pool->wait_ns);
}

/* ---- thread cache ---- */

/*
 * What a thread remembers of the pool it used last, so that the next use finds
 * its short way by one comparison. Pools are identified by their numbers, which
 * are never used again; 0: nothing is remembered.
 */

struct pin_recent {
	/* In which it has a cache, and the short way to it. */
	uint64_t number;
	struct pin_magazine *magazine;
	uint32_t cache;
	/* In which it has none; inverted: one without a short way. */
	uint64_t without;
	/* If that has a short way: what the thread did there last. */
	struct pin_pool_listed listed;
};

extern _Thread_local struct pin_recent pin_recent PIN_TLS_INITIAL;

/* In a forked child, and as a worker's thread ends: its caches are no more. */
void pin_recent_forget(void);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Internals of a pool, shared by the files of its calls. pool.h describes how
 * it works.
 */
#ifndef PIN_MEMORY_POOL_INTERNAL_H
#define PIN_MEMORY_POOL_INTERNAL_H

#include "runtime/base/log.h"
#include "runtime/base/random.h"
#include "runtime/host/host.h"
#include "runtime/memory/free_list.h"
#include "runtime/memory/magazine.h"
#include "runtime/policy/steal_order.h"

#include <pinion/buffer.h>

/* In place of a magazine's number: the caller has none. */
#define PIN_POOL_OUTSIDE UINT32_MAX

enum pin_pool_flags {
	PIN_POOL_ZERO = 1,  /* zeroed when given back */
	PIN_POOL_GUARD = 2, /* no access while free: multiples of 4096 bytes */
	/* Something is to be done with a buffer between its uses. */
	PIN_POOL_BETWEEN = PIN_POOL_ZERO | PIN_POOL_GUARD,
};

/* Memory for some of the buffers, one after the other. */
struct pin_pool_region {
	uint8_t *memory;
	uint32_t buffer_count;
	uint32_t node; /* number of its free list */
};

/* A buffer that was free when a shortage was proved: pool_refill.c. */
struct pin_pool_doubt {
	uint32_t shortages; /* so far */
	uint32_t index;
	uint64_t state;	   /* of its entry */
	uint64_t since_ns; /* 0: there is none */
};

struct pin_pool {
	/* [const] */
	const struct pin_host *host;
	struct pin_log log;
	struct pin_entry *entries;
	struct pin_magazine *magazines; /* then the batches, one of each owner, or none */
	struct pin_freelist *freelists; /* by node */
	struct pin_pool_region *regions;
	struct pin_atomic_u32 *magazine_memory; /* what all of them hold, one after the other */
	uint64_t *seen;				/* [lock:lock] the first check of each place */
	uint32_t buffer_count;
	uint32_t buffer_bytes;
	uint32_t headroom_bytes;
	uint32_t magazine_count;
	uint32_t place_count; /* magazines and batches */
	uint32_t magazine_capacity;
	uint32_t seeded_count;
	uint32_t node_count;
	uint32_t region_count;
	uint32_t stride;       /* from one buffer of a region to the next */
	uint32_t stride_shift; /* if that is a power of two, its logarithm; else 0 */
	uint8_t *first_memory; /* of the first region */
	uint64_t first_bytes;
	uint32_t flags;
	uint32_t open_count;		   /* [own] of the only magazine: pin_pool_open() */
	const struct pin_victims *victims; /* of the first magazines' owners; or NULL */
	/* [W:any R:any] */
	struct pin_lock lock PIN_CACHE_ALIGNED; /* rank 6: of looks into others' magazines */
	struct pin_random random;	   /* [lock:lock] where the next theft begins to look */
	struct pin_pool_doubt doubt;	   /* [lock:lock] */
	struct pin_atomic_u64 steals;	   /* magazines robbed */
	struct pin_atomic_u64 exhausted;   /* times that nothing was free */
	struct pin_atomic_u64 false_nulls; /* [W:holders of the lock R:any] */
	struct pin_atomic_u64 misuses;
	struct pin_atomic_u64 waits; /* of threads and tasks: api/pool.c */
	struct pin_atomic_u64 wait_ns;
};

/* What the owner of a magazine gathers for other nodes; NULL: there is one. */
static inline struct pin_magazine *pin_pool_remote_batch(
	const struct pin_pool *pool, uint32_t magazine)
{
	PIN_DCHECK(magazine < pool->magazine_count);
	return pool->place_count > pool->magazine_count
		? &pool->magazines[pool->magazine_count + magazine]
		: NULL;
}

/*
 * [POOL-2] in pool.h: whether the calling thread, which is the owner of
 * `magazine`, has to end plain stores before it changes `state`, which it has
 * read (acquire), and then `holder`.
 */
static inline bool pin_pool_must_share(uint64_t state, uint32_t holder, uint32_t magazine)
{
	PIN_DCHECK(magazine < PIN_ENTRY_NUMBERS || magazine == PIN_POOL_OUTSIDE);
	return (state & PIN_ENTRY_SHARED) == 0 && pin_entry_has_owner(holder) &&
		!pin_entry_is_held_by(holder, magazine);
}

/* ---- pool home ---- */

/*
 * The destination of a buffer that is given back: the magazine of the thread,
 * its batch if the buffer is of another node, or past both. pool.h describes
 * the choice.
 */

enum {
	/* Buffers that move between a magazine and a free list at once. */
	PIN_POOL_BATCH_MAX = 64,
};

/* Of the caller with that magazine, or OUTSIDE: it is free as soon as here. */
void pin_pool_put(struct pin_pool *pool, uint32_t magazine, uint32_t index);

/*
 * Inside: the `count` oldest, but no more than are moved at once, or all go
 * home, into the list of each one's node. They are to be seen all the time.
 */
void pin_pool_pass_on(struct pin_pool *pool, struct pin_magazine *magazine, uint32_t count);
void pin_pool_pass_all_on(struct pin_pool *pool, struct pin_magazine *magazine);

/* ---- pool refill ---- */

/*
 * The search for a buffer that is not in the own magazine, and the proof that
 * there is none. pool.h describes why that takes two checks.
 */

/* One from any free list, the caller's own node first. */
bool pin_pool_take_listed(struct pin_pool *pool, uint32_t node, uint32_t *out_index);

/*
 * One from any shared stash, near ones first; from *giver on round, with the
 * giver it came from.
 */
bool pin_pool_take_laid_out(
	struct pin_pool *pool, uint32_t node, uint32_t *out_index, uint32_t *giver);

/*
 * With the lock: from lists, stashes, magazines, or nowhere. Each round
 * that ends with neither was spoilt by another thread's release. An owner who
 * comes here has an empty magazine: it saw that itself, or found a thief
 * inside, who leaves nothing and was done before the lock was free. `own`: its
 * magazine, or OUTSIDE.
 */
bool pin_pool_search(struct pin_pool *pool, uint32_t own, uint32_t node, uint32_t *out_index);

/* ---- buffer checks ---- */

/*
 * What a pool does about buffers that are used wrongly: it finds out at the
 * call that is wrong, names who had the buffer last, and refuses.
 *
 * While a buffer is free no code may touch it. AddressSanitizer marks it in its
 * builds, and with PIN_POOL_GUARD the MMU in all: then a touch faults.
 */

/* Whether a tool has to learn of each buffer that changes hands. */
#ifdef PIN_ASAN
#define PIN_MISUSE_WATCHES 1
#else
#define PIN_MISUSE_WATCHES 0
#endif

/* Explains why a handle is wrong. */
int pin_pool_check_explain(struct pin_pool *pool, const struct pinion_buffer *buffer);

/* A request was to use buffer `index`, which is free. */
void pin_pool_check_is_free(struct pin_pool *pool, uint32_t index);

/* Logs who took the buffers that are still out; how many. */
uint32_t pin_pool_check_report_in_use(const struct pin_pool *pool);

/* Before any is hidden: gives up a guard that the memory does not take. */
void pin_pool_check_settle(struct pin_pool *pool);

void pin_pool_check_hide_pages(const struct pin_pool *pool, const struct pin_entry *entry);
void pin_pool_check_show_pages(const struct pin_pool *pool, const struct pin_entry *entry);

/* 0, or an error as pin_pool_release() returns it, logged. */
static inline int pin_pool_check_check(struct pin_pool *pool, const struct pinion_buffer *buffer)
{
	if (PIN_LIKELY(buffer->index < pool->buffer_count)) {
		const struct pin_entry *entry = &pool->entries[buffer->index];

		if (entry->bytes == buffer->bytes && (buffer->generation & 1) != 0 &&
			pin_entry_is_as_given(
				pin_load_acquire_u64(&entry->state), buffer->generation) &&
			!pin_entry_has_own(pin_load_relaxed_u32(&entry->holder))) {
			return 0;
		}
	}
	return pin_pool_check_explain(pool, buffer);
}

/* No code may touch it from here on; `entry` is about to be free. */
static inline void pin_pool_check_hide(const struct pin_pool *pool, const struct pin_entry *entry)
{
	PIN_DCHECK((size_t)(entry - pool->entries) < pool->buffer_count);
	if (PIN_UNLIKELY((pool->flags & PIN_POOL_BETWEEN) != 0)) {
		pin_pool_check_hide_pages(pool, entry);
	}
	PIN_ASAN_POISON(entry->bytes - pool->headroom_bytes,
		(size_t)pool->headroom_bytes + pool->buffer_bytes);
}

/* Its new owner may. */
static inline void pin_pool_check_show(const struct pin_pool *pool, const struct pin_entry *entry)
{
	PIN_DCHECK((size_t)(entry - pool->entries) < pool->buffer_count);
	PIN_ASAN_UNPOISON(entry->bytes - pool->headroom_bytes,
		(size_t)pool->headroom_bytes + pool->buffer_bytes);
	if (PIN_UNLIKELY((pool->flags & PIN_POOL_BETWEEN) != 0)) {
		pin_pool_check_show_pages(pool, entry);
	}
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A magazine: the free buffers a thread keeps for itself, newest first, while
 * they are in its cache.
 *
 * Its owner passes through it with every buffer, so that side takes no locked
 * instruction and no fence. Others come only when nothing is free anywhere
 * else, one at a time (the pool's lock); they pay with the host's fence_all.
 *
 *     owner                          thief, holding the pool's lock
 *     busy := 1                      thief := 1
 *     light fence                    fence_all
 *     thief set: leave it alone      wait while busy
 *     take or put                    take
 *     busy := 0                      thief := 0
 *
 * [MAG-1] of "busy := 1" and "thief := 1" one comes first, and the other side
 * sees it: either before fence_all, and then the thief waits, or after it, and
 * then the owner goes another way.
 * [MAG-2] each leaves by a release store that the other reads (acquire), so
 * what it finds inside is the newest.
 *
 * `word` holds how many are inside, and above that a count of all that were
 * ever put in. Any thread may read it. While the owner is inside it may promise
 * more than there are, never less: a thread that searches for a free buffer and
 * sees one here will enter to take it, and so learns the truth; a thread that
 * sees none twice, with the same count of puts, knows that there was none in
 * between.
 *
 * A theft costs a hundred times more than an own buffer. So a robbed magazine
 * is marked, and its owner publishes its buffers on a shared stash until none
 * seems wanted: half a magazine is there, or the owner has to fetch from a list
 * or a stash itself. Thief and owner both change `thief`, each by a single
 * step. A magazine without an owner is marked as well. Marked or not, buffers
 * on its stash are there for all.
 *
 * [MAG-3] the owner puts nothing into a marked one but what it promised before
 * it took that from elsewhere; it takes the mark off by a full barrier first,
 * and looks for it when it is inside, where no thief can set it. So a thread
 * that passes a fence, then sees the mark, and nothing inside, and holds the
 * pool's lock, without which no other marks, knows that nothing is on its way
 * into it either; buffers for the stash or the list go by a full barrier.
 *
 * The owner's work between "busy := 1" and "busy := 0" is over for a thread
 * that has passed fence_all and waited; pool.h, [POOL-2], needs that without a
 * theft.
 *
 * Where fence_all cannot be had, `thief` says so for good: the owner's short
 * way is closed, and on the long one it takes a full fence each time it comes
 * in, and each time it leaves something.
 */
#ifndef PIN_MEMORY_MAGAZINE_H
#define PIN_MEMORY_MAGAZINE_H

#include "runtime/base/atomic.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/host/host.h"

/* ---- the shared stash of a magazine ---- */

/*
 * A shared stash: the few free buffers that the owner of a robbed magazine
 * publishes for others, oldest first.
 *
 * The owner puts them in at one end, any thread takes them out at the other.
 * The slots and the count of puts share a line, so that a theft brings one
 * line of the owner's along, and the owner none of the thieves': it reads their
 * progress when the stash seems full.
 *
 * [STASH-1] put fills the slot, then counts it (exchange, release half) ->
 * take and looks load the count (acquire): they find the index, and what the
 * last user did with the buffer.
 * [STASH-4] the exchange is seq_cst -> a thread that asks whether all is empty
 * passes a seq_cst fence between two checks: the second finds buffers put
 * before it. By a plain store put could return while that is still in the store
 * buffer:
 *
 *     owner                          asks
 *     put := 1, buffered
 *     returns: the buffer is free    fence, looks: put is 0
 *                                    "nothing is free"
 *     put seen by all
 *
 * and no fence_all brings it out, as none is needed while all are marked.
 * [STASH-2] take reads the slot, then moves `taken` past it (CAS, release
 * half) -> the owner that fills it again has loaded `taken` (acquire).
 * [STASH-3] a check loads the count of puts, then that of takes: if they are
 * equal, and the first is the same at a second check, the stash was empty from
 * the first to the second.
 *
 *              put   take   look
 *     put       X     -      -       one owner
 *     take      -     -      -
 *
 * Progress: put is wait-free, take lock-free. The counts have 64 bits and do
 * not come round.
 */

#define PIN_STASH_SLOTS 8u

struct pin_stash {
	/* [W:owner R:any] */
	struct pin_atomic_u64 put PIN_CACHE_ALIGNED; /* puts ever */
	struct pin_atomic_u32 slots[PIN_STASH_SLOTS];
	/* [own] */
	uint64_t seen_taken; /* a lower bound of the takes */
	/* [W:any R:any] */
	struct pin_atomic_u64 taken PIN_CACHE_ALIGNED; /* takes ever */
};

/* By the owner. False: `most`, not more than there are slots, are there. */
static inline bool pin_stash_put(struct pin_stash *stash, uint32_t index, uint32_t most)
{
	uint64_t put = pin_load_relaxed_u64(&stash->put);
	PIN_DCHECK(most <= PIN_STASH_SLOTS);
	PIN_DCHECK(stash->seen_taken <= put);

	if (PIN_UNLIKELY(put - stash->seen_taken >= most)) {
		stash->seen_taken = pin_load_acquire_u64(&stash->taken); /* [STASH-2] */
		PIN_DCHECK(stash->seen_taken <= put);
		if (put - stash->seen_taken >= most) {
			return false;
		}
	}
	pin_store_relaxed_u32(&stash->slots[put % PIN_STASH_SLOTS], index);
	pin_exchange_seq_cst_u64(&stash->put, put + 1); /* [STASH-1] [STASH-4] */
	return true;
}

/* How many it held at some moment, or a few more. */
static inline uint32_t pin_stash_count(const struct pin_stash *stash)
{
	uint64_t taken = pin_load_acquire_u64(&stash->taken);	    /* [STASH-3] */
	uint64_t count = pin_load_acquire_u64(&stash->put) - taken; /* [STASH-1] */

	PIN_DCHECK((int64_t)count >= 0); /* takes never pass the puts */
	return count < PIN_STASH_SLOTS ? (uint32_t)count : PIN_STASH_SLOTS;
}

/* Takes the oldest, up to `max`; how many. */
static inline uint32_t pin_stash_take(struct pin_stash *stash, uint32_t *out_indices, uint32_t max)
{
	PIN_DCHECK(max > 0);
	for (;;) {
		uint64_t taken = pin_load_acquire_u64(&stash->taken);
		uint64_t count = pin_load_acquire_u64(&stash->put) - taken; /* [STASH-1] */

		PIN_DCHECK((int64_t)count >= 0); /* takes never pass the puts */
		if (count == 0) {
			return 0;
		}
		count = count < max ? count : max;
		for (uint64_t i = 0; i < count; i++) {
			out_indices[i] =
				pin_load_relaxed_u32(&stash->slots[(taken + i) % PIN_STASH_SLOTS]);
		}
		if (pin_cas_acq_rel_u64(&stash->taken, &taken, taken + count)) { /* [STASH-2] */
			PIN_DCHECK(count <= PIN_STASH_SLOTS); /* no slot was filled twice */
			return (uint32_t)count;
		}
	}
}

/* Changes whenever something is put in. Both: [STASH-3]. */
static inline uint64_t pin_stash_state(const struct pin_stash *stash)
{
	return pin_load_acquire_u64(&stash->put); /* [STASH-1] */
}

static inline bool pin_stash_state_is_empty(const struct pin_stash *stash, uint64_t state)
{
	return pin_load_acquire_u64(&stash->taken) == state; /* [STASH-3] */
}

/* ---- magazine ---- */

enum pin_magazine_thief {
	PIN_MAGAZINE_THIEF = 1,	 /* one is inside, or about to be */
	PIN_MAGAZINE_FENCED = 2, /* there is no fence_all; never changes */
	PIN_MAGAZINE_ROBBED = 4, /* pass on returned buffers */
};

struct pin_magazine {
	/* [const]; its elements: [W:inside R:inside] */
	struct pin_atomic_u32 *indices PIN_CACHE_ALIGNED;
	uint32_t capacity;
	uint32_t node; /* whose buffers it takes */
	/* [W:thieves,owner R:owner] */
	struct pin_atomic_u32 thief;
	/* [W:owner R:thieves] */
	struct pin_atomic_u32 busy PIN_CACHE_ALIGNED;
	/* [W:inside R:any] puts << 32 | count */
	struct pin_atomic_u64 word;
	/* [W:owner R:any] */
	struct pin_atomic_u64 hits;    /* acquires served from here */
	struct pin_atomic_u64 misses;  /* acquires served from elsewhere */
	struct pin_atomic_u64 refills; /* from a free list, in batches */
	struct pin_atomic_u64 spills;  /* to a list, in batches */
	/* [own] */
	uint32_t giver;	      /* whose stash held something last */
	uint32_t shared_ends; /* releases of shared buffers, see pool.h, [POOL-2] */
	/* The buffers passed on while this one is robbed. */
	struct pin_stash stash;
};

_Static_assert(PIN_CACHE_LINE == 128 && sizeof(struct pin_magazine) % PIN_CACHE_LINE == 0,
	"BP-20: own lines, and those fetched along");

/*
 * By the owner. False: go another way, by pin_magazine_enter_slowly() at the
 * latest. True: pin_magazine_leave() follows.
 */
static inline bool pin_magazine_enter(struct pin_magazine *magazine)
{
	pin_store_relaxed_u32(&magazine->busy, 1); /* [MAG-1] */
	pin_fence_light();
	if (PIN_LIKELY(pin_load_acquire_u32(&magazine->thief) == 0)) { /* [MAG-1] [MAG-2] */
		return true;
	}
	pin_store_release_u32(&magazine->busy, 0); /* [MAG-2] */
	return false;
}

/* The same, also without fence_all. False: a thief is in it. */
bool pin_magazine_enter_slowly(struct pin_magazine *magazine);

static inline void pin_magazine_leave(struct pin_magazine *magazine)
{
	pin_store_release_u32(&magazine->busy, 0); /* [MAG-2] */
}

/* The same after a put, also without fence_all: the put is seen. */
void pin_magazine_leave_slowly(struct pin_magazine *magazine);

static inline bool pin_magazine_is_robbed(const struct pin_magazine *magazine)
{
	return (pin_load_acquire_u32(&magazine->thief) & PIN_MAGAZINE_ROBBED) != 0; /* [MAG-3] */
}

/* Inside. */
void pin_magazine_forget_theft(struct pin_magazine *magazine);
/* By the owner that gives it up, empty. */
void pin_magazine_mark_robbed(struct pin_magazine *magazine);

/* Its owner's short way is closed for good. */
static inline bool pin_magazine_is_fenced(const struct pin_magazine *magazine)
{
	return (pin_load_relaxed_u32(&magazine->thief) & PIN_MAGAZINE_FENCED) != 0;
}

/* By another thread, after fence_all: until its owner is not inside. */
void pin_magazine_await_owner(struct pin_magazine *magazine, const struct pin_host *host);

/* By another thread, which holds the pool's lock. */
void pin_magazine_break_in(struct pin_magazine *magazine, const struct pin_host *host);
void pin_magazine_get_out(struct pin_magazine *magazine);

static inline uint64_t pin_magazine_state(const struct pin_magazine *magazine)
{
	return pin_load_acquire_u64(&magazine->word);
}

static inline uint32_t pin_magazine_count(const struct pin_magazine *magazine)
{
	return (uint32_t)pin_magazine_state(magazine);
}

/* Inside: the newest one, and the word that says so; false: it is empty. */
static inline bool pin_magazine_look_newest(
	const struct pin_magazine *magazine, uint64_t *out_word, uint32_t *out_index)
{
	uint64_t word = pin_load_relaxed_u64(&magazine->word);
	uint32_t count = (uint32_t)word;

	if (PIN_UNLIKELY(count == 0)) {
		return false;
	}
	PIN_DCHECK(count <= magazine->capacity);
	*out_word = word;
	*out_index = pin_load_relaxed_u32(&magazine->indices[count - 1]);
	return true;
}

/* Inside still: forgets the buffer that was read. */
static inline void pin_magazine_drop_newest(struct pin_magazine *magazine, uint64_t word)
{
	PIN_DCHECK((uint32_t)word > 0);
	pin_store_relaxed_u64(&magazine->word, word - 1);
}

/* Inside: both. */
static inline bool pin_magazine_take(struct pin_magazine *magazine, uint32_t *out_index)
{
	uint64_t word;

	if (!pin_magazine_look_newest(magazine, &word, out_index)) {
		return false;
	}
	pin_magazine_drop_newest(magazine, word);
	return true;
}

/* Inside: puts one in; false: it is full. */
static inline bool pin_magazine_put(struct pin_magazine *magazine, uint32_t index)
{
	uint64_t word = pin_load_relaxed_u64(&magazine->word);
	uint32_t count = (uint32_t)word;

	PIN_DCHECK(count <= magazine->capacity);
	if (PIN_UNLIKELY(count == magazine->capacity)) {
		return false;
	}
	pin_store_relaxed_u32(&magazine->indices[count], index);
	pin_store_relaxed_u64(&magazine->word, word + (1ull << 32) + 1);
	return true;
}

/*
 * Inside, by the owner of an empty one: shows `count` to others before they are
 * there, so that they are visible all the time while they are brought here; and
 * corrects that.
 */
static inline void pin_magazine_promise(struct pin_magazine *magazine, uint32_t count)
{
	uint64_t word = pin_load_relaxed_u64(&magazine->word);

	PIN_DCHECK((uint32_t)word == 0);
	PIN_DCHECK(count > 0);
	PIN_DCHECK(count <= magazine->capacity);
	pin_store_release_u64(&magazine->word, word + (1ull << 32) + count);
}

static inline void pin_magazine_settle(struct pin_magazine *magazine, uint32_t count)
{
	uint64_t word = pin_load_relaxed_u64(&magazine->word);

	PIN_DCHECK(count <= (uint32_t)word); /* no more than was promised */
	pin_store_relaxed_u64(&magazine->word, (word >> 32) << 32 | count);
}

/* Inside: the oldest `count`, which must be there. */
void pin_magazine_look_oldest(
	const struct pin_magazine *magazine, uint32_t *out_indices, uint32_t count);

/* Inside: forgets the `count` oldest, which must be there. */
void pin_magazine_drop_oldest(struct pin_magazine *magazine, uint32_t count);

#endif

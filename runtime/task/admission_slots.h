/* SPDX-License-Identifier: MIT */
/*
 * Places: how many of each lane are in, and how many may be.
 *
 * Counting first and adding later lets as many slip in between as there are
 * threads. Here all counts are one word, 20 bits for each lane; the total is
 * their sum, so a place has its lane's limit and that of all checked, and is
 * taken, in one step. Several places, in any lanes, are one step too.
 *
 * The word has two flags besides:
 *
 *     CLOSED   nobody comes in any more
 *     WATCHED  somebody waits; who leaves has to look for whom to serve
 *
 * Whoever wants to wait finds the places full and sets WATCHED in that same
 * step. So a place that is given back either comes before it, and the one who
 * wants to wait sees it, or comes after it, and the one who leaves sees the
 * flag: no fence is needed on either side. With either flag set, places are
 * given back only under a lock of the caller's, which also protects its queue
 * of those who wait, and taken only under it while WATCHED is. So who leaves
 * without the lock has touched the struct for the last time.
 *
 * Invariants: 1. no take brings a count above its limit, and no exchange raises
 * a total that is above it already; 2. while WATCHED is
 * set only the holder of the lock changes the counts; 3. CLOSED is never taken
 * away.
 *
 * Progress: lock-free. Any thread; the functions of the second group with the
 * lock.
 *
 * [PLACES-1] give (RMW, release half) -> take (CAS, acquire half): who comes in
 * sees what those did that made room for it.
 */
#ifndef PIN_TASK_ADMISSION_SLOTS_H
#define PIN_TASK_ADMISSION_SLOTS_H

#include "runtime/base/atomic.h"

enum {
	PIN_PLACES_LANES = 3,
	PIN_PLACES_FLAG_BITS = 2,
	PIN_PLACES_LANE_BITS = 20,
	PIN_PLACES_MAX = (1 << PIN_PLACES_LANE_BITS) - 1,
};

_Static_assert(PIN_PLACES_FLAG_BITS + PIN_PLACES_LANES * PIN_PLACES_LANE_BITS <= 64, "one word");

enum pin_places_answer {
	PIN_PLACES_ROOM,
	PIN_PLACES_LANE_FULL,
	PIN_PLACES_FULL, /* the total */
	PIN_PLACES_CLOSED,
	PIN_PLACES_WATCHED,  /* with the lock only */
	PIN_PLACES_TOO_MANY, /* there will be no room, unless limits are raised */
};

struct pin_places {
	struct pin_atomic_u64 word; /* [W:any R:any] */
	/* [W:holder of the lock R:any] relaxed: see pin_places_set_max() */
	struct pin_atomic_u32 max[PIN_PLACES_LANES];
	struct pin_atomic_u32 max_total;
};

void pin_places_init(struct pin_places *places, const uint32_t *max, uint32_t max_total);

static inline uint32_t pin_places_max(const struct pin_places *places, uint32_t lane)
{
	return pin_load_relaxed_u32(&places->max[lane]);
}

static inline uint32_t pin_places_max_total(const struct pin_places *places)
{
	return pin_load_relaxed_u32(&places->max_total);
}

/* So many places in a lane: what the functions below call an amount. */
static inline uint64_t pin_places_amount(uint32_t lane, uint32_t count)
{
	return (uint64_t)count << (PIN_PLACES_FLAG_BITS + lane * PIN_PLACES_LANE_BITS);
}

/* Of an amount, or of the word. */
static inline uint32_t pin_places_count(uint64_t word, uint32_t lane)
{
	return (uint32_t)(word >> (PIN_PLACES_FLAG_BITS + lane * PIN_PLACES_LANE_BITS)) &
		PIN_PLACES_MAX;
}

static inline uint32_t pin_places_total(uint64_t word)
{
	return pin_places_count(word, 0) + pin_places_count(word, 1) + pin_places_count(word, 2);
}

/*
 * Whether there is room for `amount` besides what `word` holds; besides a word
 * of 0, whether there can ever be.
 */
enum pin_places_answer pin_places_fit(
	const struct pin_places *places, uint64_t word, uint64_t amount);

/* The word, for counts that have to be of one moment. */
uint64_t pin_places_word(const struct pin_places *places);

/* Takes places, or tells why not; *out_word is what that was decided by. */
enum pin_places_answer pin_places_take(
	struct pin_places *places, uint64_t amount, uint64_t *out_word);

/* Gives places back. False: nothing was done, it takes the lock. */
bool pin_places_give(struct pin_places *places, uint64_t amount);

/* ---- with the lock ---- */

/*
 * Other limits. A count above its new one stays until places are given back. A
 * take that began before this returned may go by those before.
 */
void pin_places_set_max(struct pin_places *places, const uint32_t *max, uint32_t max_total);

/* As pin_places_take(), also past others who wait; watched when it fails. */
enum pin_places_answer pin_places_take_or_watch(
	struct pin_places *places, uint64_t amount, uint64_t *out_word);

/*
 * Takes `amount` in place of `given`, while it is watched. Where the total is
 * above its limit, as that was lowered, both are as many.
 */
void pin_places_exchange(struct pin_places *places, uint64_t given, uint64_t amount);

void pin_places_give_locked(struct pin_places *places, uint64_t amount);

/* Nobody waits any more. */
void pin_places_unwatch(struct pin_places *places);

void pin_places_close(struct pin_places *places);
bool pin_places_is_closed(const struct pin_places *places);

#endif

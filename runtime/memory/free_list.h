/* SPDX-License-Identifier: MIT */
/*
 * A free list: the buffers of one node that are in no magazine.
 *
 * A stack of indices, linked through the entries, under one word: the first
 * index, and a tag that every change counts up. A pop takes several at once: it
 * walks down the links, which others may be changing meanwhile, and its
 * compare-and-swap succeeds only if the tag says that none was; else the walk
 * is thrown away. So a link that is out of date is harmless, as every link that
 * was ever written is an index, and the walk is bounded.
 *
 * [FREE-1] push links its entries, then changes the head (CAS, release half) ->
 * pop and depth load the head (acquire): the links below it are there. A pop's
 * CAS passes on what pushes before it released.
 *
 * [FREE-2] push stores a depth (release) after its pop's change of the head ->
 * count loads it (acquire), then the head again: a depth that is newer than the
 * head it first saw shows in the second look.
 *
 * [FREE-3] a push's CAS is seq_cst -> a thread that asks whether all is empty
 * passes a seq_cst fence between two checks: the second finds buffers pushed
 * before. Without it that could be in a list whose head it still knows as it
 * was.
 *
 * Progress: lock-free. Everything is free against everything.
 *
 * A thread that knows what the head was when it last pushed may take that for
 * granted, and load nothing: its CAS fails if it is not so any more. A load of
 * a word right after its own CAS costs as much as another CAS.
 *
 * The tag has 39 bits: a thread that sleeps between its load and its CAS while
 * exactly 2^39 changes pass, or a multiple, would be deceived; at 10 ns each
 * that is a sleep of 91 minutes that ends on one particular 10 ns. And what it
 * takes for granted is what it wrote itself: only the link may be another one
 * then.
 */
#ifndef PIN_MEMORY_FREE_LIST_H
#define PIN_MEMORY_FREE_LIST_H

#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/memory/buffer_state.h"

enum {
	PIN_FREELIST_INDEX_BITS = 25, /* of an index plus one; the tag has the others */
};

struct pin_freelist {
	/* [W:any R:any] tag << 25 | first index + 1 */
	struct pin_atomic_u64 head PIN_CACHE_ALIGNED;
};

/* The first index of a list in such a state, plus one; 0: it is empty. */
static inline uint32_t pin_freelist_first(uint64_t state)
{
	return (uint32_t)state & ((1u << PIN_FREELIST_INDEX_BITS) - 1);
}

/* Pushing and popping are inline, as most callers do so with one buffer. */

static inline uint64_t pin_freelist_next_state(uint64_t state, uint32_t first)
{
	PIN_DCHECK(first >> PIN_FREELIST_INDEX_BITS == 0);
	return ((state >> PIN_FREELIST_INDEX_BITS) + 1) << PIN_FREELIST_INDEX_BITS | first;
}

/* Links the chain on top of the list in `state`; its first index plus one. */
static inline uint32_t pin_freelist_link(
	struct pin_entry *entries, uint64_t state, const uint32_t *indices, uint32_t count)
{
	uint32_t first = pin_freelist_first(state);
	uint32_t depth = first == 0 ? 0 : pin_load_acquire_u32(&entries[first - 1].depth);

	for (uint32_t i = 0; i < count; i++) {
		struct pin_entry *entry = &entries[indices[i]];

		PIN_DCHECK(indices[i] + 1 != first); /* it is in the list already */
		depth++;
		pin_store_relaxed_u32(&entry->next, first);
		pin_store_release_u32(&entry->depth, depth); /* [FREE-2] */
		first = indices[i] + 1;
	}
	PIN_DCHECK(depth >= count);
	return first;
}

/*
 * Puts `count` buffers in, at least one; the last of them becomes the first.
 * The list's state then.
 */
static inline uint64_t pin_freelist_push(struct pin_freelist *list, struct pin_entry *entries,
	const uint32_t *indices, uint32_t count)
{
	uint64_t state;
	uint64_t pushed;

	PIN_CHECK(count > 0);
	do {
		uint32_t first;

		state = pin_load_acquire_u64(&list->head); /* [FREE-1] */
		first = pin_freelist_link(entries, state, indices, count);
		pushed = pin_freelist_next_state(state, first);
	} while (!pin_cas_seq_cst_u64(&list->head, &state, pushed)); /* [FREE-1] [FREE-3] */
	return pushed;
}

/* Takes up to `max`; how many. */
static inline uint32_t pin_freelist_pop(
	struct pin_freelist *list, struct pin_entry *entries, uint32_t *out_indices, uint32_t max)
{
	PIN_DCHECK(max > 0);
	for (;;) {
		uint64_t state = pin_load_acquire_u64(&list->head); /* [FREE-1] */
		uint32_t next = pin_freelist_first(state);
		uint32_t count = 0;

		while (count < max && next != 0) {
			out_indices[count] = next - 1;
			next = pin_load_relaxed_u32(&entries[next - 1].next);
			/* Even a link out of date is an index. */
			PIN_DCHECK(next >> PIN_FREELIST_INDEX_BITS == 0);
			count++;
		}
		if (count == 0 ||
			pin_cas_acq_rel_u64(&list->head, &state,
				pin_freelist_next_state(state, next))) { /* [FREE-1] */
			return count;
		}
	}
}

/*
 * Takes the first one, if the list still is in `state`, to which the caller
 * brought it by its push.
 */
static inline bool pin_freelist_pop_own(
	struct pin_freelist *list, const struct pin_entry *entries, uint64_t state)
{
	uint32_t first = pin_freelist_first(state);
	uint32_t next;

	PIN_DCHECK(first != 0); /* a push leaves no empty list */
	next = pin_load_relaxed_u32(&entries[first - 1].next);
	PIN_DCHECK(next != first);
	return pin_cas_acq_rel_u64(
		&list->head, &state, pin_freelist_next_state(state, next)); /* [FREE-1] */
}

/* How many it held at some moment during the call. */
uint32_t pin_freelist_count(const struct pin_freelist *list, const struct pin_entry *entries);

/*
 * Changes whenever the list does: if two readings are equal, the list was the
 * same all the time between them.
 */
static inline uint64_t pin_freelist_state(const struct pin_freelist *list)
{
	return pin_load_acquire_u64(&list->head); /* [FREE-1] */
}

/* What a load finds may be old; what a change goes by is not. */
static inline bool pin_freelist_is_empty_now(struct pin_freelist *list)
{
	return pin_freelist_first(pin_fetch_add_acq_rel_u64(&list->head, 0)) == 0; /* [FREE-1] */
}

static inline bool pin_freelist_state_is_empty(uint64_t state)
{
	return pin_freelist_first(state) == 0;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The thief's side of a magazine: enter it while its owner is out, take, leave
 * a mark.
 *
 * The thief holds the pool's lock; magazine.h has the protocol with the owner,
 * who takes no locked instruction.
 */
#include "runtime/memory/magazine.h"
#include "runtime/base/check.h"
#include "runtime/memory/free_list.h"

enum {
	/*
	 * An owner is inside for some ten instructions, unless it was preempted
	 * there; then it needs a CPU, which yielding gives it, and where it has
	 * a lower real-time priority, sleeping.
	 */
	YIELDS_MAX = 64,
	SLEEP_NS = 50 * 1000,
};

bool pin_magazine_enter_slowly(struct pin_magazine *magazine)
{
	uint32_t thief;

	pin_store_relaxed_u32(&magazine->busy, 1); /* [MAG-1] */
	if (pin_magazine_is_fenced(magazine)) {
		pin_fence_seq_cst(); /* [MAG-1] */
	} else {
		pin_fence_light();
	}
	thief = pin_load_acquire_u32(&magazine->thief); /* [MAG-1] [MAG-2] */
	if ((thief & PIN_MAGAZINE_THIEF) == 0) {
		return true;
	}
	pin_store_release_u32(&magazine->busy, 0); /* [MAG-2] */
	return false;
}

void pin_magazine_leave_slowly(struct pin_magazine *magazine)
{
	pin_magazine_leave(magazine);
	if (pin_magazine_is_fenced(magazine)) {
		pin_fence_seq_cst(); /* [MAG-1] in place of the other thread's fence */
	}
}

void pin_magazine_await_owner(struct pin_magazine *magazine, const struct pin_host *host)
{
	uint32_t yields = 0;

	while (pin_load_acquire_u32(&magazine->busy) != 0) { /* [MAG-1] [MAG-2] */
		if (yields < YIELDS_MAX) {
			yields++;
			host->yield();
		} else {
			host->futex_wait(&magazine->busy, 1, host->now_ns() + SLEEP_NS);
		}
	}
}

void pin_magazine_break_in(struct pin_magazine *magazine, const struct pin_host *host)
{
	uint32_t before = pin_fetch_or_seq_cst_u32(
		&magazine->thief, PIN_MAGAZINE_THIEF | PIN_MAGAZINE_ROBBED); /* [MAG-1] */

	PIN_CHECK((before & PIN_MAGAZINE_THIEF) == 0); /* the pool's lock is for one */
	if (pin_magazine_is_fenced(magazine)) {
		pin_fence_seq_cst(); /* [MAG-1] */
	} else {
		host->fence_all(); /* [MAG-1] */
	}
	pin_magazine_await_owner(magazine, host);
}

void pin_magazine_get_out(struct pin_magazine *magazine)
{
	uint32_t before = pin_fetch_and_seq_cst_u32(
		&magazine->thief, ~(uint32_t)PIN_MAGAZINE_THIEF); /* [MAG-2] */

	PIN_CHECK((before & PIN_MAGAZINE_THIEF) != 0);
}

void pin_magazine_forget_theft(struct pin_magazine *magazine)
{
	pin_fetch_and_seq_cst_u32(&magazine->thief, ~(uint32_t)PIN_MAGAZINE_ROBBED); /* [MAG-3] */
}

void pin_magazine_mark_robbed(struct pin_magazine *magazine)
{
	pin_fetch_or_seq_cst_u32(&magazine->thief, PIN_MAGAZINE_ROBBED); /* [MAG-3] */
}

void pin_magazine_look_oldest(
	const struct pin_magazine *magazine, uint32_t *out_indices, uint32_t count)
{
	PIN_CHECK(count <= pin_magazine_count(magazine));
	for (uint32_t i = 0; i < count; i++) {
		out_indices[i] = pin_load_relaxed_u32(&magazine->indices[i]);
	}
}

void pin_magazine_drop_oldest(struct pin_magazine *magazine, uint32_t count)
{
	uint64_t word = pin_load_relaxed_u64(&magazine->word);
	uint32_t left = (uint32_t)word - count;

	PIN_CHECK(count <= (uint32_t)word);
	PIN_DCHECK((uint32_t)word <= magazine->capacity);
	for (uint32_t i = 0; i < left; i++) {
		uint32_t index = pin_load_relaxed_u32(&magazine->indices[count + i]);

		pin_store_relaxed_u32(&magazine->indices[i], index);
	}
	pin_store_relaxed_u64(&magazine->word, word - count);
}

/* ---- free list ---- */

/*
 * Counting a free list.
 */

uint32_t pin_freelist_count(const struct pin_freelist *list, const struct pin_entry *entries)
{
	for (;;) {
		uint64_t state = pin_freelist_state(list);
		uint32_t first = pin_freelist_first(state);
		uint32_t depth = 0;

		if (first != 0) {
			depth = pin_load_acquire_u32(&entries[first - 1].depth); /* [FREE-2] */
			PIN_DCHECK(depth > 0);
		}
		if (pin_freelist_state(list) == state) {
			return depth;
		}
	}
}

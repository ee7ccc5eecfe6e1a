/* SPDX-License-Identifier: MIT */
/*
 * The wheel of timers: insert, remove, advance, pop, next expiry.
 *
 * One thread at a time uses it: a worker, or the holder of the wheel's lock.
 * Nothing here reads a clock.
 *
 * Invariant: no timer in the wheel is earlier than `position_ns`, and each slot
 * knows its earliest instant.
 */
#include "runtime/queue/timer_wheel.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"

#include <string.h>

/* The slots after the wheel's. Past and due ones are in no mask. */
enum {
	NEVER = PIN_TIMERS_WHEEL_SLOTS, /* the level above, to the masks */
	PAST,				/* passed when inserted; due next */
	DUE,				/* to be popped */
	SLOTS,
};

_Static_assert(SLOTS == PIN_TIMERS_SLOTS, "the header counts them all");
_Static_assert(64 % PIN_TIMERS_DIGIT_BITS == 0, "digits make up 64 bits");
_Static_assert(PIN_TIMERS_DIGITS <= 8 * sizeof(uint16_t), "a level fits its mask");
_Static_assert(PIN_TIMERS_LEVELS < 8 * sizeof(uint32_t), "levels fit their mask");
_Static_assert(sizeof(struct pin_timers) <= 5 * 1024, "a worker can afford it");

static void mark_used(struct pin_timers *timers, uint32_t index)
{
	uint32_t level = index / PIN_TIMERS_DIGITS;

	PIN_DCHECK(index < SLOTS);
	if (index <= NEVER) {
		timers->slot_masks[level] |= (uint16_t)(1u << index % PIN_TIMERS_DIGITS);
		timers->level_mask |= 1u << level;
	}
}

static void mark_empty(struct pin_timers *timers, uint32_t index)
{
	uint32_t level = index / PIN_TIMERS_DIGITS;

	PIN_DCHECK(timers->slots[index].first == NULL);
	if (index > NEVER) {
		return;
	}
	timers->slot_masks[level] &= (uint16_t) ~(1u << index % PIN_TIMERS_DIGITS);
	if (timers->slot_masks[level] == 0) {
		timers->level_mask &= ~(1u << level);
	}
}

/*
 * A slot is a ring of timers, so a removal needs no search and the order of
 * equal instants is that of insertion.
 */
static void slot_append(struct pin_timers *timers, uint32_t index, struct pin_timer *timer)
{
	struct pin_timers_slot *slot = &timers->slots[index];
	struct pin_timer *first = slot->first;

	/* Invariant 2: timers in the wheel are still to come. */
	PIN_DCHECK(index > NEVER || timer->due_ns > timers->position_ns);
	timer->slot_place = index + 1;
	if (first == NULL) {
		timer->next = timer;
		timer->previous = timer;
		slot->first = timer;
		slot->earliest_ns = timer->due_ns;
		mark_used(timers, index);
		return;
	}
	timer->next = first;
	timer->previous = first->previous;
	first->previous->next = timer;
	first->previous = timer;
	if (timer->due_ns < slot->earliest_ns) {
		slot->earliest_ns = timer->due_ns;
	}
}

/*
 * The slot's earliest instant stays as it was, which may then be too early: to
 * open a slot too soon costs a little and changes nothing.
 */
static void slot_remove(struct pin_timers *timers, struct pin_timer *timer)
{
	uint32_t index = timer->slot_place - 1;
	struct pin_timers_slot *slot = &timers->slots[index];

	PIN_DCHECK(index < SLOTS && slot->first != NULL);
	PIN_DCHECK(slot->earliest_ns <= timer->due_ns);
	PIN_CHECK(timer->next->previous == timer && timer->previous->next == timer);
	timer->slot_place = 0;
	if (timer->next == timer) {
		PIN_CHECK(slot->first == timer);
		slot->first = NULL;
		mark_empty(timers, index);
		return;
	}
	timer->next->previous = timer->previous;
	timer->previous->next = timer->next;
	if (slot->first == timer) {
		slot->first = timer->next;
	}
}

/* Invariant 2, for a timer later than the position. */
static uint32_t wheel_slot(const struct pin_timers *timers, uint64_t due_ns)
{
	uint32_t bit = 63 - (uint32_t)__builtin_clzll(due_ns ^ timers->position_ns);
	uint32_t level = bit / PIN_TIMERS_DIGIT_BITS;

	PIN_DCHECK(due_ns > timers->position_ns);
	if (due_ns == PIN_NO_DEADLINE) {
		return NEVER;
	}
	return level * PIN_TIMERS_DIGITS +
		(uint32_t)(due_ns >> (level * PIN_TIMERS_DIGIT_BITS)) % PIN_TIMERS_DIGITS;
}

/* The slot of the earliest; to be asked only if a level is in use. */
static uint32_t first_slot(const struct pin_timers *timers)
{
	uint32_t level = (uint32_t)__builtin_ctz(timers->level_mask);

	PIN_DCHECK(timers->level_mask != 0 && timers->slot_masks[level] != 0);
	return level * PIN_TIMERS_DIGITS + (uint32_t)__builtin_ctz(timers->slot_masks[level]);
}

/* Empties it; the list that it returns ends with NULL. */
static struct pin_timer *slot_take_all(struct pin_timers *timers, uint32_t index)
{
	struct pin_timer *first = timers->slots[index].first;

	if (first != NULL) {
		first->previous->next = NULL;
		timers->slots[index].first = NULL;
		mark_empty(timers, index);
	}
	return first;
}

/*
 * Those due at `due_ns` or before become due, others go where they belong by
 * now. Returns how many of the former.
 */
static uint64_t open_slot(struct pin_timers *timers, uint32_t index, uint64_t due_ns)
{
	struct pin_timer *next = NULL;
	uint64_t due_count = 0;

	for (struct pin_timer *timer = slot_take_all(timers, index); timer != NULL; timer = next) {
		next = timer->next;
		PIN_DCHECK(timer->slot_place == index + 1);
		if (timer->due_ns <= due_ns) {
			slot_append(timers, DUE, timer);
			due_count++;
		} else {
			slot_append(timers, wheel_slot(timers, timer->due_ns), timer);
		}
	}
	return due_count;
}

/* At the last instant there is, PIN_NO_DEADLINE is still to come. */
static uint64_t before_never(uint64_t now_ns)
{
	return now_ns < PIN_NO_DEADLINE ? now_ns : PIN_NO_DEADLINE - 1;
}

void pin_timers_init(struct pin_timers *timers, uint64_t now_ns)
{
	now_ns = before_never(now_ns);
	memset(timers, 0, sizeof(*timers));
	timers->now_ns = now_ns;
	timers->position_ns = now_ns;
}

void pin_timers_insert(struct pin_timers *timers, struct pin_timer *timer, uint64_t deadline_ns)
{
	PIN_CHECK(timer->slot_place == 0);
	if (deadline_ns > timers->now_ns) {
		timer->due_ns = deadline_ns;
		slot_append(timers, wheel_slot(timers, deadline_ns), timer);
	} else {
		timer->due_ns = timers->now_ns;
		slot_append(timers, PAST, timer);
	}
	timers->count++;
}

bool pin_timers_cancel(struct pin_timers *timers, struct pin_timer *timer)
{
	if (timer->slot_place == 0) {
		return false;
	}
	PIN_CHECK(timers->count > 0);
	slot_remove(timers, timer);
	timers->count--;
	return true;
}

uint64_t pin_timers_next_ns(const struct pin_timers *timers)
{
	if (timers->slots[DUE].first != NULL || timers->slots[PAST].first != NULL) {
		PIN_DCHECK(timers->count > 0);
		return timers->now_ns;
	}
	return timers->level_mask == 0 ? PIN_NO_DEADLINE
				       : timers->slots[first_slot(timers)].earliest_ns;
}

/*
 * Opens slots in the order of their earliest instant, however far the clock has
 * moved: a late worker pays for the timers, not for the time.
 */
uint64_t pin_timers_advance(struct pin_timers *timers, uint64_t now_ns)
{
	/* What passed by the latest advance precedes all in the wheel. */
	uint64_t due_count = open_slot(timers, PAST, timers->now_ns);

	now_ns = before_never(now_ns);
	if (now_ns > timers->now_ns) {
		timers->now_ns = now_ns;
	}
	while (timers->level_mask != 0) {
		uint32_t index = first_slot(timers);
		uint64_t earliest_ns = timers->slots[index].earliest_ns;

		if (earliest_ns > timers->now_ns) {
			break;
		}
		PIN_CHECK(earliest_ns > timers->position_ns);
		timers->position_ns = earliest_ns;
		due_count += open_slot(timers, index, earliest_ns);
	}
	PIN_DCHECK(timers->position_ns <= timers->now_ns);
	PIN_DCHECK(timers->slots[PAST].first == NULL);
	PIN_DCHECK(due_count <= timers->count);
	return due_count;
}

struct pin_timer *pin_timers_pop(struct pin_timers *timers)
{
	struct pin_timer *timer = timers->slots[DUE].first;

	if (timer != NULL) {
		PIN_DCHECK(timer->slot_place == DUE + 1);
		pin_timers_cancel(timers, timer);
	}
	return timer;
}

uint64_t pin_timers_expire_all(struct pin_timers *timers)
{
	uint64_t due_count = open_slot(timers, PAST, PIN_NO_DEADLINE);

	PIN_DCHECK(timers->slots[PAST].first == NULL);
	while (timers->level_mask != 0) {
		due_count += open_slot(timers, first_slot(timers), PIN_NO_DEADLINE);
	}
	return due_count;
}

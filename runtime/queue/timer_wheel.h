/* SPDX-License-Identifier: MIT */
/*
 * Timers: what one worker has to do later, as a hierarchical wheel.
 *
 * Instants are nanoseconds, written with 16 digits of 4 bits. A level of the
 * wheel is a digit, a slot in it that digit's value. A timer is kept at the
 * highest digit in which it differs from the position, an instant that none is
 * earlier than. So all timers of a level come before those of the next, and the
 * earliest are in the first used slot of the first used level: two bit scans
 * away. Each slot knows its earliest instant. When the time has come for that,
 * the slot is opened: the position moves there, timers of that very instant are
 * due, the others in this slot go to lower levels.
 *
 * The lowest slots are of one nanosecond, so nothing is ever sorted. And it is
 * the earliest instant that says when to wake, not the border of a slot, so a
 * timer years ahead needs no early wake. Only when the earliest of a slot is
 * cancelled, its instant remains: the sleeper then wakes once for nothing and
 * opens the slot. Since that passes timers down, one sees at most 15 such wakes
 * and 16 moves in its life.
 *
 * Costs: insert, cancel, next and pop O(1); advance O(timers that become due or
 * move), whatever the step. It has one owner, neither threads nor a clock.
 *
 * 1. position <= latest advance < due_ns of all in the wheel.
 * 2. The slot of a timer follows from its due_ns and the position alone, so
 *    those of one instant are in one list, in the order of their insertion.
 * 3. A slot's earliest_ns is at most the due_ns of all in it, and within it.
 */
#ifndef PIN_QUEUE_TIMER_WHEEL_H
#define PIN_QUEUE_TIMER_WHEEL_H

#include "runtime/base/check.h"
#include "runtime/host/host.h"

#include <stdbool.h>

/*
 * 4 bits per digit make 256 slots, 4 KiB. 6 bits would make 11 KiB and little
 * difference: docs/decisions/waking.md, "The timer wheel counts nanoseconds, in
 * 16 digits of 4 bits".
 */
#define PIN_TIMERS_DIGIT_BITS 4u
#define PIN_TIMERS_DIGITS (1u << PIN_TIMERS_DIGIT_BITS)
#define PIN_TIMERS_LEVELS (64u / PIN_TIMERS_DIGIT_BITS)
#define PIN_TIMERS_WHEEL_SLOTS (PIN_TIMERS_LEVELS * PIN_TIMERS_DIGITS)
#define PIN_TIMERS_SLOTS (PIN_TIMERS_WHEEL_SLOTS + 3)

/* Embedded where it is needed; zeroed, it is not armed. */
struct pin_timer {
	struct pin_timer *next; /* [own] of the same slot, in a circle */
	struct pin_timer *previous;
	uint64_t due_ns;     /* [own] deadline, or the advance before, if later */
	uint32_t slot_place; /* [own] 1 + index of its slot; 0: not armed */
	uint32_t owner_kind; /* the embedder's, to distinguish its kinds */
};

struct pin_timers_slot {
	struct pin_timer *first; /* [own] NULL: empty */
	uint64_t earliest_ns;	 /* [own] invariant 3; only if not empty */
};

struct pin_timers {
	uint64_t now_ns;      /* [own] the latest advance */
	uint64_t position_ns; /* [own] invariant 1 */
	uint64_t count;	      /* [own] armed timers, due ones among them */
	uint32_t level_mask;  /* [own] levels in use; one above: never */
	uint16_t slot_masks[PIN_TIMERS_LEVELS + 1];
	/* The wheel, and those that never expire, have passed, are due. */
	struct pin_timers_slot slots[PIN_TIMERS_SLOTS];
};

void pin_timers_init(struct pin_timers *timers, uint64_t now_ns);

/*
 * Arms a timer that is not armed. A deadline that has passed, 0 among them,
 * counts as the latest advance and is due at the next; PIN_NO_DEADLINE stays
 * until it is cancelled. A timer does not move while it is armed.
 */
void pin_timers_insert(struct pin_timers *timers, struct pin_timer *timer, uint64_t deadline_ns);

/*
 * True: it was armed and is out, and pop will not return it, even if it was due
 * already. False: it was not armed.
 */
bool pin_timers_cancel(struct pin_timers *timers, struct pin_timer *timer);

/*
 * When to advance next: not later than the earliest deadline, and later than
 * the latest advance unless something is due. Exact except for instants that
 * cancels leave. PIN_NO_DEADLINE: nothing is going to expire.
 */
uint64_t pin_timers_next_ns(const struct pin_timers *timers);

/*
 * Expires all timers with a deadline of at most `now_ns`, and no others;
 * returns how many there were. A `now_ns` before the latest counts as the
 * latest.
 */
uint64_t pin_timers_advance(struct pin_timers *timers, uint64_t now_ns);

/*
 * Takes out a due timer, or NULL; it may be inserted again at once, and comes
 * back after the next advance at the earliest. They come in the order of their
 * due_ns, equal ones in the order of their insertion.
 */
struct pin_timer *pin_timers_pop(struct pin_timers *timers);

/*
 * For a stop: makes all of them due, whenever they would have been, in any
 * order; returns how many that adds.
 */
uint64_t pin_timers_expire_all(struct pin_timers *timers);

static inline uint64_t pin_timers_count(const struct pin_timers *timers)
{
	return timers->count;
}

static inline bool pin_timer_is_armed(const struct pin_timer *timer)
{
	PIN_DCHECK(timer->slot_place <= PIN_TIMERS_SLOTS);
	return timer->slot_place != 0;
}

#endif

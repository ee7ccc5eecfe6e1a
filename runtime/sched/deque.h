/* SPDX-License-Identifier: MIT */
/*
 * A worker's own queue: a bounded ring to which its owner pushes and from which
 * owner and thieves take.
 *
 * In FIFO order the owner takes the oldest element, and a thief takes the older
 * half in three steps: claim them by moving `first`, copy them out, release
 * their slots by moving `kept` up to `first`. Between, only one thief is at it,
 * and the owner goes on popping and pushing, never into a slot that is kept.
 *
 *     kept      first              tail
 *      |  claimed  |    queued       |
 *      |  by thief |                 |
 *
 * `kept` and `first` share one word, so that a claim is one compare-and-swap.
 *
 * In LIFO order (Chase-Lev) the owner takes the newest element and a thief the
 * oldest, one at a time: a claim of several could collide with an owner who
 * comes from the other end without telling. `kept` then equals `first`.
 *
 * When it is full the owner takes the older half out in one piece and gives it
 * to the injector.
 *
 * Progress: push and pop are wait-free for the owner but for thieves that win
 * against its claim, each of which takes something; steal never waits.
 *
 * [DEQUE-1] push stores `tail` (release) -> a thief loads it (acquire): it sees
 * the slots below.
 * [DEQUE-2] a thief moves `kept` (RMW) -> push loads it (acquire): the thief
 * has read the slots that push now overwrites.
 * [DEQUE-3] LIFO: the owner lowers `tail`, fences, then looks at `first`; a
 * thief looks at `first`, fences, then at `tail`. One of them sees the other,
 * and for the last element both use a compare-and-swap.
 */
#ifndef PIN_SCHED_DEQUE_H
#define PIN_SCHED_DEQUE_H

#include "runtime/base/atomic.h"
#include "runtime/base/base.h"
#include "runtime/base/list.h"

enum pin_deque_order {
	PIN_DEQUE_FIFO = 0,
	PIN_DEQUE_LIFO = 1,
};

struct pin_deque {
	/* Positions count up and wrap; low half `first`, high half `kept`. */
	struct pin_atomic_u64 head PIN_CACHE_ALIGNED; /* [W:any R:any] */
	struct pin_atomic_u32 tail PIN_CACHE_ALIGNED; /* [W:owner R:any] next free */
	/* [const] */
	uint32_t capacity; /* a power of two */
	enum pin_deque_order order;
	struct pin_atomic_u64 *slots; /* [W:owner R:any] links */
};

/* `capacity` is a power of two, 4 at least. -ENOMEM. */
int pin_deque_init(struct pin_deque *deque, uint32_t capacity, enum pin_deque_order order);
void pin_deque_fini(struct pin_deque *deque);

/* Elements to be taken; exact for the owner while nobody steals. */
uint32_t pin_deque_count(const struct pin_deque *deque);

/* By the owner: how many may be pushed at least. */
uint32_t pin_deque_room(const struct pin_deque *deque);

/* By the owner. False when full; the element stays with the caller. */
bool pin_deque_push(struct pin_deque *deque, struct pin_link *link);

/* By the owner: the element whose turn it is, or NULL. */
struct pin_link *pin_deque_pop(struct pin_deque *deque);

/* By the owner: moves the older half behind `out_list`; returns how many. */
uint32_t pin_deque_pop_half(struct pin_deque *deque, struct pin_list *out_list);

/*
 * By the owner of `to`, which is not `from`: takes the older half of what is in
 * `from`, rounded up (LIFO: one), the oldest into *out_link, the rest into `to`
 * as far as it has room. Returns how many; 0 when there was nothing, or when
 * somebody else was taking.
 */
uint32_t pin_deque_steal(struct pin_deque *from, struct pin_deque *to, struct pin_link **out_link);

#endif

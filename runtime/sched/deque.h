/* SPDX-License-Identifier: MIT */
/*
 * A worker's own queue: a bounded ring to which its owner pushes and from which
 * owner and thieves take.
 *
 * In FIFO order the owner takes the oldest element, and a thief takes the older
 * half in three steps: claim them by moving `first`, copy them out, release
 * their slots by moving `kept` up to `first`. Between, only one thief is at it,
 * and the owner goes on popping and pushing, never into a slot that is kept.
 * A single element is read first and then taken in one step, which fails if
 * `kept` has moved, before which nobody writes to the slot.
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
#include "runtime/base/check.h"
#include "runtime/base/list.h"

enum pin_deque_order {
	PIN_DEQUE_FIFO = 0,
	PIN_DEQUE_LIFO = 1,
};

struct pin_deque {
	/* Positions count up and wrap; low half `first`, high half `kept`. */
	struct pin_atomic_u64 head PIN_CACHE_ALIGNED; /* [W:any R:any] */
	struct pin_atomic_u32 tail PIN_CACHE_ALIGNED; /* [W:owner R:any] next free */
	uint32_t kept_seen;			      /* [own] `kept` at the owner's last look */
	/* [const] apart: a thief asks for a slot without `tail` */
	uint32_t capacity PIN_CACHE_ALIGNED; /* a power of two */
	enum pin_deque_order order;
	struct pin_atomic_u64 *slots; /* [W:owner R:any] links */
};

/*
 * `capacity` is a power of two, 4 at least. The slots, as many and zeroed, stay
 * the caller's.
 */
void pin_deque_init(struct pin_deque *deque, struct pin_atomic_u64 *slots, uint32_t capacity,
	enum pin_deque_order order);

/*
 * Before it is used: it is full from now on, and stays empty. For a worker that
 * does not run what it spawns.
 */
void pin_deque_close(struct pin_deque *deque);

/* ---- inline, since every task passes through here ---- */

static inline uint32_t pin_deque_first_of(uint64_t head)
{
	return (uint32_t)head;
}

static inline uint32_t pin_deque_kept_of(uint64_t head)
{
	return (uint32_t)(head >> 32);
}

static inline uint64_t pin_deque_head_of(uint32_t kept, uint32_t first)
{
	return (uint64_t)kept << 32 | first;
}

static inline struct pin_atomic_u64 *pin_deque_slot_at(
	const struct pin_deque *deque, uint32_t position)
{
	return &deque->slots[position & (deque->capacity - 1)];
}

static inline struct pin_link *pin_deque_read_slot(const struct pin_deque *deque, uint32_t position)
{
	return (struct pin_link *)(uintptr_t)pin_load_relaxed_u64(
		pin_deque_slot_at(deque, position));
}

static inline void pin_deque_write_slot(
	struct pin_deque *deque, uint32_t position, struct pin_link *link)
{
	pin_store_relaxed_u64(pin_deque_slot_at(deque, position), (uintptr_t)link);
}

/* Elements to be taken; exact for the owner while nobody steals. */
static inline uint32_t pin_deque_count(const struct pin_deque *deque)
{
	uint32_t first = pin_deque_first_of(pin_load_acquire_u64(&deque->head));
	int32_t count = (int32_t)(pin_load_acquire_u32(&deque->tail) - first);

	/* An owner that pops in LIFO order lowers the tail before it looks. */
	return count > 0 ? (uint32_t)count : 0;
}

/*
 * By a thief that waits for something to steal: whether there is, with the line
 * on its way that the oldest is in.
 */
static inline bool pin_deque_await(const struct pin_deque *deque)
{
	uint32_t first = pin_deque_first_of(pin_load_acquire_u64(&deque->head));

	pin_prefetch(pin_deque_slot_at(deque, first));
	return (int32_t)(pin_load_acquire_u32(&deque->tail) - first) > 0;
}

/* By the owner: how many may be pushed at least. */
static inline uint32_t pin_deque_room(const struct pin_deque *deque)
{
	uint32_t kept = pin_deque_kept_of(pin_load_acquire_u64(&deque->head)); /* [DEQUE-2] */

	return deque->capacity - (pin_load_relaxed_u32(&deque->tail) - kept);
}

/* By the owner, who has found it full by what it knows. */
bool pin_deque_has_room_now(struct pin_deque *deque);

/*
 * By the owner. False when full, as far as it knows; the element stays with the
 * caller. It knows of room from an earlier look at the head, which is on the
 * thief's core when something was stolen: to look each time would have both
 * wait for that line.
 */
static inline bool pin_deque_push_known(struct pin_deque *deque, struct pin_link *link)
{
	uint32_t tail = pin_load_relaxed_u32(&deque->tail);

	PIN_DCHECK(link != NULL);
	if (PIN_UNLIKELY(tail - deque->kept_seen >= deque->capacity)) {
		return false;
	}
	pin_deque_write_slot(deque, tail, link);
	pin_store_release_u32(&deque->tail, tail + 1); /* [DEQUE-1] */
	return true;
}

/* Likewise; it looks before it finds that it is full. */
static inline bool pin_deque_push(struct pin_deque *deque, struct pin_link *link)
{
	return PIN_LIKELY(pin_deque_push_known(deque, link)) ||
		(pin_deque_has_room_now(deque) && pin_deque_push_known(deque, link));
}

/*
 * By the owner: all of a list, of `count` elements, for which there is room;
 * thieves see them at once.
 */
static inline void pin_deque_push_list(
	struct pin_deque *deque, const struct pin_list *list, uint32_t count)
{
	uint32_t tail = pin_load_relaxed_u32(&deque->tail);
	struct pin_link *link = list->head;

	PIN_CHECK(count <= pin_deque_room(deque));
	for (uint32_t i = 0; i < count; i++) {
		PIN_DCHECK(link != NULL);
		pin_deque_write_slot(deque, tail + i, link);
		link = link->next;
	}
	pin_store_release_u32(&deque->tail, tail + count); /* [DEQUE-1] */
}

/* Claims the `count` oldest for the owner, who needs no time to copy them. */
static inline bool pin_deque_claim_own(struct pin_deque *deque, uint64_t *head, uint32_t count)
{
	uint32_t first = pin_deque_first_of(*head);
	uint32_t kept = pin_deque_kept_of(*head);

	return pin_cas_seq_cst_u64(&deque->head, head,
		pin_deque_head_of(kept == first ? first + count : kept, first + count));
}

static inline struct pin_link *pin_deque_pop_oldest(struct pin_deque *deque)
{
	uint32_t tail = pin_load_relaxed_u32(&deque->tail);
	uint64_t head = pin_load_relaxed_u64(&deque->head);

	while (pin_deque_first_of(head) != tail) {
		uint32_t first = pin_deque_first_of(head);

		if (pin_deque_claim_own(deque, &head, 1)) {
			return pin_deque_read_slot(deque, first);
		}
	}
	return NULL;
}

struct pin_link *pin_deque_pop_newest(struct pin_deque *deque);

/* By the owner: the element whose turn it is, or NULL. */
static inline struct pin_link *pin_deque_pop(struct pin_deque *deque)
{
	return deque->order == PIN_DEQUE_FIFO ? pin_deque_pop_oldest(deque)
					      : pin_deque_pop_newest(deque);
}

/* ---- the rest ---- */

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

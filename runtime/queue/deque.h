/* SPDX-License-Identifier: MIT */
/*
 * A worker's own queue: a bounded ring to which its owner pushes and from which
 * owner and thieves take.
 *
 * In FIFO order the owner takes the oldest element, and a thief takes the older
 * half in three steps: claim them by moving `first`, copy them out, release
 * their slots by moving `kept` up to `first`. Between, only one thief is at it,
 * and the owner goes on popping and pushing, never into a slot that is kept. A
 * single element is read first and then taken in one step, which fails if
 * `kept` has moved, before which no thread writes to the slot.
 *
 *     kept      first              tail
 *      |  claimed  |    queued       |
 *      |  by thief |                 |
 *
 * `kept` and `first` share one word, so that a claim is one compare-and-swap.
 *
 * In LIFO order (Chase-Lev) the owner takes the newest element and a thief the
 * oldest, one at a time: a claim of several could collide with an owner that
 * comes from the other end unannounced. `kept` then equals `first`.
 *
 * When it is full the owner takes the older half out in one piece and gives it
 * to the injector.
 *
 * The reservation. Pops need a compare-and-swap only because of thieves, and
 * most queues see none for long. So in FIFO order an owner that has not been
 * disturbed for PIN_DEQUE_CALM_POPS pops reserves the head: `head` says only
 * that, as a claim of half the range, and the oldest element is at `own_first`,
 * which is the owner's alone and takes plain stores. A thief that finds the
 * head reserved first revokes the reservation, and pays for both sides with the
 * host's fence_all:
 *
 *     owner, popping                 thief
 *     is_popping := 1                is_asked := 1
 *     light fence                    fence_all
 *     is_asked: ends it              is_popping: goes away
 *     own_first += 1                 head: reserved -> own_first, by CAS
 *     is_popping := 0
 *
 * Each thread that ends it writes the same, and one of them does. Thieves that
 * go away come again and find it ended, since the owner's next pop sees that
 * it is asked.
 *
 * Depth first. A tree of tasks that is taken oldest first becomes as broad as
 * the tree is, far beyond this queue. So in FIFO order, too, an owner who has
 * found its queue full takes the newest from then on, until a quarter is left;
 * and now and then the oldest, so that a task with `n` before it waits for 1024
 * times `n` + 1 pops at most. It takes from its end in a reservation only, so
 * that no thief has a claim meanwhile; each such reservation begins by taking
 * the oldest. To a pop the head looks as if a thief had asked, so that it costs
 * others nothing.
 *
 * Progress: push and pop are wait-free for the owner but for thieves that win
 * against its claim, each of which takes something; steal never waits.
 * Odd window: an owner that loses its CPU between the two stores of a pop keeps
 * thieves out until it goes on, as a thief does that has claimed.
 *
 * [DEQUE-1] push stores `tail` (release) -> a thief loads it (acquire): it sees
 * the slots below.
 * [DEQUE-2] a thief moves `kept` (RMW) -> push loads it (acquire): the thief
 * has read the slots that push now overwrites.
 * [DEQUE-3] LIFO: the owner lowers `tail`, fences, then looks at `first`; a
 * thief looks at `first`, fences, then at `tail`. One of them sees the other,
 * and for the last element both use a compare-and-swap.
 * [DEQUE-4] of "is_popping := 1" and "is_asked := 1" one comes first, and the
 * other side sees it, before fence_all or after it: `own_first` does not change
 * when a thief reads it. It is the newest, as a pop ends by a release store,
 * which the thief reads (acquire).
 * [DEQUE-5] the owner lowers `is_asked`, then makes the head a reserved one
 * (CAS, seq_cst) -> a thief loads that (acquire), then asks: what it raises for
 * this reservation is not lowered before the next. A thief that comes late, for
 * a reservation that has ended, finds another head: no two reservations begin
 * at the same position. Without one it is always raised, so that a pop looks at
 * one word only.
 * [DEQUE-6] in a reservation the owner may lower `tail`: a thief that ends the
 * reservation loads the newest by is_popping (release, acquire), later thieves
 * by the head. A thief that has loaded both before the reservation fails, since
 * the head that it compares with does not come back: the compare-and-swap that
 * begins such a reservation moves `first` as well. Else it would take what the
 * owner has.
 */
#ifndef PIN_QUEUE_DEQUE_H
#define PIN_QUEUE_DEQUE_H

#include "runtime/base/atomic.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/base/list.h"
#include "runtime/host/host.h"

enum pin_deque_order {
	PIN_DEQUE_FIFO = 0,
	PIN_DEQUE_LIFO = 1,
};

/*
 * To end a reservation takes a thief some microseconds, in which it interrupts
 * all others. This number of pops saves as much.
 */
#define PIN_DEQUE_CALM_POPS 1024u

enum {
	/*
	 * Depth first: the number of the newest taken, each of which has put
	 * another in its place, and of all newest, until the oldest has its
	 * turn. A tree's walk soon comes to a task that spawns none.
	 */
	PIN_DEQUE_NEWEST_ROW = 15,
	PIN_DEQUE_NEWEST_MAX = 1023,
	/* Depth first ends when this part of the capacity is left. */
	PIN_DEQUE_DEEP_PART = 4,
	/* `is_asked` where the owner takes from both ends of a reservation. */
	PIN_DEQUE_DEEP = 2,
};

struct pin_deque {
	/* Positions count up and wrap; low half `first`, high half `kept`. */
	struct pin_atomic_u64 head PIN_CACHE_ALIGNED; /* [W:any R:any] */
	struct pin_atomic_u32 is_asked; /* [W:any R:owner] to end the reservation; or none is */
	struct pin_atomic_u32 tail PIN_CACHE_ALIGNED; /* [W:owner R:any] next free */
	struct pin_atomic_u32 own_first;	      /* [W:owner R:any] after its last pop */
	struct pin_atomic_u32 is_popping; /* [W:owner R:any] looks whether it is asked */
	/* [own] */
	uint32_t pause_at;     /* the nearer of the next two, from the tail on */
	uint32_t room_end;     /* full there, by the owner's last check */
	uint32_t mark;	       /* see pin_deque_set_mark() */
	uint32_t calm_count;   /* pops in a row without a theft */
	uint32_t newest_at;    /* where the last of the newest was taken */
	uint32_t newest_row;   /* in a row, none from below the last */
	uint32_t newest_count; /* since the last oldest one */
	bool takes_newest;     /* in LIFO order always, else while depth first */
	bool is_reserved;      /* a thief may have ended it */
	/* [const] apart: a thief asks for a slot without `tail` */
	uint32_t capacity PIN_CACHE_ALIGNED; /* a power of two; 0: closed */
	uint32_t mask;			     /* of positions, for their slots */
	enum pin_deque_order order;
	struct pin_atomic_u64 *slots; /* [W:owner R:any] links */
	const struct pin_host *host;  /* whose fence_all revokes; NULL: no reservations */
};

/*
 * `capacity` is a power of two, 4 at least. The slots, as many and zeroed, stay
 * the caller's.
 */
void pin_deque_init(struct pin_deque *deque, struct pin_atomic_u64 *slots, uint32_t capacity,
	enum pin_deque_order order);

/* Before it is used: the owner may reserve it. The host has a fence_all. */
void pin_deque_allow_reservation(struct pin_deque *deque, const struct pin_host *host);

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

/* To a thief it looks as if another had claimed half the range. */
static inline uint64_t pin_deque_reserved_head(uint32_t first)
{
	return pin_deque_head_of(first - (UINT32_C(1) << 31), first);
}

static inline bool pin_deque_is_reserved(uint64_t head)
{
	return pin_deque_kept_of(head) - pin_deque_first_of(head) == UINT32_C(1) << 31;
}

static inline struct pin_atomic_u64 *pin_deque_slot_at(
	const struct pin_deque *deque, uint32_t position)
{
	return &deque->slots[position & deque->mask];
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

/* Index of the oldest, now or earlier; later ones are loaded later. */
static inline uint32_t pin_deque_first(const struct pin_deque *deque)
{
	uint64_t head = pin_load_acquire_u64(&deque->head);

	return PIN_UNLIKELY(pin_deque_is_reserved(head)) ? pin_load_acquire_u32(&deque->own_first)
							 : pin_deque_first_of(head);
}

/* Elements to be taken; exact for the owner while no thief is at it. */
static inline uint32_t pin_deque_count(const struct pin_deque *deque)
{
	uint32_t first = pin_deque_first(deque);
	int32_t count = (int32_t)(pin_load_acquire_u32(&deque->tail) - first);

	/* An owner that pops in LIFO order lowers the tail before it looks. */
	return count > 0 ? (uint32_t)count : 0;
}

/*
 * By the owner: true is certain, as no other thread puts in; false means that
 * there were elements after its last pop, which thieves may have taken.
 */
static inline bool pin_deque_is_drained(const struct pin_deque *deque)
{
	/* Relaxed, both: its own. */
	return pin_load_relaxed_u32(&deque->own_first) == pin_load_relaxed_u32(&deque->tail);
}

/*
 * By the owner: elements after its last pop, some of which thieves may have
 * taken. To look at the head would take that line from them.
 */
static inline uint32_t pin_deque_count_known(const struct pin_deque *deque)
{
	return pin_load_relaxed_u32(&deque->tail) - pin_load_relaxed_u32(&deque->own_first);
}

/*
 * By a thief that waits for something to steal: whether there is, with the line
 * on its way that the oldest is in.
 */
static inline bool pin_deque_await(const struct pin_deque *deque)
{
	uint32_t first = pin_deque_first(deque);

	pin_prefetch(pin_deque_slot_at(deque, first));
	return (int32_t)(pin_load_acquire_u32(&deque->tail) - first) > 0;
}

/* By the owner: no thread needs the slots before this one any more. */
static inline uint32_t pin_deque_kept(const struct pin_deque *deque)
{
	uint64_t head = pin_load_acquire_u64(&deque->head); /* [DEQUE-2] */

	/* Its own, so relaxed. */
	return PIN_UNLIKELY(pin_deque_is_reserved(head)) ? pin_load_relaxed_u32(&deque->own_first)
							 : pin_deque_kept_of(head);
}

/* By the owner: pushes that pass before one is at the mark. */
static inline uint32_t pin_deque_until_mark(const struct pin_deque *deque)
{
	return deque->mark - pin_load_relaxed_u32(&deque->tail);
}

/* By the owner, after a change of the mark or of the end of the room. */
static inline void pin_deque_settle(struct pin_deque *deque)
{
	uint32_t tail = pin_load_relaxed_u32(&deque->tail);

	PIN_DCHECK(deque->room_end - tail <= deque->capacity);
	deque->pause_at = tail + pin_min_u32(deque->room_end - tail, deque->mark - tail);
}

/*
 * By the owner: `count` pushes pass, the next is at the mark, where
 * pin_deque_push_known() has its caller look at something. Only pushes by that
 * function count: the mark moves with the tail where others move it.
 */
static inline void pin_deque_set_mark(struct pin_deque *deque, uint32_t count)
{
	deque->mark = pin_load_relaxed_u32(&deque->tail) + count;
	pin_deque_settle(deque);
}

/*
 * By the owner: how many may be pushed at least. It looks, and knows from then
 * on; whatever moves the tail keeps to that.
 */
static inline uint32_t pin_deque_room(struct pin_deque *deque)
{
	deque->room_end = pin_deque_kept(deque) + deque->capacity;
	pin_deque_settle(deque);
	return deque->room_end - pin_load_relaxed_u32(&deque->tail);
}

/*
 * By the owner: whether there is room. It knows of some from an earlier look at
 * the head, which is on the thief's core when something was stolen: to look
 * each time would have both wait for that line.
 */
static inline bool pin_deque_has_room(struct pin_deque *deque)
{
	return pin_load_relaxed_u32(&deque->tail) != deque->room_end || pin_deque_room(deque) > 0;
}

/* By the owner, who knows that there is room, and sees to the mark. */
static PIN_INLINE void pin_deque_put(struct pin_deque *deque, struct pin_link *link)
{
	uint32_t tail = pin_load_relaxed_u32(&deque->tail);

	PIN_DCHECK(link != NULL);
	PIN_DCHECK(tail != deque->room_end); /* else a slot that a thief reads would be lost */
	pin_deque_write_slot(deque, tail, link);
	pin_store_release_u32(&deque->tail, tail + 1); /* [DEQUE-1] */
}

/*
 * By the owner. False at the mark, or when full, as far as it knows; then the
 * element stays with the caller.
 */
static PIN_INLINE bool pin_deque_push_known(struct pin_deque *deque, struct pin_link *link)
{
	if (PIN_UNLIKELY(pin_load_relaxed_u32(&deque->tail) == deque->pause_at)) {
		return false;
	}
	pin_deque_put(deque, link);
	return true;
}

/*
 * By the owner, which has checked the room: an element that far after the last.
 */
static inline void pin_deque_place(
	struct pin_deque *deque, uint32_t distance, struct pin_link *link)
{
	PIN_DCHECK(distance < deque->capacity);
	pin_deque_write_slot(deque, pin_load_relaxed_u32(&deque->tail) + distance, link);
}

/* By the owner: thieves see the `count` that were placed. */
static inline void pin_deque_show(struct pin_deque *deque, uint32_t count)
{
	PIN_DCHECK(count <= deque->capacity);
	deque->mark += count;
	pin_store_release_u32(
		&deque->tail, pin_load_relaxed_u32(&deque->tail) + count); /* [DEQUE-1] */
	pin_deque_settle(deque);
}

/*
 * By the owner; it does not count. False when it is full, after a check: then
 * the element stays with the caller.
 */
static inline bool pin_deque_push(struct pin_deque *deque, struct pin_link *link)
{
	if (!pin_deque_has_room(deque)) {
		return false;
	}
	pin_deque_put(deque, link);
	deque->mark++;
	pin_deque_settle(deque);
	return true;
}

/* Depth first ends when this number is left. */
static inline uint32_t pin_deque_deep_end(const struct pin_deque *deque)
{
	return deque->capacity / PIN_DEQUE_DEEP_PART;
}

/*
 * By the owner, who has found it full: depth first from now on, where
 * reservations are allowed.
 */
void pin_deque_go_deep(struct pin_deque *deque);

/*
 * Slow-path pop: the owner has no reservation on the head, or a thief has
 * revoked it.
 */
struct pin_link *pin_deque_pop_claimed(struct pin_deque *deque);

static PIN_INLINE struct pin_link *pin_deque_pop_fifo(struct pin_deque *deque)
{
	/* Relaxed, both: its own. */
	uint32_t first = pin_load_relaxed_u32(&deque->own_first);
	struct pin_link *link;
	bool is_asked;

	if (first == pin_load_relaxed_u32(&deque->tail)) {
		return NULL;
	}
	pin_store_relaxed_u32(&deque->is_popping, 1); /* [DEQUE-4] */
	pin_fence_light();
	is_asked = pin_load_relaxed_u32(&deque->is_asked) != 0; /* [DEQUE-4] [DEQUE-5] */
	if (PIN_LIKELY(!is_asked)) {
		pin_store_relaxed_u32(&deque->own_first, first + 1);
	}
	pin_store_release_u32(&deque->is_popping, 0); /* [DEQUE-4] */
	if (PIN_UNLIKELY(is_asked)) {
		return pin_deque_pop_claimed(deque);
	}
	link = pin_deque_read_slot(deque, first);
	PIN_KNOWN(link != NULL);
	return link;
}

struct pin_link *pin_deque_pop_newest(struct pin_deque *deque);

/* By the owner: the element whose turn it is, or NULL. */
static PIN_INLINE struct pin_link *pin_deque_pop(struct pin_deque *deque)
{
	return deque->order == PIN_DEQUE_FIFO ? pin_deque_pop_fifo(deque)
					      : pin_deque_pop_newest(deque);
}

/* ---- the rest ---- */

/*
 * By the owner: moves the older half to the end of `out_list`; returns how
 * many.
 */
uint32_t pin_deque_pop_half(struct pin_deque *deque, struct pin_list *out_list);

/*
 * By the owner of `to`, which is not `from`: takes the older half of `from`,
 * rounded up (LIFO: one), the oldest into *out_link, the rest into `to` as far
 * as it has room. Returns how many; 0 when it was empty, or when another thread
 * was taking.
 */
uint32_t pin_deque_steal(struct pin_deque *from, struct pin_deque *to, struct pin_link **out_link);

#endif

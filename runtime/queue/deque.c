/* SPDX-License-Identifier: MIT */
/*
 * The slow paths of a worker's queue: pops that meet a thief, steals, and the
 * owner's reservation of the head.
 *
 * The owner pushes and pops on its own thread, mostly inline by deque.h; any
 * worker steals.
 *
 * Invariant: each element is taken once, by the owner or one thief; the owner
 * never writes a slot that a thief is still copying.
 */
#include "runtime/queue/deque.h"
#include "runtime/base/check.h"

void pin_deque_init(struct pin_deque *deque, struct pin_atomic_u64 *slots, uint32_t capacity,
	enum pin_deque_order order)
{
	PIN_CHECK(capacity >= 4 && pin_is_power_of_two(capacity));
	deque->capacity = capacity;
	deque->mask = capacity - 1;
	deque->order = order;
	pin_store_release_u64(&deque->head, 0);
	pin_store_release_u32(&deque->tail, 0);
	pin_store_relaxed_u32(&deque->is_asked, 1);
	pin_store_relaxed_u32(&deque->own_first, 0);
	pin_store_relaxed_u32(&deque->is_popping, 0);
	deque->room_end = capacity;
	pin_deque_set_mark(deque, UINT32_MAX);
	deque->calm_count = 0;
	deque->newest_at = 0;
	deque->newest_row = 0;
	deque->newest_count = 0;
	deque->takes_newest = order == PIN_DEQUE_LIFO;
	deque->is_reserved = false;
	deque->slots = slots;
	deque->host = NULL;
}

void pin_deque_allow_reservation(struct pin_deque *deque, const struct pin_host *host)
{
	PIN_CHECK(deque->order == PIN_DEQUE_FIFO);
	PIN_DCHECK(!deque->is_reserved);
	deque->host = host;
}

void pin_deque_close(struct pin_deque *deque)
{
	deque->capacity = 0;
	deque->room_end = pin_load_relaxed_u32(&deque->tail);
	pin_deque_settle(deque);
}

/* ---- the reservation ---- */

/* By the owner, which has just taken all before `first`. */
static void begin_reservation(struct pin_deque *deque, uint32_t first)
{
	uint64_t head = pin_deque_head_of(first, first);

	PIN_DCHECK(!deque->is_reserved);
	deque->calm_count = 0;
	if (deque->host == NULL) {
		return;
	}
	/* Relaxed: what follows has all orders. */
	pin_store_relaxed_u32(&deque->is_asked, 0); /* [DEQUE-5] */
	/* Not while a thief has claimed, or has just taken some. */
	deque->is_reserved = pin_cas_seq_cst_u64(
		&deque->head, &head, pin_deque_reserved_head(first)); /* [DEQUE-5] */
	if (!deque->is_reserved) {
		/* Relaxed: for the owner's own pops. */
		pin_store_relaxed_u32(&deque->is_asked, 1);
	}
}

/* Before the owner claims. */
static void leave_reservation(struct pin_deque *deque)
{
	uint64_t head = pin_load_relaxed_u64(&deque->head);
	uint32_t first = pin_load_relaxed_u32(&deque->own_first);

	if (!deque->is_reserved) {
		return;
	}
	deque->is_reserved = false;
	/* Relaxed: for the owner's own pops. */
	pin_store_relaxed_u32(&deque->is_asked, 1);
	/* It fails where a thief was faster. */
	if (pin_deque_is_reserved(head)) {
		(void)pin_cas_seq_cst_u64(&deque->head, &head, pin_deque_head_of(first, first));
	}
}

/* By a thief. An owner who is at it does so itself, at the next pop. */
static void end_reservation(struct pin_deque *from, uint64_t head)
{
	uint32_t first;

	PIN_CHECK(from->host != NULL); /* it allowed reservations */
	PIN_DCHECK(pin_deque_is_reserved(head));
	pin_store_relaxed_u32(&from->is_asked, 1); /* [DEQUE-4] */
	if (!from->host->fence_all() ||
		pin_load_acquire_u32(&from->is_popping) != 0) { /* [DEQUE-4] [DEQUE-6] */
		return;
	}
	/* Relaxed: it does not change. */
	first = pin_load_relaxed_u32(&from->own_first);
	(void)pin_cas_seq_cst_u64(&from->head, &head, pin_deque_head_of(first, first));
}

/* ---- FIFO ---- */

/* Claims the `count` oldest for the owner, who needs no time to copy them. */
static bool claim_own(struct pin_deque *deque, uint64_t *head, uint32_t count)
{
	uint32_t first = pin_deque_first_of(*head);
	uint32_t kept = pin_deque_kept_of(*head);

	PIN_DCHECK(!pin_deque_is_reserved(*head)); /* the owner alone reserves */
	return pin_cas_seq_cst_u64(&deque->head, head,
		pin_deque_head_of(kept == first ? first + count : kept, first + count));
}

/* By the owner, who has claimed `count` from `first` on. */
static void note_claimed(struct pin_deque *deque, uint32_t first, uint32_t count)
{
	bool is_calm = first == pin_load_relaxed_u32(&deque->own_first);

	deque->calm_count = is_calm ? deque->calm_count + count : 0;
	/* Relaxed: no other thread reads it except in a reservation. */
	pin_store_relaxed_u32(&deque->own_first, first + count);
}

/* ---- depth first ---- */

void pin_deque_go_deep(struct pin_deque *deque)
{
	PIN_DCHECK(deque->order == PIN_DEQUE_FIFO || deque->takes_newest);
	if (deque->host != NULL && pin_deque_count_known(deque) > pin_deque_deep_end(deque)) {
		deque->takes_newest = true;
	}
}

/* Whether enough are left, from `first` to `tail`; else depth first ends. */
static bool is_deep_enough(struct pin_deque *deque, uint32_t first, uint32_t tail)
{
	deque->takes_newest = tail - first > pin_deque_deep_end(deque);
	return deque->takes_newest;
}

/*
 * Takes the oldest and begins a reservation, in one step: [DEQUE-6]. NULL: a
 * thief is about, or thieves have taken most.
 */
static struct pin_link *begin_deep_reservation(struct pin_deque *deque, uint32_t tail)
{
	uint64_t head = pin_load_relaxed_u64(&deque->head);
	uint32_t first = pin_deque_first_of(head);

	PIN_DCHECK(!pin_deque_is_reserved(head));
	if (pin_deque_kept_of(head) != first || !is_deep_enough(deque, first, tail)) {
		return NULL;
	}
	/* Relaxed, both: what follows has all orders. */
	pin_store_relaxed_u32(&deque->own_first, first + 1);
	pin_store_relaxed_u32(&deque->is_asked, PIN_DEQUE_DEEP); /* [DEQUE-5] */
	deque->is_reserved = pin_cas_seq_cst_u64(
		&deque->head, &head, pin_deque_reserved_head(first + 1)); /* [DEQUE-5] [DEQUE-6] */
	if (!deque->is_reserved) {
		/* Relaxed: for the owner's own pops. */
		pin_store_relaxed_u32(&deque->is_asked, 1);
		return NULL;
	}
	deque->newest_at = tail;
	deque->newest_count = 0;
	return pin_deque_read_slot(deque, first);
}

/* Whether the oldest has its turn, rather than the newest, at `place`. */
static bool is_oldest_due(struct pin_deque *deque, uint32_t place)
{
	/* Fewer than at the last one: that has put none in its place. */
	bool has_ended = (int32_t)(place - deque->newest_at) < 0;

	deque->newest_row = has_ended ? 0 : deque->newest_row + 1;
	deque->newest_at = place;
	deque->newest_count++;
	return deque->newest_row >= PIN_DEQUE_NEWEST_ROW ||
		deque->newest_count >= PIN_DEQUE_NEWEST_MAX;
}

/* In a reservation that no thief has revoked: from the end whose turn it is. */
static struct pin_link *take_deep(struct pin_deque *deque, uint32_t first, uint32_t tail)
{
	if (is_oldest_due(deque, tail - 1)) {
		deque->newest_row = 0;
		deque->newest_count = 0;
		pin_store_relaxed_u32(&deque->own_first, first + 1);
		return pin_deque_read_slot(deque, first);
	}
	/* As pin_deque_settle(): the end of the room has not moved. */
	deque->pause_at -= deque->pause_at == deque->mark ? 1 : 0;
	deque->mark--;
	pin_store_relaxed_u32(&deque->tail, tail - 1);
	return pin_deque_read_slot(deque, tail - 1);
}

/* NULL: it has come to the end of that, or a thief is about. */
static struct pin_link *pop_deep(struct pin_deque *deque)
{
	uint32_t first = pin_load_relaxed_u32(&deque->own_first);
	uint32_t tail = pin_load_relaxed_u32(&deque->tail);
	struct pin_link *link = NULL;

	PIN_DCHECK(deque->host != NULL);
	if (!is_deep_enough(deque, first, tail)) {
		return NULL;
	}
	if (!deque->is_reserved) {
		return begin_deep_reservation(deque, tail);
	}
	pin_store_relaxed_u32(&deque->is_popping, 1); /* [DEQUE-4] */
	pin_fence_light();
	/* Else it is asked, or still in a reservation of the other kind. */
	if (PIN_LIKELY(pin_load_relaxed_u32(&deque->is_asked) == PIN_DEQUE_DEEP)) { /* [DEQUE-4] */
		link = take_deep(deque, first, tail);
	}
	pin_store_release_u32(&deque->is_popping, 0); /* [DEQUE-4] [DEQUE-6] */
	return link;
}

/*
 * The FIFO pop while thieves are about: one compare-and-swap. After enough pops
 * without a theft the owner reserves the head and pops by plain stores.
 */
struct pin_link *pin_deque_pop_claimed(struct pin_deque *deque)
{
	uint32_t tail = pin_load_relaxed_u32(&deque->tail);
	struct pin_link *link;
	uint32_t first;
	uint64_t head;

	PIN_DCHECK(deque->order == PIN_DEQUE_FIFO);
	if (deque->takes_newest) {
		link = pop_deep(deque);
		if (link != NULL) {
			return link;
		}
	}
	leave_reservation(deque);
	head = pin_load_relaxed_u64(&deque->head);
	do {
		first = pin_deque_first_of(head);
		if (first == tail) {
			note_claimed(deque, first, 0);
			return NULL;
		}
	} while (!claim_own(deque, &head, 1));
	note_claimed(deque, first, 1);
	if (PIN_UNLIKELY(deque->calm_count >= PIN_DEQUE_CALM_POPS)) {
		begin_reservation(deque, first + 1);
	}
	return pin_deque_read_slot(deque, first);
}

/*
 * The deque is full: the owner claims its older half as a thief would, for the
 * injector.
 */
static uint32_t pop_half_fifo(struct pin_deque *deque, struct pin_list *out_list)
{
	uint32_t tail = pin_load_relaxed_u32(&deque->tail);
	uint64_t head;
	uint32_t count;
	uint32_t first;

	leave_reservation(deque);
	head = pin_load_relaxed_u64(&deque->head);
	do {
		first = pin_deque_first_of(head);
		count = (tail - first) / 2;
	} while (!claim_own(deque, &head, count));
	PIN_DCHECK(count <= (deque->mask + 1) / 2);
	note_claimed(deque, first, count);
	for (uint32_t i = 0; i < count; i++) {
		pin_list_push(out_list, pin_deque_read_slot(deque, first + i));
	}
	return count;
}

/* The thief is done with the slots; the owner has perhaps popped meanwhile. */
static void release_claim(struct pin_deque *from)
{
	uint64_t head = pin_load_relaxed_u64(&from->head);
	/* The thief's claim holds until now. */
	PIN_DCHECK(pin_deque_kept_of(head) != pin_deque_first_of(head));

	while (!pin_cas_seq_cst_u64(&from->head, &head,
		pin_deque_head_of(
			pin_deque_first_of(head), pin_deque_first_of(head)))) { /* [DEQUE-2] */
	}
}

/* Read already: it is that, as `kept` has not moved. */
static bool claim_single(struct pin_deque *from, uint64_t head)
{
	uint32_t next = pin_deque_first_of(head) + 1;
	PIN_DCHECK(pin_deque_kept_of(head) + 1 == next);

	return pin_cas_seq_cst_u64(
		&from->head, &head, pin_deque_head_of(next, next)); /* [DEQUE-6] */
}

/*
 * Takes the older half: claim, copy, release the slots. If the owner has
 * reserved the head, the thief first ends that, which costs a fence of all
 * threads.
 */
static uint32_t steal_half(struct pin_deque *from, struct pin_deque *to, struct pin_link **out_link)
{
	uint64_t head = pin_load_acquire_u64(&from->head); /* [DEQUE-5] */
	uint32_t first;
	uint32_t tail;
	uint32_t count;
	uint32_t room;

	PIN_DCHECK(from != to);
	if (PIN_UNLIKELY(pin_deque_is_reserved(head))) {
		if (pin_deque_count(from) == 0) {
			return 0;
		}
		end_reservation(from, head);
		head = pin_load_acquire_u64(&from->head);
	}
	first = pin_deque_first_of(head);
	tail = pin_load_acquire_u32(&from->tail); /* [DEQUE-1] [DEQUE-6] */
	count = tail - first;
	/*
	 * Another has claimed, or it is reserved again; and the positions do
	 * not belong together if `head` has moved between.
	 */
	if (pin_deque_kept_of(head) != first || count == 0 || count > from->capacity) {
		return 0;
	}
	count -= count / 2;
	*out_link = pin_deque_read_slot(from, first);
	if (count == 1) {
		return claim_single(from, head) ? 1 : 0;
	}
	room = pin_deque_room(to);
	if (count > room + 1) {
		count = room + 1;
	}
	if (!pin_cas_seq_cst_u64(
		    &from->head, &head, pin_deque_head_of(first, first + count))) { /* [DEQUE-6] */
		return 0;
	}
	for (uint32_t i = 1; i < count; i++) {
		pin_deque_place(to, i - 1, pin_deque_read_slot(from, first + i));
	}
	release_claim(from);
	pin_deque_show(to, count - 1);
	return count;
}

/* ---- LIFO ---- */

/* Takes the oldest, as a thief does; also by the owner. */
static struct pin_link *take_oldest(struct pin_deque *deque)
{
	uint64_t head = pin_load_acquire_u64(&deque->head);
	uint32_t first = pin_deque_first_of(head);
	struct pin_link *link;

	PIN_DCHECK(deque->order == PIN_DEQUE_LIFO);
	pin_fence_seq_cst();						  /* [DEQUE-3] */
	if ((int32_t)(pin_load_acquire_u32(&deque->tail) - first) <= 0) { /* [DEQUE-1] */
		return NULL;
	}
	link = pin_deque_read_slot(deque, first);
	if (!pin_cas_seq_cst_u64(&deque->head, &head, pin_deque_head_of(first + 1, first + 1))) {
		return NULL;
	}
	return link;
}

/*
 * The LIFO pop. The fence between its store to `tail` and its load of `head`
 * makes owner and thief see each other at the last element.
 */
struct pin_link *pin_deque_pop_newest(struct pin_deque *deque)
{
	uint32_t tail = pin_load_relaxed_u32(&deque->tail) - 1;
	struct pin_link *link;
	uint64_t head;
	int32_t left;

	PIN_DCHECK(deque->order == PIN_DEQUE_LIFO);
	PIN_DCHECK(!deque->is_reserved);
	/* Found empty without the fence: only thieves empty it from outside. */
	if ((int32_t)(tail - pin_deque_first_of(pin_load_relaxed_u64(&deque->head))) < 0) {
		pin_store_relaxed_u32(&deque->own_first, tail + 1);
		return NULL;
	}
	pin_store_relaxed_u32(&deque->tail, tail);
	pin_fence_seq_cst(); /* [DEQUE-3] */
	head = pin_load_acquire_u64(&deque->head);
	left = (int32_t)(tail - pin_deque_first_of(head));
	link = pin_deque_read_slot(deque, tail);
	if (left > 0) {
		/* As pin_deque_settle(): the end of the room has not moved. */
		deque->pause_at -= deque->pause_at == deque->mark ? 1 : 0;
		deque->mark--;
		return link;
	}
	/* The last one, which thieves may be taking, or it is gone already. */
	if (left < 0 ||
		!pin_cas_seq_cst_u64(&deque->head, &head, pin_deque_head_of(tail + 1, tail + 1))) {
		link = NULL;
	}
	pin_store_relaxed_u32(&deque->own_first, tail + 1);
	pin_store_release_u32(&deque->tail, tail + 1);
	return link;
}

static uint32_t pop_half_lifo(struct pin_deque *deque, struct pin_list *out_list)
{
	uint32_t wanted = pin_deque_count(deque) / 2;
	uint32_t count = 0;

	while (count < wanted) {
		struct pin_link *link = take_oldest(deque);

		/* Thieves make room as well. */
		if (link == NULL) {
			break;
		}
		pin_list_push(out_list, link);
		count++;
	}
	return count;
}

/* ---- either ---- */

uint32_t pin_deque_pop_half(struct pin_deque *deque, struct pin_list *out_list)
{
	return deque->order == PIN_DEQUE_FIFO ? pop_half_fifo(deque, out_list)
					      : pop_half_lifo(deque, out_list);
}

uint32_t pin_deque_steal(struct pin_deque *from, struct pin_deque *to, struct pin_link **out_link)
{
	if (from->order == PIN_DEQUE_FIFO) {
		return steal_half(from, to, out_link);
	}
	*out_link = take_oldest(from);
	return *out_link != NULL ? 1 : 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * The injector: a stack of newcomers, and an ordered list under a lock.
 *
 * Any thread pushes without waiting for another; a worker that pops takes a
 * share of the list, after turning the newcomers into its order when it runs
 * dry.
 *
 * Invariant: it reports "empty" only if nothing pushed before the call is left.
 */
#include "runtime/queue/injector.h"
#include "runtime/base/check.h"

enum {
	BATCH_MIN = 4,
	BATCH_MAX = 64,
};

void pin_injector_init(struct pin_injector *injector, const struct pin_host *host)
{
	*injector = (struct pin_injector){
		.host = host,
		.batch_min = BATCH_MIN,
		.batch_max = BATCH_MAX,
	};
}

void pin_injector_set_batch(struct pin_injector *injector, uint32_t min, uint32_t max)
{
	PIN_CHECK(min > 0 && min <= max);
	injector->batch_min = min;
	injector->batch_max = max;
}

/* A whole list enters by one compare-and-swap, however long it is. */
void pin_injector_push(struct pin_injector *injector, struct pin_list *list)
{
	struct pin_link *oldest = list->head;
	struct pin_link *newest = NULL;
	struct pin_link *link;
	uint64_t newcomers;

	PIN_DCHECK(list->head == NULL || list->tail->next == NULL);
	/* On the stack each element points to the previous one. */
	while ((link = pin_list_pop(list)) != NULL) {
		link->next = newest;
		newest = link;
	}
	PIN_CHECK(newest != NULL);
	newcomers = pin_load_relaxed_u64(&injector->newcomers);
	do {
		oldest->next = (struct pin_link *)(uintptr_t)newcomers;
	} while (!pin_cas_seq_cst_u64(
		&injector->newcomers, &newcomers, (uintptr_t)newest)); /* [INJECT-1] */
}

/* To the list, which has run dry. */
static uint64_t admit_newcomers(struct pin_injector *injector)
{
	struct pin_link *oldest = NULL;
	struct pin_link *newest;
	struct pin_link *link;
	uint64_t count = 0;

	/* Another was quicker; no worker may be sent for any meanwhile. */
	if (pin_load_relaxed_u64(&injector->newcomers) == 0) {
		return 0;
	}
	/* Less than there are, but no check may find both parts empty. */
	pin_store_relaxed_u64(&injector->length, 1);
	newest = (struct pin_link *)(uintptr_t)pin_exchange_seq_cst_u64(
		&injector->newcomers, 0); /* [INJECT-2] */
	link = newest;
	PIN_DCHECK(newest != NULL); /* the lock's holder alone takes them */
	PIN_DCHECK(injector->list.head == NULL);
	while (link != NULL) {
		struct pin_link *next = link->next;

		link->next = oldest;
		oldest = link;
		link = next;
		count++;
	}
	injector->list = (struct pin_list){.head = oldest, .tail = newest};
	return count;
}

/*
 * Newcomers stay where they are: only a popper may move them, since a worker
 * that parks meanwhile would find them in neither part.
 */
uint64_t pin_injector_count(struct pin_injector *injector)
{
	const struct pin_link *link;
	uint64_t count;

	pin_lock_acquire(&injector->lock, injector->host);
	count = pin_load_relaxed_u64(&injector->length);
	link = (const struct pin_link *)(uintptr_t)pin_load_acquire_u64(&injector->newcomers);
	for (; link != NULL; link = link->next) {
		count++;
	}
	pin_lock_release(&injector->lock, injector->host);
	return count;
}

static uint32_t batch_of(
	const struct pin_injector *injector, uint64_t length, uint32_t share_count, uint32_t room)
{
	uint64_t count = length / share_count;

	PIN_DCHECK(injector->batch_min <= injector->batch_max);
	if (count < injector->batch_min) {
		count = injector->batch_min;
	}
	if (count > injector->batch_max) {
		count = injector->batch_max;
	}
	if (count > room) {
		count = room;
	}
	return (uint32_t)(count < length ? count : length);
}

/* Cut off in one piece, and appended to the list. */
static void move_oldest(struct pin_list *to, struct pin_list *from, uint32_t count)
{
	struct pin_list oldest = *from;

	if (count == 0) {
		return;
	}
	oldest.tail = from->head;
	for (uint32_t i = 1; i < count; i++) {
		PIN_CHECK(oldest.tail != NULL);
		oldest.tail = oldest.tail->next;
	}
	PIN_CHECK(oldest.tail != NULL);
	from->head = oldest.tail->next;
	oldest.tail->next = NULL;
	pin_list_append(to, &oldest);
}

/* The share of a popper, while it has the lock. */
struct pop {
	uint64_t length;
	uint32_t count;
};

/* False: it is empty, and not locked. */
static bool begin_pop(
	struct pin_injector *injector, uint32_t share_count, uint32_t room, struct pop *out_pop)
{
	if (pin_injector_is_empty(injector)) {
		return false;
	}
	pin_lock_acquire(&injector->lock, injector->host);
	out_pop->length = pin_load_relaxed_u64(&injector->length);
	if (out_pop->length == 0) {
		out_pop->length = admit_newcomers(injector);
	}
	out_pop->count = batch_of(injector, out_pop->length, share_count, room);
	PIN_DCHECK(out_pop->count <= room);
	PIN_DCHECK(out_pop->length == 0 || injector->list.head != NULL);
	return true;
}

/* Whether others may find some, too. */
static bool end_pop(struct pin_injector *injector, const struct pop *pop)
{
	PIN_CHECK(pop->count <= pop->length);
	PIN_DCHECK(pop->count < pop->length || injector->list.head == NULL);
	pin_store_release_u64(&injector->length, pop->length - pop->count);
	pin_store_release_u64(&injector->popped,
		pin_load_relaxed_u64(&injector->popped) + pop->count); /* [QLIMIT-1] */
	pin_lock_release(&injector->lock, injector->host);
	return !pin_injector_is_empty(injector);
}

uint32_t pin_injector_pop(struct pin_injector *injector, uint32_t share_count, uint32_t room,
	struct pin_list *out_list, bool *out_has_more)
{
	struct pop pop;

	*out_has_more = false;
	if (!begin_pop(injector, share_count, room, &pop)) {
		return 0;
	}
	move_oldest(out_list, &injector->list, pop.count);
	*out_has_more = end_pop(injector, &pop);
	return pop.count;
}

/* One walk for the cut and for the deque's slots. */
static struct pin_link *place_oldest(
	struct pin_injector *injector, struct pin_deque *to, uint32_t count)
{
	struct pin_link *first = injector->list.head;
	struct pin_link *link = first;
	PIN_DCHECK(count > 0 && first != NULL);

	for (uint32_t i = 1; i < count; i++) {
		link = link->next;
		PIN_CHECK(link != NULL);
		pin_deque_place(to, i - 1, link);
	}
	injector->list.head = link->next;
	return first;
}

uint32_t pin_injector_pop_into(struct pin_injector *injector, uint32_t share_count, uint32_t room,
	struct pin_deque *to, struct pin_link **out_first, bool *out_has_more)
{
	struct pop pop;

	*out_has_more = false;
	if (!begin_pop(injector, share_count, room, &pop)) {
		return 0;
	}
	if (pop.count > 0) {
		*out_first = place_oldest(injector, to, pop.count);
	}
	*out_has_more = end_pop(injector, &pop);
	if (pop.count > 1) {
		pin_deque_show(to, pop.count - 1);
	}
	return pop.count;
}

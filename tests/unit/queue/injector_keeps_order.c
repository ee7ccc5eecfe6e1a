/* SPDX-License-Identifier: MIT */
/*
 * Goal: the injector loses and doubles nothing under threads, keeps the order
 * of each pusher, and its length is what it holds.
 * Method: first one thread against a count; then pushers with batches of 1 to
 * 7 numbered elements and poppers, each of which must see every pusher's
 * numbers rise, and all together each number once.
 */
#include "runtime/queue/injector.h"
#include "tests/support/expect.h"

#include <pthread.h>

enum {
	PUSHERS = 2,
	POPPERS = 2,
	PER_PUSHER = 50000,
};

struct item {
	struct pin_link link;
	uint32_t pusher;
	uint32_t number;
	struct pin_atomic_u32 seen;
};

static struct pin_injector injector;
static struct item items[PUSHERS][PER_PUSHER];
static struct pin_atomic_u32 popped_count;
static struct pin_atomic_u32 disorder_count;

static void *push_all(void *arg)
{
	uint32_t pusher = *(uint32_t *)arg;
	uint32_t next = 0;

	for (uint32_t batch = 1; next < PER_PUSHER; batch = batch % 7 + 1) {
		struct pin_list list = {0};
		uint32_t count = 0;

		for (; count < batch && next < PER_PUSHER; count++, next++) {
			items[pusher][next].pusher = pusher;
			items[pusher][next].number = next;
			pin_list_push(&list, &items[pusher][next].link);
		}
		pin_injector_push(&injector, &list);
	}
	return NULL;
}

static struct pin_link *pop_one(void)
{
	struct pin_list list = {0};
	bool has_more;

	return pin_injector_pop(&injector, 1, 1, &list, &has_more) == 0 ? NULL
									: pin_list_pop(&list);
}

static void *pop_all(void *arg)
{
	uint32_t next[PUSHERS] = {0};

	(void)arg;
	while (pin_load_acquire_u32(&popped_count) < PUSHERS * PER_PUSHER) {
		struct pin_link *link = pop_one();
		struct item *item = PIN_CONTAINER_OF(link, struct item, link);

		if (link == NULL) {
			pin_host_linux.yield();
			continue;
		}
		if (item->number < next[item->pusher]) {
			pin_fetch_add_acq_rel_u32(&disorder_count, 1);
		}
		next[item->pusher] = item->number + 1;
		pin_fetch_add_acq_rel_u32(&item->seen, 1);
		pin_fetch_add_acq_rel_u32(&popped_count, 1);
	}
	return NULL;
}

static void check_alone(void)
{
	struct item some[3] = {{.number = 0}, {.number = 1}, {.number = 2}};
	struct pin_list list = {0};
	bool has_more = true;

	expect_number(
		"pop of an empty one", 0, pin_injector_pop(&injector, 1, 1, &list, &has_more));
	expect_true("nothing left in an empty one", !has_more);
	for (int i = 0; i < 3; i++) {
		pin_list_push(&list, &some[i].link);
	}
	pin_injector_push(&injector, &list);
	expect_true("the pushed list is empty", pin_list_is_empty(&list));
	for (uint32_t i = 0; i < 3; i++) {
		expect_true("there is something", !pin_injector_is_empty(&injector));
		expect_number("pop", 1, pin_injector_pop(&injector, 1, 1, &list, &has_more));
		expect_true("pop in order", pin_list_pop(&list) == &some[i].link);
		expect_number("left", i < 2, has_more);
	}
}

/* AS-34: a share, but 4 at least and 64 at most, and what there is room for. */
static void check_batch(uint32_t length, uint32_t share_count, uint32_t room, uint32_t expected)
{
	static struct item many[1000];
	struct pin_list list = {0};
	struct pin_list popped = {0};
	bool has_more;

	for (uint32_t i = 0; i < length; i++) {
		pin_list_push(&list, &many[i].link);
	}
	pin_injector_push(&injector, &list);
	expect_number("batch", expected,
		pin_injector_pop(&injector, share_count, room, &popped, &has_more));
	expect_number("left by a batch", length > expected, has_more);
	for (uint32_t i = 0; i < expected; i++) {
		expect_true("batch in order", pin_list_pop(&popped) == &many[i].link);
	}
	expect_true("batch has no more", pin_list_pop(&popped) == NULL);
	while (pop_one() != NULL) {
	}
}

/* A popper without room takes none and loses none. */
static void check_no_room(void)
{
	static struct pin_atomic_u64 slots[4];
	struct pin_deque deque = {.capacity = 0};
	struct item some[2] = {{.number = 0}, {.number = 1}};
	struct pin_link *first = NULL;
	struct pin_list list = {0};
	bool has_more = false;

	pin_deque_init(&deque, slots, 4, PIN_DEQUE_FIFO);
	pin_list_push(&list, &some[0].link);
	pin_list_push(&list, &some[1].link);
	pin_injector_push(&injector, &list);
	expect_number("into no room", 0,
		pin_injector_pop_into(&injector, 1, 0, &deque, &first, &has_more));
	expect_true("nothing", first == NULL && pin_deque_pop(&deque) == NULL);
	expect_true("they are there", has_more);
	has_more = false;
	expect_number("nor into no list", 0, pin_injector_pop(&injector, 1, 0, &list, &has_more));
	expect_true("nothing either", pin_list_is_empty(&list) && has_more);
	expect_true("the first", pop_one() == &some[0].link);
	expect_true("the second", pop_one() == &some[1].link);
	expect_true("no third", pop_one() == NULL);
}

/* The same into a worker's queue: the oldest apart, the others after it. */
static void check_batch_into(uint32_t length, uint32_t room, uint32_t expected)
{
	static struct pin_atomic_u64 slots[64];
	static struct item many[1000];
	struct pin_deque deque = {.capacity = 0};
	struct pin_link *first = NULL;
	struct pin_list list = {0};
	bool has_more;

	pin_deque_init(&deque, slots, 64, PIN_DEQUE_FIFO);
	expect_number("pop of an empty one", 0,
		pin_injector_pop_into(&injector, 1, room, &deque, &first, &has_more));
	for (uint32_t i = 0; i < length; i++) {
		pin_list_push(&list, &many[i].link);
	}
	pin_injector_push(&injector, &list);
	expect_number("batch", expected,
		pin_injector_pop_into(&injector, 1, room, &deque, &first, &has_more));
	expect_number("left by a batch", length > expected, has_more);
	expect_true("the oldest apart", first == &many[0].link);
	for (uint32_t i = 1; i < expected; i++) {
		expect_true("the others in order", pin_deque_pop(&deque) == &many[i].link);
	}
	expect_true("and no more", pin_deque_pop(&deque) == NULL);
	for (uint32_t i = expected; i < length; i++) {
		expect_true("the rest in order", pop_one() == &many[i].link);
	}
}

static void check_batches(void)
{
	check_batch(3, 1, 256, 3);
	check_batch(10, 8, 256, 4);
	check_batch(100, 4, 256, 25);
	check_batch(1000, 4, 256, 64);
	check_batch(1000, 4, 10, 10);
	check_batch(1000, 1000, 1, 1);
	check_batch_into(3, 65, 3);
	check_batch_into(1, 65, 1);
	check_batch_into(1000, 65, 64);
	check_batch_into(1000, 10, 10);
	check_batch_into(10, 1, 1);
	check_no_room();
	pin_injector_set_batch(&injector, 1, 7);
	check_batch(10, 8, 256, 1);
	check_batch(1000, 4, 256, 7);
	pin_injector_set_batch(&injector, 4, 64);
}

int main(void)
{
	pthread_t threads[PUSHERS + POPPERS];
	uint32_t numbers[PUSHERS];

	pin_injector_init(&injector, &pin_host_linux);
	check_alone();
	check_batches();
	for (uint32_t i = 0; i < PUSHERS; i++) {
		numbers[i] = i;
		expect_ready(
			"thread", pthread_create(&threads[i], NULL, push_all, &numbers[i]) == 0);
	}
	for (uint32_t i = PUSHERS; i < PUSHERS + POPPERS; i++) {
		expect_ready("thread", pthread_create(&threads[i], NULL, pop_all, NULL) == 0);
	}
	for (uint32_t i = 0; i < PUSHERS + POPPERS; i++) {
		pthread_join(threads[i], NULL);
	}
	expect_number("elements out of order", 0, pin_load_acquire_u32(&disorder_count));
	expect_true("empty at the end", pin_injector_is_empty(&injector));
	for (uint32_t i = 0; i < PUSHERS * PER_PUSHER; i++) {
		uint32_t seen = pin_load_acquire_u32(&items[i / PER_PUSHER][i % PER_PUSHER].seen);

		if (!expect_number("times an element was popped", 1, seen)) {
			break;
		}
	}
	return expect_status();
}

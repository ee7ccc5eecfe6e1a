/* SPDX-License-Identifier: MIT */
/*
 * Goal: the worker's queue is first in, first out, or last in, first out if so
 * ordered, full at its capacity, and gives up exactly its older half, to a
 * thief rounded up, or one at a time; also where its counters wrap. Its mark
 * counts the pushes that are to count, whatever else moves its end. AS-6,
 * AS-33, AS-35, C3, EX-3, EX-31.
 * Hazards that others met: an index that wraps, and one below the first.
 * Method: random pushes, pops, halvings and steals against a counter model,
 * with the indices started just below where they wrap; in FIFO order also where
 * the owner may reserve the head, which it does and a thief revokes.
 */
#include "runtime/queue/deque.h"
#include "tests/support/expect.h"
#include "tests/support/random.h"

#define ROUNDS 200000
#define CAPACITY 256u
#define START ((uint64_t)UINT32_MAX - 1000)
#define FAR 600 /* more than there is room for */

struct item {
	struct pin_link link;
	uint32_t number;
};

static struct item items[CAPACITY];

/* Elements are numbered as they come; between first and next are in it. */
struct model {
	uint32_t first;
	uint32_t next;
	uint32_t until_mark; /* pushes that pass */
};

static void check_popped(struct model *model, const struct pin_link *link)
{
	const struct item *item = PIN_CONTAINER_OF(link, struct item, link);

	expect_number("popped", model->first, item->number);
	model->first++;
}

static void push(struct pin_deque *deque, struct model *model, struct random_source *source)
{
	struct item *item = &items[model->next % CAPACITY];
	bool has_room = model->next - model->first < CAPACITY;
	bool is_counted = random_below(source, 8) != 0;

	if (has_room) {
		item->number = model->next;
	}
	if (is_counted && model->until_mark == 0) {
		expect_true("at the mark", !pin_deque_push_known(deque, &item->link));
		expect_number("push there", has_room, pin_deque_push(deque, &item->link));
		model->until_mark = (uint32_t)random_below(source, FAR);
		pin_deque_set_mark(deque, model->until_mark);
	} else if (is_counted) {
		expect_number("known", has_room, pin_deque_push_known(deque, &item->link));
		model->until_mark -= has_room ? 1 : 0;
	} else {
		expect_number("push", has_room, pin_deque_push(deque, &item->link));
	}
	model->next += has_room ? 1 : 0;
}

static void pop(struct pin_deque *deque, struct model *model)
{
	struct pin_link *link = pin_deque_pop(deque);

	if (!expect_number("pop finds one", model->first != model->next, link != NULL) ||
		link == NULL) {
		return;
	}
	if (deque->order == PIN_DEQUE_FIFO) {
		check_popped(model, link);
	} else {
		model->next--;
		expect_number(
			"popped", model->next, PIN_CONTAINER_OF(link, struct item, link)->number);
	}
}

/* Into a queue that is empty before and after. */
static void steal(struct pin_deque *deque, struct pin_deque *own, struct model *model)
{
	uint32_t count = model->next - model->first;
	uint32_t expected = deque->order == PIN_DEQUE_LIFO && count > 1 ? 1 : count - count / 2;
	struct pin_link *link;

	expect_number("stolen", expected, pin_deque_steal(deque, own, &link));
	for (uint32_t i = 0; i < expected; i++) {
		check_popped(model, link);
		link = pin_deque_pop(own);
	}
	expect_true("no more than that", expected == 0 || link == NULL);
}

static void pop_half(struct pin_deque *deque, struct model *model)
{
	struct pin_list list = {0};
	uint32_t expected = (model->next - model->first) / 2;
	struct pin_link *link;

	expect_number("half", expected, pin_deque_pop_half(deque, &list));
	for (link = pin_list_pop(&list); link != NULL; link = pin_list_pop(&list)) {
		check_popped(model, link);
		expected--;
	}
	expect_number("elements of the half not in its list", 0, expected);
}

static void check(enum pin_deque_order order, bool may_reserve, struct random_source *source)
{
	static struct pin_atomic_u64 slots[2][CAPACITY];
	struct pin_deque deque;
	struct pin_deque own;
	struct model model = {0};
	uint32_t reserved_steals = 0;

	pin_deque_init(&deque, slots[0], CAPACITY, order);
	pin_deque_init(&own, slots[1], CAPACITY, order);
	if (may_reserve) {
		pin_deque_allow_reservation(&deque, &pin_host_linux);
	}
	pin_store_release_u64(&deque.head, START << 32 | START);
	pin_store_release_u32(&deque.tail, START);
	pin_store_release_u32(&deque.own_first, START);
	(void)pin_deque_room(&deque);
	pin_deque_set_mark(&deque, 0);
	for (uint32_t i = 0; i < ROUNDS && expect_failure_count == 0; i++) {
		/* Long phases of mostly pushing or popping reach both ends. */
		uint64_t push_share = (i / 2000) % 2 == 0 ? 70 : 30;
		uint64_t dice = random_below(source, 1000);

		if (dice == 0) {
			pop_half(&deque, &model);
		} else if (dice == 1) {
			reserved_steals += deque.is_reserved && model.next != model.first ? 1 : 0;
			steal(&deque, &own, &model);
		} else if (dice % 100 < push_share) {
			push(&deque, &model, source);
		} else {
			pop(&deque, &model);
		}
		expect_number("until the mark", model.until_mark, pin_deque_until_mark(&deque));
		expect_number("count", model.next - model.first, pin_deque_count(&deque));
		expect_true("drained", !pin_deque_is_drained(&deque) || model.next == model.first);
		expect_number(
			"room", CAPACITY - (model.next - model.first), pin_deque_room(&deque));
	}
	expect_true("thefts from a reserved queue", (reserved_steals > 0) == may_reserve);
}

/* What its owner knows of it without a look at the head: LIFO, to the last. */
static void check_known(void)
{
	static struct pin_atomic_u64 slots[4];
	struct pin_deque deque;
	struct pin_link *stolen;

	pin_deque_init(&deque, slots, 4, PIN_DEQUE_LIFO);
	for (uint32_t count = 1; count <= 4; count++) {
		for (uint32_t i = 0; i < count; i++) {
			expect_true("push", pin_deque_push(&deque, &items[i].link));
		}
		expect_number("known", count, pin_deque_count_known(&deque));
		for (uint32_t i = count; i > 0; i--) {
			expect_true("not drained", !pin_deque_is_drained(&deque));
			expect_true("pop", pin_deque_pop(&deque) == &items[i - 1].link);
		}
		expect_number("none known", 0, pin_deque_count_known(&deque));
		expect_true("drained", pin_deque_is_drained(&deque));
		expect_true("none", pin_deque_pop(&deque) == NULL);
	}
	/* The last goes to a thief; the owner finds out. */
	expect_true("push", pin_deque_push(&deque, &items[0].link));
	expect_number("stolen", 1, pin_deque_steal(&deque, &deque, &stolen));
	expect_true("it", stolen == &items[0].link);
	expect_number("not known yet", 1, pin_deque_count_known(&deque));
	expect_true("nothing", pin_deque_pop(&deque) == NULL);
	expect_number("known", 0, pin_deque_count_known(&deque));
}

/* Pops in peace are counted to a limit, and anew after it or a theft. */
static void check_calm(void)
{
	static struct pin_atomic_u64 slots[2][4];
	struct pin_deque deque;
	struct pin_deque own;
	struct pin_link *stolen;

	pin_deque_init(&deque, slots[0], 4, PIN_DEQUE_FIFO);
	pin_deque_init(&own, slots[1], 4, PIN_DEQUE_FIFO);
	for (uint32_t i = 1; i <= 3 * PIN_DEQUE_CALM_POPS; i++) {
		pin_deque_push(&deque, &items[0].link);
		expect_true("pop", pin_deque_pop(&deque) == &items[0].link);
		expect_number("calm", i % PIN_DEQUE_CALM_POPS, deque.calm_count);
	}
	pin_deque_push(&deque, &items[0].link);
	(void)pin_deque_pop(&deque);
	expect_number("one", 1, deque.calm_count);
	pin_deque_push(&deque, &items[0].link);
	pin_deque_push(&deque, &items[1].link);
	expect_number("stolen", 1, pin_deque_steal(&deque, &own, &stolen));
	expect_true("pop after it", pin_deque_pop(&deque) == &items[1].link);
	expect_number("not calm", 0, deque.calm_count);
}

/* A thief takes no more than it has room for, and the task that it holds. */
static void check_thief_room(void)
{
	static struct pin_atomic_u64 slots[2][8];
	struct pin_deque deque;
	struct pin_deque own;
	struct pin_link *stolen;

	for (uint32_t room = 0; room <= 4; room++) {
		uint32_t expected = room < 3 ? room + 1 : 4;

		pin_deque_init(&deque, slots[0], 8, PIN_DEQUE_FIFO);
		pin_deque_init(&own, slots[1], 4, PIN_DEQUE_FIFO);
		for (uint32_t i = 0; i < 8; i++) {
			pin_deque_push(&deque, &items[i].link);
		}
		for (uint32_t i = room; i < 4; i++) {
			pin_deque_push(&own, &items[8 + i].link);
		}
		expect_number("stolen", expected, pin_deque_steal(&deque, &own, &stolen));
		expect_true("the oldest", stolen == &items[0].link);
		expect_number("left", 8 - expected, pin_deque_count(&deque));
		expect_number("own", 4 - room + expected - 1, pin_deque_count(&own));
		for (uint32_t i = room; i < 4; i++) {
			expect_true("its own first", pin_deque_pop(&own) == &items[8 + i].link);
		}
		for (uint32_t i = 1; i < expected; i++) {
			expect_true("then the others", pin_deque_pop(&own) == &items[i].link);
		}
	}
}

int main(void)
{
	struct random_source source;
	uint64_t seed = random_begin(&source);

	check_known();
	check_calm();
	check_thief_room();
	check(PIN_DEQUE_FIFO, false, &source);
	check(PIN_DEQUE_FIFO, true, &source);
	check(PIN_DEQUE_LIFO, false, &source);
	if (expect_failure_count != 0) {
		printf("seed %llu\n", (unsigned long long)seed);
	}
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: an owner who has found its queue full takes the newest, until a quarter
 * is left, and then the oldest again; in between the oldest has its turn when
 * 15 in a row have each put another in their place, and after 1023 in any case,
 * so that none waits for more than 1024 takes for each one before it. A theft
 * in between takes the older half. Where the queue may not be reserved it stays
 * in its order. Method: one thread is owner and thief; elements are compared by
 * number.
 */
#include "runtime/queue/deque.h"
#include "tests/support/expect.h"

enum {
	SLOTS = 64,
	LEFT = SLOTS / 4,
	/* Newest taken until the oldest has its turn: in a row, in any case. */
	ROW = 15,
	MOST = 1023,
	ITEMS = 8192, /* more than are pushed */
	NONE = -1,
};

static struct pin_link items[ITEMS];
static struct pin_atomic_u64 slots[2][SLOTS];
static struct pin_deque deque;
static uint32_t pushed;

static void push(void)
{
	expect_true("room", pin_deque_push(&deque, &items[pushed]));
	pushed++;
}

static long pop(void)
{
	struct pin_link *link = pin_deque_pop(&deque);

	return link == NULL ? NONE : link - items;
}

/* Full, with its oldest 0 and its newest SLOTS - 1. */
static void fill(bool may_reserve)
{
	pin_deque_init(&deque, slots[0], SLOTS, PIN_DEQUE_FIFO);
	if (may_reserve) {
		pin_deque_allow_reservation(&deque, &pin_host_linux);
	}
	pushed = 0;
	for (uint32_t i = 0; i < SLOTS; i++) {
		push();
	}
	pin_deque_go_deep(&deque);
	expect_number("takes the newest", may_reserve, deque.takes_newest);
}

static void check_order(void)
{
	long expected = SLOTS - 1;

	fill(true);
	expect_number("the oldest begins it", 0, pop());
	expect_true("reserved", deque.is_reserved);
	while (pin_deque_count(&deque) > LEFT) {
		expect_number("newest", expected--, pop());
		expect_number("room", SLOTS - pin_deque_count(&deque), pin_deque_room(&deque));
	}
	for (long i = 1; i <= LEFT; i++) {
		expect_number("oldest", i, pop());
		expect_true("depth first no more", !deque.takes_newest);
	}
	expect_number("empty", NONE, pop());
}

static void check_order_without_holds(void)
{
	fill(false);
	for (long i = 0; i < SLOTS; i++) {
		expect_number("oldest", i, pop());
	}
	expect_number("empty", NONE, pop());
}

/* Each puts another in its place. */
static void check_row(void)
{
	fill(true);
	expect_number("the oldest begins it", 0, pop());
	for (long oldest = 1; oldest <= 3; oldest++) {
		/* As the first of all follows a take of the oldest. */
		int count = oldest == 1 ? ROW : ROW - 1;

		for (int i = 0; i < count; i++) {
			expect_number("newest", pushed - 1, pop());
			push();
		}
		expect_number("oldest", oldest, pop());
		push();
	}
}

/* In turns they put two others in their places, or none: a tree without end. */
static void check_bound(void)
{
	uint32_t takes = 0;
	long oldest = 1;

	fill(true);
	expect_number("the oldest begins it", 0, pop());
	for (uint32_t i = 0; i < 4 * (MOST + 1); i++) {
		long item = pop();

		takes++;
		if (item == oldest) {
			expect_number("takes", MOST, takes);
			oldest++;
			takes = 0;
			push();
		} else if (i % 2 == 0) {
			push();
			push();
		}
	}
	expect_number("turns of the oldest", 1 + 4, oldest);
}

static void check_theft(void)
{
	struct pin_deque thief;
	struct pin_link *link;
	uint32_t before;

	if (!pin_host_linux.fence_all()) {
		puts("membarrier(2) cannot be had, so no thief ends a reservation");
		return;
	}
	pin_deque_init(&thief, slots[1], SLOTS, PIN_DEQUE_FIFO);
	fill(true);
	expect_number("the oldest begins it", 0, pop());
	expect_number("newest", SLOTS - 1, pop());
	before = pin_deque_count(&deque);
	expect_number("stolen", before / 2, pin_deque_steal(&deque, &thief, &link));
	expect_number("the oldest", 1, link - items);
	expect_number("left", before - before / 2, pin_deque_count(&deque));
	/* Taking the oldest ends the reservation; the next take begins one. */
	expect_number("oldest", 1 + before / 2, pop());
	expect_number("oldest", 2 + before / 2, pop());
	expect_true("reserved again", deque.is_reserved);
	expect_number("newest", SLOTS - 2, pop());
}

/* Thieves have taken all but a few by the time it is to begin. */
static void check_robbed(void)
{
	struct pin_deque thief;
	struct pin_link *link;

	pin_deque_init(&thief, slots[1], SLOTS, PIN_DEQUE_FIFO);
	fill(true);
	while (pin_deque_count(&deque) > 0) {
		expect_true("stolen", pin_deque_steal(&deque, &thief, &link) > 0);
		while (pin_deque_pop(&thief) != NULL) {
		}
	}
	expect_number("empty", NONE, pop());
	expect_true("depth first no more", !deque.takes_newest);
}

/* Far from full, as a closed queue is. */
static void check_few(void)
{
	pin_deque_init(&deque, slots[0], SLOTS, PIN_DEQUE_FIFO);
	pin_deque_allow_reservation(&deque, &pin_host_linux);
	pushed = 0;
	for (int i = 0; i < LEFT; i++) {
		push();
	}
	pin_deque_go_deep(&deque);
	expect_true("in its order", !deque.takes_newest);
}

int main(void)
{
	check_order();
	check_order_without_holds();
	check_row();
	check_bound();
	check_theft();
	check_robbed();
	check_few();
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: deadlines of 0, in the past, at the end of time and never behave; due
 * timers can be armed and cancelled while others are handled; hundreds of
 * thousands at one instant, or all in one small slot, cost no more each than
 * one does. W32, C22, AS-3.
 * Method: one case after the other. A cost that grows with the square shows in
 * the time limit of tests, which 400 000 timers would pass by far.
 */
#include "runtime/base/base.h"
#include "runtime/queue/timer_wheel.h"
#include "tests/support/child.h"
#include "tests/support/expect.h"

enum {
	CROWD = 400000,
};

static struct pin_timers timers;
static struct pin_timer crowd[CROWD];

static void expect_next(const char *what, uint64_t expected)
{
	expect_number(what, (long long)expected, (long long)pin_timers_next_ns(&timers));
}

static void expect_due(const char *what, uint64_t expected, uint64_t now_ns)
{
	expect_number(what, (long long)expected, (long long)pin_timers_advance(&timers, now_ns));
}

static void check_past(uint64_t start_ns)
{
	struct pin_timer zero = {0};
	struct pin_timer past = {0};
	struct pin_timer present = {0};

	pin_timers_init(&timers, start_ns);
	pin_timers_insert(&timers, &present, start_ns);
	pin_timers_insert(&timers, &zero, 0);
	pin_timers_insert(&timers, &past, start_ns / 2);
	expect_next("next, with past ones", start_ns);
	expect_true("none is due before an advance", pin_timers_pop(&timers) == NULL);
	expect_due("the clock goes back: due nevertheless", 3, start_ns / 3);
	expect_next("next, with due ones", start_ns);
	expect_true("first in, first out", pin_timers_pop(&timers) == &present);
	expect_true("then 0", pin_timers_pop(&timers) == &zero);
	expect_true("then the past", pin_timers_pop(&timers) == &past);
	expect_true("no more", pin_timers_pop(&timers) == NULL);
	expect_next("next of none", PIN_NO_DEADLINE);
}

static void check_end_of_time(void)
{
	struct pin_timer never = {0};
	struct pin_timer last = {0};
	struct pin_timer past = {0};

	pin_timers_init(&timers, 5);
	pin_timers_insert(&timers, &never, PIN_NO_DEADLINE);
	expect_next("next, with a timer that never expires", PIN_NO_DEADLINE);
	pin_timers_insert(&timers, &last, PIN_NO_DEADLINE - 1);
	expect_next("next, with the last instant", PIN_NO_DEADLINE - 1);
	expect_due("not yet", 0, PIN_NO_DEADLINE - 2);
	expect_due("the last instant", 1, PIN_NO_DEADLINE);
	expect_true("is the last's", pin_timers_pop(&timers) == &last);
	expect_due("the timer that never expires stays", 0, PIN_NO_DEADLINE);
	pin_timers_insert(&timers, &past, 0);
	expect_due("0 expires even then", 1, PIN_NO_DEADLINE);
	expect_true("is 0's", pin_timers_pop(&timers) == &past);
	expect_number("armed", 1, (long long)pin_timers_count(&timers));
	pin_timers_init(&timers, 5);
	pin_timers_insert(&timers, &past, PIN_NO_DEADLINE - 1);
	never = (struct pin_timer){0};
	pin_timers_insert(&timers, &never, PIN_NO_DEADLINE);
	expect_true("the last instant is cancelled", pin_timers_cancel(&timers, &past));
	expect_next("it leaves nothing beside never", PIN_NO_DEADLINE);
	expect_true("never is cancelled", pin_timers_cancel(&timers, &never));
	expect_true("once", !pin_timers_cancel(&timers, &never));
	expect_number("none armed", 0, (long long)pin_timers_count(&timers));
	pin_timers_init(&timers, PIN_NO_DEADLINE);
	pin_timers_insert(&timers, &past, 0);
	expect_due("0, begun at the end", 1, 0);
}

/* Handlers that arm themselves again with 0 must not keep the loop busy. */
static void check_handling(void)
{
	struct pin_timer early = {0};
	struct pin_timer middle = {0};
	struct pin_timer late = {0};

	pin_timers_init(&timers, 1000);
	pin_timers_insert(&timers, &late, 4000);
	pin_timers_insert(&timers, &middle, 3000);
	pin_timers_insert(&timers, &early, 2000);
	expect_due("all of them", 3, 4000);
	expect_true("the earliest first", pin_timers_pop(&timers) == &early);
	expect_true("it is out", !pin_timer_is_armed(&early));
	expect_true("and cannot be cancelled", !pin_timers_cancel(&timers, &early));
	pin_timers_insert(&timers, &early, 0);
	expect_true("its handler cancels another that is due", pin_timers_cancel(&timers, &middle));
	expect_true("which does not come", pin_timers_pop(&timers) == &late);
	pin_timers_insert(&timers, &late, 5000);
	expect_true("nor one armed meanwhile", pin_timers_pop(&timers) == NULL);
	expect_next("that is due at once", 4000);
	expect_due("with the next advance", 1, 4000);
	expect_true("and comes then", pin_timers_pop(&timers) == &early);
	expect_next("the rest", 5000);
	expect_true("can be cancelled", pin_timers_cancel(&timers, &late));
	expect_next("next of none", PIN_NO_DEADLINE);
}

/* Of those at one instant every third is cancelled, in the wheel or due. */
static void check_one_instant(uint64_t deadline_ns)
{
	uint32_t popped_count = 0;

	pin_timers_init(&timers, 1);
	for (uint32_t i = 0; i < CROWD; i++) {
		pin_timers_insert(&timers, &crowd[i], deadline_ns);
	}
	for (uint32_t i = 0; i < CROWD; i += 6) {
		expect_true("cancel in the wheel", pin_timers_cancel(&timers, &crowd[i]));
	}
	expect_due("not yet", 0, deadline_ns - 1);
	expect_due("at their instant", CROWD - (CROWD + 5) / 6, deadline_ns);
	for (uint32_t i = 3; i < CROWD; i += 6) {
		expect_true("cancel when due", pin_timers_cancel(&timers, &crowd[i]));
	}
	for (uint32_t i = 0; i < CROWD && expect_failure_count == 0; i++) {
		if (i % 3 != 0) {
			expect_true("in order", pin_timers_pop(&timers) == &crowd[i]);
			popped_count++;
		}
	}
	expect_number("popped", CROWD - (CROWD + 2) / 3, popped_count);
	expect_true("no more", pin_timers_pop(&timers) == NULL);
	expect_number("none armed", 0, (long long)pin_timers_count(&timers));
}

/*
 * Inserted from the last to the first, a nanosecond apart, with an advance to
 * each instant: timers that are not due must not be scanned each time.
 */
static void check_one_slot(uint64_t first_ns)
{
	pin_timers_init(&timers, 1);
	for (uint32_t i = CROWD; i > 0; i--) {
		pin_timers_insert(&timers, &crowd[i - 1], first_ns + i - 1);
	}
	for (uint32_t i = 0; i < CROWD && expect_failure_count == 0; i++) {
		expect_next("next", first_ns + i);
		expect_due("at its instant", 1, first_ns + i);
		expect_true("in order", pin_timers_pop(&timers) == &crowd[i]);
	}
}

/* Advances that lead nowhere do not look at all there is. */
static void check_waiting(uint64_t first_ns)
{
	pin_timers_init(&timers, 1);
	for (uint32_t i = 0; i < CROWD; i++) {
		pin_timers_insert(&timers, &crowd[i], first_ns + i);
	}
	for (uint32_t i = CROWD; i > 0 && expect_failure_count == 0; i--) {
		expect_due("none yet", 0, first_ns - i);
		expect_next("still the first", first_ns);
	}
	expect_number("expired for a stop", CROWD, (long long)pin_timers_expire_all(&timers));
	for (uint32_t i = 0; i < CROWD; i++) {
		expect_true("popped", pin_timers_pop(&timers) != NULL);
	}
}

static int insert_twice(void *arg)
{
	(void)arg;
	pin_timers_init(&timers, 0);
	pin_timers_insert(&timers, &crowd[0], 10);
	pin_timers_insert(&timers, &crowd[0], 20);
	return 0;
}

int main(void)
{
	check_past(0);
	check_past(1000);
	check_past(PIN_NO_DEADLINE - 1);
	check_end_of_time();
	check_handling();
	check_one_instant(12345678);
	check_one_instant(PIN_NO_DEADLINE - 1);
	check_one_slot(UINT64_C(1) << 40);
	check_one_slot((UINT64_C(1) << 60) - CROWD / 2);
	check_waiting(UINT64_C(1) << 40);
	child_expect_abort("armed twice", insert_twice, NULL, "slot_place == 0");
	return expect_status();
}

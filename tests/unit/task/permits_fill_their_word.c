/* SPDX-License-Identifier: MIT */
/*
 * Goal: the permits of three lanes are counted apart, each up to its own limit
 * and all up to the total; a refusal names the lane's limit before the total's,
 * leaves the word as it was, and is watched only where that was asked for; a
 * watched or closed word neither grants nor takes back by the short way.
 * Method: each lane's limit and the total met exactly and passed by one.
 */
#include "runtime/task/admission.h"
#include "tests/support/expect.h"

enum { LANES = PIN_PERMITS_LANES, TOTAL = 10 };

static const uint32_t limits[LANES] = {4, 5, 6};
static struct pin_permits permits;
static uint64_t seen;

static uint64_t amount(uint32_t first, uint32_t second, uint32_t third)
{
	return pin_permits_amount(0, first) + pin_permits_amount(1, second) +
		pin_permits_amount(2, third);
}

static void begin(void)
{
	pin_permits_init(&permits, limits, TOTAL);
	seen = 77;
}

static void expect_counts(const char *what, uint32_t first, uint32_t second, uint32_t third)
{
	uint64_t word = pin_permits_word(&permits);

	expect_number(what, first, pin_permits_count(word, 0));
	expect_number(what, second, pin_permits_count(word, 1));
	expect_number(what, third, pin_permits_count(word, 2));
	expect_number(what, first + second + third, pin_permits_total(word));
}

static void expect_take(const char *what, enum pin_permits_answer answer, uint64_t wanted)
{
	uint64_t before = pin_permits_word(&permits);

	expect_number(what, answer, pin_permits_take(&permits, wanted, &seen));
	expect_true("what it was judged by", seen == before);
	if (answer != PIN_PERMITS_ROOM) {
		expect_true("as it was", pin_permits_word(&permits) == before);
	}
}

static void check_lanes(void)
{
	for (uint32_t lane = 0; lane < LANES; lane++) {
		begin();
		expect_number("limit", limits[lane], pin_permits_max(&permits, lane));
		expect_take("one by one", PIN_PERMITS_ROOM, pin_permits_amount(lane, 1));
		expect_take("too much at once", PIN_PERMITS_LANE_FULL,
			pin_permits_amount(lane, limits[lane]));
		expect_take(
			"the rest", PIN_PERMITS_ROOM, pin_permits_amount(lane, limits[lane] - 1));
		expect_take("one more", PIN_PERMITS_LANE_FULL, pin_permits_amount(lane, 1));
		expect_take("of none it has enough", PIN_PERMITS_ROOM, 0);
		expect_take("of another", PIN_PERMITS_ROOM, pin_permits_amount((lane + 1) % 3, 1));
		expect_true("given back",
			pin_permits_give(&permits, pin_permits_amount(lane, limits[lane])));
		expect_number("that is left", 1, pin_permits_total(pin_permits_word(&permits)));
	}
}

static void check_total(void)
{
	begin();
	expect_number("total", TOTAL, pin_permits_max_total(&permits));
	expect_take("some of each", PIN_PERMITS_ROOM, amount(3, 3, 3));
	expect_counts("three each", 3, 3, 3);
	expect_take("two more", PIN_PERMITS_FULL, amount(1, 1, 0));
	expect_take("the lane is named first", PIN_PERMITS_LANE_FULL, amount(2, 0, 0));
	expect_take("one more", PIN_PERMITS_ROOM, amount(0, 0, 1));
	expect_take("none", PIN_PERMITS_FULL, amount(0, 0, 1));
	expect_number("nor ever so many", PIN_PERMITS_FULL,
		pin_permits_fit(&permits, 0, amount(4, 4, 3)));
	expect_number(
		"but as many", PIN_PERMITS_ROOM, pin_permits_fit(&permits, 0, amount(3, 4, 3)));
	/* A lane that has too many does not hold up another. */
	pin_permits_set_max(&permits, (const uint32_t[]){4, 4, 1}, TOTAL + 1);
	expect_take("another lane", PIN_PERMITS_ROOM, amount(1, 0, 0));
	expect_true("back", pin_permits_give(&permits, amount(1, 0, 0)));
	/* Lowered below the present count. */
	pin_permits_set_max(&permits, (const uint32_t[]){1, 1, 1}, 2);
	expect_counts("stays", 3, 3, 4);
	expect_true("gives", pin_permits_give(&permits, amount(3, 3, 3)));
	expect_take("its lane is full", PIN_PERMITS_LANE_FULL, amount(0, 0, 1));
	expect_take("another", PIN_PERMITS_ROOM, amount(1, 0, 0));
	expect_take("the total", PIN_PERMITS_FULL, amount(0, 1, 0));
}

static void check_most(void)
{
	uint32_t most[LANES] = {PIN_PERMITS_MAX, PIN_PERMITS_MAX, PIN_PERMITS_MAX};

	pin_permits_init(&permits, most, LANES * PIN_PERMITS_MAX);
	expect_take("as many as a word holds", PIN_PERMITS_ROOM,
		amount(PIN_PERMITS_MAX, PIN_PERMITS_MAX, PIN_PERMITS_MAX));
	expect_counts("all", PIN_PERMITS_MAX, PIN_PERMITS_MAX, PIN_PERMITS_MAX);
	expect_true("not closed by that", !pin_permits_is_closed(&permits));
	expect_true("back", pin_permits_give(&permits, amount(1, PIN_PERMITS_MAX, 0)));
	expect_counts("the rest", PIN_PERMITS_MAX - 1, 0, PIN_PERMITS_MAX);
}

static void check_watched(void)
{
	begin();
	expect_number("room", PIN_PERMITS_ROOM,
		pin_permits_take_or_watch(&permits, amount(4, 0, 0), &seen));
	expect_true("of an empty word", seen == 0);
	expect_take("not watched", PIN_PERMITS_LANE_FULL, amount(1, 0, 0));
	expect_number("full", PIN_PERMITS_LANE_FULL,
		pin_permits_take_or_watch(&permits, amount(1, 0, 0), &seen));
	expect_counts("as many", 4, 0, 0);
	expect_take("others queue as well", PIN_PERMITS_WATCHED, amount(0, 1, 0));
	expect_true("nor the short way back", !pin_permits_give(&permits, amount(1, 0, 0)));
	expect_counts("none given", 4, 0, 0);
	expect_number("past those that wait", PIN_PERMITS_ROOM,
		pin_permits_take_or_watch(&permits, amount(0, 1, 0), &seen));
	expect_counts("one more", 4, 1, 0);
	pin_permits_exchange(&permits, amount(2, 0, 0), amount(1, 1, 0));
	expect_counts("exchanged", 3, 2, 0);
	pin_permits_give_locked(&permits, amount(1, 2, 0));
	expect_counts("given back", 2, 0, 0);
	expect_take("still watched", PIN_PERMITS_WATCHED, amount(0, 1, 0));
	pin_permits_unwatch(&permits);
	expect_take("no more", PIN_PERMITS_ROOM, amount(0, 1, 0));
	expect_true("the short way", pin_permits_give(&permits, amount(2, 1, 0)));
	expect_true("nothing is left", pin_permits_word(&permits) == 0);
}

static void check_closed(void)
{
	begin();
	expect_take("one", PIN_PERMITS_ROOM, amount(0, 0, 1));
	expect_true("open", !pin_permits_is_closed(&permits));
	pin_permits_close(&permits);
	expect_true("closed", pin_permits_is_closed(&permits));
	expect_take("refused", PIN_PERMITS_CLOSED, amount(1, 0, 0));
	expect_number("nor watched", PIN_PERMITS_CLOSED,
		pin_permits_take_or_watch(&permits, amount(1, 0, 0), &seen));
	expect_true("nor by the short way", !pin_permits_give(&permits, amount(0, 0, 1)));
	expect_counts("still there", 0, 0, 1);
	pin_permits_unwatch(&permits);
	expect_true("closed for good", pin_permits_is_closed(&permits));
	pin_permits_give_locked(&permits, amount(0, 0, 1));
	expect_counts("none", 0, 0, 0);
	/* Both: closed is the stronger word. */
	begin();
	expect_take("all of a lane", PIN_PERMITS_ROOM, amount(4, 0, 0));
	(void)pin_permits_take_or_watch(&permits, amount(1, 0, 0), &seen);
	pin_permits_close(&permits);
	expect_take("closed", PIN_PERMITS_CLOSED, amount(0, 1, 0));
}

int main(void)
{
	check_lanes();
	check_total();
	check_most();
	check_watched();
	check_closed();
	return expect_status();
}

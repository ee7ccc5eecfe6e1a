/* SPDX-License-Identifier: MIT */
/*
 * Goal: a lane that was passed by one less than its floor is due, the first of
 * several in the worker's order; tasks that are bound to the worker after 16;
 * strict lanes never, but for those that are overdue. A turn, taken or in vain,
 * begins the count anew, and counts for all lanes after it, that of an urgent
 * request for all but the high one. C12, W42.
 * Method: turns counted one by one, with the counts after each.
 */
#include "runtime/base/base.h"
#include "runtime/policy/lanes.h"
#include "tests/support/expect.h"

enum {
	HIGH = PINION_LANE_HIGH,
	NORMAL = PINION_LANE_NORMAL,
	LOW = PINION_LANE_LOW,
	BOUND_FLOOR = 16,
};

static struct pin_lane_turns begin(const char *lanes, uint32_t floor)
{
	struct pin_lane_turns turns;
	struct pin_lane_plan plan;

	expect_ready("plan", pin_lane_plan_parse(&plan, lanes) == NULL);
	pin_lane_turns_init(&turns, &plan.orders[0], floor);
	return turns;
}

static void expect_counts(const char *what, const struct pin_lane_turns *turns, uint32_t high,
	uint32_t normal, uint32_t low, uint32_t bound)
{
	char expected[64];
	char got[64];

	snprintf(expected, sizeof(expected), "%u %u %u, %u", high, normal, low, bound);
	snprintf(got, sizeof(got), "%u %u %u, %u", turns->passed_counts[HIGH],
		turns->passed_counts[NORMAL], turns->passed_counts[LOW],
		turns->passed_counts[PIN_LANE_BOUND]);
	expect_text(what, expected, got);
}

static void check_floors(void)
{
	struct pin_lane_turns turns = begin("hnl", 3);

	for (uint32_t lane = 0; lane < PINION_LANES; lane++) {
		expect_number("floor", 3, turns.floors[lane]);
	}
	expect_number("floor of bound tasks", BOUND_FLOOR, turns.floors[PIN_LANE_BOUND]);
	expect_counts("at first", &turns, 0, 0, 0, 0);
	expect_number("at first", PIN_LANE_NONE, pin_lane_turns_due(&turns, 0));
	pin_lane_turns_note(&turns, HIGH);
	expect_counts("high", &turns, 0, 1, 1, 1);
	expect_number("passed by once", PIN_LANE_NONE, pin_lane_turns_due(&turns, 0));
	pin_lane_turns_note(&turns, HIGH);
	expect_counts("high again", &turns, 0, 2, 2, 2);
	expect_number("passed by twice", NORMAL, pin_lane_turns_due(&turns, 0));
	pin_lane_turns_note(&turns, NORMAL);
	expect_counts("normal", &turns, 0, 0, 3, 3);
	expect_number("low is still due", LOW, pin_lane_turns_due(&turns, 0));
	pin_lane_turns_skip(&turns, LOW);
	expect_counts("low in vain", &turns, 0, 0, 0, 3);
	expect_number("nothing is", PIN_LANE_NONE, pin_lane_turns_due(&turns, 0));
	pin_lane_turns_note(&turns, LOW);
	expect_counts("low passes nothing by", &turns, 0, 0, 0, 4);
}

static void check_order(void)
{
	struct pin_lane_turns turns = begin("lnh", 2);

	pin_lane_turns_note(&turns, LOW);
	expect_counts("low first", &turns, 1, 1, 0, 1);
	expect_number("in its order", NORMAL, pin_lane_turns_due(&turns, 0));
	turns = begin("hn:1,hnl", 2);
	expect_number("a lane it does not serve", 0, turns.floors[LOW]);
	pin_lane_turns_note(&turns, HIGH);
	expect_counts("is not counted", &turns, 0, 1, 0, 1);
	turns = begin("nl:1,hnl", 2);
	expect_number("nor the first one", 0, turns.floors[HIGH]);
	pin_lane_turns_note(&turns, NORMAL);
	expect_counts("nor then", &turns, 0, 0, 1, 1);
}

static void check_bound(void)
{
	struct pin_lane_turns turns = begin("hnl", 0);

	for (uint32_t i = 1; i < BOUND_FLOOR; i++) {
		expect_number("not yet", PIN_LANE_NONE, pin_lane_turns_due(&turns, 0));
		pin_lane_turns_note(&turns, HIGH);
	}
	expect_counts("strict lanes are counted", &turns, 0, 15, 15, 15);
	expect_number("now", PIN_LANE_BOUND, pin_lane_turns_due(&turns, 0));
	pin_lane_turns_note(&turns, PIN_LANE_BOUND);
	expect_counts("it passes nothing by", &turns, 0, 15, 15, 0);
	expect_number("once", PIN_LANE_NONE, pin_lane_turns_due(&turns, 0));
}

/* It passes all lanes by but the high one, served first, last or not at all. */
static void check_urgent(void)
{
	struct pin_lane_turns turns = begin("hnl", 3);

	pin_lane_turns_note_urgent(&turns);
	expect_counts("urgent", &turns, 0, 1, 1, 1);
	pin_lane_turns_note_urgent(&turns);
	expect_number("passed by twice", NORMAL, pin_lane_turns_due(&turns, 0));
	pin_lane_turns_note(&turns, NORMAL);
	expect_counts("its turn", &turns, 0, 0, 3, 3);
	turns = begin("lnh", 3);
	pin_lane_turns_note(&turns, LOW);
	expect_counts("high is passed by", &turns, 1, 1, 0, 1);
	pin_lane_turns_note_urgent(&turns);
	expect_counts("as good as a turn of high", &turns, 0, 2, 1, 2);
	turns = begin("nl:1,hnl", 3);
	pin_lane_turns_note_urgent(&turns);
	expect_counts("without high", &turns, 0, 1, 1, 1);
	turns = begin("hnl", 0);
	for (uint32_t i = 1; i < BOUND_FLOOR; i++) {
		expect_number("not yet", PIN_LANE_NONE, pin_lane_turns_due(&turns, 0));
		pin_lane_turns_note_urgent(&turns);
	}
	expect_number("bound tasks go on", PIN_LANE_BOUND, pin_lane_turns_due(&turns, 0));
}

static void check_overdue(void)
{
	struct pin_lane_turns turns = begin("hnl", 0);

	expect_number("low", LOW, pin_lane_turns_due(&turns, PIN_LANE_BIT(LOW)));
	expect_number("high", HIGH, pin_lane_turns_due(&turns, PIN_LANE_BIT(HIGH)));
	expect_number("the first of two", NORMAL,
		pin_lane_turns_due(&turns, PIN_LANE_BIT(LOW) | PIN_LANE_BIT(NORMAL)));
	turns = begin("nl:1,hnl", 0);
	expect_number("a lane it does not serve", PIN_LANE_NONE,
		pin_lane_turns_due(&turns, PIN_LANE_BIT(HIGH)));
	turns = begin("hnl", 0);
	expect_counts("asked only", &turns, 0, 0, 0, 0);
}

int main(void)
{
	check_floors();
	check_order();
	check_bound();
	check_urgent();
	check_overdue();
	return expect_status();
}

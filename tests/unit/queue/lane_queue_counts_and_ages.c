/* SPDX-License-Identifier: MIT */
/*
 * Goal: a lane's queue counts what is in it and claimed, grants claims up to
 * the limit and says how many wait where it does not, hands out the oldest
 * first, and is overdue when the oldest is eight periods older than a mark; a
 * deep one is warned of at its limit and again from half of it. WP-8, WP-34.
 * Method: one thread; times told off in periods of 100 ns.
 */
#include "runtime/base/base.h"
#include "runtime/queue/lane_queue.h"
#include "tests/support/expect.h"

enum {
	ITEMS = 8,
	PERIOD_NS = 100,
	WAIT_NS = PIN_LANE_MARKS * PERIOD_NS,
};

static struct pin_lane_queue queue;
static struct pin_link items[ITEMS];

static void begin(void)
{
	pin_lane_queue_init(&queue, &pin_host_linux);
}

static struct pin_list list_of(uint32_t first, uint32_t count)
{
	struct pin_list list = {0};

	for (uint32_t i = first; i < first + count; i++) {
		pin_list_push(&list, &items[i]);
	}
	return list;
}

static void push(uint32_t first, uint32_t count)
{
	struct pin_list list = list_of(first, count);

	pin_lane_queue_push(&queue, &list, count);
	expect_true("the list is empty", pin_list_is_empty(&list));
}

static void expect_depth(uint64_t depth)
{
	expect_number("depth", (long long)depth, (long long)pin_lane_queue_depth(&queue));
}

static void expect_pop(uint32_t index, bool has_more)
{
	bool more = !has_more;

	expect_true("the oldest", pin_lane_queue_pop(&queue, &more) == &items[index]);
	expect_number("more", has_more, more);
}

static void check_counts(void)
{
	bool has_more = true;

	begin();
	expect_depth(0);
	expect_true("empty", pin_lane_queue_is_empty(&queue));
	expect_true("nothing", pin_lane_queue_pop(&queue, &has_more) == NULL);
	expect_true("nor more", !has_more);
	push(0, 3);
	expect_depth(3);
	push(3, 1);
	expect_depth(4);
	for (uint32_t i = 0; i < 4; i++) {
		expect_true("not empty", !pin_lane_queue_is_empty(&queue));
		expect_pop(i, i < 3);
		expect_depth(3 - i);
	}
	expect_true("empty again", pin_lane_queue_is_empty(&queue));
}

static void expect_refused(uint32_t count, uint64_t limit, uint64_t waiting)
{
	uint64_t got = 77;

	expect_true("refused", !pin_lane_queue_claim(&queue, count, limit, &got));
	expect_number("waiting", (long long)waiting, (long long)got);
}

static void expect_claimed(uint32_t count, uint64_t limit)
{
	uint64_t waiting = 77;

	expect_true("claimed", pin_lane_queue_claim(&queue, count, limit, &waiting));
	expect_number("not written", 77, (long long)waiting);
}

static void check_claims(void)
{
	struct pin_list list = list_of(1, 3);

	begin();
	push(0, 1);
	expect_pop(0, false);
	push(0, 1);
	expect_refused(4, 4, 1);
	expect_claimed(3, 4);
	expect_depth(4);
	expect_refused(1, 4, 4);
	pin_lane_queue_push_claimed(&queue, &list);
	expect_depth(4);
	expect_pop(0, true);
	expect_claimed(1, 4);
	pin_lane_queue_undo(&queue, 1);
	expect_depth(3);
	expect_claimed(1, 4);
	expect_refused(1, 4, 4);
	expect_pop(1, true);
	/* Past any limit. */
	push(4, 4);
	expect_refused(1, 4, 7);
}

static void mark(uint64_t period, bool is_overdue)
{
	char what[32];

	snprintf(what, sizeof(what), "overdue in period %llu", (unsigned long long)period);
	pin_lane_queue_mark(&queue, period * PERIOD_NS + PERIOD_NS - 1, WAIT_NS);
	expect_number(what, is_overdue, pin_lane_queue_is_overdue(&queue));
}

static void check_ages(void)
{
	begin();
	mark(10, false);
	push(0, 1);
	mark(11, false);
	push(1, 1);
	for (uint64_t period = 12; period < 19; period++) {
		mark(period, false);
	}
	/* Each eight periods after the first mark that counts it. */
	mark(19, true);
	mark(18, true);
	expect_pop(0, true);
	expect_number("the next is not", false, pin_lane_queue_is_overdue(&queue));
	mark(20, true);
	expect_pop(1, false);
	expect_number("all are gone", false, pin_lane_queue_is_overdue(&queue));
}

/* A task that came between two checks counts from the next check. */
static void check_gaps(void)
{
	begin();
	mark(20, false);
	push(0, 1);
	mark(21, false);
	push(1, 1);
	mark(25, false);
	mark(28, false);
	mark(29, true);
	expect_pop(0, true);
	mark(32, false);
	mark(33, true);
	expect_pop(1, false);
	push(2, 1);
	mark(40, false);
	/* So long that each mark is older than that. */
	mark(47, false);
	mark(48, true);
	expect_pop(2, false);
	push(3, 1);
	mark(50, false);
	mark(58, true);
	expect_pop(3, false);
	push(4, 1);
	mark(100, false);
	mark(107, false);
	mark(108, true);
}

static void check_warning(uint64_t limit, uint64_t again)
{
	struct pin_atomic_u32 has_warned = {0};

	expect_true("below", !pin_lane_queue_must_warn(&has_warned, limit - 1, limit));
	expect_true("at the limit", pin_lane_queue_must_warn(&has_warned, limit, limit));
	expect_true("once", !pin_lane_queue_must_warn(&has_warned, limit + 1, limit));
	expect_true("not yet", !pin_lane_queue_must_warn(&has_warned, again + 1, limit));
	expect_true("nor", !pin_lane_queue_must_warn(&has_warned, limit, limit));
	expect_true("at half", !pin_lane_queue_must_warn(&has_warned, again, limit));
	expect_true("again", pin_lane_queue_must_warn(&has_warned, limit, limit));
}

int main(void)
{
	struct pin_atomic_u32 has_warned = {0};

	check_counts();
	check_claims();
	check_ages();
	check_gaps();
	check_warning(1, 0);
	check_warning(9, 4);
	check_warning(100, 50);
	expect_true("no limit", !pin_lane_queue_must_warn(&has_warned, 1000, 0));
	return expect_status();
}

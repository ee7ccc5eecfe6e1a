/* SPDX-License-Identifier: MIT */
/*
 * Goal: the parts of a limit are what they are said to be: an eighth is kept
 * unused by all workers together, an eighth is reserved for those who have less
 * than their share, a request costs half of the pages at most; none of that in
 * an exact limit. Credit given back, asked for under a lower limit, queued for
 * and left has the number that follows from them.
 * Method: numbers worked out by hand, one step at a time, with a limit of 256
 * requests and 65536 pages among four workers.
 */
#include "runtime/base/base.h"
#include "runtime/io/device_credit.h"
#include "tests/support/expect.h"

enum { WORKERS = 4, COUNT = 256, PAGES = 65536 };

static struct pin_credit credit;
static struct pin_holding holdings[WORKERS];
static uint32_t granted_count;

static void granted(struct pin_holding *holding)
{
	(void)holding;
	granted_count++;
}

static void begin(uint32_t worker_count, uint64_t count, uint64_t pages, bool is_exact)
{
	pin_credit_init(&credit, &pin_host_linux, worker_count);
	pin_credit_set(&credit, count, pages, is_exact);
	for (uint32_t i = 0; i < WORKERS; i++) {
		pin_holding_init(&holdings[i], granted);
	}
	granted_count = 0;
}

static void expect_amount(const char *what, uint32_t count, uint32_t pages, uint64_t got)
{
	expect_number(what, count, pin_credit_count(got));
	expect_number(what, pages, pin_credit_pages(got));
}

static void expect_taken(const char *what, uint32_t count, uint32_t pages, uint32_t workers)
{
	uint64_t taken = pin_load_relaxed_u64(&credit.taken);

	expect_amount(what, count, pages, taken);
	expect_number(what, workers, pin_credit_workers(taken));
}

static bool use(uint32_t worker, uint32_t pages)
{
	uint64_t amount;

	return pin_credit_use(&credit, &holdings[worker], pages, &amount);
}

static void end(uint32_t worker, uint32_t pages, bool is_wanted)
{
	pin_credit_end(&credit, &holdings[worker], pin_credit_amount(1, pages), is_wanted);
}

/* ---- the parts ---- */

static void expect_parts(const char *what, uint64_t keep, uint64_t spare_max, uint64_t reserve,
	uint64_t cost_max, uint64_t limit)
{
	expect_true(what, pin_load_relaxed_u64(&credit.keep) == keep);
	expect_true(what, pin_load_relaxed_u64(&credit.spare_max) == spare_max);
	expect_true(what, pin_load_relaxed_u64(&credit.reserve) == reserve);
	expect_true(what, pin_load_relaxed_u64(&credit.cost_max) == cost_max);
	expect_true(what, pin_load_relaxed_u64(&credit.limit) == limit);
}

static void check_parts(void)
{
	uint64_t limit = pin_credit_amount(COUNT, PAGES);
	uint64_t most = pin_credit_amount(PIN_CREDIT_COUNT_MAX, PIN_CREDIT_PAGES_MAX);
	uint64_t keep = pin_credit_amount(COUNT / 32, PAGES / 32);
	uint64_t half = pin_credit_amount(COUNT, PAGES / 2);

	begin(WORKERS, COUNT, PAGES, false);
	expect_parts("of four", keep, keep, pin_credit_amount(COUNT / 8, PAGES / 8), half, limit);
	begin(WORKERS, COUNT, PAGES, true);
	expect_parts("exact", 0, 0, 0, limit, limit);
	begin(1, COUNT, PAGES, false);
	expect_parts("alone", pin_credit_amount(COUNT / 8, PAGES / 8), most, 0, half, limit);
	begin(1, COUNT, PAGES, true);
	expect_parts("alone, exact", 0, 0, 0, limit, limit);
	/* So few pages that nothing is kept. */
	begin(1, COUNT, 15, false);
	limit = pin_credit_amount(COUNT, 15);
	expect_parts("15 pages", 0, 0, 0, limit, limit);
	begin(1, COUNT, 16, false);
	limit = pin_credit_amount(COUNT, 16);
	expect_parts("16 pages", pin_credit_amount(COUNT / 8, 2), most, 0,
		pin_credit_amount(COUNT, 8), limit);
	begin(1, (uint64_t)PIN_CREDIT_COUNT_MAX + 1, (uint64_t)PIN_CREDIT_PAGES_MAX + 1, true);
	expect_parts("more than fits", 0, 0, 0, most, most);
}

/* ---- taking ---- */

/* The need, and the credit that is kept beyond it. */
static void check_take(void)
{
	begin(WORKERS, COUNT, PAGES, false);
	expect_true("the first", use(0, 10));
	expect_taken("with what is kept", 1 + 8, 10 + 2048, 1);
	expect_amount("held", 9, 2058, holdings[0].held);
	expect_amount("used", 1, 10, holdings[0].used);
	for (uint32_t i = 0; i < 8; i++) {
		expect_true("held already", use(0, 10));
	}
	expect_taken("not touched", 9, 2058, 1);
	expect_true("the next", use(0, 10));
	/* Of pages it has enough. */
	expect_taken("one more, and as many to keep", 9 + 1 + 8, 2058 + 2048, 1);
	expect_true("a large one is cut", use(1, PAGES));
	expect_amount("to half", 1, PAGES / 2, holdings[1].used);
	expect_taken("two workers", 18 + 9, 4106 + PAGES / 2 + 2048, 2);
}

/* The last eighth is for those who have less than their share. */
static void check_reserve(void)
{
	uint32_t count = 0;

	begin(WORKERS, COUNT, PAGES, false);
	expect_true("the other", use(1, 1));
	while (use(0, 1)) {
		count++;
	}
	expect_number("all but that and the reserve", 256 - 32 - 9, count);
	/* With each 8 requests that are kept 2048 pages are, 24 times. */
	expect_taken("up to the reserve", 224, 24 * 2048 + 2, 2);
	count = 0;
	while (use(1, 1)) {
		count++;
	}
	expect_number("the reserve, and what it kept", 32 + 8, count);
	expect_number(
		"nothing is left", 256, pin_credit_count(pin_load_relaxed_u64(&credit.taken)));
}

/* ---- giving back ---- */

static void check_spare(void)
{
	begin(WORKERS, COUNT, PAGES, false);
	expect_true("one", use(0, 10));
	end(0, 10, false);
	/* One beyond the eighth: down to half of that. */
	expect_taken("half of it", 4, 1024, 1);
	expect_amount("used", 0, 0, holdings[0].used);
	expect_true("again", use(0, 10));
	expect_taken("of its own", 4, 1024, 1);
	end(0, 10, false);
	expect_taken("kept", 4, 1024, 1);
	expect_true("all", pin_credit_give_up(&credit, &holdings[0]));
	expect_taken("nothing", 0, 0, 0);
	expect_true("again", use(0, 10));
	end(0, 10, true);
	expect_taken("kept for those that wait here", 9, 2058, 1);
	pin_credit_leave(&credit, &holdings[0]);
	expect_taken("they wait no more", 4, 1024, 1);
	begin(WORKERS, COUNT, PAGES, true);
	expect_true("exact", use(0, 10));
	expect_taken("no more than that", 1, 10, 1);
	end(0, 10, false);
	expect_taken("nothing of it", 0, 0, 0);
}

/* Under a quarter of the limit it may hold a quarter of what it held. */
static void check_lowered(void)
{
	begin(WORKERS, COUNT, PAGES, true);
	for (uint32_t i = 0; i < 64; i++) {
		expect_true("use", use(0, 100));
	}
	pin_credit_set(&credit, COUNT / 4, PAGES / 2, true);
	expect_true("no more", !use(0, 100));
	expect_amount("comes down to", 16, 3200, holdings[0].target);
	for (uint32_t i = 0; i < 10; i++) {
		end(0, 100, true);
	}
	expect_taken("as they end", 54, 5400, 1);
	for (uint32_t i = 10; i < 48; i++) {
		end(0, 100, true);
	}
	/* All that it may hold, though not all of it is used. */
	expect_taken("down to it", 16, 3200, 1);
	expect_true("it is there", holdings[0].target == UINT64_MAX);
	expect_true("more again", use(0, 100));
	pin_credit_set(&credit, COUNT, PAGES, true);
	expect_true("a higher limit", use(0, 100));
	expect_true("asks for nothing", holdings[0].target == UINT64_MAX);
}

/* ---- waiting ---- */

static void check_queue(void)
{
	begin(WORKERS, 2, 100, true);
	expect_true("one", use(0, 10));
	expect_true("two", use(0, 10));
	expect_true("no third", !use(1, 10));
	pin_credit_await(&credit, &holdings[1], 10);
	expect_true("queued", holdings[1].is_queued);
	expect_taken("takes part", 2, 20, 2);
	pin_credit_await(&credit, &holdings[1], 10);
	expect_taken("once", 2, 20, 2);
	expect_true("cannot give up", !pin_credit_collect(&holdings[1]));
	/* The first has one in the device, and more than its share. */
	pin_credit_await(&credit, &holdings[0], 10);
	expect_true("its own ends bring it some", !holdings[0].is_queued);
	end(0, 10, true);
	expect_number("granted to the one that waits", 1, granted_count);
	expect_taken("as much", 2, 20, 2);
	expect_true("while it is granted", !pin_credit_give_up(&credit, &holdings[1]));
	expect_true("collected", pin_credit_collect(&holdings[1]));
	expect_true("once", !pin_credit_collect(&holdings[1]));
	expect_amount("held", 1, 10, holdings[1].held);
	expect_true("used", use(1, 10));
	end(1, 10, false);
	expect_taken("the other's", 1, 10, 1);
}

/* A request that leaves the queue holds up no other, and counts no more. */
static void check_leave(void)
{
	begin(WORKERS, 1, 100, true);
	expect_true("one", use(0, 10));
	pin_credit_await(&credit, &holdings[1], 10);
	pin_credit_await(&credit, &holdings[2], 20);
	expect_taken("three take part", 1, 10, 3);
	pin_credit_leave(&credit, &holdings[1]);
	expect_true("left", !holdings[1].is_queued);
	expect_taken("two", 1, 10, 2);
	end(0, 10, false);
	expect_number("the next", 1, granted_count);
	expect_true("collected", pin_credit_collect(&holdings[2]));
	expect_amount("what it asked for", 1, 20, holdings[2].held);
	expect_true("all", pin_credit_give_up(&credit, &holdings[2]));
	expect_taken("none", 0, 0, 0);
}

int main(void)
{
	check_parts();
	check_take();
	check_reserve();
	check_spare();
	check_lowered();
	check_queue();
	check_leave();
	return expect_status();
}

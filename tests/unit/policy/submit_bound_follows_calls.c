/* SPDX-License-Identifier: MIT */
/*
 * Goal: a call is due when its requests count as many pages, and one each, as
 * the limit; a call longer than 100 us lowers the limit by an eighth, a full
 * one below 75 us raises it by a sixteenth, any other leaves it, and it stays
 * between one request of 64 KiB and 2^20 units. With a fixed cost of a page the
 * full calls come to take between 75 and 100 us, but for the last request of
 * each, from any side and for any cost; a call that is interrupted for
 * milliseconds counts no more than a call that is a microsecond too long.
 * Method: calls one by one, with the limit after each; then calls of a device
 * that takes so long for each unit, some of which are interrupted.
 */
#include "runtime/base/base.h"
#include "runtime/policy/submit_bound.h"
#include "tests/support/expect.h"

enum {
	BOUND_NS = 100 * 1000,
	SHORT_NS = 75 * 1000,
	MIN = 17,
	START = 85,
	MAX = 1 << 20,
	BLOCK_BYTES = 64 << 10,
	BLOCK_UNITS = 17,
	CALLS = 400,
	INTERRUPTED_NS = 4 * 1000 * 1000,
};

static struct pin_submit_bound begin(void)
{
	struct pin_submit_bound bound;

	pin_submit_bound_init(&bound);
	expect_number("limit at first", START, bound.limit);
	expect_number("gathered at first", 0, bound.gathered);
	return bound;
}

/* ---- what gathers ---- */

static void check_units(void)
{
	static const struct {
		uint32_t bytes;
		uint32_t units;
	} requests[] = {{0, 1}, {1, 2}, {4096, 2}, {4097, 3}, {65536, 17}, {64 << 20, 16385}};

	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(requests); i++) {
		struct pin_submit_bound bound = begin();
		bool is_due = pin_submit_bound_add(&bound, requests[i].bytes);

		expect_number("units", requests[i].units, bound.gathered);
		expect_number("due", requests[i].units >= START, is_due);
	}
}

static void check_due(void)
{
	struct pin_submit_bound bound = begin();

	for (uint32_t i = 1; i < START / BLOCK_UNITS; i++) {
		expect_true("not yet", !pin_submit_bound_add(&bound, BLOCK_BYTES));
	}
	expect_true("the fifth", pin_submit_bound_add(&bound, BLOCK_BYTES));
	expect_true("still", pin_submit_bound_add(&bound, 0));
	pin_submit_bound_note_call(&bound, BOUND_NS);
	expect_number("begins anew", 0, bound.gathered);
	expect_true("not any more", !pin_submit_bound_add(&bound, 0));
}

/* ---- single calls ---- */

static uint32_t limit_after(uint32_t limit, uint32_t gathered, uint64_t took_ns)
{
	struct pin_submit_bound bound = {.limit = limit, .gathered = gathered};

	pin_submit_bound_note_call(&bound, took_ns);
	expect_number("nothing has gathered then", 0, bound.gathered);
	return bound.limit;
}

static void check_calls(void)
{
	expect_number("full and short", 170, limit_after(160, 160, SHORT_NS - 1));
	expect_number("fuller", 170, limit_after(160, 161, 0));
	expect_number("not full", 160, limit_after(160, 159, 0));
	expect_number("not short", 160, limit_after(160, 160, SHORT_NS));
	expect_number("just within", 160, limit_after(160, 160, BOUND_NS));
	expect_number("too long", 140, limit_after(160, 160, BOUND_NS + 1));
	expect_number("too long, not full", 140, limit_after(160, 1, BOUND_NS + 1));
	expect_number("however long", 140, limit_after(160, 160, UINT64_MAX));
	expect_number("rounded up", 19, limit_after(17, 17, 0));
	expect_number("and down", 21, limit_after(25, 25, BOUND_NS + 1));
	expect_number("not below", MIN, limit_after(18, 18, BOUND_NS + 1));
	expect_number("nor from there", MIN, limit_after(MIN, MIN, BOUND_NS + 1));
	expect_number("not above", MAX, limit_after(MAX - 1, MAX, 0));
	expect_number("nor from there", MAX, limit_after(MAX, MAX, 0));
}

/* Three full calls make up for an interrupted call, two do not. */
static void check_interruption(void)
{
	uint32_t limit = limit_after(800, 800, INTERRUPTED_NS);

	expect_number("interrupted", 700, limit);
	limit = limit_after(limit, limit, 0);
	limit = limit_after(limit, limit, 0);
	expect_number("two", 791, limit);
	expect_number("three", 841, limit_after(limit, limit, 0));
}

/* ---- calls of a device ---- */

/* Requests gather until one call is due; what it takes. */
static uint64_t call(struct pin_submit_bound *bound, uint64_t unit_ns, uint64_t interruption_ns)
{
	uint64_t took_ns;

	while (!pin_submit_bound_add(bound, BLOCK_BYTES)) {
	}
	took_ns = bound->gathered * unit_ns + interruption_ns;
	pin_submit_bound_note_call(bound, took_ns);
	return took_ns;
}

static void check_device(uint64_t unit_ns, uint32_t interrupted_one_in)
{
	struct pin_submit_bound bound = begin();
	uint64_t block_ns = BLOCK_UNITS * unit_ns;
	uint64_t longest_ns = 0;
	uint64_t least_ns;
	uint64_t sum_ns = 0;
	uint32_t count = 0;

	for (uint32_t i = 0; i < CALLS; i++) {
		bool is_interrupted = interrupted_one_in != 0 && i % interrupted_one_in == 0;
		uint64_t took_ns = call(&bound, unit_ns, is_interrupted ? INTERRUPTED_NS : 0);

		/* The first ones teach. */
		if (i >= CALLS / 2 && !is_interrupted) {
			longest_ns = took_ns > longest_ns ? took_ns : longest_ns;
			sum_ns += took_ns;
			count++;
		}
	}
	printf("%llu ns a unit, one call in %u interrupted: mean %llu ns, longest %llu\n",
		(unsigned long long)unit_ns, interrupted_one_in,
		(unsigned long long)(sum_ns / count), (unsigned long long)longest_ns);
	expect_true("no call is longer but for its last request",
		longest_ns <= BOUND_NS + block_ns || longest_ns <= block_ns);
	/* Interrupted calls cost a part of the bound. */
	least_ns = interrupted_one_in != 0 ? SHORT_NS / 5 * 4 : SHORT_NS;
	expect_true("calls are as long as they may be", sum_ns / count + block_ns >= least_ns);
}

int main(void)
{
	check_units();
	check_due();
	check_calls();
	check_interruption();
	for (uint64_t unit_ns = 1; unit_ns <= 8000; unit_ns *= 2) {
		check_device(unit_ns, 0);
	}
	check_device(100, 20);
	check_device(1000, 20);
	check_device(1000, 10);
	return expect_status();
}

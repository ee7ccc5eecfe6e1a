/* SPDX-License-Identifier: MIT */
/*
 * Goal: AS-10: any reason that closes the LIFO slot to spawned tasks keeps its
 * owner out, and only that reason's end lets it in again; a task in it can be
 * taken and stolen all the same, and a theft leaves the reasons as they were.
 * Method: each set of three reasons, and of those a caller asks for.
 */
#include "runtime/queue/lifo_slot.h"
#include "tests/support/expect.h"

enum { REASONS_END = 8 }; /* bits 1 to 3 of `closed`: the thief's is bit 0 */

static struct pin_link links[2];

static void check_entered(struct pin_lifo *lifo, uint32_t asked, bool expected)
{
	bool is_in = pin_lifo_enter(lifo, asked);

	expect_number("entered", expected, is_in);
	expect_number("busy while it is in", is_in, pin_load_relaxed_u32(&lifo->busy));
	if (is_in) {
		expect_true("nothing there", pin_lifo_exchange(lifo, NULL) == NULL);
	}
	expect_number("out again", 0, pin_load_relaxed_u32(&lifo->busy));
}

static void check(uint32_t reasons)
{
	struct pin_lifo lifo = {{0}, {0}, {0}};

	for (uint32_t bit = 1; bit < REASONS_END; bit <<= 1) {
		if ((reasons & bit) != 0) {
			pin_lifo_close(&lifo, bit << 1);
		}
	}
	for (uint32_t asked = 0; asked < REASONS_END; asked++) {
		check_entered(&lifo, asked << 1, (reasons & asked) == 0);
	}
	check_entered(&lifo, PIN_LIFO_ALL, reasons == 0);

	expect_true("put in past them", pin_lifo_replace(&lifo, &links[0]) == NULL);
	expect_true("there", !pin_lifo_is_empty(&lifo) && pin_lifo_bits(&lifo) != 0);
	expect_true("replaced", pin_lifo_replace(&lifo, &links[1]) == &links[0]);
	expect_true("taken", pin_lifo_take(&lifo) == &links[1]);
	expect_true("gone", pin_lifo_take(&lifo) == NULL && pin_lifo_bits(&lifo) == 0);
	(void)pin_lifo_replace(&lifo, &links[0]);
	if (pin_host_linux.fence_all()) {
		expect_true("stolen", pin_lifo_steal(&lifo, &pin_host_linux) == &links[0]);
	}
	expect_number("reasons", reasons << 1, pin_lifo_closed_for(&lifo));

	/* While a thief is in it no other thread is. */
	(void)pin_lifo_replace(&lifo, &links[1]);
	/* As a thief does that is in it. */
	pin_fetch_or_seq_cst_u32(&lifo.closed, PIN_LIFO_THIEF);
	expect_true("kept out", pin_lifo_replace(&lifo, &links[0]) == &links[0]);
	expect_true("nor a second", pin_lifo_steal(&lifo, &pin_host_linux) == NULL);
	pin_fetch_and_seq_cst_u32(&lifo.closed, ~PIN_LIFO_THIEF);
	for (uint32_t bit = 1; bit < REASONS_END; bit <<= 1) {
		pin_lifo_open(&lifo, bit << 1);
		expect_number("the others stay", (reasons & ~(2 * bit - 1)) << 1,
			pin_lifo_closed_for(&lifo));
	}
	expect_number("none left", 0, pin_lifo_closed_for(&lifo));
}

int main(void)
{
	for (uint32_t reasons = 0; reasons < REASONS_END; reasons++) {
		check(reasons);
	}
	return expect_status();
}

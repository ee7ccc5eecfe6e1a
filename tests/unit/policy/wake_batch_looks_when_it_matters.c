/* SPDX-License-Identifier: MIT */
/*
 * Goal: W37: a worker checks for sleepers at the latest when its unannounced
 * spawns could be worth a wake, by number or by length, and never puts off the
 * check that needs a fence.
 * Method: whole lives of a batch, spawn by spawn, against the rule itself: no
 * spawn without a check may have been worth a wake. Then how few looks there
 * are: one in PIN_WAKE_BATCH_STRIDE_MAX spawns where tasks are short.
 */
#include "runtime/policy/wake_batch.h"
#include "tests/support/expect.h"

enum {
	WORTH_NS = 20000,
	PAUSE_NS = 100,
	SPAWNS = 4096,
};

/* No worker ever sleeps; returns the number of checks. */
static uint32_t live(uint32_t worth_spawns, uint32_t fence_spawns, uint64_t average_ns)
{
	struct pin_wake_batch wake_batch;
	uint32_t looks = 0;
	uint32_t told = 0; /* spawns before */
	uint32_t queued = 0;
	uint32_t unlooked = 0; /* that still pass */

	pin_wake_batch_init(&wake_batch, worth_spawns, fence_spawns, WORTH_NS, PAUSE_NS);
	for (uint32_t i = 1; i <= SPAWNS; i++) {
		queued = queued == 200 ? 100 : queued + 1; /* and some are run */
		if (unlooked > 0) {
			unlooked--;
			expect_true("no fence is put off", i - told < fence_spawns);
			expect_true("waiting tasks are not worth a wake",
				i - told > worth_spawns || queued * average_ns < WORTH_NS);
			expect_true("nor is it so by number", i - told != worth_spawns);
			continue;
		}
		looks++;
		expect_number("counted", i - told, pin_wake_batch_count(&wake_batch));
		if (pin_wake_batch_is_fence_due(&wake_batch)) {
			expect_number("a fence", fence_spawns, i - told);
			unlooked = pin_wake_batch_note_told(&wake_batch);
			told = i;
		} else {
			unlooked = pin_wake_batch_note_nobody(&wake_batch, queued, average_ns);
		}
	}
	return looks;
}

/* With a sleeper it checks each time, and says when to wake. */
static void check_worth(void)
{
	struct pin_wake_batch wake_batch;

	pin_wake_batch_init(&wake_batch, 32, 128, WORTH_NS, PAUSE_NS);
	for (uint32_t i = 1; i <= 32; i++) {
		expect_number("they add up", i, pin_wake_batch_count(&wake_batch));
		expect_number("by number", i == 32, pin_wake_batch_is_full(&wake_batch));
		expect_number("by length", i >= 2, pin_wake_batch_is_long(&wake_batch, i, 10000));
		expect_number("the next looks", 0, pin_wake_batch_note_kept(&wake_batch));
	}
}

static void check_soon(void)
{
	struct pin_wake_batch wake_batch;
	uint32_t unlooked;

	pin_wake_batch_init(&wake_batch, 32, 128, WORTH_NS, PAUSE_NS);
	expect_number("the first looks", 1, pin_wake_batch_count(&wake_batch));
	unlooked = pin_wake_batch_note_nobody(&wake_batch, 1, 10);
	expect_true("the second does not", unlooked > 1);
	/* That was one. */
	expect_number("the third does", 0, pin_wake_batch_look_soon(&wake_batch, unlooked - 1));
	expect_number("each is counted once", 3, pin_wake_batch_count(&wake_batch));
	expect_number("the next looks", 0, pin_wake_batch_note_told(&wake_batch));
	expect_number("and is the first", 1, pin_wake_batch_count(&wake_batch));
}

static void check_nobody_to_tell(void)
{
	struct pin_wake_batch wake_batch;

	pin_wake_batch_init(
		&wake_batch, PIN_WAKE_BATCH_NEVER, PIN_WAKE_BATCH_NEVER, WORTH_NS, PAUSE_NS);
	expect_true(
		"never again", pin_wake_batch_note_nobody(&wake_batch, 1, 1000000) >= INT32_MAX);
}

/* 32 more make it worth a wake exactly, or miss that by a nanosecond. */
static void check_exact_worth(void)
{
	struct pin_wake_batch wake_batch;

	pin_wake_batch_init(&wake_batch, 64, 128, 33 * 100, PAUSE_NS);
	expect_number("exactly", 0, pin_wake_batch_note_nobody(&wake_batch, 1, 100));
	expect_number("the next looks", 2, pin_wake_batch_count(&wake_batch));
	pin_wake_batch_init(&wake_batch, 64, 128, 33 * 100 + 1, PAUSE_NS);
	expect_number("one less", 31, pin_wake_batch_note_nobody(&wake_batch, 1, 100));
	expect_number("the 32nd looks", 33, pin_wake_batch_count(&wake_batch));
	expect_number("as far as the 64th", 30, pin_wake_batch_note_nobody(&wake_batch, 1, 10));
	expect_number("which looks", 64, pin_wake_batch_count(&wake_batch));
}

/*
 * Between wakes for lone spawns: twice as long with each in vain, up to 256
 * times; as long as at first after one that was not, and over at once when a
 * task was found to have waited.
 */
static void check_pause(void)
{
	struct pin_wake_batch wake_batch;
	uint64_t now_ns = 1000;

	pin_wake_batch_init(&wake_batch, 32, 128, WORTH_NS, PAUSE_NS);
	expect_true("none at first", !pin_wake_batch_is_paused(&wake_batch, 0));
	expect_true("nor in vain", !pin_wake_batch_is_vain(&wake_batch));
	for (uint32_t i = 0; i <= PIN_WAKE_BATCH_VAIN_MAX + 1; i++) {
		uint64_t pause_ns = (uint64_t)PAUSE_NS << (i < PIN_WAKE_BATCH_VAIN_MAX ? i : 8);

		pin_wake_batch_begin_pause(&wake_batch, now_ns, i > 0);
		expect_number("in vain", i > 0, pin_wake_batch_is_vain(&wake_batch));
		expect_true("paused", pin_wake_batch_is_paused(&wake_batch, now_ns + pause_ns - 1));
		expect_true("over", !pin_wake_batch_is_paused(&wake_batch, now_ns + pause_ns));
		now_ns += pause_ns;
	}
	pin_wake_batch_end_pause(&wake_batch);
	expect_true("ended", !pin_wake_batch_is_paused(&wake_batch, now_ns - 1));
	expect_true("and not in vain", !pin_wake_batch_is_vain(&wake_batch));
	pin_wake_batch_begin_pause(&wake_batch, now_ns, true);
	pin_wake_batch_begin_pause(&wake_batch, now_ns, false);
	expect_true("short again", !pin_wake_batch_is_paused(&wake_batch, now_ns + PAUSE_NS));
	expect_true("but not none", pin_wake_batch_is_paused(&wake_batch, now_ns + PAUSE_NS - 1));
}

int main(void)
{
	check_exact_worth();
	uint32_t rare = SPAWNS / PIN_WAKE_BATCH_STRIDE_MAX;

	/* The first after each fence is one more. */
	expect_true("short tasks", live(32, 128, 10) <= rare + 2 * SPAWNS / 128);
	expect_number("long ones", SPAWNS, live(32, 128, WORTH_NS));
	expect_number("each of them", SPAWNS, live(1, 4, 10));
	live(8, 32, 10);
	live(8, 8, 700);
	live(128, 512, 90);
	live(65535, 262140, 150);
	check_worth();
	check_pause();
	check_soon();
	check_nobody_to_tell();
	return expect_status();
}

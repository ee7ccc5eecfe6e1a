/* SPDX-License-Identifier: MIT */
/*
 * Goal: a worker waits awake where that has caught something lately, tries it
 * anew where sleeps are short, and costs next to nothing where it never pays
 * (C10, EX-8, EX-12, EX-49, W13, W14, and calls across runtimes).
 * Method: spells without work in which what would come after so many looks, or
 * after a sleep, is given; what is asked for is counted.
 */
#include "runtime/base/base.h"
#include "runtime/policy/spin.h"
#include "tests/support/expect.h"

enum {
	USUAL = 200,
	LOOK_NS = 50,
	TRIAL = USUAL * PIN_PATIENCE_TRIAL_FACTOR,
	WAKE_NS = 25 * 1000,
	NEVER = UINT32_MAX,
};

struct waiter {
	struct pin_patience patience;
	uint64_t now_ns;
	uint64_t looked_ns; /* in all */
	uint32_t caught;
	uint32_t trial_spans;
};

static struct waiter begin(void)
{
	struct waiter waiter = {.now_ns = 1000 * 1000};

	pin_patience_init(&waiter.patience, USUAL);
	return waiter;
}

/* Dry; something comes after so many looks, else so long after it slept. */
static uint32_t wait_once(struct waiter *waiter, uint32_t comes_after, uint64_t sleep_ns)
{
	uint32_t looks = pin_patience_ask(&waiter->patience, waiter->now_ns);
	uint64_t gap_ns;

	waiter->trial_spans += looks == TRIAL ? 1 : 0;
	if (looks > 0 && comes_after < looks) {
		pin_patience_note_catch(&waiter->patience, comes_after, waiter->now_ns);
		gap_ns = (uint64_t)comes_after * LOOK_NS;
		waiter->looked_ns += gap_ns;
		waiter->caught++;
	} else {
		if (looks > 0) {
			pin_patience_note_miss(&waiter->patience, waiter->now_ns);
		}
		gap_ns = (uint64_t)looks * LOOK_NS + sleep_ns;
		waiter->looked_ns += (uint64_t)looks * LOOK_NS;
	}
	waiter->now_ns += gap_ns;
	pin_patience_note_gap(&waiter->patience, gap_ns);
	return looks;
}

/* Two that take turns, each asleep while the other is woken. */
static void check_turns(void)
{
	struct waiter pair[2] = {begin(), begin()};
	uint32_t missed = 0;

	for (uint32_t i = 0; i < 40; i++) {
		for (uint32_t j = 0; j < 2; j++) {
			/* The other is awake if it has just caught one. */
			bool is_awake = pair[1 - j].patience.has_caught;

			wait_once(&pair[j], is_awake ? 10 : WAKE_NS / LOOK_NS, 2 * WAKE_NS);
		}
	}
	for (uint32_t i = 0; i < 1000; i++) {
		for (uint32_t j = 0; j < 2; j++) {
			missed += wait_once(&pair[j], 10, 2 * WAKE_NS) == 0 ? 1 : 0;
		}
	}
	expect_number("spans that were not waited", 0, missed);
	expect_number("one trial was enough", PIN_PATIENCE_TRIAL_SPANS, pair[0].trial_spans);
	expect_number("to the other as well", PIN_PATIENCE_TRIAL_SPANS, pair[1].trial_spans);

	/* Disturbed for some turns, they find together again. */
	for (uint32_t i = 0; i < 12; i++) {
		wait_once(&pair[0], NEVER, 2 * WAKE_NS);
	}
	pair[0].now_ns += PIN_PATIENCE_PAUSE_NS_MAX;
	for (uint32_t i = 0; i < 40; i++) {
		wait_once(&pair[0], 10, 2 * WAKE_NS);
	}
	expect_true("waits again", wait_once(&pair[0], 10, 2 * WAKE_NS) > 0);
}

/* What comes is learned: jobs of 15 us, more than the usual span. */
static void check_learned_span(void)
{
	struct waiter waiter = begin();
	uint32_t looks = 0;

	for (uint32_t i = 0; i < 100; i++) {
		looks = wait_once(&waiter, 300, 2 * WAKE_NS);
	}
	expect_true("long enough for what comes", looks > 300);
	expect_true("but no trial", looks <= USUAL * PIN_PATIENCE_LEARNED_FACTOR);
	/* And forgotten. */
	for (uint32_t i = 0; i < 3; i++) {
		looks = wait_once(&waiter, NEVER, WAKE_NS);
	}
	expect_true("less than that after some in vain", looks <= 300);
}

/* On one CPU with who brings the work: gaps are short, waiting is in vain. */
static void check_vain(void)
{
	struct waiter waiter = begin();

	for (uint32_t i = 0; i < 100; i++) {
		wait_once(&waiter, NEVER, 2000);
	}
	waiter.looked_ns = 0;
	for (uint64_t end_ns = waiter.now_ns + UINT64_C(20) * 1000 * 1000 * 1000;
		waiter.now_ns < end_ns;) {
		wait_once(&waiter, NEVER, 2000);
	}
	/* Of 20 s, with half a million spells each. */
	expect_number("caught", 0, waiter.caught);
	expect_true("less than 1 % of the time", waiter.looked_ns < UINT64_C(200) * 1000 * 1000);
}

/* Woken by a clock: a trial catches, but no sooner than a wake. */
static void check_late_catches(void)
{
	struct waiter waiter = begin();

	for (uint64_t end_ns = waiter.now_ns + UINT64_C(100) * 1000 * 1000 * 1000;
		waiter.now_ns < end_ns;) {
		wait_once(&waiter, 2000, 100 * 1000);
	}
	expect_true("it was tried", waiter.trial_spans > 0);
	expect_true("less than 0.5 % of the time", waiter.looked_ns < UINT64_C(500) * 1000 * 1000);
}

/* Idle: long gaps, and no attempt at all. */
static void check_idle(void)
{
	struct waiter waiter = begin();

	for (uint32_t i = 0; i < 100; i++) {
		wait_once(&waiter, 10, 1000 * 1000);
	}
	expect_true("no looks of an idle worker", waiter.looked_ns == 0);
}

static void check_off(void)
{
	struct pin_patience patience;
	uint64_t now_ns = 0;
	uint32_t looks = 0;

	pin_patience_init(&patience, 0);
	for (uint32_t i = 0; i < 100; i++) {
		looks += pin_patience_ask(&patience, now_ns);
		now_ns += 1000;
		pin_patience_note_gap(&patience, 1000);
	}
	expect_number("looks where there are to be none", 0, looks);
}

int main(void)
{
	check_turns();
	check_learned_span();
	check_vain();
	check_late_catches();
	check_idle();
	check_off();
	return expect_status();
}

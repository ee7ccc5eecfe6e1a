/* SPDX-License-Identifier: MIT */
/*
 * Goal: a worker waits awake where that has caught something lately, tries it
 * anew where sleeps are short, and costs next to nothing where it never pays
 * (C10, EX-8, EX-12, EX-49, W13, W14, and calls across runtimes).
 * Method: spells without work, where work would come after a given number of
 * checks, or after a sleep; the polls asked for are counted.
 */
#include "runtime/base/base.h"
#include "runtime/policy/spin.h"
#include "tests/support/expect.h"

enum {
	USUAL = 200,
	LOOK_NS = 50,
	TRIAL = USUAL * PIN_SPIN_TRIAL_FACTOR,
	WAKE_NS = 25 * 1000,
	NEVER = UINT32_MAX,
};

struct waiter {
	struct pin_spin spin;
	uint64_t now_ns;
	uint64_t looked_ns; /* in all */
	uint32_t caught;
	uint32_t trial_spans;
};

static struct waiter begin(void)
{
	struct waiter waiter = {.now_ns = 1000 * 1000};

	pin_spin_init(&waiter.spin, USUAL);
	return waiter;
}

/*
 * Dry; work comes after that number of checks, else that long after it slept.
 */
static uint32_t wait_once(struct waiter *waiter, uint32_t comes_after, uint64_t sleep_ns)
{
	uint32_t looks = pin_spin_ask(&waiter->spin, waiter->now_ns);
	uint64_t gap_ns;

	waiter->trial_spans += looks == TRIAL ? 1 : 0;
	if (looks > 0 && comes_after < looks) {
		pin_spin_note_catch(&waiter->spin, comes_after, waiter->now_ns);
		gap_ns = (uint64_t)comes_after * LOOK_NS;
		waiter->looked_ns += gap_ns;
		waiter->caught++;
	} else {
		if (looks > 0) {
			pin_spin_note_miss(&waiter->spin, waiter->now_ns);
		}
		gap_ns = (uint64_t)looks * LOOK_NS + sleep_ns;
		waiter->looked_ns += (uint64_t)looks * LOOK_NS;
	}
	waiter->now_ns += gap_ns;
	pin_spin_note_gap(&waiter->spin, gap_ns);
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
			bool is_awake = pair[1 - j].spin.has_caught;

			wait_once(&pair[j], is_awake ? 10 : WAKE_NS / LOOK_NS, 2 * WAKE_NS);
		}
	}
	for (uint32_t i = 0; i < 1000; i++) {
		for (uint32_t j = 0; j < 2; j++) {
			missed += wait_once(&pair[j], 10, 2 * WAKE_NS) == 0 ? 1 : 0;
		}
	}
	expect_number("spans that were not waited", 0, missed);
	expect_number("one trial was enough", PIN_SPIN_TRIAL_SPANS, pair[0].trial_spans);
	expect_number("to the other as well", PIN_SPIN_TRIAL_SPANS, pair[1].trial_spans);

	/* Disturbed for some turns, they find together again. */
	for (uint32_t i = 0; i < 12; i++) {
		wait_once(&pair[0], NEVER, 2 * WAKE_NS);
	}
	pair[0].now_ns += PIN_SPIN_PAUSE_NS_MAX;
	for (uint32_t i = 0; i < 40; i++) {
		wait_once(&pair[0], 10, 2 * WAKE_NS);
	}
	expect_true("waits again", wait_once(&pair[0], 10, 2 * WAKE_NS) > 0);
}

/* Arrivals are learned: jobs of 15 us, more than the usual span. */
static void check_learned_span(void)
{
	struct waiter waiter = begin();
	uint32_t looks = 0;

	for (uint32_t i = 0; i < 100; i++) {
		looks = wait_once(&waiter, 300, 2 * WAKE_NS);
	}
	expect_true("long enough for arrivals", looks > 300);
	expect_true("but no trial", looks <= USUAL * PIN_SPIN_LEARNED_FACTOR);
	/* And forgotten. */
	for (uint32_t i = 0; i < 3; i++) {
		looks = wait_once(&waiter, NEVER, WAKE_NS);
	}
	expect_true("less than that after some in vain", looks <= 300);
}

/*
 * On one CPU with the bringer of the work: gaps are short, waiting is in vain.
 */
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
	struct pin_spin spin;
	uint64_t now_ns = 0;
	uint32_t looks = 0;

	pin_spin_init(&spin, 0);
	for (uint32_t i = 0; i < 100; i++) {
		looks += pin_spin_ask(&spin, now_ns);
		now_ns += 1000;
		pin_spin_note_gap(&spin, 1000);
	}
	expect_number("looks where there are to be none", 0, looks);
}

/* ---- by its numbers ---- */

static void expect_spin(
	const char *what, const struct pin_spin *got, const struct pin_spin *expected)
{
	const struct {
		const char *name;
		uint64_t expected;
		uint64_t got;
	} fields[] = {
		{"usual", expected->usual, got->usual},
		{"misses", expected->misses, got->misses},
		{"skips", expected->skips, got->skips},
		{"next skips", expected->next_skips, got->next_skips},
		{"caught looks", expected->caught_looks, got->caught_looks},
		{"short sleeps", expected->short_sleeps, got->short_sleeps},
		{"trial spans", expected->trial_spans, got->trial_spans},
		{"has caught", expected->has_caught, got->has_caught},
		{"gap", expected->gap_ns, got->gap_ns},
		{"trial", expected->trial_ns, got->trial_ns},
		{"pause", expected->pause_ns, got->pause_ns},
	};
	char name[96];

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		snprintf(name, sizeof(name), "%s: %s", what, fields[i].name);
		expect_number(name, (long long)fields[i].expected, (long long)fields[i].got);
	}
}

/* An eighth of each gap counts; four short ones in a row are worth a trial. */
static void check_gaps(void)
{
	struct pin_spin got;
	struct pin_spin expected = {
		.usual = USUAL, .next_skips = 16, .gap_ns = 400 * 1000, .pause_ns = 1000 * 1000};

	pin_spin_init(&got, USUAL);
	expect_spin("at first", &got, &expected);
	pin_spin_note_gap(&got, 0);
	expected.gap_ns = 350 * 1000;
	expected.short_sleeps = 1;
	expect_spin("no gap", &got, &expected);
	pin_spin_note_gap(&got, 149999);
	expected.gap_ns = 350 * 1000 - 43750 + 18749;
	expected.short_sleeps = 2;
	expect_spin("a short one", &got, &expected);
	pin_spin_note_gap(&got, 150000);
	expected.gap_ns = 324999 - 40624 + 18750;
	expected.short_sleeps = 0;
	expect_spin("a wait that is not", &got, &expected);
	pin_spin_note_gap(&got, UINT64_MAX);
	expected.gap_ns = 303125 - 37890 + 50000;
	expect_spin("a long one counts as 400 us", &got, &expected);
	for (uint32_t i = 1; i <= 6; i++) {
		expected.gap_ns += 12500 - expected.gap_ns / 8;
		expected.short_sleeps = i < 4 ? i : 4;
		pin_spin_note_gap(&got, 100 * 1000);
		expect_spin("short ones in a row", &got, &expected);
	}
	got.has_caught = expected.has_caught = true;
	expected.gap_ns += 12500 - expected.gap_ns / 8;
	expected.short_sleeps = 0;
	pin_spin_note_gap(&got, 100 * 1000);
	expect_spin("none was slept", &got, &expected);
	expect_number("too long to wait", 0, pin_spin_ask(&got, 0));
	expected.has_caught = false;
	expect_spin("asked", &got, &expected);
	got.gap_ns = 50 * 1000;
	expect_number("still", 0, pin_spin_ask(&got, 0));
	got.gap_ns = 50 * 1000 - 1;
	expect_number("worth it", USUAL, pin_spin_ask(&got, 0));
}

/* Where a trial may be; `now_ns` is that of the question before. */
static struct pin_spin begin_trial(uint64_t now_ns, uint64_t pause_ns)
{
	struct pin_spin spin;

	pin_spin_init(&spin, USUAL);
	spin.short_sleeps = 4;
	spin.trial_ns = now_ns;
	spin.pause_ns = pause_ns;
	expect_number("not yet", 0, pin_spin_ask(&spin, now_ns - 1));
	expect_number("a trial", 16 * USUAL, pin_spin_ask(&spin, now_ns));
	return spin;
}

static void check_trials(void)
{
	const uint64_t now_ns = 5000 * 1000;
	struct pin_spin got = begin_trial(now_ns, 8000 * 1000);
	struct pin_spin expected = {
		.usual = USUAL,
		.next_skips = 16,
		.caught_looks = 16 * USUAL,
		.trial_spans = 16,
		.gap_ns = 400 * 1000,
		.trial_ns = now_ns + 8000 * 1000,
		.pause_ns = 8000 * 1000,
	};

	expect_spin("a trial", &got, &expected);
	for (uint32_t i = 1; i <= 16; i++) {
		pin_spin_note_catch(&got, 100, now_ns);
		expected.has_caught = true;
		expected.caught_looks += 50 - expected.caught_looks / 2;
		expected.trial_spans--;
		if (i == 16) {
			/* It paid: 100 looks are less than twice the usual. */
			expected.gap_ns = 0;
			expected.pause_ns = 2000 * 1000;
			expected.trial_ns = now_ns + 2000 * 1000;
		}
		expect_spin("a catch of the trial", &got, &expected);
	}
	/* Exactly twice the usual pays, one more does not. */
	for (uint32_t more = 0; more <= 2; more += 2) {
		got = begin_trial(now_ns, 1000 * 1000);
		got.trial_spans = 1;
		got.caught_looks = 2 * USUAL;
		pin_spin_note_catch(&got, 2 * USUAL + more, now_ns);
		expect_number("gap", more == 0 ? 0 : 400 * 1000, (long long)got.gap_ns);
		expect_number("caught", more == 0 ? 2 * USUAL : 0, got.caught_looks);
		expect_number(
			"pause", more == 0 ? 1000 * 1000 : 4000 * 1000, (long long)got.pause_ns);
	}
	got = begin_trial(now_ns, 8000 * 1000);
	pin_spin_note_miss(&got, now_ns + 7);
	expected = (struct pin_spin){
		.usual = USUAL,
		.next_skips = 16,
		.gap_ns = 400 * 1000,
		.trial_ns = now_ns + 7 + 32000 * 1000,
		.pause_ns = 32000 * 1000,
	};
	expect_spin("a miss ends it", &got, &expected);
	got = begin_trial(now_ns, 8000 * 1000);
	got.trial_spans = 1;
	pin_spin_note_miss(&got, now_ns + 7);
	expect_spin("a miss in its last span too", &got, &expected);
	got = begin_trial(now_ns, 500 * 1000 * 1000);
	pin_spin_note_miss(&got, now_ns);
	expect_number("a second at most", 1000 * 1000 * 1000, (long long)got.pause_ns);
	expect_number(
		"until then", (long long)now_ns + 1000 * 1000 * 1000, (long long)got.trial_ns);
}

/* Twice what it took lately, from the usual span to four times that. */
static void check_spans(void)
{
	static const uint32_t rows[][2] = {{0, 200}, {99, 200}, {101, 202}, {300, 600}, {399, 798},
		{400, 800}, {401, 800}, {3200, 800}};
	struct pin_spin got;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		pin_spin_init(&got, USUAL);
		got.gap_ns = 0;
		got.caught_looks = rows[i][0];
		expect_number("a span", rows[i][1], pin_spin_ask(&got, 0));
	}
}

/* Eight misses, then 16 times without, then after each miss twice as many. */
static void check_skips(void)
{
	struct pin_spin got;
	struct pin_spin expected = {
		.usual = USUAL, .next_skips = 16, .caught_looks = 1024, .pause_ns = 1000 * 1000};

	pin_spin_init(&got, USUAL);
	got.gap_ns = 0;
	got.caught_looks = 1024;
	for (uint32_t i = 1; i < 8; i++) {
		expect_true("a span", pin_spin_ask(&got, 0) > 0);
		pin_spin_note_miss(&got, 0);
		expected.misses = i;
		expected.caught_looks /= 2;
		expect_spin("a miss", &got, &expected);
	}
	for (uint32_t skips = 16; skips <= 2048; skips *= 2) {
		expect_true("a span", pin_spin_ask(&got, 0) > 0);
		pin_spin_note_miss(&got, 0);
		expected.misses = 8;
		expected.caught_looks /= 2;
		expected.skips = skips < 1024 ? skips : 1024;
		expected.next_skips = skips < 512 ? 2 * skips : 1024;
		expect_spin("one too many", &got, &expected);
		for (uint32_t i = expected.skips; i > 0; i--) {
			expect_number("skipped", 0, pin_spin_ask(&got, 0));
			expected.skips--;
			expect_spin("skipped", &got, &expected);
		}
	}
	got.skips = 3;
	pin_spin_note_catch(&got, 11, 0);
	expected = (struct pin_spin){.usual = USUAL,
		.next_skips = 16,
		.caught_looks = 5,
		.has_caught = true,
		.pause_ns = 1000 * 1000};
	expect_spin("a catch begins anew", &got, &expected);
}

int main(void)
{
	check_gaps();
	check_trials();
	check_spans();
	check_skips();
	check_turns();
	check_learned_span();
	check_vain();
	check_late_catches();
	check_idle();
	check_off();
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: the steps of the pace are those that tools/pace.h describes: climb,
 * fall, return, hold, trial kept and taken back, pauses, reports that are
 * ignored; and so are the verdicts about latency and pressure.
 * Method: reports one by one; rates worked out by hand.
 */
#include "tests/support/expect.h"
#include "tools/pace.h"

static struct pace pace;

static void begin(uint64_t min, uint64_t start, uint64_t max)
{
	const struct pace_options options = {.min = min, .start = start, .max = max};

	pace_init(&pace, &options);
	expect_number("start", (long long)start, (long long)pace.rate);
}

static void expect_step(const char *what, uint64_t rate, struct pace_report report)
{
	expect_number(what, (long long)rate, (long long)pace_step(&pace, &report));
}

static void quiet(const char *what, uint64_t rate)
{
	expect_step(what, rate, (struct pace_report){.is_used = true});
}

/* With all of the rate used. */
static void over(const char *what, uint64_t rate)
{
	expect_step(what, rate,
		(struct pace_report){
			.is_over = true, .is_used = true, .bytes_per_second = UINT64_MAX});
}

static void far_over(const char *what, uint64_t rate)
{
	expect_step(what, rate,
		(struct pace_report){.is_over = true,
			.is_far_over = true,
			.is_used = true,
			.bytes_per_second = UINT64_MAX});
}

static void repeat(const char *what, uint32_t count, uint64_t rate)
{
	for (uint32_t i = 0; i < count; i++) {
		quiet(what, rate);
	}
}

static void check_climb(void)
{
	begin(100, 800, 2000);
	quiet("an eighth and one", 901);
	quiet("again", 1014);
	expect_step("unused", 1014, (struct pace_report){.is_used = false});
	quiet("again", 1141);
	quiet("again", 1284);
	quiet("again", 1445);
	quiet("again", 1626);
	quiet("again", 1830);
	quiet("to the most", 2000);
	quiet("no more", 2000);
}

/* A fall from 1600, three ignored reports, and back to 1200. */
static void fall_and_return(void)
{
	begin(100, 1600, 100000);
	over("half", 800);
	expect_number("counted", 1, (long long)pace.fall_count);
	over("ignored", 800);
	over("ignored", 800);
	quiet("ignored", 800);
	quiet("a sixteenth and one", 851);
	quiet("again", 905);
	quiet("again", 962);
	quiet("again", 1023);
	quiet("again", 1087);
	quiet("again", 1155);
	quiet("again", 1228);
	quiet("three quarters of the ceiling", 1228);
	expect_number("held", PACE_HOLDS, pace.phase);
}

static void check_fall(void)
{
	fall_and_return();
	begin(100, 1600, 100000);
	expect_step("half of what was read", 500,
		(struct pace_report){.is_over = true, .bytes_per_second = 1000});
	expect_number("the ceiling too", 1000, (long long)pace.ceiling);
	begin(100, 150, 1000);
	far_over("not below the least", 100);
	repeat("ignored", 3, 100);
	over("on the way back", 100);
	expect_number("counted", 2, (long long)pace.fall_count);
}

static void check_trials(void)
{
	fall_and_return();
	repeat("pause", 2, 1228);
	quiet("trial: a sixteenth and one", 1305);
	repeat("trial", 6, 1305);
	repeat("pause", 2, 1305);
	quiet("trial: an eighth", 1469);
	over("taken back", 1305);
	expect_number("the ceiling", 1469, (long long)pace.ceiling);
	expect_number("no fall", 1, (long long)pace.fall_count);
	repeat("ignored", 3, 1305);
	repeat("a pause twice as long", 5, 1305);
	quiet("trial: a sixteenth", 1387);
	over("taken back", 1305);
	repeat("ignored", 3, 1305);
	repeat("a pause twice as long", 11, 1305);
	quiet("trial", 1387);
	over("taken back", 1305);
	repeat("ignored, and 24", 26, 1305);
	quiet("trial", 1387);
	over("taken back", 1305);
	repeat("no longer pause", 26, 1305);
	quiet("trial", 1387);
	repeat("trial", 6, 1387);
	repeat("a short pause again", 2, 1387);
	quiet("trial: an eighth", 1561);
	repeat("kept", 6, 1561);
	repeat("pause", 2, 1561);
	expect_number("the last that was too much", 1387, (long long)pace.ceiling);
	quiet("trial: a quarter", 1952);
	repeat("kept", 6, 1952);
	expect_number("a third above the ceiling", PACE_CLIMBS, pace.phase);
	quiet("climbs", 2197);
}

/* After a fall trials are a sixteenth again, with a short pause. */
static void check_trials_after_fall(void)
{
	fall_and_return();
	repeat("pause", 2, 1228);
	quiet("trial", 1305);
	repeat("kept: the next would be an eighth", 6, 1305);
	far_over("half", 652);
	repeat("ignored", 3, 652);
	quiet("a sixteenth and one", 693);
	quiet("again", 737);
	quiet("again", 784);
	quiet("again", 834);
	quiet("again", 887);
	quiet("again", 943);
	quiet("again", 1002);
	quiet("three quarters of the ceiling", 1002);
	repeat("pause", 2, 1002);
	quiet("trial: a sixteenth", 1065);
	over("taken back", 1002);
	far_over("ignored", 1002);
	repeat("ignored", 2, 1002);
	far_over("half", 501);
	repeat("ignored", 3, 501);
	quiet("a sixteenth and one", 533);
	quiet("again", 567);
	quiet("again", 603);
	quiet("again", 641);
	quiet("again", 682);
	quiet("again", 725);
	quiet("again", 771);
	quiet("three quarters of the ceiling", 771);
	repeat("a pause as short as at first", 2, 771);
	quiet("trial: a sixteenth", 820);
}

/* A third above the ceiling nothing is known any more. */
static void check_clear(void)
{
	for (uint64_t rate = 1200; rate <= 1201; rate++) {
		begin(100, rate, 100000);
		pace.phase = PACE_TRIES;
		pace.ceiling = 900;
		repeat("trial", 6, rate);
		expect_number("a third above", rate > 1200 ? PACE_CLIMBS : PACE_HOLDS, pace.phase);
	}
}

static void check_held(void)
{
	fall_and_return();
	over("an eighth less", 1075);
	expect_number("no fall", 1, (long long)pace.fall_count);
	expect_number("the ceiling", 1228, (long long)pace.ceiling);
	repeat("ignored", 3, 1075);
	repeat("pause", 5, 1075);
	expect_number("reports until it is forgotten", 4, pace.again);
	quiet("trial", 1143);
	over("is taken back", 1075);
	over("ignored", 1075);
	repeat("ignored", 2, 1075);
	fall_and_return();
	over("an eighth less", 1075);
	repeat("ignored", 3, 1075);
	over("still", 537);
	expect_number("a fall", 2, (long long)pace.fall_count);
	fall_and_return();
	far_over("the world is another", 614);
	expect_number("a fall", 2, (long long)pace.fall_count);
	fall_and_return();
	repeat("pause", 2, 1228);
	quiet("trial", 1305);
	far_over("a trial too", 652);
	expect_number("a fall", 2, (long long)pace.fall_count);
	fall_and_return();
	over("an eighth less", 1075);
	for (int i = 0; i < 12; i++) {
		expect_step("unused", 1075, (struct pace_report){0});
	}
	over("an eighth less", 941);
	expect_number("no fall", 1, (long long)pace.fall_count);
}

static void check_latency(void)
{
	struct pace_latency latency = {0};

	expect_number("one slow alone", PACE_WITHIN, pace_latency(&latency, 1, 1));
	expect_number("a second", PACE_OVER, pace_latency(&latency, 0, 1));
	latency = (struct pace_latency){0};
	expect_number("two of 100", PACE_WITHIN, pace_latency(&latency, 100, 2));
	latency = (struct pace_latency){0};
	expect_number("three of 100", PACE_OVER, pace_latency(&latency, 100, 3));
	expect_number("forgotten", PACE_WITHIN, pace_latency(&latency, 100, 0));
	expect_number("weights", 100 * 256 * 15 / 8, (long long)latency.timed);
	expect_number("weights", 3 * 256 * 7 / 8, (long long)latency.slow);
	latency = (struct pace_latency){0};
	expect_number("11 of 1000", PACE_WITHIN, pace_latency(&latency, 1000, 11));
	latency = (struct pace_latency){0};
	expect_number("12 of 1000", PACE_OVER, pace_latency(&latency, 1000, 12));
	latency = (struct pace_latency){0};
	expect_number("14 of 100", PACE_OVER, pace_latency(&latency, 100, 14));
	latency = (struct pace_latency){0};
	expect_number("15 of 100", PACE_FAR_OVER, pace_latency(&latency, 100, 15));
}

static void check_pressure(void)
{
	struct pace_pressure pressure = {0};

	expect_number("no time", PACE_WITHIN, pace_pressure(&pressure, 5, 0, 0));
	expect_true("says nothing", !pressure.is_known);
	expect_number("at it", PACE_WITHIN, pace_pressure(&pressure, 100, 1000, 100000));
	expect_number("above", PACE_OVER, pace_pressure(&pressure, 104, 1000, 100000));
	expect_number("average", 101000, (long long)pressure.ppm);
	expect_number("of four", PACE_WITHIN, pace_pressure(&pressure, 96, 1000, 100000));
	expect_number("average", 99750, (long long)pressure.ppm);
	pressure = (struct pace_pressure){0};
	expect_number("twice", PACE_OVER, pace_pressure(&pressure, 200, 1000, 100000));
	pressure = (struct pace_pressure){0};
	expect_number("more", PACE_FAR_OVER, pace_pressure(&pressure, 201, 1000, 100000));
	pressure = (struct pace_pressure){0};
	(void)pace_pressure(&pressure, 5000, 1000, 100000);
	expect_number("not more than all", 1000000, (long long)pressure.ppm);
}

int main(void)
{
	check_climb();
	check_fall();
	check_trials();
	check_trials_after_fall();
	check_clear();
	check_held();
	check_latency();
	check_pressure();
	return expect_status();
}

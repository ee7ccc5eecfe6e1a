/* SPDX-License-Identifier: MIT */
/*
 * Goal: a trial of the depth goes a third up, or a quarter down, a third where
 * requests are short; it is kept if it brings a sixteenth more, or downwards if
 * it costs no 48th; trials that fail become rarer up to one in 64 intervals; a
 * rate that is another twice in a row begins anew.
 * Method: one sample after the other, with rates at each border and just beyond
 * it.
 */
#include "runtime/io/device.h"
#include "tests/support/expect.h"

enum {
	MS = 1000 * 1000,
	RATE = 4800, /* units of a sample: a multiple of 16 and 48 */
	LONG_NS = 10 * MS,
};

static struct pin_depth depth;

static void begin(uint32_t start, uint32_t min, uint32_t max)
{
	pin_depth_init(&depth, &(struct pin_depth_options){.start = start, .min = min, .max = max});
}

/* One interval of 10 ms, less the microsecond that is added. */
static uint32_t learn_of(uint64_t units, uint64_t latency_ns, bool was_full)
{
	const struct pin_depth_sample sample = {
		.elapsed_ns = 9999 * 1000,
		.units = units,
		.latency_ns = latency_ns,
		.was_full = was_full,
	};

	return pin_depth_learn(&depth, &sample);
}

static uint32_t learn(uint64_t units)
{
	return learn_of(units, LONG_NS, true);
}

/* Measures at `base` until a trial begins; how many intervals that took. */
static uint32_t await_trial(uint64_t units)
{
	uint32_t count = 0;

	while (learn(units) == depth.base && count < 1000) {
		count++;
	}
	return count + 1;
}

static void expect_depth(const char *what, uint32_t base, uint32_t now, enum pin_depth_phase phase)
{
	expect_number(what, base, depth.base);
	expect_number(what, now, depth.depth);
	expect_number(what, phase, depth.phase);
}

static void try_once(uint64_t units)
{
	learn(units);
	learn(units);
}

static void check_up(void)
{
	begin(64, 8, 1024);
	expect_depth("at first", 64, 64, PIN_DEPTH_MEASURES);
	expect_number("two intervals", 2, await_trial(RATE));
	expect_depth("a third more", 64, 64 + 22, PIN_DEPTH_SETTLES);
	learn(1);
	expect_depth("what settles does not count", 64, 86, PIN_DEPTH_TRIES);
	learn(RATE + RATE / 16);
	expect_depth("a sixteenth more is kept", 86, 86, PIN_DEPTH_MEASURES);
	expect_true("its rate", depth.base_rate == (RATE + RATE / 16) * UINT64_C(100000));

	begin(64, 8, 1024);
	await_trial(RATE);
	try_once(RATE + RATE / 16 - 1);
	expect_depth("less is not", 64, 64, PIN_DEPTH_SETTLES);
	expect_true("the other way", !depth.tries_more);
	expect_number("as soon", 2, depth.spin);
	learn(1);
	expect_depth("settled", 64, 64, PIN_DEPTH_MEASURES);
}

static void check_down(void)
{
	begin(65, 8, 1024);
	await_trial(RATE);
	try_once(RATE);
	learn(RATE);
	expect_number("two intervals again", 2, await_trial(RATE));
	expect_depth("a quarter less", 65, 48, PIN_DEPTH_SETTLES);
	try_once(RATE - RATE / 48);
	expect_depth("a 48th less is kept", 48, 48, PIN_DEPTH_MEASURES);
	expect_number("as soon", 2, depth.spin);
	expect_true("so is the way", !depth.tries_more);

	begin(65, 8, 1024);
	await_trial(RATE);
	try_once(RATE);
	learn(RATE);
	await_trial(RATE);
	try_once(RATE - RATE / 48 - 1);
	expect_depth("more is not", 65, 65, PIN_DEPTH_SETTLES);
	expect_true("upwards again", depth.tries_more);
	expect_number("later", 4, depth.spin);
}

/* Failures both ways: 2, 2, 4, 8 and so on up to 64 intervals. */
static void check_patience(void)
{
	uint32_t expected = 2;

	begin(64, 8, 1024);
	for (uint32_t i = 0; i < 9; i++) {
		expect_number("intervals before a trial", expected, await_trial(RATE));
		try_once(1);
		learn(RATE);
		if (i > 0) {
			expected = expected < 64 ? 2 * expected : 64;
		}
	}
	expect_number("at most", 64, depth.spin);
	await_trial(RATE);
	try_once(2 * RATE);
	expect_number("one that helps", 2, depth.spin);
	expect_true("is not half of two", !depth.has_flipped);
}

/* Three quarters of whose latency is 2 ms: less has to bring more. */
static void check_short(void)
{
	uint64_t latency_ns = PIN_DEPTH_SHORT_NS / 3 * 4;

	for (uint32_t is_long = 0; is_long < 2; is_long++) {
		begin(64, 8, 64);
		expect_number("measured", 64, learn_of(RATE, latency_ns, true));
		expect_number(is_long ? "a quarter less" : "a third less", is_long ? 48 : 43,
			learn_of(RATE, latency_ns + 4 * is_long, true));
		latency_ns += 4;
	}
	for (uint32_t more = 0; more < 2; more++) {
		begin(64, 8, 64);
		learn_of(RATE, PIN_DEPTH_SHORT_NS, true);
		learn_of(RATE, PIN_DEPTH_SHORT_NS, true);
		learn_of(RATE, PIN_DEPTH_SHORT_NS, true);
		learn_of(RATE + RATE / 16 - 1 + more, PIN_DEPTH_SHORT_NS, true);
		expect_number("a sixteenth more", more ? 43 : 64, depth.base);
	}
	begin(64, 8, 64);
	learn_of(RATE, 0, true);
	expect_number("not known, not short", 48, learn_of(RATE, 0, true));
}

static void check_bounds(void)
{
	begin(8, 8, 9);
	await_trial(RATE);
	expect_depth("up to the most", 8, 9, PIN_DEPTH_SETTLES);
	begin(1024, 1023, 1024);
	expect_number("two intervals", 2, await_trial(RATE));
	expect_depth("down to the least", 1024, 1023, PIN_DEPTH_SETTLES);
	begin(5, 5, 5);
	for (uint32_t i = 0; i < 10; i++) {
		expect_number("neither", 5, learn(RATE));
	}
	begin(1, 1, 1024);
	await_trial(RATE);
	expect_depth("one more at least", 1, 2, PIN_DEPTH_SETTLES);
}

/* A quarter off is like before, one unit beyond is not: twice in a row. */
static void check_another_device(void)
{
	begin(64, 64, 64);
	learn(RATE);
	learn(RATE + RATE / 4);
	expect_number("like before", 0, depth.odd_count);
	expect_true(
		"a quarter of it counts", depth.base_rate == (RATE + RATE / 16) * UINT64_C(100000));
	begin(64, 64, 64);
	learn(RATE);
	learn(RATE - RATE / 4);
	expect_number("as low", 0, depth.odd_count);
	for (uint32_t is_more = 0; is_more < 2; is_more++) {
		uint64_t odd = is_more ? RATE + RATE / 4 + 1 : RATE - RATE / 4 - 1;

		begin(64, 64, 64);
		learn(RATE);
		learn(odd);
		expect_number("odd", 1, depth.odd_count);
		expect_true("not counted", depth.base_rate == RATE * UINT64_C(100000));
		learn(RATE);
		expect_number("once", 0, depth.odd_count);
		learn(odd);
		learn(odd);
		expect_number("another", 0, depth.odd_count);
		expect_true("from now on", depth.base_rate == odd * 100000);
	}
}

/* A device whose requests queue in it is tried with less. */
static void check_queue(void)
{
	for (uint32_t is_queue = 0; is_queue < 2; is_queue++) {
		uint64_t least_ns = LONG_NS + LONG_NS / 256 + 1;

		begin(64, 8, 1024);
		learn_of(RATE, LONG_NS, true);
		expect_number("the least", LONG_NS, (long long)depth.latency_ns_min);
		learn_of(2 * RATE, LONG_NS, true);
		/* One more, as it creeps up, and is set again. */
		least_ns = LONG_NS + LONG_NS / 256 + 1;
		learn_of(2 * RATE, least_ns + least_ns / 2 + is_queue, true);
		expect_number("crept up", (long long)least_ns, (long long)depth.latency_ns_min);
		expect_number("which way", is_queue ? 48 : 86, depth.depth);
	}
}

static void check_not_full(void)
{
	begin(64, 8, 1024);
	learn(RATE);
	learn_of(RATE, LONG_NS, false);
	expect_number("counts from there", 2, await_trial(RATE));
	learn_of(RATE, LONG_NS, false);
	expect_depth("ends a trial", 64, 64, PIN_DEPTH_SETTLES);
}

static void check_ripe(void)
{
	begin(64, 8, 1024);
	expect_true("too short", !pin_depth_is_ripe(&depth, 10 * MS - 1, 1000));
	expect_true("too few", !pin_depth_is_ripe(&depth, 10 * MS, 127));
	expect_true("enough", pin_depth_is_ripe(&depth, 10 * MS, 128));
	expect_true("not yet", !pin_depth_is_ripe(&depth, 1000 * MS - 1, 127));
	expect_true("long enough", pin_depth_is_ripe(&depth, 1000 * MS, 0));
}

/* 6400 units a second at most: heads have to be moved for each. */
static void check_few(void)
{
	pin_depth_init(
		&depth, &(struct pin_depth_options){.start = 64, .min = 8, .max = 1024, .few = 4});
	expect_true("too few", !pin_depth_is_ripe(&depth, 10 * MS, 7));
	expect_true("enough of few", pin_depth_is_ripe(&depth, 10 * MS, 8));
	expect_number("as many", 64, learn(64));
	expect_true("still few", depth.is_few);
	learn(65);
	expect_true("too many for heads", !depth.is_few);
	expect_true("nothing was learnt", depth.base_rate == 0);
	begin(64, 8, 1024);
	expect_true("not asked for", !depth.is_few);
}

int main(void)
{
	check_up();
	check_down();
	check_patience();
	check_short();
	check_bounds();
	check_another_device();
	check_queue();
	check_not_full();
	check_ripe();
	check_few();
	return expect_status();
}

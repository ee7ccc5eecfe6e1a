/* SPDX-License-Identifier: MIT */
/*
 * Goal: the depth of a device comes near its knee, wherever it starts, follows
 * the knee when it moves, costs little of the rate when it is there, and never
 * leaves its bounds; intervals that were not full change nothing, and a depth
 * whose requests take under 2 ms is shortened only if that brings more.
 * Method: devices as curves of rate over depth, hard and soft, with noise,
 * counted in intervals as the worker would; PINION_SEED.
 */
#include "runtime/base/base.h"
#include "runtime/io/device.h"
#include "tests/support/expect.h"
#include "tests/support/random.h"

enum {
	MS = 1000 * 1000,
	MIN = 8,
	MAX = 1024,
	INTERVALS = 1500,
};

/* Rate and latency by depth: latency_ns up to the knee, then a queue. */
struct device {
	uint64_t latency_ns;
	uint64_t rate_max; /* units per second */
	bool is_soft;	   /* a parabola from half of the knee to half as much again */
	uint32_t noise_percent;
	uint32_t loss_from; /* not 0: above that depth it does less, down to half */
};

static struct random_source dice;

static uint32_t knee_of(const struct device *device)
{
	return (uint32_t)(device->rate_max * device->latency_ns / 1000000000);
}

static double rate_at(const struct device *device, uint32_t depth)
{
	double wanted = (double)depth / ((double)device->latency_ns / 1e9);
	double max = (double)device->rate_max;

	if (device->is_soft && wanted > max / 2 && wanted < max * 3 / 2) {
		double left = 1.5 - wanted / max;

		return max * (1 - left * left / 2);
	}
	if (device->loss_from != 0 && depth > device->loss_from) {
		max *= 0.5 + 0.5 * device->loss_from / depth;
	}
	return wanted < max ? wanted : max;
}

/* One interval at the depth in force. */
static uint32_t run_interval(struct pin_depth *depth, const struct device *device)
{
	double rate = rate_at(device, depth->depth);
	double noise = device->noise_percent == 0
		? 0
		: ((double)random_below(&dice, 2001) - 1000) / 100000 * device->noise_percent;
	uint64_t elapsed_ns = 10 * MS;
	struct pin_depth_sample sample = {.was_full = true};

	while (!pin_depth_is_ripe(depth, elapsed_ns, (uint64_t)(rate * (double)elapsed_ns / 1e9))) {
		elapsed_ns += MS;
	}
	sample.elapsed_ns = elapsed_ns;
	sample.units = (uint64_t)(rate * (1 + noise) * (double)elapsed_ns / 1e9);
	sample.latency_ns = (uint64_t)((double)depth->depth / rate * 1e9);
	return pin_depth_learn(depth, &sample);
}

struct outcome {
	double depth; /* average of base over the last half */
	double share; /* of the best rate, over the last half, trials included */
};

static struct outcome run(struct pin_depth *depth, const struct device *device)
{
	double best = rate_at(device, MAX);
	struct outcome outcome = {0, 0};
	bool is_inside = true;

	for (uint32_t i = 0; i < INTERVALS; i++) {
		uint32_t now = run_interval(depth, device);

		is_inside = is_inside && now >= depth->options.min && now <= depth->options.max &&
			depth->base >= depth->options.min && depth->base <= depth->options.max;
		if (i >= INTERVALS / 2) {
			outcome.depth += depth->base / (INTERVALS / 2.0);
			outcome.share += rate_at(device, depth->depth) / best / (INTERVALS / 2.0);
		}
	}
	expect_true("the depth stays in its bounds", is_inside);
	return outcome;
}

static void expect_near(const char *what, const struct device *device, struct outcome outcome)
{
	double knee = knee_of(device);
	double wanted = knee < MIN ? MIN : knee;
	/* A quarter less would be short. */
	double short_depth = (double)device->rate_max * PIN_DEPTH_SHORT_NS / 1e9 * 4 / 3;
	double low;
	double high;

	wanted = wanted > MAX ? MAX : wanted;
	low = wanted * 0.75;
	high = wanted * 4;
	/* A short one stays. */
	high = high < short_depth ? short_depth * 1.1 : high;

	if (outcome.depth < low || outcome.depth > high || outcome.share < 0.93) {
		printf("%s: knee at %.0f, expected %.0f to %.0f and 93 %% of the rate, got %.1f "
		       "and %.1f %%\n",
			what, knee, low, high, outcome.depth, outcome.share * 100);
		expect_failure_count++;
	}
}

static struct pin_depth begin(uint32_t start)
{
	struct pin_depth depth;

	pin_depth_init(&depth, &(struct pin_depth_options){.start = start, .min = MIN, .max = MAX});
	return depth;
}

static const struct device devices[] = {
	{.latency_ns = 100 * 1000, .rate_max = 500000}, /* knee 50 */
	{.latency_ns = 100 * 1000, .rate_max = 500000, .noise_percent = 4},
	{.latency_ns = 2 * MS, .rate_max = 65536, .noise_percent = 4},	 /* 131 */
	{.latency_ns = 30 * MS, .rate_max = 16000, .noise_percent = 2},	 /* 480 */
	{.latency_ns = 200 * 1000, .rate_max = 100000, .is_soft = true}, /* 20 */
	{.latency_ns = 1 * MS, .rate_max = 200000, .is_soft = true, .noise_percent = 3},
	{.latency_ns = 5 * MS, .rate_max = 200, .noise_percent = 3}, /* 1: a slow one */
	{.latency_ns = 100 * MS, .rate_max = 100000},		     /* beyond the cap */
};

static void check_knees(void)
{
	static const uint32_t starts[] = {MIN, 64, 256, MAX};
	char what[64];

	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(devices); i++) {
		for (uint32_t k = 0; k < PIN_ARRAY_COUNT(starts); k++) {
			struct pin_depth depth = begin(starts[k]);

			snprintf(what, sizeof(what), "device %u from %u", i, starts[k]);
			expect_near(what, &devices[i], run(&depth, &devices[i]));
		}
	}
}

/* Half of the time on one device, then it is another. */
static void check_change(void)
{
	char what[64];

	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(devices); i++) {
		for (uint32_t k = 0; k < PIN_ARRAY_COUNT(devices); k++) {
			struct pin_depth depth = begin(256);

			run(&depth, &devices[i]);
			snprintf(what, sizeof(what), "device %u after device %u", k, i);
			expect_near(what, &devices[k], run(&depth, &devices[k]));
		}
	}
}

static void check_bounds(void)
{
	struct pin_depth_options one = {.start = 4, .min = 4, .max = 4};
	struct device device = {.latency_ns = MS, .rate_max = 1000000};
	struct pin_depth depth;

	pin_depth_init(&depth, &one);
	for (uint32_t i = 0; i < 100; i++) {
		expect_number("a fixed depth", 4, run_interval(&depth, &device));
	}
}

/* Far above the knee, but nothing waits for long. */
static void check_short(void)
{
	struct pin_depth depth = begin(128);
	struct device device = {.latency_ns = 100 * 1000, .rate_max = 100000};

	for (uint32_t i = 0; i < INTERVALS; i++) {
		run_interval(&depth, &device);
		expect_number("depth of short requests", 128, depth.base);
	}
	/* It does more with less, as memory in a cache does. */
	device.loss_from = 32;
	expect_true("what brings more is kept", run(&depth, &device).depth <= 40);
	device.loss_from = 0;
	/* The same with a tenth of the rate is no longer. */
	device.rate_max = 10000;
	expect_true("a long depth is made shorter", run(&depth, &device).depth < 64);
}

/* A user of less than the depth teaches nothing, and ends a trial. */
static void check_idle(void)
{
	struct pin_depth depth = begin(64);
	struct device device = {.latency_ns = MS, .rate_max = 200000};
	struct pin_depth_sample idle = {.elapsed_ns = 10 * MS, .units = 1000, .latency_ns = MS};
	uint32_t base;

	for (uint32_t i = 0; i < 100; i++) {
		expect_number("depth while no request waits", 64, pin_depth_learn(&depth, &idle));
	}
	while (depth.phase != PIN_DEPTH_TRIES) {
		run_interval(&depth, &device);
	}
	base = depth.base;
	expect_true("a trial is under way", depth.depth != base);
	expect_number("depth when a trial is cut short", base, pin_depth_learn(&depth, &idle));
}

/*
 * Few for a drive with heads, but not for a device that only claims to be one.
 */
static void check_heads(void)
{
	struct pin_depth_options options = {.start = 256, .min = MIN, .max = MAX, .few = 4};
	struct pin_depth_sample drive = {.elapsed_ns = 100 * MS, .units = 600, .was_full = true};
	struct pin_depth_sample flash = {.elapsed_ns = 10 * MS, .units = 200, .was_full = true};
	struct pin_depth depth;

	pin_depth_init(&depth, &options);
	expect_true("few are ripe early", pin_depth_is_ripe(&depth, 10 * MS, 8));
	for (uint32_t i = 0; i < 100; i++) {
		pin_depth_learn(&depth, &drive);
		expect_true("a drive is given few", depth.is_few);
	}
	expect_number("depth of none", 256, pin_depth_learn(&depth, &flash));
	expect_true("a device too fast for heads is given more", !depth.is_few);
	expect_true("and more has to be done", !pin_depth_is_ripe(&depth, 10 * MS, 8));
}

static void check_units(void)
{
	expect_number("units of nothing", 1, (long long)pin_depth_units(0));
	expect_number("units of 4 KiB", 1, (long long)pin_depth_units(4096));
	expect_number("units of 64 KiB", 1, (long long)pin_depth_units(65536));
	expect_number("units of 64 KiB and a byte", 2, (long long)pin_depth_units(65537));
	expect_number("units of 2 GiB", 32768, (long long)pin_depth_units(UINT64_C(1) << 31));
}

int main(void)
{
	random_begin(&dice);
	check_units();
	check_knees();
	check_change();
	check_bounds();
	check_short();
	check_idle();
	check_heads();
	return expect_status();
}

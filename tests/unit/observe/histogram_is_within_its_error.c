/* SPDX-License-Identifier: MIT */
/*
 * Goal: each value has one bucket, buckets follow each other without a gap, and
 * the value that is read from a bucket is within 1.6 % of all of its values, or
 * 1 ns below 64 ns; quantiles, sums and differences come out by value. C17.
 * Method: the first and the last value of every bucket, and values at random;
 * then small histograms.
 */
#include "runtime/base/random.h"
#include "runtime/observe/histogram.h"
#include "tests/support/expect.h"

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static void check_value(uint64_t value)
{
	uint32_t bucket = pin_histogram_bucket(value);
	uint64_t off = distance(pin_histogram_middle(bucket), value);

	expect_true("not below its bucket", value >= pin_histogram_lowest(bucket));
	if (value < UINT64_C(1) << 36) {
		expect_true("nor above",
			value - pin_histogram_lowest(bucket) < pin_histogram_width(bucket));
		expect_true("within the error", value < 64 ? off <= 1 : off * 64 <= value);
	}
}

static void check_buckets(void)
{
	uint64_t next = 0;

	for (uint32_t i = 0; i < PINION_HISTOGRAM_BUCKETS; i++) {
		uint64_t lowest = pin_histogram_lowest(i);
		uint64_t highest = lowest + pin_histogram_width(i) - 1;

		expect_number("no gap", (long long)next, (long long)lowest);
		expect_number(
			"public", (long long)lowest, (long long)pinion_histogram_lowest_ns(i));
		expect_number("first", i, pin_histogram_bucket(lowest));
		expect_number("last", i, pin_histogram_bucket(highest));
		check_value(lowest);
		check_value(highest);
		next = highest + 1;
	}
	expect_number("up to", 1ll << 36, (long long)next);
	expect_number("beyond", PINION_HISTOGRAM_BUCKETS - 1, pin_histogram_bucket(next));
	expect_number("most", PINION_HISTOGRAM_BUCKETS - 1, pin_histogram_bucket(UINT64_MAX));
	expect_true(
		"no bucket", pinion_histogram_lowest_ns(PINION_HISTOGRAM_BUCKETS) == UINT64_MAX);
}

static void check_random(void)
{
	struct pin_random random;

	pin_random_init(&random, 7, 0);
	for (int i = 0; i < 100000; i++) {
		uint64_t value = (uint64_t)pin_random_below(&random, UINT32_MAX) << 8;

		check_value(value >> pin_random_below(&random, 40));
	}
}

static void check_quantiles(void)
{
	static struct pinion_histogram all;
	static struct pinion_histogram more;

	expect_number("of none", 0, (long long)pinion_histogram_quantile_ns(&all, 500));
	for (uint64_t i = 0; i < 1000; i++) {
		pinion_histogram_record(&all, i < 990 ? 20 : 1000000, 1);
	}
	expect_number("count", 1000, (long long)all.count);
	expect_number("sum", 990 * 20 + 10 * 1000000, (long long)all.sum_ns);
	expect_number("median", 21, (long long)pinion_histogram_quantile_ns(&all, 500));
	expect_number("990", 21, (long long)pinion_histogram_quantile_ns(&all, 990));
	expect_number("991", (long long)pin_histogram_middle(pin_histogram_bucket(1000000)),
		(long long)pinion_histogram_quantile_ns(&all, 991));
	expect_number("least", 21, (long long)pinion_histogram_quantile_ns(&all, 0));
	expect_number("beyond 1000", (long long)pinion_histogram_quantile_ns(&all, 1000),
		(long long)pinion_histogram_quantile_ns(&all, 5000));
	pinion_histogram_record(&more, 20, 10);
	pinion_histogram_record(&more, 64, 3);
	pinion_histogram_add(&all, &more);
	expect_number("added", 1013, (long long)all.count);
	expect_number("its bucket", 1000, (long long)all.buckets[10]);
	expect_number("another", 3, (long long)all.buckets[32]);
	pinion_histogram_subtract(&all, &more);
	expect_number("subtracted", 1000, (long long)all.count);
	expect_number("its bucket", 990, (long long)all.buckets[10]);
	expect_number("another", 0, (long long)all.buckets[32]);
	pinion_histogram_subtract(&more, &all);
	expect_number("not below 0", 0, (long long)more.count);
}

int main(void)
{
	check_buckets();
	check_random();
	check_quantiles();
	return expect_status();
}

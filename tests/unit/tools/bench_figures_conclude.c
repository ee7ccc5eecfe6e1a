/* SPDX-License-Identifier: MIT */
/*
 * Goal: a bench finds a slowdown of 10 %, takes equals for equal, and does not
 * conclude from too few pairs or from noise.
 * Method: ratios with seeded noise, and small lists whose answers are known.
 */
#include "tests/support/expect.h"
#include "tools/bench/samples.h"

#include <stdint.h>

/* xorshift64*, -1 … 1. */
static double noise(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (double)(*state * 0x2545f4914f6cdd1dULL >> 11) / (double)(1ULL << 52) - 1;
}

static struct samples_ratio conclude(
	double ratio, double noise_share, uint32_t pair_count, uint64_t seed)
{
	struct samples ratios = {0};
	struct samples_ratio result;
	uint64_t state = seed;

	for (uint32_t i = 0; i < pair_count; i++) {
		expect_ready("memory",
			samples_add(&ratios, ratio * (1 + noise_share * noise(&state))) == 0);
	}
	samples_sort(&ratios);
	result = samples_conclude(&ratios);
	samples_free(&ratios);
	return result;
}

static void test_quantiles(void)
{
	struct samples samples = {0};

	for (int i = 4; i >= 0; i--) {
		expect_ready("memory", samples_add(&samples, i * 10) == 0);
	}
	samples_sort(&samples);
	expect_true("least", samples_quantile(&samples, 0) == 0);
	expect_true("median", samples_quantile(&samples, 0.5) == 20);
	expect_true("between", samples_quantile(&samples, 0.125) == 5);
	expect_true("most", samples_quantile(&samples, 1) == 40);
	samples_free(&samples);
}

/* The ranks that tables of the sign test give. */
static void test_ranks(void)
{
	static const struct {
		uint32_t count;
		uint32_t rank; /* of the low end, from 1 */
	} known[] = {{6, 1}, {9, 2}, {20, 6}, {25, 8}, {50, 18}, {100, 40}, {1000, 469}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct samples ratios = {0};
		struct samples_ratio result;

		for (uint32_t value = 1; value <= known[i].count; value++) {
			expect_ready("memory", samples_add(&ratios, value) == 0);
		}
		result = samples_conclude(&ratios);
		expect_number("low rank", known[i].rank, (long long)result.low);
		expect_number(
			"high rank", known[i].count + 1 - known[i].rank, (long long)result.high);
		samples_free(&ratios);
	}
}

/* 95 % of intervals must hold the truth; of 400, 370 leave room for chance. */
static void test_equals_are_equal(void)
{
	int held_count = 0;

	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct samples_ratio result = conclude(1, 0.1, 20, seed);

		held_count += result.low <= 1 && result.high >= 1;
		expect_true("little noise is conclusive", result.is_conclusive);
	}
	expect_true("at least 370 of 400 intervals hold 1", held_count >= 370);
}

static void test_slowdown_is_found(void)
{
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct samples_ratio result = conclude(0.9, 0.05, 12, seed);

		expect_true("the interval is below 1", result.high < 1);
		expect_true("it is conclusive", result.is_conclusive);
	}
}

static void test_noise_is_told(void)
{
	expect_true("noise of 80 %", !conclude(1, 0.8, 20, 1).is_conclusive);
	expect_true("5 pairs", !conclude(1, 0.001, 5, 1).is_conclusive);
	expect_true("1 pair", !conclude(1, 0.001, 1, 1).is_conclusive);
	expect_true("6 pairs", conclude(1, 0.001, 6, 1).is_conclusive);
}

int main(void)
{
	test_quantiles();
	test_ranks();
	test_equals_are_equal();
	test_slowdown_is_found();
	test_noise_is_told();
	return expect_status();
}

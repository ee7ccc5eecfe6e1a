/* SPDX-License-Identifier: MIT */
/*
 * Goal: the same seed gives the same numbers, those of xorshift64 with shifts
 * 13, 7, 17, also from a runtime's configuration; workers differ; a state is
 * never 0; numbers below a limit are in range and evenly spread. EX-10, EX-39,
 * C9, C23.
 * Method: numbers worked out by a second implementation, in Python; seeds
 * chosen so that a worker's state would be 0; counts per number against their
 * mean, from the default seed, so that the outcome is always the same.
 */
#include "runtime/base/base.h"
#include "runtime/base/random.h"
#include "runtime/task/entry.h"
#include "tests/support/runtimes.h"

enum {
	WORKERS = 4096,
	DRAWS_PER_NUMBER = 10000,
};

static void check_numbers(
	const char *what, uint64_t seed, uint32_t worker_index, const uint64_t *expected)
{
	struct pin_random random;

	pin_random_init(&random, seed, worker_index);
	for (uint32_t i = 0; i < 3; i++) {
		if (pin_random_next(&random) != expected[i]) {
			printf("%s: number %u differs\n", what, i);
			expect_failure_count++;
		}
	}
}

static void check_known_numbers(void)
{
	static const uint64_t of_marsaglia_seed[] = {UINT64_C(8748534153485358512),
		UINT64_C(3040900993826735515), UINT64_C(3453997556048239312)};
	static const uint64_t of_default[] = {UINT64_C(0x00ea4be701d3338e),
		UINT64_C(0x44103c51b1bfb669), UINT64_C(0x3ff8298a6d767345)};
	static const uint64_t of_worker_7[] = {UINT64_C(0xf6d53ecad5d30114),
		UINT64_C(0xa8ded58c90b66216), UINT64_C(0x40a1498ffee94b52)};

	check_numbers("seed 88172645463325252", UINT64_C(88172645463325252), 0, of_marsaglia_seed);
	check_numbers("default seed", PIN_RANDOM_SEED_DEFAULT, 0, of_default);
	check_numbers("default seed, worker 7", PIN_RANDOM_SEED_DEFAULT, 7, of_worker_7);
	check_numbers("seed 0", 0, 0, of_default);
	check_numbers("a seed that worker 7 cancels", 7 * PIN_RANDOM_INDEX_FACTOR, 7, of_default);
}

/* Of an only worker, which has no other to choose. */
static void check_of_runtime(uint64_t seed)
{
	struct pinion_runtime *runtime = NULL;
	struct pinion_config config;
	struct pin_random random;

	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	runtimes_tuning.seed = seed;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	pin_random_init(&random, seed, 0);
	expect_number("state of a worker", 0,
		memcmp(&random, &runtime->shared.workers[0].random, sizeof(random)));
	pinion_runtime_destroy(runtime);
}

static void check_workers_differ(void)
{
	static uint64_t first[WORKERS];

	for (uint32_t i = 0; i < WORKERS; i++) {
		struct pin_random random;

		pin_random_init(&random, PIN_RANDOM_SEED_DEFAULT, i);
		first[i] = pin_random_next(&random);
		for (uint32_t j = 0; j < i; j++) {
			if (first[j] == first[i]) {
				printf("workers %u and %u have the same numbers\n", j, i);
				expect_failure_count++;
			}
		}
	}
}

/*
 * Five standard deviations of a count are 5 * sqrt(DRAWS_PER_NUMBER), 500.
 */
static void check_spread(uint32_t limit)
{
	struct pin_random random;
	uint32_t counts[100] = {0};

	pin_random_init(&random, PIN_RANDOM_SEED_DEFAULT, 0);
	for (uint32_t i = 0; i < limit * DRAWS_PER_NUMBER; i++) {
		uint32_t number = pin_random_below(&random, limit);

		if (number >= limit) {
			printf("below %u: got %u\n", limit, number);
			expect_failure_count++;
			return;
		}
		counts[number]++;
	}
	for (uint32_t i = 0; i < limit; i++) {
		expect_true("each number comes as often as the others",
			counts[i] > DRAWS_PER_NUMBER - 500 && counts[i] < DRAWS_PER_NUMBER + 500);
	}
}

static void check_limits(void)
{
	static const uint32_t limits[] = {2, 3, 7, 64, 100};
	struct pin_random random;
	uint32_t highest = 0;

	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(limits); i++) {
		check_spread(limits[i]);
	}
	pin_random_init(&random, PIN_RANDOM_SEED_DEFAULT, 0);
	for (uint32_t i = 0; i < 1000; i++) {
		uint32_t number = pin_random_below(&random, UINT32_MAX);

		highest = number > highest ? number : highest;
		expect_number("below 1", 0, pin_random_below(&random, 1));
		expect_number("below 0", 0, pin_random_below(&random, 0));
	}
	expect_true("a large limit is made use of", highest > UINT32_MAX / 100 * 99);
}

int main(void)
{
	check_known_numbers();
	check_of_runtime(PIN_RANDOM_SEED_DEFAULT);
	check_of_runtime(5);
	check_workers_differ();
	check_limits();
	return expect_status();
}

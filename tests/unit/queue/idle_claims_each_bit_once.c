/* SPDX-License-Identifier: MIT */
/*
 * Goal: each published bit is claimed at most once, whichever threads compete
 * for it, and none gets lost; the lowest is taken first, or the bit that the
 * caller prefers; also while its count of publications rolls over. W30, W31,
 * AS-24, AS-25, AS-26, C6, EX-50. Hazard that others met: a count beside the
 * sleepers that rolls over.
 * Method: with one thread over all sizes of the set, then random moves and
 * looks against a plain array; then owners that publish, wait until claimed or
 * withdraw, against threads that claim by different policies. An owner knows in
 * how many rounds its bit was taken; as often it must have been claimed.
 */
#include "runtime/base/base.h"
#include "runtime/queue/idle_set.h"
#include "tests/support/expect.h"
#include "tests/support/idle.h"
#include "tests/support/random.h"
#include "tests/support/rounds.h"

#include <pthread.h>
#include <sched.h>

enum {
	OWNERS = 4,
	CLAIMERS = 3,
	ROUNDS = 20000,
	ROUNDS_LEAST = 100,
	ROUNDS_SECONDS = 8,
	STRIDE = 63, /* owners are in different words, and two in one group */
	MOVES = 20000,
};

static struct pin_idle idle;
static struct pin_atomic_u32 claims[OWNERS];
static struct rounds rounds;
static uint32_t made_counts[OWNERS];
static uint32_t taken_counts[OWNERS]; /* rounds in which the bit was gone */
static struct pin_atomic_u32 owners_left;
static struct pin_atomic_u32 stray_count;

/* The policies: lowest, near the third owner, from the second on. */
static uint32_t claim_by(uint32_t claimer)
{
	static const struct pin_range ranges[] = {
		{2 * STRIDE, 3 * STRIDE}, {STRIDE, OWNERS * STRIDE}, {0, OWNERS * STRIDE}};

	switch (claimer) {
	case 0:
		return pin_idle_claim(&idle);
	case 1:
		return pin_idle_claim_in(&idle, ranges, PIN_ARRAY_COUNT(ranges));
	default:
		return pin_idle_claim_from(&idle, STRIDE);
	}
}

static void *claim_until_done(void *arg)
{
	while (pin_load_acquire_u32(&owners_left) > 0) {
		uint32_t index = claim_by(*(uint32_t *)arg);

		if (index == PIN_IDLE_NONE) {
			sched_yield();
		} else if (index % STRIDE != 0 || index / STRIDE >= OWNERS) {
			pin_fetch_add_acq_rel_u32(&stray_count, 1);
		} else {
			pin_fetch_add_acq_rel_u32(&claims[index / STRIDE], 1);
		}
	}
	return NULL;
}

/*
 * Odd rounds wait for the claim, which shows that none is lost. Even ones
 * withdraw at once; then a claim may or may not have come before.
 */
static void *publish_rounds(void *arg)
{
	uint32_t owner = *(uint32_t *)arg;

	for (uint32_t i = 0; rounds_go_on(&rounds, i); i++) {
		uint32_t before = pin_load_acquire_u32(&claims[owner]);

		pin_idle_publish(&idle, owner * STRIDE);
		while (i % 2 == 1 && pin_load_acquire_u32(&claims[owner]) == before) {
			sched_yield();
		}
		taken_counts[owner] += pin_idle_withdraw(&idle, owner * STRIDE) ? 0 : 1;
		made_counts[owner]++;
	}
	pin_fetch_add_acq_rel_u32(&owners_left, UINT32_MAX);
	return NULL;
}

static void check_alone(uint32_t worker_count)
{
	pin_idle_init(&idle, worker_count);
	expect_number("claim of an empty set", PIN_IDLE_NONE, pin_idle_claim(&idle));
	expect_true("an empty set is empty", pin_idle_is_empty(&idle));
	for (uint32_t i = worker_count; i > 0; i--) {
		pin_idle_publish(&idle, i - 1);
		expect_true("a set with a worker is not empty", !pin_idle_is_empty(&idle));
	}
	expect_number("count", worker_count, idle_count(&idle));
	expect_true("withdrawn", pin_idle_withdraw(&idle, worker_count / 2));
	expect_true("withdrawn before", !pin_idle_withdraw(&idle, worker_count / 2));
	for (uint32_t i = 0; i < worker_count; i++) {
		if (i != worker_count / 2 && !expect_number("lowest", i, pin_idle_claim(&idle))) {
			return;
		}
	}
	expect_number("count when all are claimed", 0, idle_count(&idle));
}

/* ---- against a plain array ---- */

static bool is_published[PIN_IDLE_WORKERS_MAX];
static struct random_source source;

static uint32_t expected_in(struct pin_range range)
{
	for (uint32_t i = range.first; i < range.end; i++) {
		if (is_published[i]) {
			return i;
		}
	}
	return PIN_IDLE_NONE;
}

static uint32_t draw(uint32_t limit)
{
	return (uint32_t)random_below(&source, limit);
}

/* Ranges that contain each other, as those of a worker do; some are empty. */
static void draw_ranges(struct pin_range *ranges, uint32_t range_count, uint32_t worker_count)
{
	struct pin_range range = {0, worker_count};

	for (uint32_t i = range_count; i > 0; i--) {
		ranges[i - 1] = range;
		range.first += draw(pin_range_count(range) + 1);
		range.end -= draw(pin_range_count(range) + 1);
	}
}

static bool check_claim(uint32_t worker_count)
{
	struct pin_range ranges[3] = {{0, worker_count}, {0, worker_count}, {0, worker_count}};
	uint32_t expected = PIN_IDLE_NONE;
	uint32_t start;
	uint32_t got;

	switch (draw(3)) {
	case 0:
		got = pin_idle_claim(&idle);
		break;
	case 1:
		start = draw(worker_count + 2);
		got = pin_idle_claim_from(&idle, start);
		ranges[0].first = start < worker_count ? start : 0;
		break;
	default:
		draw_ranges(ranges, 3, worker_count);
		got = pin_idle_claim_in(&idle, ranges, 3);
		break;
	}
	for (uint32_t i = 0; i < 3 && expected == PIN_IDLE_NONE; i++) {
		expected = expected_in(ranges[i]);
	}
	if (got != PIN_IDLE_NONE) {
		is_published[got] = false;
	}
	return expect_number("claimed", expected, got);
}

/* Long phases in which bits come, then go, so that sets are full and empty. */
static void check_moves(uint32_t worker_count, uint64_t seed)
{
	uint32_t count = 0;

	memset(is_published, 0, sizeof(is_published));
	pin_idle_init(&idle, worker_count);
	if (worker_count > 64) {
		pin_store_relaxed_u64(&idle.top, UINT64_C(0xffffff00) << 32);
	}
	for (uint32_t i = 0; i < MOVES; i++) {
		uint32_t index = draw(worker_count);
		bool is_filling = i / (worker_count + 20) % 2 == 0;

		if (is_published[index] && draw(4) == 0) {
			pin_idle_withdraw(&idle, index);
			is_published[index] = false;
			count--;
		} else if (!is_published[index] && draw(8) < (is_filling ? 7 : 1)) {
			pin_idle_publish(&idle, index);
			is_published[index] = true;
			count++;
		} else if (!is_filling || draw(4) == 0) {
			if (!check_claim(worker_count)) {
				printf("with %u workers, move %u, seed %llu\n", worker_count, i,
					(unsigned long long)seed);
				return;
			}
			count -= count > 0 ? 1 : 0;
		}
		expect_true("held", pin_idle_holds(&idle, index) == is_published[index]);
		expect_true("empty with no worker in it", pin_idle_is_empty(&idle) == (count == 0));
		if (i % 64 == 0) {
			expect_number("first", expected_in((struct pin_range){0, worker_count}),
				pin_idle_first(&idle));
			expect_number("count among moves", count, idle_count(&idle));
		}
	}
}

/* The count of publications lies above the bits of groups, and is not one. */
static void check_count_is_no_group(void)
{
	static const struct pin_range last = {PIN_IDLE_WORKERS_MAX - 1, PIN_IDLE_WORKERS_MAX};
	uint64_t one = UINT64_C(1) << PIN_IDLE_GROUPS;

	pin_idle_init(&idle, PIN_IDLE_WORKERS_MAX);
	pin_idle_publish(&idle, 0);
	expect_number("nothing there", PIN_IDLE_NONE, pin_idle_claim_in(&idle, &last, 1));
	expect_true("one publication", pin_load_relaxed_u64(&idle.top) == (one | 1));
	expect_number("the one", 0, pin_idle_claim(&idle));
	expect_true("its group is empty", pin_load_relaxed_u64(&idle.top) == one);
}

int main(void)
{
	static const uint32_t sizes[] = {
		1, 2, 63, 64, 65, 127, 128, 129, 192, 300, 1024, PIN_IDLE_WORKERS_MAX};
	pthread_t threads[OWNERS + CLAIMERS];
	uint32_t numbers[OWNERS + CLAIMERS];
	uint64_t seed = random_begin(&source);

	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(sizes); i++) {
		check_alone(sizes[i]);
		check_moves(sizes[i], seed);
	}
	check_count_is_no_group();
	pin_idle_init(&idle, OWNERS * STRIDE);
	pin_store_release_u32(&owners_left, OWNERS);
	rounds = rounds_begin(ROUNDS, ROUNDS_LEAST, ROUNDS_SECONDS);
	for (uint32_t i = 0; i < OWNERS + CLAIMERS; i++) {
		numbers[i] = i < OWNERS ? i : i - OWNERS;
		expect_ready("thread",
			pthread_create(&threads[i], NULL,
				i < OWNERS ? publish_rounds : claim_until_done, &numbers[i]) == 0);
	}
	for (uint32_t i = 0; i < OWNERS + CLAIMERS; i++) {
		pthread_join(threads[i], NULL);
	}
	expect_number("claims of an unset bit", 0, pin_load_acquire_u32(&stray_count));
	for (uint32_t i = 0; i < OWNERS; i++) {
		expect_number("claims of an owner whose bit was taken", taken_counts[i],
			pin_load_acquire_u32(&claims[i]));
		expect_true("claims are at least those waited for",
			taken_counts[i] >= made_counts[i] / 2);
	}
	expect_number("bits left", 0, idle_count(&idle));
	expect_number("claim at the end", PIN_IDLE_NONE, pin_idle_claim(&idle));
	expect_true("empty after that claim", pin_idle_is_empty(&idle));
	return expect_status();
}

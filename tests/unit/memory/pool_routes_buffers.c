/* SPDX-License-Identifier: MIT */
/*
 * Goal: where buffers are at first, where they come from, and where they go.
 * BP-5, BP-7, BP-10, BP-11, BP-12, BP-13, BP-15, BP-16, BP-17, BP-19, BP-25,
 * BP-T2, BP-T5, W9, W10.
 * Method: one thread plays all owners and the threads without a magazine; the
 * counts of each place, and of thefts, are looked at. While it holds the pool's
 * lock, who asked for it would never come back.
 */
#include "tests/support/pools.h"

#include <unistd.h>

enum {
	LIMIT_SECONDS = 60,
};

static void expect_permits(
	const char *what, const struct pin_pool *pool, uint32_t listed, const uint32_t *counts)
{
	char name[96];

	snprintf(name, sizeof(name), "%s: listed", what);
	expect_number(name, listed, pin_pool_count_lists(pool));
	for (uint32_t i = 0; i < pool->magazine_count; i++) {
		snprintf(name, sizeof(name), "%s: magazine %u", what, i);
		expect_number(name, counts[i], pin_pool_count_magazine(pool, i));
	}
}

static void check_seeds(void)
{
	static const uint32_t full[] = {2, 2, 2, 2};
	static const uint32_t scarce[] = {2, 2, 1, 0};
	struct pin_pool pool;

	pools_init(&pool, 12, 4, 2, 0);
	expect_permits("12 of 4 x 2", &pool, 4, full);
	pin_pool_fini(&pool);
	pools_init(&pool, 8, 4, 2, 0);
	expect_permits("8 of 4 x 2", &pool, 0, full);
	pin_pool_fini(&pool);
	pools_init(&pool, 5, 4, 2, 0);
	expect_permits("5 of 4 x 2", &pool, 0, scarce);
	/* W9: whose magazine got nothing still has a buffer when it asks. */
	pools_take(&pool, 3);
	expect_number("4 are left", 4, pin_pool_count(&pool));
	pin_pool_fini(&pool);
}

static uint64_t steals_of(const struct pin_pool *pool)
{
	return pin_load_relaxed_u64(&pool->steals);
}

/*
 * BP-17: with a reserve of a third no thread robs another while each has its
 * share.
 */
static void check_reserve(void)
{
	enum { OWNERS = 4, SHARE = 3, ROUNDS = 100 };
	struct pinion_buffer buffers[OWNERS][SHARE];
	struct pin_pool pool;

	pools_init(&pool, OWNERS * SHARE, OWNERS, 2, 0);
	for (int round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < OWNERS * SHARE; i++) {
			buffers[i % OWNERS][i / OWNERS] = pools_take(&pool, i % OWNERS);
		}
		expect_number("all are out", 0, pin_pool_count(&pool));
		for (uint32_t i = 0; i < OWNERS * SHARE; i++) {
			pools_give(&pool, i % OWNERS, &buffers[i % OWNERS][i / OWNERS]);
		}
	}
	expect_number("thefts with a reserve", 0, (long long)steals_of(&pool));
	pin_pool_fini(&pool);
}

/* BP-19: own magazine, shared stash, list, spill and refill, without a wait. */
static void check_no_lock(void)
{
	enum { ALL = 8 };
	struct pinion_buffer buffers[ALL];
	struct pin_pool pool;

	pools_init(&pool, ALL, 2, 2, 0);
	pin_lock_acquire(&pool.lock, &pin_host_linux);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < ALL - 2; i++) {
			buffers[i] = pools_take(&pool, 0);
		}
		for (int i = 0; i < ALL - 2; i++) {
			pools_give(&pool, 0, &buffers[i]);
		}
		for (int i = 0; i < 4; i++) {
			buffers[i] = pools_take(&pool, PIN_POOL_OUTSIDE);
		}
		for (int i = 0; i < 4; i++) {
			pools_give(&pool, PIN_POOL_OUTSIDE, &buffers[i]);
		}
	}
	expect_true("refilled", pin_meter_read(&pool.magazines[0].refills) > 0);
	expect_true("spilled", pin_meter_read(&pool.magazines[0].spills) > 0);
	/* Only marked as robbed, which makes its owner publish buffers. */
	buffers[0] = pools_take(&pool, 1);
	pin_pool_flush(&pool, 1);
	pools_give(&pool, 1, &buffers[0]);
	expect_number("on the stash", 1, pin_stash_count(&pool.magazines[1].stash));
	expect_number("and off it", buffers[0].index, pools_take(&pool, 1).index);
	expect_number("no magazine was robbed", 0, (long long)steals_of(&pool));
	pin_lock_release(&pool.lock, &pin_host_linux);
	pin_pool_fini(&pool);
}

static void check_order(void)
{
	static const uint32_t own_first[] = {1, 2};
	static const uint32_t then_listed[] = {0, 2};
	static const uint32_t then_others[] = {0, 0};
	struct pinion_buffer buffers[6];
	struct pin_pool pool;

	pools_init(&pool, 5, 2, 2, 0);
	buffers[0] = pools_take(&pool, 0);
	expect_permits("own first", &pool, 1, own_first);
	buffers[1] = pools_take(&pool, 0);
	buffers[2] = pools_take(&pool, 0);
	expect_permits("then listed ones", &pool, 0, then_listed);
	buffers[3] = pools_take(&pool, 0);
	expect_permits("then others', the rest is listed", &pool, 1, then_others);
	expect_number("counted as a theft", 1, (long long)pin_load_relaxed_u64(&pool.steals));
	expect_number("hits", 2, (long long)pin_meter_read(&pool.magazines[0].hits));
	buffers[4] = pools_take(&pool, 0);
	expect_true("then none", pools_is_empty(&pool, 0));
	expect_true("for none", pools_is_empty(&pool, 1));
	expect_true("anywhere", pools_is_empty(&pool, PIN_POOL_OUTSIDE));
	/*
	 * Back: a robbed one passes buffers on until half a magazine is there.
	 */
	pools_give(&pool, 1, &buffers[0]);
	expect_number("passed on", 1, pin_pool_count_lists(&pool));
	/* Then into the own magazine while there is room. */
	pools_give(&pool, 1, &buffers[1]);
	pools_give(&pool, 1, &buffers[2]);
	expect_number("own is full", 2, pin_pool_count_magazine(&pool, 1));
	pools_give(&pool, 1, &buffers[3]);
	expect_number("half of it went home", 2, pin_pool_count_lists(&pool));
	expect_number("and the last one in", 2, pin_pool_count_magazine(&pool, 1));
	pools_give(&pool, PIN_POOL_OUTSIDE, &buffers[4]);
	expect_number("from outside: home", 3, pin_pool_count_lists(&pool));
	expect_number("all back", 5, pin_pool_count(&pool));
	pin_pool_flush(&pool, 0);
	pin_pool_flush(&pool, 1);
	expect_number("flushed", 5, pin_pool_count_lists(&pool));
	pin_pool_fini(&pool);
}

/* Half a magazine at once, but no more than a fair share of what there is. */
static void check_refill(void)
{
	static const uint32_t several[] = {1};
	static const uint32_t shared[] = {0, 4};
	struct pinion_buffer buffers[5];
	struct pin_pool pool;

	pools_init(&pool, 12, 1, 4, 0);
	for (int i = 0; i < 5; i++) {
		buffers[i] = pools_take(&pool, 0);
	}
	expect_permits("half of it was fetched", &pool, 6, several);
	expect_number("once", 1, (long long)pin_meter_read(&pool.magazines[0].refills));
	for (int i = 0; i < 5; i++) {
		pools_give(&pool, 0, &buffers[i]);
	}
	pin_pool_fini(&pool);
	pools_init(&pool, 11, 2, 4, 0);
	for (int i = 0; i < 5; i++) {
		buffers[i] = pools_take(&pool, 0);
	}
	expect_permits("a half of three is one", &pool, 2, shared);
	for (int i = 0; i < 5; i++) {
		pools_give(&pool, 0, &buffers[i]);
	}
	pin_pool_fini(&pool);
}

/* All in the magazines, and a thread without one needs them. */
static void check_no_starvation(void)
{
	struct pinion_buffer buffers[8];
	struct pin_pool pool;

	pools_init(&pool, 8, 4, 2, 0);
	expect_number("none is listed", 0, pin_pool_count_lists(&pool));
	buffers[0] = pools_take(&pool, 0);
	buffers[1] = pools_take(&pool, 0);
	pools_give(&pool, 0, &buffers[1]);
	for (int i = 1; i < 8; i++) {
		buffers[i] = pools_take(&pool, PIN_POOL_OUTSIDE);
	}
	expect_true("none is left", pools_is_empty(&pool, PIN_POOL_OUTSIDE));
	expect_number("by robbing each of the four", 4, (long long)steals_of(&pool));
	for (int i = 0; i < 8; i++) {
		for (int j = 0; j < i; j++) {
			expect_true("all are different", buffers[i].bytes != buffers[j].bytes);
		}
	}
	for (int i = 0; i < 8; i++) {
		pools_give(&pool, PIN_POOL_OUTSIDE, &buffers[i]);
	}
	expect_number("all are home", 8, pin_pool_count_lists(&pool));
	pin_pool_fini(&pool);
}

/* A robbed magazine of more than a stash: the stash, the list, then itself. */
static void check_stash(void)
{
	enum { ALL = 40, HALF = ALL / 2, KEPT = 2 };
	struct pinion_buffer buffers[ALL];
	struct pin_pool pool;

	pools_init(&pool, ALL, 2, ALL, 0);
	expect_number("all in the first", ALL, pin_pool_count_magazine(&pool, 0));
	for (int i = 0; i < ALL; i++) {
		buffers[i] = pools_take(&pool, 1);
	}
	expect_true("none is left", pools_is_empty(&pool, 1));
	for (uint32_t i = 0; i < HALF + KEPT; i++) {
		const struct pin_stash *stash = &pool.magazines[0].stash;

		pools_give(&pool, 0, &buffers[i]);
		expect_number("published", i < PIN_STASH_SLOTS ? i + 1 : PIN_STASH_SLOTS,
			pin_stash_count(stash));
		expect_number("or listed", i < HALF ? i + 1 : HALF, pin_pool_count_lists(&pool));
	}
	expect_number("none wants more", KEPT, pin_pool_count_magazine(&pool, 0));
	for (uint32_t i = 0; i < HALF + KEPT; i++) {
		buffers[i] = pools_take(&pool, 1);
		for (uint32_t j = 0; j < ALL; j++) {
			expect_true("each once",
				j == i || buffers[j].bytes != buffers[i].bytes ||
					(j > i && j < HALF + KEPT));
		}
	}
	expect_true("none is left again", pools_is_empty(&pool, 0));
	for (int i = 0; i < ALL; i++) {
		pools_give(&pool, PIN_POOL_OUTSIDE, &buffers[i]);
	}
	pin_pool_fini(&pool);
}

/* One magazine of one: nearly all buffers go through the list. */
static void check_least(void)
{
	struct pinion_buffer buffers[3];
	struct pin_pool pool;

	pools_init(&pool, 3, 1, 1, 0);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 3; i++) {
			buffers[i] = pools_take(&pool, i == 1 ? PIN_POOL_OUTSIDE : 0);
		}
		expect_true("none is left", pools_is_empty(&pool, 0));
		for (int i = 0; i < 3; i++) {
			pools_give(&pool, 0, &buffers[i]);
		}
		expect_number("all back", 3, pin_pool_count(&pool));
	}
	pin_pool_fini(&pool);
}

/* Two nodes: buffers taken from afar go home, not into the magazine. */
static void check_nodes(void)
{
	static const uint32_t nodes[] = {0, 1};
	struct pin_pool_region regions[] = {
		{.memory = pools_memory, .buffer_count = 4, .node = 0},
		{.memory = pools_memory + 4 * POOLS_BUFFER_BYTES, .buffer_count = 4, .node = 1},
	};
	struct pin_pool_setup setup = {
		.host = &pin_host_linux,
		.buffer_bytes = POOLS_BUFFER_BYTES,
		.magazine_count = 2,
		.magazine_capacity = 2,
		.seeded_count = 2,
		.nodes = nodes,
		.node_count = 2,
		.regions = regions,
		.region_count = 2,
	};
	struct pinion_buffer buffers[5];
	struct pin_pool pool;

	expect_number("init", 0, pin_pool_init(&pool, &setup));
	for (int i = 0; i < 5; i++) {
		buffers[i] = pools_take(&pool, 1);
		expect_number("own node first", i < 4, buffers[i].index >= 4);
	}
	expect_number("of the near list only the needed ones", 1,
		pin_freelist_count(&pool.freelists[0], pool.entries));
	pools_give(&pool, 1, &buffers[4]);
	expect_number(
		"the far one is home", 2, pin_freelist_count(&pool.freelists[0], pool.entries));
	expect_number("not here", 0, pin_pool_count_magazine(&pool, 1));
	pools_give(&pool, 0, &buffers[0]);
	expect_number(
		"nor this one there", 1, pin_freelist_count(&pool.freelists[1], pool.entries));
	buffers[0] = pools_take(&pool, PIN_POOL_OUTSIDE);
	expect_true("outside: from the node it names", buffers[0].index < 4);
	pin_pool_fini(&pool);
}

/*
 * A search for buffers that others published begins next to the searcher, not
 * at 0.
 */
static void check_start_of_looks(void)
{
	struct pinion_buffer buffers[3];
	struct pin_pool pool;

	pools_init(&pool, 3, 3, 1, 0);
	for (uint32_t i = 0; i < 3; i++) {
		buffers[i] = pools_take(&pool, i);
		/* Nothing is in it, and it counts as robbed. */
		pin_pool_flush(&pool, i);
	}
	pools_give(&pool, 0, &buffers[0]);
	pools_give(&pool, 2, &buffers[2]);
	expect_number("both are published", 2, pin_pool_count_lists(&pool));
	expect_number("the next one's", buffers[2].index, pools_take(&pool, 1).index);
	expect_number("then round", buffers[0].index, pools_take(&pool, 1).index);
	pin_pool_fini(&pool);
}

/* A thread without a magazine begins here or there, as the list changes. */
static void check_start_outside(void)
{
	struct pinion_buffer laid_out[3];
	struct pinion_buffer own;
	uint32_t begun = 0; /* one bit each */
	struct pin_pool pool;

	pools_init(&pool, 4, 3, 1, 0);
	for (uint32_t i = 0; i < 3; i++) {
		laid_out[i] = pools_take(&pool, i);
		pin_pool_flush(&pool, i);
	}
	own = pools_take(&pool, PIN_POOL_OUTSIDE);
	for (uint32_t i = 0; i < 3; i++) {
		pools_give(&pool, i, &laid_out[i]);
	}
	for (int round = 0; round < 32; round++) {
		struct pinion_buffer taken;
		uint32_t whose = 0;

		pools_give(&pool, PIN_POOL_OUTSIDE, &own);
		own = pools_take(&pool, PIN_POOL_OUTSIDE);
		taken = pools_take(&pool, PIN_POOL_OUTSIDE);
		while (whose < 3 && laid_out[whose].index != taken.index) {
			whose++;
		}
		expect_ready("from a stash", whose < 3);
		begun |= 1u << whose;
		pools_give(&pool, whose, &taken);
	}
	expect_number("each comes first at times", 7, begun);
	pin_pool_fini(&pool);
}

/* A robber begins with another of those that are equally near. */
static void check_start_of_thefts(void)
{
	enum { ALL = 4, SEEDS = 40 };
	uint32_t first_robbed = 0; /* one bit each */

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct pin_pool pool;

		pools_init(&pool, ALL, ALL, 1, 0);
		pin_random_init(&pool.random, seed, 0);
		expect_number("own", 0, pools_take(&pool, 0).index);
		first_robbed |= 1u << pools_take(&pool, 0).index;
		pin_pool_fini(&pool);
	}
	expect_number("each of the others comes first at times", 0xe, first_robbed);
}

/*
 * Of 12 workers on two nodes with two L3s each a thief robs those of its L3
 * first, then those of its node, then the others and threads that are attached;
 * and not always in the same order.
 */
static void check_distance(void)
{
	enum { WORKERS = 12, ATTACHED = 2, ALL = WORKERS + ATTACHED, SEEDS = 40, THIEF = 4 };
	struct pin_pool_region regions[WORKERS];
	struct pin_cpu_place places[WORKERS] = {0};
	uint32_t nodes[ALL] = {0};
	uint32_t first_robbed = 0; /* one bit each */
	struct pin_victims victims;
	struct pin_pool pool;

	for (uint32_t i = 0; i < WORKERS; i++) {
		/* Neighbours have numbers far apart. */
		places[i] = (struct pin_cpu_place){
			.node_index = i % 2, .l3_index = i % 4, .l2_index = i};
		nodes[i] = i % 2;
		regions[i] = (struct pin_pool_region){
			.memory = pools_memory + (size_t)i * POOLS_BUFFER_BYTES,
			.buffer_count = 1,
			.node = i % 2,
		};
	}
	expect_ready("victims",
		pin_victims_init(&victims, &pin_host_linux, places, WORKERS, WORKERS, NULL) == 0);
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct pin_pool_setup setup = {
			.host = &pin_host_linux,
			.buffer_bytes = POOLS_BUFFER_BYTES,
			.magazine_count = ALL,
			.magazine_capacity = 1,
			.seeded_count = WORKERS,
			.nodes = nodes,
			.node_count = 2,
			.regions = regions,
			.region_count = WORKERS,
			.victims = &victims,
			.seed = seed,
		};
		struct pinion_buffer taken[WORKERS];
		struct pinion_buffer none;

		expect_number("init", 0, pin_pool_init(&pool, &setup));
		for (uint32_t i = 0; i < WORKERS; i++) {
			uint32_t from;

			taken[i] = pools_take(&pool, THIEF);
			from = taken[i].index;
			expect_true("own, its L3, its node, then others",
				i == 0		? from == THIEF
					: i < 3 ? from % 4 == THIEF % 4 && from != THIEF
					: i < 6 ? from % 4 == (THIEF + 2) % 4
						: from % 2 != THIEF % 2);
			if (i == 1) {
				first_robbed |= 1u << from;
			}
		}
		expect_true("none is left", !pin_pool_acquire(&pool, THIEF, 0, &none));
		/* An attached one's is found as well. */
		pools_give(&pool, WORKERS, &taken[0]);
		expect_number("attached", taken[0].index, pools_take(&pool, THIEF).index);
		pin_pool_fini(&pool);
	}
	expect_number("both of the L3 come first", 1u << 0 | 1u << 8, first_robbed);
	pin_victims_fini(&victims);
}

int main(void)
{
	alarm(LIMIT_SECONDS);
	check_seeds();
	check_reserve();
	check_no_lock();
	check_start_of_looks();
	check_start_outside();
	check_start_of_thefts();
	check_order();
	check_refill();
	check_no_starvation();
	check_stash();
	check_least();
	check_nodes();
	check_distance();
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: a shortage is counted as false when a buffer has been free for 10 ms,
 * in no place where it could be found; no other shortage is, whatever comes and
 * goes. Few shortages look. BP-26.
 * Method: a pool on a clock that is set by hand, and a buffer whose state says
 * that it is free while it is not in the pool, as in the hands of a thread that
 * is stopped on its way home.
 */
#include "tests/support/pools.h"

enum { BUFFERS = 4, LOOKS = 16, MS_NS = 1000 * 1000 };

static struct pin_pool pool;
static struct pinion_buffer buffers[BUFFERS];
static uint64_t clock_ns = MS_NS;

static uint64_t now_ns(void)
{
	return clock_ns;
}

static struct pin_host host;

static void start(void)
{
	struct pin_pool_region region = {.memory = pools_memory, .buffer_count = BUFFERS};
	static uint32_t nodes[2];
	struct pin_pool_setup setup = {
		.host = &host,
		.log = {.fn = pools_note},
		.buffer_bytes = POOLS_BUFFER_BYTES,
		.magazine_count = 2,
		.magazine_capacity = 2,
		.seeded_count = 2,
		.nodes = nodes,
		.node_count = 1,
		.regions = &region,
		.region_count = 1,
	};

	host = pin_host_linux;
	host.now_ns = now_ns;
	expect_number("init", 0, pin_pool_init(&pool, &setup));
	for (uint32_t i = 0; i < BUFFERS; i++) {
		expect_true("take", pin_pool_acquire(&pool, 0, 0, &buffers[i]));
	}
}

/* As many shortages as it takes for a thread that looks, that much later. */
static void run_dry(const char *what, uint64_t later_ns, uint64_t counted)
{
	struct pinion_buffer none;

	clock_ns += later_ns;
	for (uint32_t i = 0; i < LOOKS; i++) {
		expect_true("none", !pin_pool_acquire(&pool, 0, 0, &none));
	}
	expect_number(what, (long long)counted, (long long)pin_load_relaxed_u64(&pool.false_nulls));
}

/* Ends its use, as a release does first; or takes that back. */
static void set_free(uint32_t number, bool is_free)
{
	struct pin_atomic_u64 *state = &pool.entries[buffers[number].index].state;
	uint64_t before = pin_load_relaxed_u64(state);

	pin_store_relaxed_u64(
		state, is_free ? pin_entry_end_use(before) : pin_entry_begin_use(before));
}

int main(void)
{
	start();
	run_dry("all are used", 0, 0);
	run_dry("for long", 100 * MS_NS, 0);
	set_free(2, true);
	run_dry("it is seen", 0, 0);
	run_dry("not for long", 10 * MS_NS - 1, 0);
	run_dry("for 10 ms", 1, 1);
	run_dry("and from then on", 10 * MS_NS - 1, 1);
	/* It was used meanwhile. */
	set_free(2, false);
	set_free(2, true);
	run_dry("another use", 1, 1);
	run_dry("since then", 10 * MS_NS, 2);
	set_free(2, false);
	run_dry("it is used", 10 * MS_NS, 2);
	run_dry("and stays so", 100 * MS_NS, 2);
	/* In the pool it is found. */
	expect_number("release", 0, pin_pool_release(&pool, 0, &buffers[0]));
	clock_ns += 100 * MS_NS;
	expect_true("found", pin_pool_acquire(&pool, 0, 0, &buffers[0]));
	run_dry("no shortage", 0, 2);
	for (uint32_t i = 0; i < BUFFERS; i++) {
		/* Its generation has gone on. */
		buffers[i].generation =
			(uint32_t)pin_load_relaxed_u64(&pool.entries[buffers[i].index].state);
		expect_number("release", 0, pin_pool_release(&pool, 0, &buffers[i]));
	}
	pin_pool_fini(&pool);
	return expect_status();
}

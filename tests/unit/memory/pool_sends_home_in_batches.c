/* SPDX-License-Identifier: MIT */
/*
 * Goal: buffers of another node that one owner gives back go home by the batch:
 * none while it is being filled, all at once when it is full, or when their
 * owner gives up its cache or its worker has nothing to do; a search for a free
 * one finds those in it; and nothing is kept back from a home that has none to
 * spare. BP-13, W4, W6.
 * Method: an owner on each of two or three nodes, played by one thread, and the
 * counts of each place; then a runtime on two nodes that hwloc makes up.
 */
#include "runtime/api/internal.h"
#include "tests/support/pools.h"
#include "tests/support/users.h"

enum {
	NODES_MAX = 3,
	EACH = 8, /* buffers of a node */
	CAPACITY = 3,
	ROUNDS = 20,
};

static uint32_t remote_batchd(const struct pin_pool *pool, uint32_t magazine)
{
	return pin_magazine_count(pin_pool_remote_batch(pool, magazine));
}

static uint32_t listed(const struct pin_pool *pool, uint32_t node)
{
	return pin_freelist_count(&pool->freelists[node], pool->entries);
}

/* A magazine on each node, and as many buffers each. */
static void init_nodes(struct pin_pool *pool, uint32_t node_count)
{
	static const uint32_t nodes[] = {0, 1, 2};
	struct pin_pool_region regions[NODES_MAX];
	struct pin_pool_setup setup = {
		.host = &pin_host_linux,
		.log = {.fn = pools_note},
		.buffer_bytes = POOLS_BUFFER_BYTES,
		.magazine_count = node_count,
		.magazine_capacity = CAPACITY,
		.seeded_count = node_count,
		.nodes = nodes,
		.node_count = node_count,
		.regions = regions,
		.region_count = node_count,
	};

	for (uint32_t i = 0; i < node_count; i++) {
		regions[i] = (struct pin_pool_region){
			.memory = pools_memory + (size_t)i * EACH * POOLS_BUFFER_BYTES,
			.buffer_count = EACH,
			.node = i,
		};
	}
	pools_log[0] = '\0';
	expect_number("init", 0, pin_pool_init(pool, &setup));
}

/* By the owner on node 0. */
static void take_near(struct pin_pool *pool, struct pinion_buffer *out, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		out[i] = pools_take(pool, 0);
		expect_true("of node 0", out[i].index < EACH);
	}
}

static void check_full(void)
{
	struct pinion_buffer out[CAPACITY];
	struct pin_pool pool;

	init_nodes(&pool, 2);
	take_near(&pool, out, CAPACITY);
	expect_number("left at home", EACH - CAPACITY, listed(&pool, 0));
	for (uint32_t i = 0; i < CAPACITY; i++) {
		pools_give(&pool, 1, &out[i]);
		expect_number("free at once", EACH * 2 - CAPACITY + i + 1, pin_pool_count(&pool));
		expect_number("gathered", i + 1 < CAPACITY ? i + 1 : 0, remote_batchd(&pool, 1));
		expect_number(
			"at home", i + 1 < CAPACITY ? EACH - CAPACITY : EACH, listed(&pool, 0));
		expect_number("in its cache", CAPACITY + remote_batchd(&pool, 1),
			pin_pool_count_magazine(&pool, 1));
	}
	expect_number(
		"one trip", 1, (long long)pin_meter_read(&pin_pool_remote_batch(&pool, 1)->spills));
	expect_text("nothing to complain of", "", pools_log);
	pin_pool_fini(&pool);
}

/* By its owner, or by a thief. */
static void check_found(uint32_t finder)
{
	struct pinion_buffer out[EACH * 2];
	uint32_t count = 0;
	struct pin_pool pool;

	init_nodes(&pool, 2);
	take_near(&pool, out, 1);
	pools_give(&pool, 1, &out[0]);
	expect_number("gathered", 1, remote_batchd(&pool, 1));
	while (count < EACH * 2) {
		out[count] = pools_take(&pool, finder);
		for (uint32_t i = 0; i < count; i++) {
			expect_true("each once", out[i].index != out[count].index);
		}
		count++;
	}
	expect_number("nothing is left there", 0, remote_batchd(&pool, 1));
	expect_true("nor anywhere", pools_is_empty(&pool, finder));
	expect_number("nothing is free", 0, pin_pool_count(&pool));
	for (uint32_t i = 0; i < count; i++) {
		pools_give(&pool, 1, &out[i]);
	}
	expect_number("all are back", EACH * 2, pin_pool_count(&pool));
	pin_pool_fini(&pool);
}

/* A robbed one sends each home by itself, until some are there. */
static void check_short(void)
{
	struct pinion_buffer out[EACH * 2];
	struct pin_pool pool;

	init_nodes(&pool, 2);
	take_near(&pool, out, 1);
	pools_give(&pool, 1, &out[0]);
	for (uint32_t i = 0; i < EACH * 2; i++) {
		out[i] = pools_take(&pool, 0);
	}
	expect_true("robbed", pin_magazine_is_robbed(pin_pool_remote_batch(&pool, 1)));
	for (uint32_t i = 0, home = 0; i < EACH * 2; i++) {
		if (out[i].index >= EACH) {
			continue;
		}
		pools_give(&pool, 1, &out[i]);
		home++;
		expect_number("home",
			home < CAPACITY ? home : CAPACITY + home / CAPACITY * CAPACITY - CAPACITY,
			listed(&pool, 0));
		expect_number(
			"gathered", home < CAPACITY ? 0 : home % CAPACITY, remote_batchd(&pool, 1));
	}
	pin_pool_fini(&pool);
}

/* Those of several homes: each goes to its own. */
static void check_homes(void)
{
	struct pinion_buffer out[CAPACITY];
	struct pin_pool pool;

	init_nodes(&pool, 3);
	out[0] = pools_take(&pool, 0);
	out[1] = pools_take(&pool, 1);
	out[2] = pools_take(&pool, 0);
	for (uint32_t i = 0; i < CAPACITY; i++) {
		pools_give(&pool, 2, &out[i]);
	}
	expect_number("none is left over", 0, remote_batchd(&pool, 2));
	expect_number("two to the one", EACH - CAPACITY + 2, listed(&pool, 0));
	expect_number("one to the other", EACH - CAPACITY + 1, listed(&pool, 1));
	expect_number("none to its own", EACH - CAPACITY, listed(&pool, 2));
	pin_pool_fini(&pool);
}

/* Its owner has nothing to do, or gives up. */
static void check_ends(void)
{
	struct pinion_buffer out[2];
	struct pin_pool pool;

	init_nodes(&pool, 2);
	take_near(&pool, out, 2);
	pools_give(&pool, 1, &out[0]);
	pin_pool_send_home(&pool, 0);
	expect_number("another's stays", 1, remote_batchd(&pool, 1));
	pin_pool_send_home(&pool, 1);
	expect_number("gone", 0, remote_batchd(&pool, 1));
	expect_number("home", EACH - CAPACITY + 1, listed(&pool, 0));
	expect_number("the cache stays", CAPACITY, pin_pool_count_magazine(&pool, 1));
	pools_give(&pool, 1, &out[1]);
	pin_pool_flush(&pool, 1);
	expect_number("given up", 0, pin_pool_count_magazine(&pool, 1));
	expect_number("home again", EACH - CAPACITY + 2, listed(&pool, 0));
	expect_number("and with it its own", EACH, listed(&pool, 1));
	pin_pool_fini(&pool);
}

/* Where there is one node nothing is gathered. */
static void check_one_node(void)
{
	struct pin_pool pool;

	pools_init(&pool, EACH, 2, CAPACITY, 0);
	expect_true("no batch", pin_pool_remote_batch(&pool, 0) == NULL);
	pin_pool_send_home(&pool, 0);
	pin_pool_fini(&pool);
}

/* ---- with workers ---- */

static struct pinion_pool *pool_of_two;
static struct pinion_buffer passed[2];

static void take_two(void *arg)
{
	(void)arg;
	for (int i = 0; i < 2; i++) {
		passed[i] = users_take(pool_of_two);
	}
}

static void give_one(void *arg)
{
	struct pinion_buffer *buffer = arg;
	uint32_t free_count = users_free(pool_of_two) + 1;

	users_give(pool_of_two, buffer);
	expect_number("gathered", 1, remote_batchd(&pool_of_two->pool, 1));
	expect_number("free all the same", free_count, users_free(pool_of_two));
	expect_number("in one cache or in none", free_count,
		(long long)users_shared(pool_of_two) + pinion_pool_available_local(pool_of_two, 0) +
			pinion_pool_available_local(pool_of_two, 1));
}

static void use_pool(struct pinion_runtime *runtime)
{
	uint32_t shared;

	pool_of_two = users_pool(runtime, 0, CAPACITY, 2 * EACH);
	expect_number("nodes", 2, pool_of_two->pool.node_count);
	users_on(runtime, 0, take_two, NULL);
	shared = users_shared(pool_of_two);
	users_on(runtime, 1, give_one, &passed[0]);
	/* When it has nothing to do. For a moment it is in both places. */
	while (remote_batchd(&pool_of_two->pool, 1) > 0) {
		sched_yield();
	}
	expect_number("home", shared + 1, users_shared(pool_of_two));
	/* The pool ends while that worker is about to send one home. */
	users_on(runtime, 1, give_one, &passed[1]);
	users_end(pool_of_two);
}

static void check_workers(void)
{
	struct pinion_runtime *runtime;

	setenv("HWLOC_SYNTHETIC", "node:2 core:1 pu:1", 1);
	runtime = users_runtime(2, 1 << 20);
	unsetenv("HWLOC_SYNTHETIC");
	for (int round = 0; round < ROUNDS; round++) {
		use_pool(runtime);
	}
	expect_number("join", 0, pinion_runtime_join(runtime));
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(60);
	check_full();
	check_found(0);
	check_found(1);
	check_found(PIN_POOL_OUTSIDE);
	check_short();
	check_homes();
	check_ends();
	check_one_node();
	check_workers();
	return expect_status();
}

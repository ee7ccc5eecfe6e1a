/* SPDX-License-Identifier: MIT */
/*
 * Goal: whatever is done to a pool in whatever order, a buffer is handed out
 * when the books say that a buffer is free and never otherwise, a buffer that
 * is out is not handed out, stale handles are refused without effect, and each
 * free buffer is in exactly one place: a magazine of its own node, that
 * magazine's shared stash, a remote-free batch of another node, or its home's
 * list; and an address leads to the buffer it is in. BP-9, BP-22, BP-23, BP-24,
 * BP-26.
 * Method: seeded sequences of acquires and releases by random owners and from
 * outside, flushes and mistakes, on pools of random shape, against an array of
 * the holders; all places are walked after each step.
 */
#include "tests/support/pools.h"
#include "tests/support/random.h"

#include <errno.h>

enum {
	POOLS = 300,
	STEPS = 400,
	MAGAZINES_MAX = 5,
	BUFFERS_MAX = 24,
	NODES_MAX = 3,
	STALE_MAX = 16,
};

static struct pin_pool pool;
static bool is_out[BUFFERS_MAX];
static struct pinion_buffer handles[BUFFERS_MAX]; /* of those that are out */
static uint32_t generations[BUFFERS_MAX];	  /* of the last handle */
static struct pinion_buffer stale[STALE_MAX];
static uint32_t stale_count;
static uint32_t free_count;
static uint64_t mistake_count;
static uint32_t node_of_magazine[MAGAZINES_MAX];

/*
 * The magazine's owner gave this one back last, and no other thread came since.
 */
static uint32_t newest[MAGAZINES_MAX];

static void forget_newest(void)
{
	for (int i = 0; i < MAGAZINES_MAX; i++) {
		newest[i] = UINT32_MAX;
	}
}

static void init_random(struct random_source *source)
{
	uint32_t seeded = 1 + (uint32_t)random_below(source, MAGAZINES_MAX - 1);
	uint32_t node_count = 1 + (uint32_t)random_below(source, NODES_MAX);
	/* Whole buffers are a power of two apart, the others not all. */
	uint32_t left_out_bytes = random_below(source, 2) == 0 ? 0 : 64;
	uint32_t headroom_bytes = random_below(source, 2) == 0 ? 0 : 128;
	struct pin_pool_region regions[MAGAZINES_MAX];
	struct pin_pool_setup setup = {
		.host = &pin_host_linux,
		.log = {.fn = pools_note},
		.buffer_bytes = POOLS_BUFFER_BYTES - headroom_bytes - left_out_bytes,
		.headroom_bytes = headroom_bytes,
		.magazine_count = seeded + (uint32_t)random_below(source, 2),
		.magazine_capacity = 1 + (uint32_t)random_below(source, 5),
		.seeded_count = seeded,
		.nodes = node_of_magazine,
		.node_count = node_count,
		.regions = regions,
		.region_count = node_count > 1 || random_below(source, 2) == 0 ? seeded : 1,
	};
	uint32_t count = 0;

	for (uint32_t i = 0; i < MAGAZINES_MAX; i++) {
		node_of_magazine[i] = i % node_count;
	}
	for (uint32_t i = 0; i < setup.region_count; i++) {
		uint32_t most = BUFFERS_MAX / setup.region_count;

		regions[i] = (struct pin_pool_region){
			.memory = pools_memory + (size_t)count * POOLS_BUFFER_BYTES,
			.buffer_count = 1 + (uint32_t)random_below(source, most),
			.node = node_of_magazine[i],
		};
		count += regions[i].buffer_count;
	}
	expect_number("init", 0, pin_pool_init(&pool, &setup));
	memset(is_out, 0, sizeof(is_out));
	memset(generations, 0, sizeof(generations));
	free_count = count;
	stale_count = 0;
	mistake_count = 0;
	forget_newest();
}

/* ---- looks ---- */

/* Whatever byte of a buffer is asked about, it is found. */
static void check_addresses(void)
{
	for (uint32_t i = 0; i < pool.buffer_count; i++) {
		const uint8_t *bytes = pool.entries[i].bytes;
		struct pin_entry *entry = &pool.entries[i];
		bool is_first = i < pool.regions[0].buffer_count;

		for (uint32_t at = 0; at < pool.buffer_bytes; at += pool.buffer_bytes - 1) {
			expect_true("found", pin_pool_find(&pool, bytes + at, 0) == entry);
			expect_true("found in the first region",
				pin_pool_find_first(&pool, bytes + at) ==
					(is_first ? entry : NULL));
		}
	}
}

static void check_permits(void)
{
	uint32_t found[BUFFERS_MAX] = {0};
	uint32_t sum = pin_pool_count_lists(&pool);

	for (uint32_t i = 0; i < pool.place_count; i++) {
		const struct pin_magazine *magazine = &pool.magazines[i];
		bool is_remote_batch = i >= pool.magazine_count;
		uint32_t count = pin_magazine_count(magazine);

		expect_true("within its capacity", count <= magazine->capacity);
		for (uint32_t j = 0; j < count && j < magazine->capacity; j++) {
			uint32_t index = pin_load_relaxed_u32(&magazine->indices[j]);

			found[index]++;
			expect_true("of its node, or gathered for another",
				(magazine->node != pool.entries[index].node) == is_remote_batch);
		}
		sum += count;
		for (uint64_t j = pin_load_relaxed_u64(&magazine->stash.taken);
			j < pin_load_relaxed_u64(&magazine->stash.put); j++) {
			uint32_t index =
				pin_load_relaxed_u32(&magazine->stash.slots[j % PIN_STASH_SLOTS]);

			found[index]++;
			expect_number(
				"published at home", magazine->node, pool.entries[index].node);
		}
	}
	for (uint32_t i = 0; i < pool.node_count; i++) {
		uint32_t next = pin_freelist_first(pin_freelist_state(&pool.freelists[i]));

		for (uint32_t steps = 0; next != 0 && steps <= BUFFERS_MAX; steps++) {
			found[next - 1]++;
			expect_number("at home", i, pool.entries[next - 1].node);
			next = pin_load_relaxed_u32(&pool.entries[next - 1].next);
		}
		expect_number("the list ends", 0, next);
	}
	for (uint32_t i = 0; i < pool.buffer_count; i++) {
		expect_number("in one place, or out", is_out[i] ? 0 : 1, found[i]);
	}
	expect_number("counted by place", free_count, sum);
	expect_number("counted at once", free_count, pin_pool_count(&pool));
	expect_number("mistakes", (long long)mistake_count,
		(long long)pin_load_relaxed_u64(&pool.misuses));
}

/* ---- steps ---- */

static uint32_t any_owner(struct random_source *source)
{
	uint64_t owner = random_below(source, pool.magazine_count + 1);

	return owner == pool.magazine_count ? PIN_POOL_OUTSIDE : (uint32_t)owner;
}

static void acquire(struct random_source *source)
{
	uint32_t owner = any_owner(source);
	uint32_t node = (uint32_t)random_below(source, pool.node_count);
	struct pinion_buffer buffer = {NULL, 0, 0};
	bool is_had = pin_pool_acquire(&pool, owner, node, &buffer);

	expect_number("had if one was free", free_count > 0, is_had);
	if (!is_had || !expect_true("an index", buffer.index < pool.buffer_count)) {
		return;
	}
	expect_true("it was free", !is_out[buffer.index]);
	expect_true("a new right", buffer.generation > generations[buffer.index]);
	expect_true("where it always is", buffer.bytes == pool.entries[buffer.index].bytes);
	if (owner != PIN_POOL_OUTSIDE && newest[owner] != UINT32_MAX) {
		expect_number("the last one back", newest[owner], buffer.index);
	}
	is_out[buffer.index] = true;
	handles[buffer.index] = buffer;
	generations[buffer.index] = buffer.generation;
	free_count--;
	forget_newest();
}

static void release(struct random_source *source)
{
	uint32_t start = (uint32_t)random_below(source, pool.buffer_count);
	uint32_t owner = any_owner(source);

	for (uint32_t i = 0; i < pool.buffer_count; i++) {
		uint32_t index = (start + i) % pool.buffer_count;

		if (!is_out[index]) {
			continue;
		}
		expect_number("release", 0, pin_pool_release(&pool, owner, &handles[index]));
		stale[stale_count % STALE_MAX] = handles[index];
		stale_count++;
		is_out[index] = false;
		free_count++;
		if (owner != PIN_POOL_OUTSIDE) {
			/* Else it went home, or is passed on. */
			bool is_kept = pool.entries[index].node == node_of_magazine[owner] &&
				!pin_magazine_is_robbed(&pool.magazines[owner]);

			newest[owner] = is_kept ? index : newest[owner];
		}
		return;
	}
}

static void release_stale(struct random_source *source)
{
	uint32_t known = stale_count < STALE_MAX ? stale_count : STALE_MAX;

	if (known == 0) {
		return;
	}
	expect_number("stale", -EALREADY,
		pin_pool_release(&pool, any_owner(source), &stale[random_below(source, known)]));
	mistake_count++;
	pools_log[0] = '\0';
}

static void release_foreign(struct random_source *source)
{
	struct pinion_buffer wrong = {
		.bytes = pools_memory + random_below(source, sizeof(pools_memory)),
		.index = (uint32_t)random_below(source, 2 * BUFFERS_MAX),
		.generation = (uint32_t)random_below(source, 8) | 1,
	};

	if (wrong.index < pool.buffer_count && pool.entries[wrong.index].bytes == wrong.bytes) {
		return; /* a handle after all, perhaps a good one */
	}
	expect_number("foreign", -EINVAL, pin_pool_release(&pool, any_owner(source), &wrong));
	mistake_count++;
	pools_log[0] = '\0';
}

static void flush(struct random_source *source)
{
	uint32_t owner = (uint32_t)random_below(source, pool.magazine_count);

	if (random_below(source, 2) == 0) {
		pin_pool_send_home(&pool, owner);
		expect_true("sent home",
			pin_pool_remote_batch(&pool, owner) == NULL ||
				pin_magazine_count(pin_pool_remote_batch(&pool, owner)) == 0);
		return;
	}
	pin_pool_flush(&pool, owner);
	expect_number("flushed", 0, pin_pool_count_magazine(&pool, owner));
	forget_newest();
}

static void step(struct random_source *source)
{
	/* Some runs of steps take more than they give, others less. */
	bool is_taking = random_below(source, 64) < 32;

	switch (random_below(source, 20)) {
	case 0:
		flush(source);
		break;
	case 1:
		release_stale(source);
		break;
	case 2:
		release_foreign(source);
		break;
	default:
		if (is_taking) {
			acquire(source);
		} else {
			release(source);
		}
		break;
	}
}

int main(void)
{
	struct random_source source;
	uint64_t seed = random_begin(&source);

	for (uint32_t i = 0; i < POOLS && expect_failure_count == 0; i++) {
		init_random(&source);
		check_addresses();
		check_permits();
		for (uint32_t j = 0; j < STEPS && expect_failure_count == 0; j++) {
			step(&source);
			check_permits();
			if (expect_failure_count != 0) {
				printf("pool %u, step %u of PINION_SEED=%llu\n", i, j,
					(unsigned long long)seed);
			}
		}
		pin_pool_fini(&pool);
	}
	return expect_status();
}

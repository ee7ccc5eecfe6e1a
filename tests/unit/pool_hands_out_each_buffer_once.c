/* SPDX-License-Identifier: MIT */
/*
 * Goal: every buffer is handed out once, NULL when all are, the last one back
 * is the next one out; a wrong release aborts and says why.
 * Method: a pool over plain memory; misuse in forked children, whose end and
 * message are looked at.
 */
#include "runtime/memory/pool.h"
#include "tests/support/child.h"
#include "tests/support/expect.h"

enum {
	BUFFER_BYTES = 4096,
	BUFFER_COUNT = 5,
};

static uint8_t memory[BUFFER_COUNT * BUFFER_BYTES];

static int release_twice(void *arg)
{
	struct pin_pool *pool = arg;
	uint32_t index;
	uint8_t *bytes = pin_pool_acquire(pool, &index);

	pin_pool_release(pool, bytes, index);
	pin_pool_release(pool, bytes, index);
	return 0;
}

static int release_foreign(void *arg)
{
	struct pin_pool *pool = arg;
	uint32_t index;
	uint8_t *bytes = pin_pool_acquire(pool, &index);

	pin_pool_release(pool, bytes + BUFFER_BYTES, index);
	return 0;
}

static int release_unknown_index(void *arg)
{
	struct pin_pool *pool = arg;

	pin_pool_release(pool, memory, BUFFER_COUNT);
	return 0;
}

static void check_hand_out(struct pin_pool *pool)
{
	bool seen[BUFFER_COUNT] = {false};
	uint8_t *bytes[BUFFER_COUNT];
	uint32_t indices[BUFFER_COUNT];
	uint32_t index = 99;

	for (int i = 0; i < BUFFER_COUNT; i++) {
		bytes[i] = pin_pool_acquire(pool, &indices[i]);
		if (!expect_true("a buffer is there", bytes[i] != NULL)) {
			return;
		}
		expect_true("its index is in range and new",
			indices[i] < BUFFER_COUNT && !seen[indices[i]]);
		seen[indices[i]] = true;
		expect_true("its place follows from its index",
			bytes[i] == memory + (size_t)indices[i] * BUFFER_BYTES);
	}
	expect_true("NULL when all are out", pin_pool_acquire(pool, &index) == NULL);
	expect_number("the index then", 99, index);
	pin_pool_release(pool, bytes[3], indices[3]);
	pin_pool_release(pool, bytes[1], indices[1]);
	expect_true("last back, first out", pin_pool_acquire(pool, &index) == bytes[1]);
	pin_pool_release(pool, bytes[1], index);
	for (int i = 0; i < BUFFER_COUNT; i++) {
		if (i != 1 && i != 3) {
			pin_pool_release(pool, bytes[i], indices[i]);
		}
	}
	expect_number("free at the end", BUFFER_COUNT, pool->free_count);
}

int main(void)
{
	struct pin_pool pool;

	expect_number("init", 0, pin_pool_init(&pool, memory, BUFFER_BYTES, BUFFER_COUNT));
	check_hand_out(&pool);
	child_expect_abort("double release", release_twice, &pool, "pool->in_use[index]");
	child_expect_abort("foreign pointer", release_foreign, &pool, "bytes == pool->memory");
	child_expect_abort(
		"unknown index", release_unknown_index, &pool, "index < pool->buffer_count");
	pin_pool_fini(&pool);
	pin_pool_fini(&pool);
	return expect_status();
}

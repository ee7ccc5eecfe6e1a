/* SPDX-License-Identifier: MIT */
/*
 * Goal: every buffer is handed out once, none when all are out, the last one
 * back is the next one out, and the pool writes nothing into its pages. BP-2,
 * BP-22, BP-24, BP-T3, BP-T4.
 * Method: a pool with one magazine over plain memory, by its owner.
 */
#include "tests/support/pools.h"

enum {
	BUFFERS = 5,
};

static void fill(uint8_t *bytes, uint8_t value)
{
	memset(bytes, value, POOLS_BUFFER_BYTES);
}

static bool holds(const uint8_t *bytes, uint8_t value)
{
	for (int i = 0; i < POOLS_BUFFER_BYTES; i++) {
		if (bytes[i] != value) {
			return false;
		}
	}
	return true;
}

int main(void)
{
	struct pin_pool pool;
	struct pinion_buffer buffers[BUFFERS];
	struct pinion_buffer again;
	bool seen[BUFFERS] = {false};

	pools_init(&pool, BUFFERS, 1, BUFFERS, 0);
	expect_number("free at first", BUFFERS, pin_pool_count(&pool));
	for (uint8_t i = 0; i < BUFFERS; i++) {
		buffers[i] = pools_take(&pool, 0);
		expect_true("its index is in range and new",
			buffers[i].index < BUFFERS && !seen[buffers[i].index]);
		seen[buffers[i].index] = true;
		expect_true("its place follows from its index",
			buffers[i].bytes ==
				pools_memory + (size_t)buffers[i].index * POOLS_BUFFER_BYTES);
		fill(buffers[i].bytes, i);
		expect_number("free now", BUFFERS - 1 - i, pin_pool_count(&pool));
	}
	expect_true("none when all are out", pools_is_empty(&pool, 0));
	pools_give(&pool, 0, &buffers[3]);
	pools_give(&pool, 0, &buffers[1]);
	again = pools_take(&pool, 0);
	expect_true("last back, first out", again.bytes == buffers[1].bytes);
	expect_true("by another right", again.generation != buffers[1].generation);
	expect_true("its bytes are as they were", holds(again.bytes, 1));
	pools_give(&pool, 0, &again);
	pools_give(&pool, 0, &buffers[0]);
	pools_give(&pool, 0, &buffers[2]);
	pools_give(&pool, 0, &buffers[4]);
	expect_number("free at the end", BUFFERS, pin_pool_count(&pool));
	expect_text("nothing to complain of", "", pools_log);
	pin_pool_fini(&pool);
	pin_pool_fini(&pool);
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * The books: each call of a case is entered when it begins and when it ends.
 */
#include "tests/model/memory/pool_books.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"
#include "tests/model/memory/pool_model.h"

#include <string.h>

struct pool_books pool_books;

static uint8_t memory[POOL_BOOKS_BUFFERS_MAX * POOL_BOOKS_BUFFER_BYTES];
static uint32_t owner[POOL_BOOKS_BUFFERS_MAX]; /* thread + 1; 0: none */
static int32_t sure;			       /* free for certain, less those who ask */
static int32_t least[MODEL_THREADS_MAX];       /* since it asked */
static bool asks[MODEL_THREADS_MAX];
static struct pin_pool_listed listed[MODEL_THREADS_MAX];

static bool acquire_shortly(uint32_t magazine, struct pinion_buffer *out_buffer)
{
	return pin_pool_has_short_way(&pool_books.pool) &&
		pool_model_acquire_shortly(
			&pool_books.pool, magazine, &listed[model_thread_current()], out_buffer);
}

bool pool_books_release_shortly(uint32_t magazine, const struct pinion_buffer *buffer)
{
	return pin_pool_has_short_way(&pool_books.pool) &&
		pool_model_release_shortly(
			&pool_books.pool, magazine, buffer, &listed[model_thread_current()]);
}

static void change_sure(int32_t change)
{
	sure += change;
	for (uint32_t i = 0; i < MODEL_THREADS_MAX; i++) {
		if (asks[i] && sure < least[i]) {
			least[i] = sure;
		}
	}
}

bool pool_books_acquire(uint32_t magazine, struct pinion_buffer *out_buffer)
{
	uint32_t thread = model_thread_current();
	bool is_found;

	change_sure(-1);
	asks[thread] = true;
	least[thread] = sure;
	is_found = acquire_shortly(magazine, out_buffer) ||
		pin_pool_acquire(&pool_books.pool, magazine, 0, out_buffer);
	asks[thread] = false;
	if (!is_found) {
		/* Its own question is among those that were taken off. */
		MODEL_CHECK(least[thread] < 0);
		change_sure(1);
		return false;
	}
	MODEL_CHECK(owner[out_buffer->index] == 0);
	/* The taker has seen that it was given back. */
	MODEL_CHECK((out_buffer->generation & 1) != 0);
	owner[out_buffer->index] = thread + 1;
	return true;
}

void pool_books_release(uint32_t magazine, struct pinion_buffer *buffer)
{
	MODEL_CHECK(owner[buffer->index] != 0);
	owner[buffer->index] = 0;
	MODEL_CHECK(pool_books_release_shortly(magazine, buffer) ||
		pin_pool_release(&pool_books.pool, magazine, buffer) == 0);
	change_sure(1);
}

void pool_books_settle(const struct pinion_buffer *buffer)
{
	owner[buffer->index] = 0;
	change_sure(1);
}

void pool_books_begin_with(const struct pin_pool_setup *setup)
{
	memset(owner, 0, sizeof(owner));
	memset(asks, 0, sizeof(asks));
	memset(listed, 0, sizeof(listed));
	memset(&pool_books.pool, 0, sizeof(pool_books.pool));
	model_has_no_fence = pool_books.has_no_fence;
	pool_books.has_no_fence = false;
	model_quiet_begin();
	MODEL_CHECK(pin_pool_init(&pool_books.pool, setup) == 0);
	model_quiet_end();
	sure = (int32_t)pool_books.pool.buffer_count;
}

void pool_books_begin(uint32_t buffers, uint32_t magazines, uint32_t capacity, uint32_t seeded)
{
	struct pin_pool_region region = {.memory = memory, .buffer_count = buffers};
	struct pin_pool_setup setup = {
		.host = &pin_host_linux,
		.buffer_bytes = POOL_BOOKS_BUFFER_BYTES,
		.magazine_count = magazines,
		.magazine_capacity = capacity,
		.seeded_count = seeded,
		.node_count = 1,
		.regions = &region,
		.region_count = 1,
	};

	pool_books_begin_with(&setup);
}

void pool_books_end(const uint32_t *threads, uint32_t count, uint64_t expected_misuses)
{
	struct pinion_buffer buffer;
	uint32_t free_count = 0;

	for (uint32_t i = 0; i < count; i++) {
		model_thread_join(threads[i]);
	}
	model_quiet_begin();
	for (uint32_t i = 0; i < pool_books.pool.buffer_count; i++) {
		free_count += owner[i] == 0;
	}
	for (; free_count > 0; free_count--) {
		MODEL_CHECK(pool_books_acquire(PIN_POOL_OUTSIDE, &buffer));
	}
	MODEL_CHECK(!pool_books_acquire(PIN_POOL_OUTSIDE, &buffer));
	/* Else a buffer was in two places, and only its state showed that. */
	MODEL_CHECK(pool_books.pool.misuses.value == expected_misuses);
	pin_pool_fini(&pool_books.pool);
	model_quiet_end();
}

void pool_books_ask_outside(void *arg)
{
	struct pinion_buffer buffer;

	(void)arg;
	pool_books_acquire(PIN_POOL_OUTSIDE, &buffer);
}

void pool_books_ask_twice(void *arg)
{
	struct pinion_buffer buffer;

	(void)arg;
	pool_books_acquire(PIN_POOL_OUTSIDE, &buffer);
	pool_books_acquire(PIN_POOL_OUTSIDE, &buffer);
}

void pool_books_pass_outside(void *arg)
{
	struct pinion_buffer buffer;

	(void)arg;
	if (pool_books_acquire(PIN_POOL_OUTSIDE, &buffer)) {
		pool_books_release(PIN_POOL_OUTSIDE, &buffer);
	}
}

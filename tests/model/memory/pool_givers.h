/* SPDX-License-Identifier: MIT */
/*
 * Threads that give back `pool_books.held`, each by one way, for models of a
 * pool that is misused: a pool of one buffer, and how many of them were not
 * refused.
 */
#ifndef PIN_TESTS_MODEL_POOL_GIVERS_H
#define PIN_TESTS_MODEL_POOL_GIVERS_H

#include "tests/model/explorer.h"
#include "tests/model/memory/pool_books.h"
#include "tests/model/memory/pool_model.h"

static uint32_t given_count;

static inline void begin_plain(void)
{
	pool_books_begin(1, 1, 1, 1);
}

/* Where threads cannot be made to pass fences there is no short way. */
static inline void begin_unfenced(void)
{
	pool_books.has_no_fence = true;
	begin_plain();
	pool_books.has_no_fence = false;
}

/* In pages of its own: it has no short way to be given back. */
static inline void begin_guarded(void)
{
	static uint8_t page[4096] __attribute__((aligned(4096)));
	struct pin_pool_region region = {.memory = page, .buffer_count = 1};
	struct pin_pool_setup setup = {
		.host = &pin_host_linux,
		.buffer_bytes = sizeof(page),
		.magazine_count = 1,
		.magazine_capacity = 1,
		.seeded_count = 1,
		.node_count = 1,
		.flags = PIN_POOL_GUARD,
		.regions = &region,
		.region_count = 1,
	};

	pool_books_begin_with(&setup);
}

/* `magazine` has it when others begin. */
static inline void take_held(uint32_t magazine)
{
	given_count = 0;
	model_quiet_begin();
	MODEL_CHECK(pool_books_acquire(magazine, &pool_books.held));
	model_quiet_end();
}

static inline void run_both(void (*one)(void *), void (*other)(void *))
{
	uint32_t threads[2];

	threads[0] = model_thread_start("one", one, NULL);
	threads[1] = model_thread_start("other", other, NULL);
	for (uint32_t i = 0; i < 2; i++) {
		model_thread_join(threads[i]);
	}
}

static inline void give_again(void *arg)
{
	(void)arg;
	given_count += pin_pool_release(&pool_books.pool, PIN_POOL_OUTSIDE, &pool_books.held) == 0;
}

static inline void give_again_shortly(void *arg)
{
	(void)arg;
	given_count += pool_books_release_shortly(PIN_POOL_OUTSIDE, &pool_books.held) ||
		pin_pool_release(&pool_books.pool, PIN_POOL_OUTSIDE, &pool_books.held) == 0;
}

static inline bool give_held(void)
{
	bool is_given = pool_books_release_shortly(0, &pool_books.held) ||
		pin_pool_release(&pool_books.pool, 0, &pool_books.held) == 0;

	given_count += is_given;
	return is_given;
}

static inline void give_as_holder(void *arg)
{
	(void)arg;
	give_held();
}

#endif

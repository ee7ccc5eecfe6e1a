/* SPDX-License-Identifier: MIT */
/*
 * A pool and books about it, for models: the holder of each buffer, and how
 * many are free for certain, that is, given back by a call that has returned
 * and not yet asked for by another. The thread that gets a buffer checks that
 * no other has it. While any thread asks, the least of that number is noted: if
 * there were always more than none, an empty answer is false.
 */
#ifndef MODEL_POOL_BOOKS_H
#define MODEL_POOL_BOOKS_H

#include "runtime/memory/pool.h"

enum {
	POOL_BOOKS_BUFFERS_MAX = 5,
	POOL_BOOKS_BUFFER_BYTES = 64,
};

struct pool_books {
	struct pin_pool pool;
	struct pinion_buffer held; /* by one of the case's threads */
	/* Set before a case begins: threads cannot be made to pass fences. */
	bool has_no_fence;
};

extern struct pool_books pool_books;

/* One region, of one node; or as a case sets it up. */
void pool_books_begin(uint32_t buffers, uint32_t magazines, uint32_t capacity, uint32_t seeded);
void pool_books_begin_with(const struct pin_pool_setup *setup);

/* As users do: the short way first, if there is one. */
bool pool_books_acquire(uint32_t magazine, struct pinion_buffer *out_buffer);
void pool_books_release(uint32_t magazine, struct pinion_buffer *buffer);

/* The short way alone, of which the books know nothing; false: not taken. */
bool pool_books_release_shortly(uint32_t magazine, const struct pinion_buffer *buffer);

/* It has been given back by other calls than these. */
void pool_books_settle(const struct pinion_buffer *buffer);

/* Joins them; then all unheld buffers can be had, and no more. */
void pool_books_end(const uint32_t *threads, uint32_t count, uint64_t expected_misuses);

/* Bodies of threads without a magazine, `arg` is ignored. */
void pool_books_ask_outside(void *arg);
void pool_books_ask_twice(void *arg);
void pool_books_pass_outside(void *arg);

#endif

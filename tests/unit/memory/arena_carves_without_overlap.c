/* SPDX-License-Identifier: MIT */
/*
 * Goal: pieces carved from an arena are aligned as asked, within it, and never
 * overlap; a piece that does not fit is refused and changes nothing; the piece
 * carved last can be given back, and no other. A runtime sets pool_bytes aside
 * beside its buffers. W2, BP-48, BP-49.
 * Method: random pieces until the arena is full, in a map of its blocks of 64
 * bytes that says which are taken.
 */
#include "runtime/base/base.h"
#include "runtime/memory/arena.h"
#include "runtime/task/entry.h"
#include "tests/support/expect.h"
#include "tests/support/random.h"
#include "tests/support/runtimes.h"

enum {
	BLOCK = 64,
	ARENA_BYTES = 2 << 21,
	ROUNDS = 50,
	TRIES = 200,
};

static uint8_t is_taken[ARENA_BYTES / BLOCK];

static void take(const struct pin_arena *arena, const uint8_t *memory, size_t bytes, size_t align)
{
	size_t first = (size_t)(memory - arena->memory) / BLOCK;

	expect_true("a piece is within the arena",
		memory >= arena->memory && memory + bytes <= arena->memory + arena->bytes);
	expect_number("alignment", 0, (long long)((uintptr_t)memory % align));
	for (size_t i = first; i < first + bytes / BLOCK; i++) {
		expect_number("a block is taken once", 0, is_taken[i]);
		is_taken[i] = 1;
	}
}

static void carve_at_random(struct pin_arena *arena, struct random_source *random)
{
	memset(is_taken, 0, sizeof(is_taken));
	arena->carved_bytes = 0;
	for (int i = 0; i < TRIES && expect_failure_count == 0; i++) {
		size_t align = (size_t)BLOCK << random_below(random, 12);
		size_t bytes = BLOCK * (1 + (size_t)random_below(random, ARENA_BYTES / BLOCK / 20));
		size_t before = arena->carved_bytes;
		uint8_t *memory = pin_arena_carve(arena, bytes, align);

		if (memory == NULL) {
			expect_number("a refusal changes nothing", (long long)before,
				(long long)arena->carved_bytes);
			expect_true("it would not have fitted",
				pin_round_up(before, align) + bytes > arena->bytes);
		} else if (random_below(random, 4) == 0) {
			expect_true(
				"the last one goes back", pin_arena_uncarve(arena, memory, bytes));
		} else {
			take(arena, memory, bytes, align);
		}
	}
}

static void check_edges(struct pin_arena *arena)
{
	uint8_t *first;
	uint8_t *second;

	arena->carved_bytes = 0;
	expect_true("more than all of it", pin_arena_carve(arena, arena->bytes + 1, BLOCK) == NULL);
	expect_true("a size that wraps", pin_arena_carve(arena, SIZE_MAX, BLOCK) == NULL);
	first = pin_arena_carve(arena, BLOCK, BLOCK);
	expect_true("one after the other, so that it wraps",
		pin_arena_carve(arena, SIZE_MAX - BLOCK + 1, BLOCK) == NULL);
	second = pin_arena_carve(arena, arena->bytes - BLOCK, BLOCK);
	expect_true("all the rest", first == arena->memory && second == first + BLOCK);
	expect_true("nothing is left", pin_arena_carve(arena, 1, 1) == NULL);
	expect_true("the first is not the last", !pin_arena_uncarve(arena, first, BLOCK));
	expect_true("the second is", pin_arena_uncarve(arena, second, arena->bytes - BLOCK));
	expect_true(
		"and is had again", pin_arena_carve(arena, arena->bytes - BLOCK, BLOCK) == second);
}

static void check_runtime(uint64_t pool_bytes)
{
	struct pinion_config config;
	struct pinion_runtime *runtime;

	runtimes_config(&config, 2, PINION_IO_AUTO);
	config.pool_bytes = pool_bytes;
	if (!expect_number("create", 0, pinion_runtime_create(&config, &runtime))) {
		return;
	}
	for (uint32_t i = 0; i < 2; i++) {
		struct pin_arena *arena = &runtime->shared.workers[i].arena;
		size_t carved = (size_t)config.buffer_bytes * runtime->shared.config.buffer_count +
			(size_t)config.small_buffer_bytes * config.small_buffer_count;
		uint8_t *memory;

		expect_number("buffers and no more are carved", (long long)carved,
			(long long)arena->carved_bytes);
		memory = pin_arena_carve(arena, (size_t)pool_bytes, PIN_PAGE_BYTES);
		if (expect_true("reserved memory is there", memory != NULL)) {
			memset(memory, 1, (size_t)pool_bytes);
		}
	}
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	struct pin_arena_options options = {.bytes = ARENA_BYTES};
	struct pin_arena arena;
	struct pin_log log = {0};
	struct random_source random;

	random_begin(&random);
	expect_ready("arena", pin_arena_init(&arena, &pin_host_linux, &options, &log) == 0);
	for (int i = 0; i < ROUNDS; i++) {
		carve_at_random(&arena, &random);
	}
	check_edges(&arena);
	pin_arena_fini(&arena);
	check_runtime(0);
	check_runtime(10 << 20);
	return expect_status();
}

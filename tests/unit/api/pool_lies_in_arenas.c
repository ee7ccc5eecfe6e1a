/* SPDX-License-Identifier: MIT */
/*
 * Goal: a pool of a runtime is cut from its workers' arenas, each cache from
 * that of its worker, aligned; two pools share no byte, and refuse each other's
 * buffers; what does not fit is refused and leaves all as it was. BP-20, BP-48,
 * W2.
 * Method: buffers are taken on each worker; their addresses are looked up in
 * the arenas, all their bytes are written.
 */
#include "runtime/api/internal.h"
#include "runtime/task/entry.h"
#include "tests/support/users.h"

enum {
	WORKERS = 3,
	LIMIT_SECONDS = 60,
};

static bool is_in_arena(
	const struct pinion_runtime *runtime, uint32_t worker_index, const uint8_t *address)
{
	const struct pin_arena *arena = &runtime->shared.workers[worker_index].arena;

	return (uintptr_t)address - (uintptr_t)arena->memory < arena->bytes;
}

static void check_runtime_memory(void)
{
	struct pinion_runtime *runtime = users_runtime(WORKERS, 1 << 20);
	struct pinion_pool *pools[2];

	pools[0] = users_pool(runtime, 0, 2, 8);
	pools[1] = users_pool(runtime, WORKERS, 4, 12);
	expect_number("its runtime's", WORKERS, users_info(pools[0]).worker_count);
	expect_number("buffers", 8, users_info(pools[0]).buffer_count);
	expect_number("bytes", 4096, pinion_pool_buffer_bytes(pools[0]));
	expect_number("in front", 4096, pinion_pool_headroom_bytes(pools[0]));
	for (uint32_t i = 0; i < WORKERS; i++) {
		for (int j = 0; j < 2; j++) {
			struct users_taking taking = {.pool = pools[j], .count = 2};

			expect_number(
				"seeded", j == 0 ? 2 : 4, pinion_pool_available_local(pools[j], i));
			users_on(runtime, i, users_take_some, &taking);
			for (int k = 0; k < 2; k++) {
				expect_true("in that worker's arena",
					is_in_arena(runtime, i, taking.buffers[k].bytes));
				expect_true("with the headroom",
					is_in_arena(runtime, i, taking.buffers[k].bytes - 4096));
				expect_number("aligned", 0,
					(long long)((uintptr_t)taking.buffers[k].bytes % 4096));
			}
			users_on(runtime, i, users_give_some, &taking);
			expect_number("back where it was", j == 0 ? 2 : 4,
				pinion_pool_available_local(pools[j], i));
		}
	}
	/* Two more on the free list, of the first workers' memory. */
	expect_number("listed", 2, users_shared(pools[0]));
	users_end(pools[1]);
	users_end(pools[0]);
	pinion_runtime_destroy(runtime);
}

/* Two pools' buffers are different memory, and one refuses the other's. */
static void check_two_pools(void)
{
	struct pinion_runtime *runtime = users_runtime(WORKERS, 1 << 20);
	struct pinion_pool *first = users_pool(runtime, 0, 1, 3);
	struct pinion_pool *second = users_pool(runtime, 0, 1, 3);
	struct pinion_buffer mine[3];
	struct pinion_buffer other[3];

	for (int i = 0; i < 3; i++) {
		mine[i] = users_take(first);
		other[i] = users_take(second);
		memset(mine[i].bytes - 4096, 1, 8192);
		memset(other[i].bytes - 4096, 2, 8192);
	}
	for (int i = 0; i < 3; i++) {
		for (int j = 0; j < 8192; j++) {
			if ((mine[i].bytes - 4096)[j] != 1 || (other[i].bytes - 4096)[j] != 2) {
				expect_true("they do not overlap", false);
				break;
			}
		}
		expect_number("not its own", -EINVAL, pinion_pool_release(first, &other[i]));
		users_expect_said("is not a buffer of this pool");
		expect_true("the handle is as it was", other[i].bytes != NULL);
	}
	for (int i = 0; i < 3; i++) {
		users_give(first, &mine[i]);
		users_give(second, &other[i]);
	}
	expect_number("counted", 3, (long long)users_counters(first).misuses);
	expect_number("destroy", 0, pinion_pool_destroy(first));
	users_end(second);
	pinion_runtime_destroy(runtime);
}

static void check_no_room(void)
{
	struct pinion_runtime *runtime = users_runtime(2, 0);
	struct pinion_pool_config config;
	struct pinion_pool *pool = NULL;
	char words[192];
	uint64_t needed;
	uint64_t left;

	/* What the arenas round up to is free, too. */
	left = runtime->shared.workers[0].arena.bytes -
		runtime->shared.workers[0].arena.carved_bytes;
	needed = left / 8192 + 1;
	users_config(&config, 0, 1, (uint32_t)(2 * needed));
	expect_number("too many", -ENOMEM, pinion_pool_create(runtime, &config, &pool));
	snprintf(words, sizeof(words),
		"pool: worker 0 has %llu KiB left for pools and would need %llu with headroom; "
		"raise pool_bytes of the runtime's configuration",
		(unsigned long long)(left >> 10), (unsigned long long)(needed * 8192 >> 10));
	users_expect_said(words);
	expect_true("nothing is written", pool == NULL);
	expect_number("nothing is cut", (long long)left,
		(long long)(runtime->shared.workers[0].arena.bytes -
			runtime->shared.workers[0].arena.carved_bytes));
	pinion_runtime_destroy(runtime);
}

static void check_many_pools(void)
{
	struct pinion_runtime *runtime = users_runtime(1, 1 << 20);
	struct pinion_pool *pools[PIN_POOLS_MAX];
	struct pinion_pool_config config;
	struct pinion_pool *one_more = NULL;

	users_config(&config, 0, 1, 1);
	for (int i = 0; i < PIN_POOLS_MAX; i++) {
		pools[i] = users_create(runtime, &config);
	}
	expect_number("one more", -EMFILE, pinion_pool_create(runtime, &config, &one_more));
	users_expect_said("the runtime has 16 already");
	users_end(pools[PIN_POOLS_MAX - 1]);
	pools[PIN_POOLS_MAX - 1] = users_create(runtime, &config);
	for (int i = PIN_POOLS_MAX - 1; i >= 0; i--) {
		users_end(pools[i]);
	}
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_runtime_memory();
	check_two_pools();
	check_no_room();
	check_many_pools();
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: what a pool takes is known in advance, to the byte, and does not change
 * with use; recommended sizes are valid, leave a reserve, and cover the
 * requests in flight. BP-2, BP-18, BP-31, BP-37, C18, C19.
 * Method: numbers worked out by hand; the pool's arena, the kernel's word on
 * which of its pages exist, and what the process has mapped before and after
 * 100 000 uses of a pool.
 */
#include "runtime/core/buffers.h"
#include "runtime/core/runtime_state.h"
#include "tests/support/users.h"

#include <sys/mman.h>

enum {
	USES = 100000,
};

static void check_recommended(void)
{
	/* 256 would be tight, the caches hold all: a quarter more. */
	expect_number("64 x 4", 320, pinion_pool_recommend(64, 4, 0));
	expect_number("8 x 4", 40, pinion_pool_recommend(8, 4, 0));
	expect_number("4 x 8", 40, pinion_pool_recommend(4, 8, 0));
	expect_number("4 x 2: 10, in equal parts", 12, pinion_pool_recommend(4, 2, 0));
	expect_number("a quarter is rounded up", 7, pinion_pool_recommend(1, 5, 0));
	expect_number("1 x 1", 2, pinion_pool_recommend(1, 1, 0));
	expect_number("two in hand each", 14, pinion_pool_recommend(7, 1, 0));
	expect_number("depth 128 on each of 4", 520, pinion_pool_recommend(4, 4, 512));
	expect_number("depth below the reserve", 40, pinion_pool_recommend(8, 4, 24));
	expect_number("depth just above it", 48, pinion_pool_recommend(8, 4, 25));
	expect_number("no workers", 0, pinion_pool_recommend(0, 4, 128));
	expect_number("saturates", UINT32_MAX, pinion_pool_recommend(UINT32_MAX, UINT32_MAX, 0));
	expect_number(
		"so does the depth", UINT32_MAX, pinion_pool_recommend(UINT32_MAX, 1, UINT32_MAX));
	for (uint32_t workers = 1; workers <= 64; workers++) {
		for (uint32_t local = 1; local <= 16; local++) {
			uint32_t count = pinion_pool_recommend(workers, local, 0);

			if (4 * count < 5 * workers * local || count % workers != 0 ||
				count < 2 * workers ||
				count > 5 * workers * local / 4 + 2 * workers) {
				expect_number("a quarter more, in equal parts",
					5 * workers * local / 4, count);
			}
		}
	}
}

static void check_local_capacity(void)
{
	struct pinion_pool_config config;

	users_config(&config, 64, 4, 256);
	expect_number("64 x 4", 256, pinion_pool_config_local_capacity(&config));
	config.worker_count = 1 << 20;
	config.local_count = 1 << 20;
	expect_number("saturates", UINT32_MAX, pinion_pool_config_local_capacity(&config));
}

static void check_peak(void)
{
	struct pinion_pool_config config;

	users_config(&config, 64, 4, 256);
	config.buffer_bytes = 64 << 10;
	config.headroom_bytes = 0;
	expect_number("256 x 64 KiB", 16 << 20, (long long)pinion_pool_config_peak_bytes(&config));
	config.headroom_bytes = 4096;
	/* 17 MiB, rounded up to huge pages. */
	expect_number("with room in front of each", 18 << 20,
		(long long)pinion_pool_config_peak_bytes(&config));
	config.buffer_count = 0;
	expect_number("as recommended: 320 x 68 KiB", 22 << 20,
		(long long)pinion_pool_config_peak_bytes(&config));
	config.buffer_count = 1 << 24;
	config.buffer_bytes = 256 << 20;
	config.headroom_bytes = 0;
	expect_true("the largest does not overflow",
		pinion_pool_config_peak_bytes(&config) == UINT64_C(1) << 52);
}

static bool is_mapped(const struct pinion_pool *pool)
{
	size_t pages = pool->arena.bytes / 4096;
	unsigned char *resident = malloc(pages);
	bool is_all = mincore(pool->arena.memory, pool->arena.bytes, resident) == 0;

	for (size_t i = 0; is_all && i < pages; i++) {
		is_all = (resident[i] & 1) != 0;
	}
	free(resident);
	return is_all;
}

static long mapped_pages(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long pages = 0;

	expect_ready("statm", file != NULL && fscanf(file, "%ld", &pages) == 1);
	fclose(file);
	return pages;
}

static void use(struct pinion_pool *pool)
{
	struct pinion_buffer buffers[3];

	for (int i = 0; i < USES / 3; i++) {
		for (int j = 0; j < 3; j++) {
			buffers[j] = users_take(pool);
		}
		for (int j = 0; j < 3; j++) {
			users_give(pool, &buffers[j]);
		}
	}
}

static void check_alone(void)
{
	struct pinion_pool_config config;
	struct pinion_pool *pool;
	uint8_t *memory;
	uint64_t peak;
	long before;

	users_config(&config, 2, 2, 300);
	config.buffer_bytes = 8192; /* 3 600 KiB with what is in front */
	pool = users_create(NULL, &config);
	peak = pinion_pool_peak_bytes(pool);
	expect_number(
		"as foretold", (long long)pinion_pool_config_peak_bytes(&config), (long long)peak);
	expect_number("two huge pages", 4 << 20, (long long)peak);
	expect_number("as mapped", (long long)peak, (long long)pool->arena.bytes);
	expect_true("and touched", is_mapped(pool));
	memory = pool->arena.memory;
	use(pool);
	before = mapped_pages();
	use(pool);
	expect_number("use maps nothing", before, mapped_pages());
	expect_number(
		"nor changes the figure", (long long)peak, (long long)pinion_pool_peak_bytes(pool));
	users_end(pool);
	expect_true("it goes with the pool", msync(memory, peak, MS_ASYNC) != 0 && errno == ENOMEM);
}

static uint64_t carved_bytes(const struct pinion_runtime *runtime)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < runtime->shared.worker_count; i++) {
		bytes += runtime->shared.workers[i].arena.carved_bytes;
	}
	return bytes;
}

/* A runtime's has what its buffers take and not a byte more. */
static void check_of_runtime(void)
{
	struct pinion_runtime *runtime = users_runtime(3, 1 << 20);
	uint64_t before = carved_bytes(runtime);
	struct pinion_pool *pool = users_pool(runtime, 0, 2, 10);

	expect_number("10 x 8 KiB", 10 * 8192, (long long)pinion_pool_peak_bytes(pool));
	expect_number(
		"cut from the arenas", 10 * 8192, (long long)(carved_bytes(runtime) - before));
	users_end(pool);
	expect_number("and given back", (long long)before, (long long)carved_bytes(runtime));
	pinion_runtime_destroy(runtime);
}

/* C19: payloads of 64 KiB to 4 MiB, and what is in front of them. */
static void check_payloads(void)
{
	for (uint32_t bytes = 64 << 10; bytes <= 4 << 20; bytes *= 2) {
		struct pinion_pool_config config;
		struct pinion_pool *pool;
		struct pinion_buffer buffers[2];

		users_config(&config, 1, 1, 2);
		config.buffer_bytes = bytes;
		config.headroom_bytes = 4096;
		pool = users_create(NULL, &config);
		expect_number("as large as asked for", bytes, pinion_pool_buffer_bytes(pool));
		for (int i = 0; i < 2; i++) {
			buffers[i] = users_take(pool);
			memset(buffers[i].bytes - 4096, i + 1, 4096 + (size_t)bytes);
		}
		for (int i = 0; i < 2; i++) {
			expect_number("its first byte", i + 1, *(buffers[i].bytes - 4096));
			expect_number("its last byte", i + 1, buffers[i].bytes[bytes - 1]);
			users_give(pool, &buffers[i]);
		}
		users_end(pool);
	}
}

int main(void)
{
	check_recommended();
	check_local_capacity();
	check_peak();
	check_alone();
	check_of_runtime();
	check_payloads();
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: a pool's size is the requested one, in advance and later, to the byte;
 * headroom and mapped bytes are figures of their own, and nothing changes with
 * use. A runtime's `pool_bytes` counts sizes. Without huge pages nothing is
 * rounded up to them. Recommended sizes are valid, leave a reserve, and cover
 * the requests in flight. BP-2, BP-18, BP-31, BP-37, C18, C19.
 * Method: numbers worked out by hand; the pool's arena, the kernel's word on
 * which of its pages exist, and what the process has mapped before and after
 * 100 000 uses of a pool; a child without huge pages.
 */
#include "runtime/api/internal.h"
#include "runtime/task/entry.h"
#include "tests/support/child.h"
#include "tests/support/users.h"

#include <sys/mman.h>
#include <sys/prctl.h>

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

static void check_config(const char *what, const struct pinion_pool_config *config, uint64_t size,
	uint64_t headroom, uint64_t mapped_max)
{
	expect_number(what, (long long)size, (long long)pinion_pool_config_peak_bytes(config));
	expect_number(what, (long long)headroom,
		(long long)pinion_pool_config_headroom_bytes_total(config));
	expect_number(what, (long long)mapped_max,
		(long long)pinion_pool_config_mapped_bytes_max(config));
}

static void check_foretold(void)
{
	struct pinion_pool_config config;

	users_config(&config, 64, 4, 256);
	config.buffer_bytes = 64 << 10;
	config.headroom_bytes = 0;
	check_config("256 x 64 KiB", &config, 16777216, 0, 16777216);
	config.headroom_bytes = 4096;
	/* Together 17 MiB, rounded up to huge pages. */
	check_config("with room in front of each", &config, 16777216, 1048576, 18874368);
	config.buffer_count = 0;
	check_config("as recommended: 320", &config, 20971520, 1310720, 22 << 20);
	config.buffer_count = 300;
	config.buffer_bytes = 4096;
	check_config("as many bytes before as after", &config, 1228800, 1228800, 4 << 20);
	config.buffer_count = 64;
	config.headroom_bytes = 16 << 20;
	check_config("far more in front", &config, 262144, UINT64_C(1) << 30,
		(UINT64_C(1) << 30) + (2 << 20));
	config.buffer_count = 1 << 24;
	config.buffer_bytes = 256 << 20;
	config.headroom_bytes = 0;
	check_config(
		"the largest does not overflow", &config, UINT64_C(1) << 52, 0, UINT64_C(1) << 52);
	config.buffer_bytes = 1;
	check_config("a refused one", &config, 0, 0, 0);
}

static void check_made(uint32_t buffer_count, uint32_t buffer_bytes, uint32_t headroom_bytes)
{
	uint64_t size = (uint64_t)buffer_count * buffer_bytes;
	uint64_t headroom = (uint64_t)buffer_count * headroom_bytes;
	struct pinion_pool_config config;
	struct pinion_pool *pool;
	uint64_t mapped;

	users_config(&config, 1, 1, buffer_count);
	config.buffer_bytes = buffer_bytes;
	config.headroom_bytes = headroom_bytes;
	pool = users_create(NULL, &config);
	mapped = users_info(pool).mapped_bytes;
	expect_number("its size", (long long)size, (long long)users_info(pool).peak_bytes);
	expect_number("in front of all", (long long)headroom,
		(long long)users_info(pool).headroom_bytes_total);
	expect_number("in front of each", headroom_bytes, pinion_pool_headroom_bytes(pool));
	expect_true("mapped: no more than that, but for the last huge page",
		mapped == size + headroom ||
			(pool->arena.huge_bytes > 0 &&
				mapped == pinion_pool_config_mapped_bytes_max(&config)));
	expect_number("which is the mapped size", (long long)mapped, (long long)pool->arena.bytes);
	users_end(pool);
}

static void check_sizes(void)
{
	check_made(256, 64 << 10, 4096);
	check_made(256, 64 << 10, 0);
	check_made(1, 4096, 0);
	check_made(1, 4096, 4096);
	check_made(300, 8192, 4096);
	check_made(3, 1 << 20, 65536);
	check_made(513, 4096, 0);
}

/* Not rounded up where there is no huge page to fill. */
static int map_small(void *arg)
{
	struct pinion_pool_config config;
	struct pinion_pool *pool;

	(void)arg;
	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) {
		printf("skipped: huge pages cannot be forbidden here\n");
		return EXPECT_SKIPPED;
	}
	users_config(&config, 8, 4, 256);
	config.buffer_bytes = 64 << 10;
	config.headroom_bytes = 4096;
	pool = users_create(NULL, &config);
	if (pool->arena.page_kind == PIN_PAGES_HUGETLB) {
		printf("skipped: huge pages are set aside here\n");
		return EXPECT_SKIPPED;
	}
	expect_number("as many as asked for", 16777216, (long long)users_info(pool).peak_bytes);
	expect_number(
		"in front of them", 1048576, (long long)users_info(pool).headroom_bytes_total);
	expect_number(
		"both and no more are mapped", 17825792, (long long)users_info(pool).mapped_bytes);
	expect_number("by the arena's word", 17825792, (long long)pool->arena.bytes);
	expect_true("and not by the bytes after it",
		msync(pool->arena.memory + 17825792, 4096, MS_ASYNC) != 0 && errno == ENOMEM);
	users_end(pool);
	return expect_status();
}

static void check_small_pages(void)
{
	int code = child_code(child_run(map_small, NULL, NULL, 0));

	if (code != EXPECT_SKIPPED) {
		expect_number("a process without huge pages", 0, code);
	}
}

/* `pool_bytes` of a runtime has room for a pool of that size, to the byte. */
static void check_room(void)
{
	struct pinion_runtime *runtime = NULL;
	struct pinion_pool_config pool_config;
	struct pinion_pool *pool = NULL;
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_AUTO);
	config.buffer_bytes = 4096;
	config.buffer_count = 1;
	config.small_buffer_bytes = 4096;
	config.small_buffer_count = 1;
	config.pool_bytes = 32 << 20;
	expect_number("runtime", 0, pinion_runtime_create(&config, &runtime));
	expect_ready(runtimes_log, runtime != NULL);
	users_config(&pool_config, 0, 4, 512);
	pool_config.buffer_bytes = 64 << 10;
	pool_config.headroom_bytes = 4096;
	pool = users_create(runtime, &pool_config);
	expect_number("of the size that was set", (long long)config.pool_bytes,
		(long long)users_info(pool).peak_bytes);
	expect_number("beyond it", 2 << 20, (long long)users_info(pool).headroom_bytes_total);
	expect_number("cut", 34 << 20, (long long)users_info(pool).mapped_bytes);
	users_end(pool);
	pinion_runtime_destroy(runtime);
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
	uint64_t mapped;
	long before;

	users_config(&config, 2, 2, 300);
	config.buffer_bytes = 8192; /* 3 600 KiB with the headroom */
	pool = users_create(NULL, &config);
	peak = users_info(pool).peak_bytes;
	mapped = users_info(pool).mapped_bytes;
	expect_number(
		"as foretold", (long long)pinion_pool_config_peak_bytes(&config), (long long)peak);
	expect_number("300 x 8 KiB", 300 * 8192, (long long)peak);
	expect_number("as mapped", (long long)mapped, (long long)pool->arena.bytes);
	expect_true("and touched", is_mapped(pool));
	memory = pool->arena.memory;
	use(pool);
	before = mapped_pages();
	use(pool);
	expect_number("use maps nothing", before, mapped_pages());
	expect_number(
		"nor changes the figure", (long long)peak, (long long)users_info(pool).peak_bytes);
	expect_number("nor this one", (long long)mapped, (long long)users_info(pool).mapped_bytes);
	users_end(pool);
	expect_true(
		"it goes with the pool", msync(memory, mapped, MS_ASYNC) != 0 && errno == ENOMEM);
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

	expect_number("10 x 4 KiB", 10 * 4096, (long long)users_info(pool).peak_bytes);
	expect_number("and as many in front", 10 * 4096,
		(long long)users_info(pool).headroom_bytes_total);
	expect_number("both", 10 * 8192, (long long)users_info(pool).mapped_bytes);
	expect_number(
		"cut from the arenas", 10 * 8192, (long long)(carved_bytes(runtime) - before));
	users_end(pool);
	expect_number("and given back", (long long)before, (long long)carved_bytes(runtime));
	pinion_runtime_destroy(runtime);
}

/* C19: payloads of 64 KiB to 4 MiB, and the headroom before them. */
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

/* An older program's struct is shorter, a newer one's longer. */
static void check_info(void)
{
	struct {
		struct pinion_pool_info known;
		uint64_t unknown;
	} longer;
	struct pinion_pool_info shorter;
	struct pinion_pool_config config;
	struct pinion_pool *pool;

	users_config(&config, 3, 2, 0);
	config.headroom_bytes = 8192;
	pool = users_create(NULL, &config);
	memset(&longer, 0xee, sizeof(longer));
	pinion_pool_get_info(pool, &longer.known, sizeof(longer));
	expect_number("caches", 3, longer.known.worker_count);
	expect_number("as recommended", pinion_pool_recommend(3, 2, 0), longer.known.buffer_count);
	expect_number("each", 4096, longer.known.buffer_bytes);
	expect_number("in front of each", 8192, longer.known.headroom_bytes);
	expect_number("all", longer.known.buffer_count * 4096, (long long)longer.known.peak_bytes);
	expect_number("in front of all", longer.known.buffer_count * 8192,
		(long long)longer.known.headroom_bytes_total);
	expect_true("mapped", longer.known.mapped_bytes >= longer.known.buffer_count * 12288);
	expect_number("what the library does not know is 0", 0, (long long)longer.unknown);
	memset(&shorter, 0xee, sizeof(shorter));
	pinion_pool_get_info(pool, &shorter, offsetof(struct pinion_pool_info, buffer_bytes));
	expect_number(
		"as much as there is room for", longer.known.buffer_count, shorter.buffer_count);
	expect_number("and no more", 0xeeeeeeee, shorter.buffer_bytes);
	expect_number("all are free", longer.known.buffer_count, users_free(pool));
	expect_number("but those in caches", longer.known.buffer_count - 6, users_shared(pool));
	users_end(pool);
}

int main(void)
{
	check_info();
	check_recommended();
	check_local_capacity();
	check_foretold();
	check_sizes();
	check_small_pages();
	check_alone();
	check_of_runtime();
	check_room();
	check_payloads();
	return expect_status();
}

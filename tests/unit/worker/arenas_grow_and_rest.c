/* SPDX-License-Identifier: MIT */
/*
 * Goal: a runtime begins without memory for its workers' buffers, takes it in
 * steps as they are acquired, registered where that goes, and gives all of it
 * back after rest: also on a worker that never sleeps, but no step whose buffer
 * is out. Reads deliver the right bytes before and after. With rest 0 all
 * memory is there from the start.
 * Method: the library counts the bytes. The test waits for rest by the bytes
 * that were given back, never by time.
 */
#include "runtime/api/internal.h"
#include "runtime/task/entry.h"
#include "tests/support/arenas.h"
#include "tests/support/requests.h"
#include "tests/support/scratch.h"
#include "tests/support/users.h"

enum {
	LIMIT_SECONDS = 100,
	WORKERS = 2,
	LARGE = 1 << 20,
	LARGE_COUNT = 5, /* three steps: of 2, 2 and 1 buffers */
	SMALL = 64 << 10,
	SMALL_COUNT = 6, /* two steps: of 4 and 2 buffers */
	LARGE_STEP = 2 << 20,
	SMALL_STEP = 256 << 10,
	ALL = LARGE_COUNT * LARGE + SMALL_COUNT * SMALL,
	LONG_MS = 3600 * 1000,
};

static struct pinion_runtime *runtime;
static struct pinion_file file;

static void start(uint64_t rest_ms)
{
	struct pinion_config config;

	runtimes_config(&config, WORKERS, PINION_IO_AUTO);
	runtimes_tuning.buffer_rest_ms = rest_ms;
	config.buffer_bytes = LARGE;
	config.buffer_count = LARGE_COUNT;
	config.small_buffer_bytes = SMALL;
	config.small_buffer_count = SMALL_COUNT;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	expect_ready(runtimes_log, runtime != NULL);
}

static bool grows(void)
{
	return runtime->shared.arenas_grow;
}

/* These bytes have memory, and are registered unless a limit forbids it. */
static void expect_bytes(const char *what, uint64_t bytes)
{
	struct pinion_runtime_info now = runtimes_info(runtime);

	expect_number(what, (long long)bytes, (long long)now.populated_bytes);
	if (arenas_may_register(runtime) && strstr(runtimes_log, "registered") == NULL) {
		expect_number(what, (long long)bytes, (long long)now.registered_bytes);
	}
	expect_true("no more than that", now.registered_bytes <= bytes);
	expect_true("nor on huge pages", now.huge_bytes <= bytes);
}

static void await_given_back(uint64_t bytes)
{
	while (runtimes_info(runtime).given_back_bytes < bytes) {
		sched_yield();
	}
	expect_number(
		"given back", (long long)bytes, (long long)runtimes_info(runtime).given_back_bytes);
}

/* ---- on a worker ---- */

struct holding {
	struct pinion_buffer buffers[LARGE_COUNT + SMALL_COUNT];
	uint32_t large_count;
	uint32_t small_count;
};

static void acquire_some(void *arg)
{
	struct holding *holding = arg;

	for (uint32_t i = 0; i < holding->large_count + holding->small_count; i++) {
		size_t bytes = i < holding->large_count ? LARGE : SMALL;

		expect_number(
			"acquire", 0, pinion_buffer_acquire(runtime, bytes, &holding->buffers[i]));
		memset(holding->buffers[i].bytes, (int)i + 1, bytes);
	}
}

static void release_some(void *arg)
{
	struct holding *holding = arg;

	for (uint32_t i = 0; i < holding->large_count + holding->small_count; i++) {
		size_t bytes = i < holding->large_count ? LARGE : SMALL;

		expect_number("first byte", i + 1, holding->buffers[i].bytes[0]);
		expect_number("last byte", i + 1, holding->buffers[i].bytes[bytes - 1]);
		pinion_buffer_release(runtime, &holding->buffers[i]);
	}
}

static void acquire_beyond(void *arg)
{
	struct pinion_buffer buffer;

	(void)arg;
	expect_number("all are out", -EAGAIN, pinion_buffer_acquire(runtime, LARGE, &buffer));
	expect_number("all are out", -EAGAIN, pinion_buffer_acquire(runtime, 1, &buffer));
}

/* ---- cases ---- */

static void check_steps(void)
{
	struct holding few = {.large_count = 3};
	struct holding one = {.small_count = 1};
	struct holding all = {.large_count = LARGE_COUNT, .small_count = SMALL_COUNT};

	start(LONG_MS);
	if (!grows()) {
		pinion_runtime_destroy(runtime);
		return;
	}
	expect_true(
		"addresses for all", runtimes_info(runtime).arena_bytes >= WORKERS * (uint64_t)ALL);
	expect_bytes("nothing at first", 0);
	expect_number("of small pages", 4096, runtimes_info(runtime).page_bytes);
	users_on(runtime, 0, acquire_some, &few);
	expect_bytes("two steps for three", 2 * LARGE_STEP);
	users_on(runtime, 0, acquire_some, &one);
	expect_bytes("and a small one", 2 * LARGE_STEP + SMALL_STEP);
	users_on(runtime, 0, release_some, &few);
	users_on(runtime, 0, release_some, &one);
	users_on(runtime, 0, acquire_some, &few);
	users_on(runtime, 0, release_some, &few);
	expect_bytes("no more for the same", 2 * LARGE_STEP + SMALL_STEP);
	users_on(runtime, 1, acquire_some, &all);
	expect_bytes("all of another worker's", 2 * LARGE_STEP + SMALL_STEP + ALL);
	users_on(runtime, 1, acquire_beyond, NULL);
	expect_bytes("and no more", 2 * LARGE_STEP + SMALL_STEP + ALL);
	users_on(runtime, 1, release_some, &all);
	expect_number(
		"nothing rests so long", 0, (long long)runtimes_info(runtime).given_back_bytes);
	pinion_runtime_destroy(runtime);
}

/* Worker 0 holds one buffer of the first step meanwhile. */
static void check_rest(void)
{
	struct holding held = {.large_count = 1};
	struct holding rest = {.large_count = LARGE_COUNT - 1, .small_count = SMALL_COUNT};

	start(1);
	if (!grows()) {
		pinion_runtime_destroy(runtime);
		return;
	}
	users_on(runtime, 0, acquire_some, &held);
	for (uint64_t round = 1; round <= 3; round++) {
		users_on(runtime, 0, acquire_some, &rest);
		users_on(runtime, 0, release_some, &rest);
		await_given_back(round * (ALL - LARGE_STEP));
		expect_bytes("the step of what is out", LARGE_STEP);
	}
	users_on(runtime, 0, release_some, &held);
	await_given_back(3 * (uint64_t)(ALL - LARGE_STEP) + LARGE_STEP);
	expect_bytes("nothing", 0);
	pinion_runtime_destroy(runtime);
}

struct busy {
	struct pinion_task task;
	struct pin_atomic_u32 is_over;
	struct pin_atomic_u32 has_ended;
};

/* Always ready, so its worker never sleeps. */
static int go_on(struct pinion_task *task)
{
	struct busy *busy = PIN_CONTAINER_OF(task, struct busy, task);

	if (pin_load_acquire_u32(&busy->is_over) != 0) {
		tasks_signal(&busy->has_ended);
		return 0;
	}
	return pinion_task_spawn_on(runtime, 1, task);
}

static void check_never_sleeps(void)
{
	struct holding all = {.large_count = LARGE_COUNT, .small_count = SMALL_COUNT};
	struct busy busy = {.task = {.run = go_on}};

	start(1);
	if (grows()) {
		expect_number("spawn", 0, pinion_task_spawn_on(runtime, 1, &busy.task));
		users_on(runtime, 1, acquire_some, &all);
		users_on(runtime, 1, release_some, &all);
		await_given_back(ALL);
		expect_bytes("nothing", 0);
		pin_store_release_u32(&busy.is_over, 1);
		tasks_await(&busy.has_ended, 1);
	}
	pinion_runtime_destroy(runtime);
}

/* ---- transfers ---- */

struct reading {
	struct requests_one one;
	struct pinion_buffer buffer;
	uint64_t offset;
};

static void submit_reading(void *arg)
{
	struct reading *reading = arg;

	expect_number("acquire", 0, pinion_buffer_acquire(runtime, LARGE, &reading->buffer));
	memset(reading->buffer.bytes, 0, LARGE);
	requests_begin_transfer(&reading->one, PINION_OP_READ, &file, reading->buffer.bytes,
		reading->offset, LARGE);
	expect_number("submit", 0, pinion_request_submit(runtime, &reading->one.request));
}

static void end_reading(void *arg)
{
	struct reading *reading = arg;

	expect_number("first", (long long)(reading->offset >> 20) + 1, reading->buffer.bytes[0]);
	expect_number(
		"last", (long long)(reading->offset >> 20) + 1, reading->buffer.bytes[LARGE - 1]);
	pinion_buffer_release(runtime, &reading->buffer);
}

/* An entry of the ring that kept the old pages would leave the new ones 0. */
static void check_transfers(void)
{
	start(1);
	for (uint64_t round = 1; round <= 4; round++) {
		struct reading reading = {.offset = (round - 1) % 2 << 20};

		users_on(runtime, 0, submit_reading, &reading);
		expect_number("read", LARGE, requests_await(&reading.one));
		users_on(runtime, 0, end_reading, &reading);
		if (grows()) {
			await_given_back(round * LARGE_STEP);
		}
	}
	if (arenas_may_register(runtime) && strstr(runtimes_log, "registered") == NULL) {
		expect_number("none went the plain way", 0,
			(long long)runtimes_counters(runtime).unregistered_reads);
	}
	pinion_runtime_destroy(runtime);
}

static void check_up_front(void)
{
	struct holding all = {.large_count = LARGE_COUNT, .small_count = SMALL_COUNT};

	start(0);
	expect_number("all", (long long)runtimes_info(runtime).arena_bytes,
		(long long)runtimes_info(runtime).populated_bytes);
	expect_true("at least as asked",
		runtimes_info(runtime).populated_bytes >= WORKERS * (uint64_t)ALL);
	users_on(runtime, 0, acquire_some, &all);
	users_on(runtime, 0, release_some, &all);
	expect_number("still", (long long)runtimes_info(runtime).arena_bytes,
		(long long)runtimes_info(runtime).populated_bytes);
	expect_number("for ever", 0, (long long)runtimes_info(runtime).given_back_bytes);
	pinion_runtime_destroy(runtime);
}

/* The part for pools is there at once, beside what grows. */
static void check_pools(void)
{
	struct pinion_runtime *small = NULL;
	struct pinion_config config;

	runtimes_config(&config, WORKERS, PINION_IO_AUTO);
	config.pool_bytes = 1 << 20;
	expect_number("create", 0, pinion_runtime_create(&config, &small));
	expect_ready(runtimes_log, small != NULL);
	runtime = small;
	if (grows()) {
		struct pinion_pool *pool = users_pool(small, 0, 2, 8);
		struct pinion_buffer buffer = users_take(pool);
		uint64_t kept = runtimes_info(runtime).populated_bytes;

		/* With its headroom, and up to the end of a huge page. */
		expect_true("for pools", kept >= WORKERS * ((1u << 20) + (64u << 10)));
		expect_true("only", kept < WORKERS * 2 * (uint64_t)LARGE_STEP);
		memset(buffer.bytes, 1, 4096);
		users_give(pool, &buffer);
		users_end(pool);
	}
	pinion_runtime_destroy(small);
}

static void make_file(void)
{
	static uint8_t bytes[2 * LARGE];
	FILE *stream = fopen("file", "we");

	memset(bytes, 1, LARGE);
	memset(bytes + LARGE, 2, LARGE);
	expect_ready("file", stream != NULL && fwrite(bytes, sizeof(bytes), 1, stream) == 1);
	fclose(stream);
	expect_number("open", 0, pinion_file_open(&file, "file", PINION_DIRECT_NEVER));
	/* The page cache would answer before a ring is asked. */
	file.cached_percent = 0;
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("arenas_grow_and_rest");
	make_file();
	check_steps();
	check_rest();
	check_never_sleeps();
	check_transfers();
	check_up_front();
	check_pools();
	pinion_file_close(&file);
	return expect_status();
}

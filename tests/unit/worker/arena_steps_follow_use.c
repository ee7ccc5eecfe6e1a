/* SPDX-License-Identifier: MIT */
/*
 * Goal: a worker keeps the steps of the buffers that are out, and of as many
 * more as it acquired since its last check; if the buffer of a later step is
 * out, it gives back the steps after it, one by one. A ring that is made later
 * gets all steps, the last one as short as it is. A worker that sleeps gets up
 * to look unless no buffer was acquired or released since a look that found no
 * use. At its end it gives back all that is free, of both sizes.
 * Method: the worker's own calls on its own thread; by itself it checks hours
 * later. Buffers are 1 MiB or 512 KiB, a step of them is 2 MiB.
 */
#include "runtime/api/internal.h"
#include "runtime/worker/arena_growth.h"
#include "tests/support/rings.h"
#include "tests/support/users.h"

enum {
	LIMIT_SECONDS = 60,
	MIB = 1 << 20,
	COUNT = 9, /* of 1 MiB: steps of 2, 2, 2, 2 and 1 */
	STEP = 2,
	HALF_COUNT = 5, /* of 512 KiB: steps of 4 and 1 */
	SMALL = 64 << 10,
	SMALL_COUNT = 6, /* steps of 4 and 2 */
	LONG_MS = 3600 * 1000,
};

static struct pinion_runtime *runtime;
static struct pinion_buffer buffers[COUNT];

static void start(uint32_t buffer_bytes, uint32_t buffer_count)
{
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_AUTO);
	runtimes_tuning.buffer_rest_ms = LONG_MS;
	config.buffer_bytes = buffer_bytes;
	config.buffer_count = buffer_count;
	config.small_buffer_bytes = SMALL;
	config.small_buffer_count = SMALL_COUNT;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	expect_ready(runtimes_log, runtime != NULL);
	if (!runtime->shared.arenas_grow) {
		puts("skipped: huge pages are set aside, so nothing grows");
		exit(EXPECT_SKIPPED);
	}
}

static void take(uint32_t from, uint32_t to, size_t bytes)
{
	for (uint32_t i = from; i < to; i++) {
		expect_number("acquire", 0, pinion_buffer_acquire(runtime, bytes, &buffers[i]));
	}
}

static void give(uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		pinion_buffer_release(runtime, &buffers[i]);
	}
}

static void look_and_expect(const char *what, uint64_t kept_mib)
{
	struct pin_worker *worker = pin_worker_current();

	pin_arena_growth_look(worker);
	expect_number(
		what, (long long)kept_mib * MIB, (long long)pin_meter_read(&worker->growth.bytes));
	expect_number("given back", (long long)(COUNT - kept_mib) * MIB,
		(long long)pin_meter_read(&worker->growth.given_back_bytes));
}

static uint32_t step_of_buffer(const struct pinion_buffer *buffer)
{
	const struct pin_pool *pool = &pin_worker_current()->buffers;

	return (uint32_t)((size_t)(buffer->bytes - pool->first_memory) / (STEP * MIB));
}

/* Two are out, one more was acquired: three buffers are two steps. */
static void look_after_use(void *arg)
{
	(void)arg;
	take(0, COUNT, MIB);
	expect_number("in the first step", 0, step_of_buffer(&buffers[0]));
	expect_number("in the first step", 0, step_of_buffer(&buffers[1]));
	give(2, COUNT);
	look_and_expect("nine were acquired", COUNT);
	take(2, 3, MIB);
	give(2, 3);
	look_and_expect("two are out, one was acquired", 2 * STEP);
	look_and_expect("two are out", STEP);
	give(0, 2);
	look_and_expect("none is out", 0);
}

/* One of the second step is out: the three after it go one after another. */
static void look_beside_one(void *arg)
{
	(void)arg;
	take(0, COUNT, MIB);
	expect_number("in the second step", 1, step_of_buffer(&buffers[STEP]));
	memset(buffers[STEP].bytes, 7, MIB);
	give(0, STEP);
	give(STEP + 1, COUNT);
	look_and_expect("nine were acquired", COUNT);
	look_and_expect("up to the step of what is out", 2 * STEP);
	look_and_expect("and no more", 2 * STEP);
	expect_number("its first byte", 7, buffers[STEP].bytes[0]);
	expect_number("its last byte", 7, buffers[STEP].bytes[MIB - 1]);
	give(STEP, STEP + 1);
	look_and_expect("none is out", 0);
}

static void check_rest(void (*body)(void *arg))
{
	start(MIB, COUNT);
	users_on(runtime, 0, body, NULL);
	pinion_runtime_destroy(runtime);
}

static void expect_due(const char *what, bool is_due)
{
	const struct pin_worker *worker = pin_worker_current();

	expect_number(what, is_due, pin_arena_growth_due_ns(worker) != PIN_NO_DEADLINE);
	if (is_due) {
		expect_number(what, (long long)worker->growth.look_ns,
			(long long)pin_arena_growth_due_ns(worker));
	}
}

static void look_when_due(void *arg)
{
	struct pin_worker *worker = pin_worker_current();

	(void)arg;
	expect_due("nothing is taken", false);
	for (int i = 0; i < 2; i++) {
		take(0, 1, MIB);
		expect_due("one was acquired", true);
		pin_arena_growth_look(worker);
		expect_due("it was in use", true);
		pin_arena_growth_look(worker);
		expect_due("it is out, and nothing happens", false);
		give(0, 1);
		expect_due("it was released", true);
		pin_arena_growth_look(worker);
		expect_due("all is given back", false);
		expect_number("memory", 0, (long long)pin_meter_read(&worker->growth.bytes));
	}
}

static void end_after_use(void *arg)
{
	struct pin_worker *worker = pin_worker_current();

	(void)arg;
	take(0, COUNT, MIB);
	give(0, COUNT);
	take(0, SMALL_COUNT, SMALL);
	give(0, SMALL_COUNT);
	expect_number("memory", COUNT * MIB + SMALL_COUNT * SMALL,
		(long long)pin_meter_read(&worker->growth.bytes));
	pin_arena_growth_end(worker);
	expect_number("at its end", 0, (long long)pin_meter_read(&worker->growth.bytes));
	expect_number("given back", COUNT * MIB + SMALL_COUNT * SMALL,
		(long long)pin_meter_read(&worker->growth.given_back_bytes));
	expect_due("at its end", false);
}

static void look_at_late_ring(void *arg)
{
	struct pin_worker *worker = pin_worker_current();
	struct pin_ring_options options = {
		.entries = 8, .helper_count = 1, .kernel = &worker->shared->kernel};
	struct pin_ring late;

	(void)arg;
	take(0, HALF_COUNT, MIB / 2);
	give(0, HALF_COUNT);
	take(0, SMALL_COUNT, SMALL);
	give(0, SMALL_COUNT);
	if (strstr(runtimes_log, "registered") != NULL || worker->ring.is_fallback ||
		!pin_kernel_has(&worker->shared->kernel, PINION_IO_REGISTERED_BUFFERS)) {
		puts("nothing is registered here");
		return;
	}
	expect_number("a ring", 0,
		pin_ring_init(&late, &pin_host_linux, &rings_meter, &options, &rings_log));
	pin_arena_growth_tell(worker, &late);
	expect_number("entries", PIN_RING_SLOTS_OPEN, late.slots);
	expect_number("large", HALF_COUNT * MIB / 2, (long long)late.grown[PIN_GROWN_LARGE].bytes);
	expect_number("small", SMALL_COUNT * SMALL, (long long)late.grown[PIN_GROWN_SMALL].bytes);
	rings_end(&late);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_rest(look_after_use);
	check_rest(look_beside_one);
	check_rest(look_when_due);
	check_rest(end_after_use);
	start(MIB / 2, HALF_COUNT);
	users_on(runtime, 0, look_at_late_ring, NULL);
	pinion_runtime_destroy(runtime);
	return expect_status();
}

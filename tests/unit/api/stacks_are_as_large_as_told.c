/* SPDX-License-Identifier: MIT */
/*
 * Goal: workers have stacks of the size that the configuration names, and of
 * the process's default where it names none; a size that no worker can live
 * with is refused by name. WP-30, WP-36.
 * Method: a job asks for the size of its thread's stack, and uses most of a
 * large one.
 */
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>
#include <pinion/call.h>
#include <pinion/thread_pool.h>

enum {
	LARGE_BYTES = 24 << 20,
	SMALL_BYTES = 512 << 10,
	/* A frame is larger than what it is for. */
	REST_BYTES = 12 << 20,
	LIMIT_SECONDS = 60,
};

static size_t stack_bytes(void)
{
	pthread_attr_t attributes;
	size_t bytes;
	void *lowest;

	expect_number("attributes", 0, pthread_getattr_np(pthread_self(), &attributes));
	expect_number("stack", 0, pthread_attr_getstack(&attributes, &lowest, &bytes));
	pthread_attr_destroy(&attributes);
	return bytes;
}

static int ask(void *arg)
{
	*(size_t *)arg = stack_bytes();
	return 0;
}

/* Touches all of it, from here down. */
static __attribute__((noinline)) uint32_t dig(size_t bytes)
{
	volatile char room[1024];

	room[bytes % sizeof(room)] = (char)bytes;
	return bytes < sizeof(room)
		? 0
		: dig(bytes - sizeof(room)) + (uint8_t)room[bytes % sizeof(room)];
}

static int use(void *arg)
{
	*(uint32_t *)arg = dig(LARGE_BYTES - REST_BYTES);
	return 0;
}

static size_t bytes_with(uint64_t configured)
{
	struct pinion_thread_pool_sizes sizes = {0, 0, 1};
	struct pinion_runtime *thread_pool = NULL;
	struct pinion_config config;
	size_t bytes = 0;
	uint32_t sum;
	int result;

	pinion_thread_pool_config_init(&config);
	config.tuning = runtimes_thread_pool_tuning();
	runtimes_tuning.stack_bytes = configured;
	expect_ready("create", pinion_thread_pool_create(&config, &sizes, &thread_pool) == 0);
	expect_number("ask", 0, pinion_call_run(thread_pool, ask, &bytes, &result));
	if (configured == LARGE_BYTES) {
		expect_number("use", 0, pinion_call_run(thread_pool, use, &sum, &result));
	}
	pinion_runtime_destroy(thread_pool);
	return bytes;
}

static void check_refusal(void)
{
	struct pinion_runtime *thread_pool = NULL;
	struct pinion_config config;

	pinion_thread_pool_config_init(&config);
	config.tuning = runtimes_thread_pool_tuning();
	config.log = runtimes_note;
	runtimes_log[0] = '\0';
	runtimes_tuning.stack_bytes = 4096;
	expect_number("too small", -EINVAL, pinion_thread_pool_create(&config, NULL, &thread_pool));
	expect_true("named",
		strstr(runtimes_log, "stack_bytes: 4096 is neither 0 nor 65536 or more") != NULL);
}

/* ThreadSanitizer adds what it needs for itself to a small one. */
static void expect_small(size_t bytes)
{
#ifdef __SANITIZE_THREAD__
	expect_true("small", bytes >= SMALL_BYTES && bytes < LARGE_BYTES);
#else
	expect_number("small", SMALL_BYTES, (long long)bytes);
#endif
}

int main(void)
{
	pthread_attr_t attributes;
	size_t standard;

	runtimes_watchdog(LIMIT_SECONDS);
	expect_number("default", 0, pthread_getattr_default_np(&attributes));
	expect_number("default", 0, pthread_attr_getstacksize(&attributes, &standard));
	expect_number("none named", (long long)standard, (long long)bytes_with(0));
	expect_number("large", LARGE_BYTES, (long long)bytes_with(LARGE_BYTES));
	expect_small(bytes_with(SMALL_BYTES));
	check_refusal();
	return expect_status();
}

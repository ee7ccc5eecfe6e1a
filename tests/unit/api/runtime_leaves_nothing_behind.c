/* SPDX-License-Identifier: MIT */
/*
 * Goal: a runtime that has ended has given back its threads, descriptors and
 * mappings, also a runtime that never worked or whose threads could not all be
 * had.
 * Method: 200 lives, with the numbers of /proc before and after.
 */
#include "runtime/base/atomic.h"
#include "runtime/host/kernel.h"
#include "tests/support/child.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>

enum {
	LIVES = 200,
	WORKERS = 3,
	TASKS = 10,
	LIMIT_SECONDS = 60,
	NOBODY = 65533,
};

/* Of every mapping ThreadSanitizer splits one or two of its own in the end. */
#ifdef __SANITIZE_THREAD__
static const bool counts_mappings = false;
#else
static const bool counts_mappings = true;
#endif

static struct pin_atomic_u32 run_count;

static int count_run(struct pinion_task *task)
{
	(void)task;
	pin_fetch_add_acq_rel_u32(&run_count, 1);
	return 0;
}

static long long count_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	long long count = 0;
	int character;

	expect_ready("maps", maps != NULL);
	while ((character = getc(maps)) != EOF) {
		count += character == '\n' ? 1 : 0;
	}
	fclose(maps);
	return count;
}

static void live_once(uint32_t number)
{
	struct pinion_runtime *runtime =
		runtimes_start(WORKERS, number % 4 == 3 ? PINION_IO_FALLBACK : PINION_IO_AUTO);
	struct pinion_task tasks[TASKS];

	for (int i = 0; i < TASKS && number % 2 == 0; i++) {
		tasks[i] = (struct pinion_task){.run = count_run};
		expect_number("spawn", 0, pinion_task_spawn(runtime, &tasks[i]));
	}
	if (number % 3 != 0) {
		expect_number("drain", 0, pinion_runtime_drain(runtime));
	}
	pinion_runtime_destroy(runtime);
}

static void check_lives(void)
{
	uint32_t lives = tasks_iterations(LIVES);
	size_t descriptors;
	size_t threads;
	long long mappings;

	live_once(0);
	descriptors = runtimes_count_entries("/proc/self/fd");
	threads = runtimes_count_entries("/proc/self/task");
	mappings = count_mappings();
	for (uint32_t i = 0; i < lives; i++) {
		live_once(i);
	}
	expect_number("descriptors", (long long)descriptors,
		(long long)runtimes_count_entries("/proc/self/fd"));
	runtimes_expect_threads(threads);
	/* The heap maps now and then; a leak maps each time. */
	expect_true("mappings", !counts_mappings || count_mappings() <= mappings + lives / 2);
}

/* As a user who may have no more than a few threads. */
static int run_short_of_threads(void *arg)
{
	struct rlimit limit = {3, 3};
	struct pinion_runtime *runtime = NULL;
	struct pinion_config config;
	size_t descriptors = runtimes_count_entries("/proc/self/fd");
	size_t threads = runtimes_count_entries("/proc/self/task");

	(void)arg;
	if (setrlimit(RLIMIT_NPROC, &limit) < 0 || setgid(NOBODY) < 0 || setuid(NOBODY) < 0) {
		return EXPECT_SKIPPED;
	}
	runtimes_config(&config, 16, PINION_IO_AUTO);
	expect_number("create", -EAGAIN, pinion_runtime_create(&config, &runtime));
	expect_true("nothing was written", runtime == NULL);
	expect_true("the message names the limit",
		strstr(runtimes_log, "the user has reached `ulimit -u` 3; raise that") != NULL);
	expect_number("descriptors", (long long)descriptors,
		(long long)runtimes_count_entries("/proc/self/fd"));
#ifdef __SANITIZE_THREAD__
	threads++; /* its own */
#endif
	runtimes_expect_threads(threads);
	return expect_status();
}

/* Descriptors for some of the rings only. */
static int run_short_of_descriptors(void *arg)
{
	struct rlimit limit = {10, 10};
	struct pinion_runtime *runtime = NULL;
	struct pinion_config config;
	size_t descriptors = runtimes_count_entries("/proc/self/fd");
	struct pinion_task task = {.run = count_run};
	struct pin_kernel kernel;

	(void)arg;
	runtimes_own_level();
	pin_kernel_probe(&kernel);
	if (kernel.ring_error != 0) {
		return EXPECT_SKIPPED;
	}
	expect_ready("limit", setrlimit(RLIMIT_NOFILE, &limit) == 0);
	runtimes_config(&config, 16, PINION_IO_RING);
	expect_number("create with rings", -EMFILE, pinion_runtime_create(&config, &runtime));
	expect_number("descriptors", (long long)descriptors,
		(long long)runtimes_count_entries("/proc/self/fd"));
	runtimes_config(&config, 16, PINION_IO_AUTO);
	expect_number("create with what there is", 0, pinion_runtime_create(&config, &runtime));
	expect_true("which is logged", strstr(runtimes_log, "ulimit -n") != NULL);
	pin_store_release_u32(&run_count, 0);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("run", 1, pin_load_acquire_u32(&run_count));
	pinion_runtime_destroy(runtime);
	expect_number("descriptors", (long long)descriptors,
		(long long)runtimes_count_entries("/proc/self/fd"));
	return expect_status();
}

int main(void)
{
	int code;

	runtimes_watchdog(LIMIT_SECONDS);
	code = child_code(child_run(run_short_of_threads, NULL, NULL, 0));
	if (code != EXPECT_SKIPPED) {
		expect_number("short of threads", 0, code);
	}
	code = child_code(child_run(run_short_of_descriptors, NULL, NULL, 0));
	if (code != EXPECT_SKIPPED) {
		expect_number("short of descriptors", 0, code);
	}
	check_lives();
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: workers that have nothing to do sleep until something happens: over a
 * time in which nothing does, no thread of a runtime is switched to even once,
 * and none of its counters changes, with io_uring and without, with a read
 * pending on each worker, and with rings that others may reap. With a tick
 * (`on_tick`) a worker sleeps once for each of them and not more often. W14,
 * AS-39, C5, C10.
 * Method: once the kernel has put all threads of the runtime to sleep, its
 * counts of switches in /proc and the runtime's own are read, and again after a
 * while. A busy machine wakes no worker, so it cannot fail for that; a worker
 * that is up every 200 us, as by a timeout, is up thousands of times in that
 * while.
 */
#include "runtime/task/entry.h"
#include "runtime/worker/watchdog.h"
#include "tests/support/runtimes.h"
#include "tests/support/sleepers.h"
#include "tests/support/tasks.h"
#include "tests/support/threads.h"

enum {
	WORKERS = 8,
	LIMIT_SECONDS = 120,
	QUIET_NS = 500 * 1000 * 1000,
	STALL_MS = 100, /* the default */
	TICK_MS = 2,
	TICKS = 10, /* of each worker */
	OTHERS_MAX = 16,
};

static struct pinion_runtime *runtime;
static struct pinion_request requests[WORKERS];
static struct tasks_hold holds[WORKERS];
static struct pinion_file file;
static uint8_t bytes[WORKERS];

/* Threads that were there before any runtime: this one, a sanitizer's. */
static long others[OTHERS_MAX];
static uint32_t other_count;

static void *return_at_once(void *arg)
{
	return arg;
}

static void list_others(void)
{
	const struct dirent *entry;
	pthread_t first;
	DIR *entries;

	/* With the first thread a sanitizer's comes as well. */
	expect_ready("thread", pthread_create(&first, NULL, return_at_once, NULL) == 0);
	pthread_join(first, NULL);
	entries = opendir("/proc/self/task");
	expect_ready("/proc/self/task", entries != NULL);
	while ((entry = readdir(entries)) != NULL) {
		expect_ready("few threads", other_count < OTHERS_MAX);
		others[other_count++] = strtol(entry->d_name, NULL, 10);
	}
	closedir(entries);
}

static bool is_other(long id)
{
	for (uint32_t i = 0; i < other_count; i++) {
		if (others[i] == id) {
			return true;
		}
	}
	return false;
}

static uint64_t read_switches(const char *thread)
{
	char path[sizeof("/proc/self/task//status") + 256];
	char line[256];
	uint64_t count = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", thread);
	status = fopen(path, "re");
	while (status != NULL && fgets(line, sizeof(line), status) != NULL) {
		const char *key = strstr(line, "voluntary_ctxt_switches:");

		/* Also the line that begins with "non". */
		if (key != NULL) {
			count += strtoull(strchr(key, ':') + 1, NULL, 10);
		}
	}
	if (status != NULL) {
		fclose(status);
	}
	return count;
}

/* Of all threads of runtimes; those of the kernel for their rings are none. */
static uint64_t count_switches(void)
{
	DIR *entries = opendir("/proc/self/task");
	const struct dirent *entry;
	uint64_t count = 0;

	expect_ready("/proc/self/task", entries != NULL);
	while ((entry = readdir(entries)) != NULL) {
		/* 0: "." and "..", which are among the others. */
		if (!is_other(strtol(entry->d_name, NULL, 10)) &&
			!threads_look(entry->d_name).is_kernels) {
			count += read_switches(entry->d_name);
		}
	}
	closedir(entries);
	return count;
}

/* All workers, and the watchdog, are where only an event gets them up. */
static void await_silence(void)
{
	struct pin_shared *shared = &runtime->shared;

	do {
		sleepers_await(&shared->classes[0], WORKERS);
	} while (pin_load_acquire_u32(&shared->watchdog) != PIN_WATCHDOG_ASLEEP ||
		!sleepers_are_all_threads());
}

static void pass_time(void)
{
	static struct pin_atomic_u32 never;
	uint64_t end_ns = pinion_clock_now_ns() + QUIET_NS;

	while (pinion_clock_now_ns() < end_ns) {
		pin_host_linux.futex_wait(&never, 0, end_ns);
	}
}

static void expect_silence(const char *what)
{
	struct pinion_runtime_stats before;
	struct pinion_runtime_stats after;
	uint64_t switches;

	await_silence();
	before = runtimes_counters(runtime);
	switches = count_switches();
	pass_time();
	expect_number(what, 0, (long long)(count_switches() - switches));
	after = runtimes_counters(runtime);
	expect_number(what, 0, memcmp(&before, &after, sizeof(before)));
}

static int ignore(struct pinion_task *task)
{
	(void)task;
	return 0;
}

static void start_read(struct tasks_hold *hold)
{
	size_t number = (size_t)(hold - holds);

	requests[number] = (struct pinion_request){
		.task.run = ignore,
		.file = &file,
		.bytes = &bytes[number],
		.length_bytes = 1,
	};
	expect_number("read", 0, pinion_request_submit(runtime, &requests[number]));
}

static void start_reads(void)
{
	for (uint32_t i = 0; i < WORKERS; i++) {
		holds[i] = (struct tasks_hold){.prepare = start_read};
		tasks_hold_begin(&holds[i], runtime, i);
		tasks_hold_end(&holds[i]);
	}
}

static void check(const char *what, uint32_t io_level, uint32_t ring_sharing)
{
	struct pinion_task task = {.run = ignore};
	struct pinion_runtime_info facts;
	struct pinion_config config;
	int ends[2];

	printf("%s\n", what);
	runtimes_config(&config, WORKERS, io_level);
	runtimes_tuning.ring_sharing = ring_sharing;
	runtimes_tuning.stall_ms = STALL_MS;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	expect_silence("before the first task");
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	expect_silence("after it");
	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	if (facts.uses_ring != 0) {
		expect_ready("pipe", pipe(ends) == 0);
		file = runtimes_plain_file(ends[0]);
		start_reads();
		await_silence();
		expect_number(
			"in rings", WORKERS, (long long)runtimes_counters(runtime).parked_ring);
		expect_silence("with reads pending");
		expect_ready("write", write(ends[1], "12345678", WORKERS) == WORKERS);
		expect_silence("after reads");
		close(ends[0]);
		close(ends[1]);
	}
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
}

/* ---- a mutant: workers that get up by themselves are seen to ---- */

static void check_restless(void)
{
	struct pinion_config config;
	uint64_t switches;
	uint64_t parks;

	printf("restless\n");
	runtimes_config(&config, WORKERS, PINION_IO_FALLBACK);
	runtimes_tuning.park_timeout_us = 200;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	switches = count_switches();
	parks = runtimes_counters(runtime).parks_futex;
	while (count_switches() == switches || runtimes_counters(runtime).parks_futex == parks) {
		sched_yield();
	}
	pinion_runtime_destroy(runtime);
}

/* ---- ticks ---- */

static void tick(void *arg, uint32_t worker_index, void *context)
{
	(void)arg;
	(void)worker_index;
	(void)context;
}

static void check_ticks(void)
{
	struct pinion_runtime_stats counters;
	struct pinion_config config;

	printf("ticks\n");
	runtimes_config(&config, WORKERS, PINION_IO_FALLBACK);
	config.on_tick = tick;
	runtimes_tuning.tick_interval_ms = TICK_MS;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	while (runtimes_counters(runtime).ticks < (uint64_t)WORKERS * TICKS) {
		sched_yield();
	}
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	counters = runtimes_counters(runtime);
	/* One more of each worker while the others come to their end. */
	expect_true("a sleep for each tick", counters.parks_futex <= counters.ticks + WORKERS);
	printf("%llu ticks, %llu sleeps\n", (unsigned long long)counters.ticks,
		(unsigned long long)counters.parks_futex);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	list_others();
	check("with io_uring", PINION_IO_AUTO, PINION_RING_OWN);
	check("with rings that others may reap", PINION_IO_AUTO, PINION_RING_SHARED);
	check("without io_uring", PINION_IO_FALLBACK, PINION_RING_OWN);
	check_restless();
	check_ticks();
	return expect_status();
}

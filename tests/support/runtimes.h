/* SPDX-License-Identifier: MIT */
/*
 * Small runtimes for tests, what they said, and reads that stay in flight for
 * as long as a test wants: of a pipe.
 */
#ifndef PIN_TESTS_SUPPORT_RUNTIMES_H
#define PIN_TESTS_SUPPORT_RUNTIMES_H

#include "tests/support/expect.h"
#include "tests/support/threads.h"

#include <dirent.h>
#include <pinion/pinion.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* All messages since the last runtimes_config(), one per line. */
static char runtimes_log[8192];
static pthread_mutex_t runtimes_log_lock = PTHREAD_MUTEX_INITIALIZER;

static inline void runtimes_note(void *arg, enum pinion_log_level level, const char *message)
{
	size_t length;

	(void)arg;
	(void)level;
	pthread_mutex_lock(&runtimes_log_lock);
	length = strlen(runtimes_log);
	snprintf(runtimes_log + length, sizeof(runtimes_log) - length, "%s\n", message);
	pthread_mutex_unlock(&runtimes_log_lock);
}

/* The tuning of the configuration that the thread made last. */
static _Thread_local struct pinion_tuning runtimes_tuning;

/*
 * What `make check-levels` says by PINION_IO_LEVEL and PINION_IO_WITHOUT takes
 * the place of all but the fallback.
 */
static inline void runtimes_limit(struct pinion_config *config)
{
	struct pinion_config told;
	struct pinion_tuning tuning;

	pinion_config_init(&told);
	pinion_tuning_init(&tuning);
	if (config->io_level == PINION_IO_FALLBACK || pinion_config_from_env(&told, &tuning) != 0) {
		return;
	}
	if (config->io_level == PINION_IO_AUTO || told.io_level > PINION_IO_RING) {
		config->io_level = told.io_level;
	}
	runtimes_tuning.io_without = tuning.io_without;
}

/* The tuning of a thread pool, to be changed as runtimes_tuning. */
static inline const struct pinion_tuning *runtimes_thread_pool_tuning(void)
{
	pinion_thread_pool_tuning_init(&runtimes_tuning);
	return &runtimes_tuning;
}

/* For tests that are about the choice itself. */
static inline void runtimes_own_level(void)
{
	unsetenv("PINION_IO_LEVEL");
	unsetenv("PINION_IO_WITHOUT");
}

/*
 * Few and small buffers, so that starting costs little. Differences in
 * its tuning are set in runtimes_tuning, until the thread calls this again.
 */
static inline void runtimes_config(
	struct pinion_config *config, uint32_t worker_count, uint32_t io_level)
{
	pinion_config_init(config);
	pinion_tuning_init(&runtimes_tuning);
	/* Tests hold workers for as long as their machine is slow. */
	runtimes_tuning.stall_ms = 0;
	config->tuning = &runtimes_tuning;
	/* Another runtime may be there, and say something. */
	pthread_mutex_lock(&runtimes_log_lock);
	runtimes_log[0] = '\0';
	pthread_mutex_unlock(&runtimes_log_lock);
	config->worker_count = worker_count;
	config->io_level = io_level;
	runtimes_limit(config);
	config->buffer_bytes = 64 << 10;
	config->buffer_count = 4;
	config->small_buffer_bytes = 4096;
	config->small_buffer_count = 8;
	config->log = runtimes_note;
}

static inline struct pinion_runtime *runtimes_start(uint32_t worker_count, uint32_t io_level)
{
	struct pinion_runtime *runtime = NULL;
	struct pinion_config config;
	int rc;

	runtimes_config(&config, worker_count, io_level);
	rc = pinion_runtime_create(&config, &runtime);
	if (rc != 0) {
		printf("pinion_runtime_create: expected 0, got %d: %s\n", rc, runtimes_log);
		exit(1);
	}
	return runtime;
}

static inline struct pinion_runtime_info runtimes_info(const struct pinion_runtime *runtime)
{
	struct pinion_runtime_info info;

	pinion_runtime_get_info(runtime, &info, sizeof(info));
	return info;
}

static inline struct pinion_runtime_stats runtimes_counters(const struct pinion_runtime *runtime)
{
	struct pinion_runtime_stats counters;

	pinion_runtime_get_stats(runtime, &counters, sizeof(counters));
	return counters;
}

/* All requests have ended, and none of them was found by a timeout alone. */
static inline void runtimes_finish(struct pinion_runtime *runtime, uint32_t request_count)
{
	struct pinion_runtime_stats counters;

	expect_number("drain", 0, pinion_runtime_drain(runtime));
	counters = runtimes_counters(runtime);
	expect_number("completed", request_count, (long long)counters.requests_completed);
	expect_number("caught", 0, (long long)counters.park_timeout_found_work);
	pinion_runtime_destroy(runtime);
}

/*
 * A descriptor as a file, of which nothing is known: a pipe's, whose reads wait
 * until something is written, or a device's.
 */
static inline struct pinion_file runtimes_plain_file(int fd)
{
	expect_ready("descriptor", fd >= 0);
	return (struct pinion_file){
		.fd = fd,
		.memory_align_bytes = 1,
		.offset_align_bytes = 1,
		/* Not filled in by hand: those are no pipes. */
		.way = PINION_WAY_ASKED,
	};
}

static inline size_t runtimes_count_entries(const char *folder)
{
	DIR *entries = opendir(folder);
	size_t count = 0;

	expect_ready(folder, entries != NULL);
	while (readdir(entries) != NULL) {
		count++;
	}
	closedir(entries);
	return count;
}

/* As runtimes_count_entries() of /proc/self/task, but for those that leave. */
static inline size_t runtimes_count_threads(void)
{
	DIR *entries = opendir("/proc/self/task");
	const struct dirent *entry;
	size_t count = 0;

	expect_ready("/proc/self/task", entries != NULL);
	while ((entry = readdir(entries)) != NULL) {
		count += entry->d_name[0] == '.' || !threads_look(entry->d_name).is_leaving;
	}
	closedir(entries);
	return count;
}

/*
 * The threads of this process are back at `count` entries of /proc. Those of
 * the kernel's own may need a moment, or as long as others have their CPU: they
 * are waited for, up to the watchdog or half a minute.
 */
static inline void runtimes_expect_threads(size_t count)
{
	size_t now = runtimes_count_threads();

	for (int i = 0; i < 30000 && now > count; i++) {
		usleep(1000);
		now = runtimes_count_threads();
	}
	/* Fewer: one was on its way out when they were counted before. */
	if (now > count) {
		expect_number("threads", (long long)count, (long long)now);
	}
}

/*
 * Threads of this process but for those that the kernel has for its rings: on
 * older kernels a read of a pipe waits in one.
 */
static inline size_t runtimes_count_own_threads(void)
{
	DIR *entries = opendir("/proc/self/task");
	const struct dirent *entry;
	size_t count = 0;

	expect_ready("/proc/self/task", entries != NULL);
	while ((entry = readdir(entries)) != NULL) {
		struct threads_seen seen = threads_look(entry->d_name);

		/* 0: "." and "..". */
		count +=
			strtol(entry->d_name, NULL, 10) != 0 && seen.state != 0 && !seen.is_kernels;
	}
	closedir(entries);
	return count;
}

/* Ends a test that hangs, with a line that says so. */
static inline void runtimes_watchdog_end(int signal_number)
{
	static const char line[] = "watchdog: expected an end within the limit, got none\n";

	(void)signal_number;
	if (write(STDOUT_FILENO, line, sizeof(line) - 1) < 0) {
		_exit(2);
	}
	_exit(1);
}

/*
 * `seconds`: several times what the test takes on a machine of its own. It gets
 * more, since it is no error of the test that its machine has other work.
 * TEST_SLOWER=4: on a machine that is slower than most by that factor. Under
 * ThreadSanitizer all of them are.
 */
static inline void runtimes_watchdog(unsigned seconds)
{
	const char *slower = getenv("TEST_SLOWER");
	unsigned long times = slower == NULL ? 1 : strtoul(slower, NULL, 10);

	seconds *= 5;
#ifdef __SANITIZE_THREAD__
	seconds *= 3;
#endif
	signal(SIGALRM, runtimes_watchdog_end);
	alarm(seconds * (times >= 1 && times <= 100 ? (unsigned)times : 1));
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Goal: a file that brings a few bytes more often than `file_timeout_ns` is
 * read to its end, each byte once and at its place, although one read of it
 * takes longer than that; in order and in parallel, with and without rings.
 * Method: the linker leads reads through this program, which lets each bring a
 * few bytes and makes it late. One window, so that no other read ends
 * meanwhile; all of it takes several limits. Each setting has a process of its
 * own, since they take their time: a limit is as many parts as a busy machine
 * does not lose between two of them.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "runtime/io/request.h"
#include "tests/support/scans.h"

#include <errno.h>
#include <sys/uio.h>
#include <time.h>

enum {
	LIMIT_SECONDS = 100,
	SIZE = 30000,
	WINDOW = 32 << 10,
	PART = 500,
	PART_MS = 150,
	TIMEOUT_MS = 4000, /* 26 parts */
};

static uint8_t contents[SIZE];

/* ---- between the library and its reads ---- */

static int64_t bring_little(int64_t result)
{
	const struct timespec late = {.tv_nsec = PART_MS * 1000000};

	if (result <= 0) {
		return result;
	}
	/* Nothing is waited for: to be late is what it is asked for. */
	nanosleep(&late, NULL);
	return result < PART ? result : PART;
}

struct pinion_request *__wrap_pin_request_complete(
	struct pin_ring *ring, uint64_t user_data, int32_t result);
struct pinion_request *__real_pin_request_complete(
	struct pin_ring *ring, uint64_t user_data, int32_t result);
struct pinion_request *__wrap_pin_request_complete(
	struct pin_ring *ring, uint64_t user_data, int32_t result)
{
	const struct pinion_request *request = (void *)(uintptr_t)user_data;

	if (request->op == PINION_OP_READ) {
		result = (int32_t)bring_little(result);
	}
	return __real_pin_request_complete(ring, user_data, result);
}

bool __wrap_pin_cached_read(
	struct pin_cached *cached, struct pin_meter *meter, struct pinion_request *request);
bool __wrap_pin_cached_read(
	struct pin_cached *cached, struct pin_meter *meter, struct pinion_request *request)
{
	(void)cached;
	(void)meter;
	(void)request;
	return false;
}

ssize_t __wrap_preadv2(int fd, const struct iovec *vectors, int count, off_t offset, int flags);
ssize_t __wrap_preadv2(int fd, const struct iovec *vectors, int count, off_t offset, int flags)
{
	(void)fd;
	(void)vectors;
	(void)count;
	(void)offset;
	(void)flags;
	errno = EAGAIN;
	return -1;
}

/* ---- the test ---- */

static void check(uint32_t io_level, uint32_t order)
{
	struct pinion_runtime *runtime = runtimes_start(2, io_level);
	struct pinion_scan_config config;
	struct pinion_scan *scan;
	static char setting[64];

	snprintf(setting, sizeof(setting), "level %u order %u", io_level, order);
	scans_setting = setting;
	scans_config(&config);
	config.order = order;
	config.direct = PINION_DIRECT_NEVER;
	config.window_bytes = WINDOW;
	config.file_timeout_ns = (uint64_t)TIMEOUT_MS * 1000000;
	scan = scans_create(runtime, &config);
	scans_add(scan, 0);
	expect_number("finish", 0, pinion_scan_finish(scan, NULL, 0));
	scans_expect_end(0, PINION_SCAN_DONE, 0);
	expect_number(setting, SIZE, (long long)pin_load_acquire_u64(&scans_files[0].new_bytes));
	pinion_scan_destroy(scan);
	pinion_runtime_destroy(runtime);
}

static pid_t start(uint32_t io_level, uint32_t order)
{
	pid_t child;

	fflush(stdout);
	child = fork();
	expect_ready("fork", child >= 0);
	if (child == 0) {
		runtimes_watchdog(LIMIT_SECONDS);
		check(io_level, order);
		exit(expect_status());
	}
	return child;
}

int main(void)
{
	pid_t children[3];
	int fd;

	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("slow_files_are_read");
	for (size_t i = 0; i < SIZE; i++) {
		contents[i] = (uint8_t)(i % 251);
	}
	fd = open("0", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	expect_ready("0", fd >= 0 && write(fd, contents, SIZE) == SIZE && close(fd) == 0);
	scans_files[0].bytes = contents;
	scans_files[0].size = SIZE;
	children[0] = start(PINION_IO_AUTO, PINION_SCAN_PARALLEL);
	children[1] = start(PINION_IO_AUTO, PINION_SCAN_IN_ORDER);
	children[2] = start(PINION_IO_FALLBACK, PINION_SCAN_PARALLEL);
	for (size_t i = 0; i < PIN_ARRAY_COUNT(children); i++) {
		int status;

		expect_ready("waitpid", waitpid(children[i], &status, 0) == children[i]);
		expect_number("status of a setting", 0, status);
	}
	scratch_leave();
	return expect_status();
}

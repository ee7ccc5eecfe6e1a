/* SPDX-License-Identifier: MIT */
/*
 * A request, and calls of the kernel whose results a test makes up: pread(2),
 * pwrite(2), preadv2(2) and posix_fadvise(2) in place of libc's. What they were
 * asked for is noted. For one source file of a program.
 */
#ifndef PIN_TESTS_SUPPORT_ANSWERS_H
#define PIN_TESTS_SUPPORT_ANSWERS_H

#include "runtime/io/file.h"
#include "runtime/io/request.h"
#include "tests/support/rings.h"
#include "tests/support/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum {
	LENGTH = 8192,
	SIZE = 6000,
	CALLS_MAX = 256,
};

struct call {
	int fd;
	uint64_t distance; /* of its memory, from that of the request */
	size_t length;
	off_t offset;
};

static struct call calls[CALLS_MAX];
static int64_t answers[CALLS_MAX];
static uint32_t call_count;
static uint32_t write_count;

static struct call advice;
static uint32_t advice_count;

static uint8_t bytes[LENGTH] __attribute__((aligned(4096)));

static inline int64_t next_answer(int fd, const void *memory, size_t length, off_t offset)
{
	int64_t answer;

	expect_ready("few calls", call_count < CALLS_MAX);
	calls[call_count] = (struct call){fd, (uintptr_t)memory - (uintptr_t)bytes, length, offset};
	answer = answers[call_count];
	call_count++;
	if (answer < 0) {
		errno = (int)-answer;
		return -1;
	}
	return answer;
}

ssize_t pread(int fd, void *memory, size_t length, off_t offset)
{
	return next_answer(fd, memory, length, offset);
}

ssize_t pwrite(int fd, const void *memory, size_t length, off_t offset)
{
	write_count++;
	return next_answer(fd, memory, length, offset);
}

int posix_fadvise(int fd, off_t offset, off_t length, int how)
{
	advice = (struct call){fd, 0, (size_t)length, offset};
	advice_count++;
	return how == POSIX_FADV_DONTNEED ? 0 : -EINVAL;
}

ssize_t preadv2(int fd, const struct iovec *vector, int count, off_t offset, int flags)
{
	expect_number("one piece", 1, count);
	expect_number("at once", RWF_NOWAIT, flags);
	return next_answer(fd, vector->iov_base, vector->iov_len, offset);
}

/* The same by its number, the offset in halves. */
static inline bool answer_syscall(long number, const long *arguments, long *out_result)
{
	if (number != SYS_preadv2) {
		return false;
	}
	expect_number("upper half of the offset", arguments[3] >> 32, arguments[4]);
	*out_result = preadv2((int)arguments[0], (const struct iovec *)arguments[1],
		(int)arguments[2], arguments[3], (int)arguments[5]);
	return true;
}

static inline void expect_call(uint32_t index, size_t length, off_t offset, uint64_t distance)
{
	expect_true("called as often", index < call_count);
	expect_number("length of a call", (long long)length, (long long)calls[index].length);
	expect_number("offset of a call", (long long)offset, (long long)calls[index].offset);
	expect_number("memory of a call", (long long)distance, (long long)calls[index].distance);
}

/* ---- the request ---- */

static struct pinion_file file;
static struct pinion_request request;

static inline int never_run(struct pinion_task *task)
{
	(void)task;
	return 0;
}

static inline void begin(uint16_t op, uint64_t length, uint64_t offset)
{
	int fd = file.fd;

	file = (struct pinion_file){
		.fd = fd,
		.way = PINION_WAY_ASKED,
		.memory_align_bytes = 1,
		.offset_align_bytes = 1,
		.size_bytes = SIZE,
	};
	request = (struct pinion_request){.task.run = never_run,
		.op = op,
		.file = &file,
		.bytes = bytes,
		.length_bytes = length,
		.offset_bytes = offset};
	expect_number("check", 0, pin_request_check(&request));
	memset(&rings_meter, 0, sizeof(rings_meter));
	call_count = 0;
	write_count = 0;
	advice_count = 0;
	for (uint32_t i = 0; i < CALLS_MAX; i++) {
		answers[i] = -EBADF;
	}
}

static inline void expect_meters(const char *what, uint64_t read_bytes, uint64_t write_bytes)
{
	expect_number(
		what, (long long)read_bytes, (long long)pin_meter_read(&rings_meter.read_bytes));
	expect_number(
		what, (long long)write_bytes, (long long)pin_meter_read(&rings_meter.write_bytes));
}

static inline void expect_count(
	const char *what, const struct pin_atomic_u64 *counter, uint64_t expected)
{
	expect_number(what, (long long)expected, (long long)pin_meter_read(counter));
}

#endif

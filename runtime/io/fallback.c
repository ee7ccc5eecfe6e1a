/* SPDX-License-Identifier: MIT */
/*
 * Submission entries as system calls.
 */
#include "runtime/io/fallback.h"

#include "runtime/base/base.h"
#include "runtime/io/in_flight.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static void *address_of(uint64_t value)
{
	return (void *)(uintptr_t)value;
}

/* A length fits int32_t: it is a part's, PIN_REQUEST_PART_BYTES at most. */
static long execute_read(const struct io_uring_sqe *sqe)
{
	struct iovec vector = {.iov_base = address_of(sqe->addr), .iov_len = sqe->len};

	pin_in_flight_fill(vector.iov_base, vector.iov_len);
	return sqe->rw_flags == 0
		? pread(sqe->fd, vector.iov_base, vector.iov_len, (off_t)sqe->off)
		: preadv2(sqe->fd, &vector, 1, (off_t)sqe->off, (int)sqe->rw_flags);
}

static long execute_write(const struct io_uring_sqe *sqe)
{
	return pwrite(sqe->fd, address_of(sqe->addr), sqe->len, (off_t)sqe->off);
}

static long execute_fsync(const struct io_uring_sqe *sqe)
{
	return (sqe->fsync_flags & IORING_FSYNC_DATASYNC) != 0 ? fdatasync(sqe->fd)
							       : fsync(sqe->fd);
}

static long execute_fallocate(const struct io_uring_sqe *sqe)
{
	/* The entry has the length where others have their address. */
	return fallocate(sqe->fd, (int)sqe->len, (off_t)sqe->off, (off_t)sqe->addr);
}

static long execute_openat(const struct io_uring_sqe *sqe)
{
	return openat(sqe->fd, address_of(sqe->addr), (int)sqe->open_flags, (mode_t)sqe->len);
}

static long execute_openat2(const struct io_uring_sqe *sqe)
{
	return syscall(__NR_openat2, sqe->fd, address_of(sqe->addr), address_of(sqe->off),
		(size_t)sqe->len);
}

static long execute_statx(const struct io_uring_sqe *sqe)
{
	pin_in_flight_fill(address_of(sqe->off), sizeof(struct statx));
	return statx(sqe->fd, address_of(sqe->addr), (int)sqe->statx_flags, sqe->len,
		address_of(sqe->off));
}

static long execute_close(const struct io_uring_sqe *sqe)
{
	return close(sqe->fd);
}

static long execute_nop(const struct io_uring_sqe *sqe)
{
	(void)sqe;
	return 0;
}

static long (*const executes[])(const struct io_uring_sqe *sqe) = {
	[IORING_OP_NOP] = execute_nop,
	[IORING_OP_READ] = execute_read,
	[IORING_OP_READ_FIXED] = execute_read,
	[IORING_OP_WRITE] = execute_write,
	[IORING_OP_WRITE_FIXED] = execute_write,
	[IORING_OP_FSYNC] = execute_fsync,
	[IORING_OP_FALLOCATE] = execute_fallocate,
	[IORING_OP_OPENAT] = execute_openat,
	[IORING_OP_OPENAT2] = execute_openat2,
	[IORING_OP_STATX] = execute_statx,
	[IORING_OP_CLOSE] = execute_close,
};

int32_t pin_fallback_execute(const struct io_uring_sqe *sqe)
{
	long rc;

	if (sqe->opcode == PIN_FALLBACK_CANCELLED) {
		return -ECANCELED;
	}
	if (sqe->opcode >= PIN_ARRAY_COUNT(executes) || executes[sqe->opcode] == NULL) {
		return -EOPNOTSUPP;
	}
	rc = executes[sqe->opcode](sqe);
	return rc < 0 ? -errno : (int32_t)rc;
}

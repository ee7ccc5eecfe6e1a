/* SPDX-License-Identifier: MIT */
/*
 * Submission entries as system calls.
 */
#include "runtime/io/fallback.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

int32_t pin_fallback_execute(const struct io_uring_sqe *sqe)
{
	long rc;

	switch (sqe->opcode) {
	case IORING_OP_NOP:
		return 0;
	case IORING_OP_READ:
	case IORING_OP_READ_FIXED:
		/* A length fits int32_t: requests are bounded by 0x7ffff000. */
		rc = pread(sqe->fd, (void *)(uintptr_t)sqe->addr, sqe->len, (off_t)sqe->off);
		break;
	case IORING_OP_OPENAT:
		rc = openat(sqe->fd, (const char *)(uintptr_t)sqe->addr, (int)sqe->open_flags,
			(mode_t)sqe->len);
		break;
	case IORING_OP_ASYNC_CANCEL:
		return -ENOENT; /* nothing is ever in flight here */
	default:
		return -EOPNOTSUPP;
	}
	return rc < 0 ? -errno : (int32_t)rc;
}

/* SPDX-License-Identifier: MIT */
/*
 * Carries out submission entries by system calls, on the worker's thread, where
 * io_uring is missing or forbidden.
 *
 * ring.c calls it in place of an enter, so that everything above sees the same
 * completions.
 *
 * Invariant: no call on a socket sleeps. It says -EAGAIN, and its request goes
 * on with a poll (io/socket.c), which sync_wait.c waits for.
 */
#include "runtime/io/ring.h"

#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/base/thread.h"
#include "runtime/io/in_flight.h"
#include "runtime/io/operation.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static void *address_of(uint64_t value)
{
	return (void *)(uintptr_t)value;
}

/* ---- priorities ---- */

enum {
	/* Of ioprio_set(2), which C libraries lack. */
	WHO_PROCESS = 1,
	CLASS_SHIFT = 13,
};

static int set_priority(int wanted)
{
	return syscall(__NR_ioprio_set, WHO_PROCESS, 0, wanted) < 0 ? -errno : 0;
}

/* 0 is the thread's own. */
static int take_priority(uint16_t wanted)
{
	struct pin_thread *thread;
	int rc;

	if (wanted == 0) {
		pin_fallback_rest();
		return 0;
	}
	thread = pin_thread_own();
	if (thread == NULL) {
		return -ENOMEM;
	}
	if (thread->priority_is_changed && thread->priority_now == wanted) {
		return 0;
	}
	PIN_DCHECK(wanted >> CLASS_SHIFT != 0); /* without a class it is none */
	if (!thread->priority_is_changed) {
		rc = (int)syscall(__NR_ioprio_get, WHO_PROCESS, 0);
		/*
		 * Without a class there is no level: older kernels return one.
		 */
		thread->priority_before = rc >> CLASS_SHIFT <= 0 ? 0 : rc;
	}
	rc = set_priority(wanted);
	if (rc == 0) {
		thread->priority_is_changed = true;
		thread->priority_now = wanted;
	}
	return rc;
}

void pin_fallback_rest(void)
{
	struct pin_thread *thread = pin_thread_find();

	if (thread != NULL && thread->priority_is_changed) {
		(void)set_priority(thread->priority_before);
		thread->priority_is_changed = false;
	}
}

/* ---- entries ---- */

/* A length fits int32_t: that of a part (PIN_REQUEST_PART_BYTES) at most. */
static long execute_read(const struct io_uring_sqe *sqe)
{
	struct iovec vector = {.iov_base = address_of(sqe->addr), .iov_len = sqe->len};

	PIN_DCHECK(sqe->len <= INT32_MAX);
	PIN_DCHECK((sqe->rw_flags & (int)~RWF_DONTCACHE) == 0); /* what a read may ask for */
	pin_in_flight_fill(vector.iov_base, vector.iov_len);
	return sqe->rw_flags == 0
		? pread(sqe->fd, vector.iov_base, vector.iov_len, (off_t)sqe->off)
		: preadv2(sqe->fd, &vector, 1, (off_t)sqe->off, (int)sqe->rw_flags);
}

static long execute_write(const struct io_uring_sqe *sqe)
{
	PIN_DCHECK(sqe->len <= INT32_MAX);
	PIN_DCHECK(sqe->rw_flags == 0); /* pwrite(2) would not heed them */
	return pwrite(sqe->fd, address_of(sqe->addr), sqe->len, (off_t)sqe->off);
}

static long execute_readv(const struct io_uring_sqe *sqe)
{
	const struct iovec *vector = address_of(sqe->addr);

	PIN_DCHECK(sqe->len <= IOV_MAX);
	for (uint32_t i = 0; i < sqe->len; i++) {
		pin_in_flight_fill(vector[i].iov_base, vector[i].iov_len);
	}
	return sqe->rw_flags == 0
		? preadv(sqe->fd, vector, (int)sqe->len, (off_t)sqe->off)
		: preadv2(sqe->fd, vector, (int)sqe->len, (off_t)sqe->off, (int)sqe->rw_flags);
}

static long execute_writev(const struct io_uring_sqe *sqe)
{
	PIN_DCHECK(sqe->len <= IOV_MAX);
	PIN_DCHECK(sqe->rw_flags == 0); /* pwritev(2) would not heed them */
	return pwritev(sqe->fd, address_of(sqe->addr), (int)sqe->len, (off_t)sqe->off);
}

static long execute_fsync(const struct io_uring_sqe *sqe)
{
	PIN_DCHECK((sqe->fsync_flags & ~IORING_FSYNC_DATASYNC) == 0);
	PIN_DCHECK(sqe->off == 0 && sqe->len == 0); /* all of the file */
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
	PIN_DCHECK(sqe->len == sizeof(struct open_how));
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

static long execute_renameat(const struct io_uring_sqe *sqe)
{
	return syscall(__NR_renameat2, sqe->fd, address_of(sqe->addr), (int)sqe->len,
		address_of(sqe->off), sqe->rename_flags);
}

static long execute_unlinkat(const struct io_uring_sqe *sqe)
{
	return unlinkat(sqe->fd, address_of(sqe->addr), (int)sqe->unlink_flags);
}

static long execute_mkdirat(const struct io_uring_sqe *sqe)
{
	return mkdirat(sqe->fd, address_of(sqe->addr), (mode_t)sqe->len);
}

static long execute_linkat(const struct io_uring_sqe *sqe)
{
	return linkat(sqe->fd, address_of(sqe->addr), (int)sqe->len, address_of(sqe->off),
		(int)sqe->hardlink_flags);
}

static long execute_symlinkat(const struct io_uring_sqe *sqe)
{
	return symlinkat(address_of(sqe->addr), sqe->fd, address_of(sqe->off));
}

/* Its error is its result. */
static long execute_fadvise(const struct io_uring_sqe *sqe)
{
	int rc = posix_fadvise(sqe->fd, (off_t)sqe->off, sqe->len, (int)sqe->fadvise_advice);

	errno = rc;
	return rc == 0 ? 0 : -1;
}

static long execute_madvise(const struct io_uring_sqe *sqe)
{
	return madvise(address_of(sqe->addr), sqe->len, (int)sqe->fadvise_advice);
}

static long execute_sync_file_range(const struct io_uring_sqe *sqe)
{
	return sync_file_range(sqe->fd, (off_t)sqe->off, sqe->len, sqe->sync_range_flags);
}

/* ---- sockets ---- */

/* Without sleeping: in a ring it is sync_wait.c that knows of this entry. */
static long execute_poll(const struct io_uring_sqe *sqe)
{
	struct pollfd descriptor = {.fd = sqe->fd, .events = (short)sqe->poll_events};
	int rc = poll(&descriptor, 1, 0);

	return rc <= 0 ? rc : descriptor.revents;
}

static int set_flags(int fd, int flags)
{
	return fcntl(fd, F_SETFL, flags);
}

/*
 * No flag of the call keeps it from sleeping. The socket keeps O_NONBLOCK:
 * taken off again, it would be missing while another worker is in its call.
 */
static long execute_accept(const struct io_uring_sqe *sqe)
{
	int flags = fcntl(sqe->fd, F_GETFL);

	if (flags < 0 ||
		((flags & O_NONBLOCK) == 0 && set_flags(sqe->fd, flags | O_NONBLOCK) < 0)) {
		return -1;
	}
	if (sqe->addr != 0) {
		const uint32_t *room = address_of(sqe->off);

		pin_in_flight_fill(address_of(sqe->addr), *room);
	}
	return accept4(
		sqe->fd, address_of(sqe->addr), address_of(sqe->off), (int)sqe->accept_flags);
}

/* The kernel goes on with a connection that its call has only begun. */
static long execute_connect(const struct io_uring_sqe *sqe)
{
	int flags = fcntl(sqe->fd, F_GETFL);
	int error;
	int rc;

	if (flags < 0 ||
		((flags & O_NONBLOCK) == 0 && set_flags(sqe->fd, flags | O_NONBLOCK) < 0)) {
		return -1;
	}
	rc = connect(sqe->fd, address_of(sqe->addr), (socklen_t)sqe->off);
	error = errno;
	if ((flags & O_NONBLOCK) == 0) {
		(void)set_flags(sqe->fd, flags);
	}
	errno = error;
	return rc;
}

static long execute_recv(const struct io_uring_sqe *sqe)
{
	pin_in_flight_fill(address_of(sqe->addr), sqe->len);
	return recv(sqe->fd, address_of(sqe->addr), sqe->len, (int)sqe->msg_flags | MSG_DONTWAIT);
}

static long execute_send(const struct io_uring_sqe *sqe)
{
	PIN_DCHECK((sqe->msg_flags & MSG_NOSIGNAL) != 0);
	return send(sqe->fd, address_of(sqe->addr), sqe->len, (int)sqe->msg_flags | MSG_DONTWAIT);
}

static long execute_sendmsg(const struct io_uring_sqe *sqe)
{
	PIN_DCHECK((sqe->msg_flags & MSG_NOSIGNAL) != 0);
	return sendmsg(sqe->fd, address_of(sqe->addr), (int)sqe->msg_flags | MSG_DONTWAIT);
}

static long execute_recvmsg(const struct io_uring_sqe *sqe)
{
	struct msghdr *message = address_of(sqe->addr);

	for (size_t i = 0; i < message->msg_iovlen; i++) {
		pin_in_flight_fill(message->msg_iov[i].iov_base, message->msg_iov[i].iov_len);
	}
	return recvmsg(sqe->fd, message, (int)sqe->msg_flags | MSG_DONTWAIT);
}

static long execute_shutdown(const struct io_uring_sqe *sqe)
{
	return shutdown(sqe->fd, (int)sqe->len);
}

static long execute_socket(const struct io_uring_sqe *sqe)
{
	return socket(sqe->fd, (int)sqe->off, (int)sqe->len);
}

static long execute_nop(const struct io_uring_sqe *sqe)
{
	(void)sqe;
	return 0;
}

/* Rows with the same opcode name the same call, so either will do. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
static long (*const executes[])(const struct io_uring_sqe *sqe) = {
#define CALL(set, name, prefix, needs, traits, opcode, check, prepare, goes_on, execute) \
	[opcode] = execute,
	PIN_OPERATIONS(CALL, 0)
#undef CALL
		/* Other kinds of entries that some have. */
		[IORING_OP_READ_FIXED] = execute_read,
	[IORING_OP_WRITE_FIXED] = execute_write,
	[IORING_OP_OPENAT2] = execute_openat2,
};
#pragma GCC diagnostic pop

int32_t pin_fallback_execute(const struct io_uring_sqe *sqe)
{
	long rc;

	if (sqe->opcode == PIN_FALLBACK_CANCELLED) {
		return -ECANCELED;
	}
	if (sqe->opcode >= PIN_ARRAY_COUNT(executes) || executes[sqe->opcode] == NULL) {
		return -EOPNOTSUPP;
	}
	/* Of a registered file it has the slot in place of the descriptor. */
	PIN_DCHECK((sqe->flags & IOSQE_FIXED_FILE) == 0);
	rc = executes[sqe->opcode](sqe);
	PIN_CHECK(rc >= -1 && rc <= INT32_MAX);
	return rc < 0 ? -errno : (int32_t)rc;
}

int32_t pin_fallback_execute_as_asked(const struct io_uring_sqe *sqe)
{
	int rc = sqe->opcode == PIN_FALLBACK_CANCELLED ? 0 : take_priority(sqe->ioprio);

	return rc < 0 ? rc : pin_fallback_execute(sqe);
}

/* SPDX-License-Identifier: MIT */
/*
 * Operations on sockets, and polls: their checks, their entries, and what a
 * completion means.
 *
 * A blocking socket is the ring's to wait for: the kernel arms a poll of its
 * own, and no thread sleeps. A socket with O_NONBLOCK answers -EAGAIN at once,
 * and so does every socket where a worker makes the calls itself. Both go on
 * here in the same way: the request's next entry is a poll (`asks_ready`), and
 * when that ends the operation is tried again. So a worker never sleeps in a
 * call on a socket, and of all entries for sockets only polls wait.
 *
 * operation_table.c has the rows, sync_ring.c the calls, sync_wait.c how polls
 * wait without io_uring.
 *
 * Invariant: `done_bytes` is how far a request with MSG_WAITALL has got, and
 * where its next entry begins.
 */
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/io/request.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

/* ---- checks ---- */

static int check_descriptor(const struct pinion_request *request, struct pin_refusal *why)
{
	return request->file != NULL ? 0 : pin_refuse(why, -EINVAL, "file is NULL");
}

/* The kernel would refuse the others as well, but without a word. */
static int check_flags(
	const struct pinion_request *request, uint32_t known, struct pin_refusal *why)
{
	uint32_t unknown = request->flags & ~known;

	return unknown == 0 ? check_descriptor(request, why)
			    : pin_refuse(why, -EINVAL, "flags is 0x%x: 0x%x is unknown",
				      request->flags, unknown);
}

int pin_socket_check_poll(const struct pinion_request *request, struct pin_refusal *why)
{
	return check_flags(request,
		POLLIN | POLLPRI | POLLOUT | POLLERR | POLLHUP | POLLRDNORM | POLLRDBAND |
			POLLWRNORM | POLLWRBAND | POLLMSG | POLLRDHUP,
		why);
}

static int check_length(const struct pinion_request *request, struct pin_refusal *why)
{
	return request->length_bytes <= PIN_SOCKET_BYTES_MAX
		? check_descriptor(request, why)
		: pin_refuse(why, -EINVAL, "length_bytes is %llu, not 0 to %u",
			  (unsigned long long)request->length_bytes, PIN_SOCKET_BYTES_MAX);
}

int pin_socket_check_bytes(const struct pinion_request *request, struct pin_refusal *why)
{
	if (request->bytes == NULL && request->length_bytes > 0) {
		return pin_refuse(why, -EINVAL, "bytes is NULL");
	}
	if (request->flags > INT32_MAX) {
		return pin_refuse(
			why, -EINVAL, "flags is 0x%x, more than 0x7fffffff", request->flags);
	}
	return check_length(request, why);
}

int pin_socket_check_message(const struct pinion_request *request, struct pin_refusal *why)
{
	if (request->message == NULL) {
		return pin_refuse(why, -EINVAL, "message is NULL");
	}
	if (request->message->msg_iovlen > PIN_VECTOR_COUNT_MAX) {
		return pin_refuse(why, -EINVAL, "message->msg_iovlen is %zu, not 0 to %d",
			request->message->msg_iovlen, PIN_VECTOR_COUNT_MAX);
	}
	if (request->message->msg_iov == NULL && request->message->msg_iovlen > 0) {
		return pin_refuse(why, -EINVAL, "message->msg_iov is NULL");
	}
	/* Some kernels go on within a message, others do not. */
	return check_flags(request, INT32_MAX & ~(uint32_t)MSG_WAITALL, why);
}

int pin_socket_check_accept(const struct pinion_request *request, struct pin_refusal *why)
{
	int rc = check_flags(request, SOCK_NONBLOCK | SOCK_CLOEXEC, why);

	if (rc == 0 && request->address == NULL && request->length_bytes > 0) {
		return pin_refuse(why, -EINVAL, "address is NULL, and length_bytes %llu, not 0",
			(unsigned long long)request->length_bytes);
	}
	return rc == 0 ? check_length(request, why) : rc;
}

int pin_socket_check_connect(const struct pinion_request *request, struct pin_refusal *why)
{
	return request->address != NULL ? check_length(request, why)
					: pin_refuse(why, -EINVAL, "address is NULL");
}

int pin_socket_check_shutdown(const struct pinion_request *request, struct pin_refusal *why)
{
	return request->flags <= SHUT_RDWR
		? check_descriptor(request, why)
		: pin_refuse(why, -EINVAL, "flags is %u, none of SHUT_RD, SHUT_WR, SHUT_RDWR",
			  request->flags);
}

/* ---- entries ---- */

/* They make it worth another attempt. Errors and the end come unasked. */
static uint32_t awaited_events(const struct pinion_request *request)
{
	if (!pin_request_has(request, PIN_OP_FILLS)) {
		return POLLOUT;
	}
	if ((request->flags & MSG_ERRQUEUE) != 0) {
		return 0; /* POLLERR, which needs no asking */
	}
	/* An accept has no such flag. */
	_Static_assert((MSG_OOB & (SOCK_NONBLOCK | SOCK_CLOEXEC)) == 0, "flags are told apart");
	return (request->flags & MSG_OOB) != 0 ? POLLPRI : POLLIN;
}

/* Relaxed: its worker reads it, and takes the lock before it uses it. */
static void count_entry(struct pin_ring *ring)
{
	uint64_t count = pin_load_relaxed_u64(&ring->peer_entries);

	pin_store_relaxed_u64(&ring->peer_entries, count + 1);
}

/* Whether that is its entry for now. */
static bool prepare_wait(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	count_entry(ring);
	if (!pin_request_of(request)->asks_ready) {
		return false;
	}
	io_uring_prep_poll_add(sqe, request->file->fd, awaited_events(request));
	return true;
}

void pin_socket_prepare_poll(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	count_entry(ring);
	/* Rings report it unasked, and so do calls. */
	io_uring_prep_poll_add(sqe, request->file->fd, request->flags | POLLRDHUP);
}

void pin_socket_prepare_accept(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);

	if (prepare_wait(ring, sqe, request)) {
		return;
	}
	private->address_bytes = (uint32_t)request->length_bytes;
	io_uring_prep_accept(sqe, request->file->fd, request->address,
		request->address != NULL ? &private->address_bytes : NULL,
		(int)(request->flags | SOCK_CLOEXEC));
}

void pin_socket_prepare_connect(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	if (!prepare_wait(ring, sqe, request)) {
		io_uring_prep_connect(
			sqe, request->file->fd, request->address, (socklen_t)request->length_bytes);
	}
}

/* Its memory, less the part that was moved. */
static uint8_t *rest(
	struct pin_ring *ring, const struct pinion_request *request, uint32_t *out_bytes)
{
	if (PIN_UNLIKELY(request->done_bytes > request->length_bytes)) {
		pin_request_report_changed(ring, request);
	}
	*out_bytes = (uint32_t)(request->length_bytes - request->done_bytes);
	return request->bytes + request->done_bytes;
}

void pin_socket_prepare_recv(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	uint32_t length;
	uint8_t *bytes = rest(ring, request, &length);

	if (!prepare_wait(ring, sqe, request)) {
		io_uring_prep_recv(sqe, request->file->fd, bytes, length, (int)request->flags);
	}
}

void pin_socket_prepare_send(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	uint32_t length;
	const uint8_t *bytes = rest(ring, request, &length);

	if (!prepare_wait(ring, sqe, request)) {
		io_uring_prep_send(sqe, request->file->fd, bytes, length,
			(int)(request->flags | MSG_NOSIGNAL));
	}
}

void pin_socket_prepare_sendmsg(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	if (!prepare_wait(ring, sqe, request)) {
		io_uring_prep_sendmsg(
			sqe, request->file->fd, request->message, request->flags | MSG_NOSIGNAL);
	}
}

void pin_socket_prepare_recvmsg(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	if (!prepare_wait(ring, sqe, request)) {
		io_uring_prep_recvmsg(sqe, request->file->fd, request->message,
			request->flags | MSG_CMSG_CLOEXEC);
	}
}

void pin_socket_prepare_shutdown(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	(void)ring;
	io_uring_prep_shutdown(sqe, request->file->fd, (int)request->flags);
}

void pin_socket_prepare_new(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	(void)ring;
	io_uring_prep_socket(sqe, request->socket.domain, (int)(request->flags | SOCK_CLOEXEC),
		request->socket.protocol, 0);
}

/* ---- completions ---- */

/*
 * Whether polls may be ready again and again while no attempt gets on: a Unix
 * datagram socket has room, and the peer that a message names has none; a wait
 * for errors is woken by a hang-up, which is no error.
 */
static bool may_poll_in_vain(const struct pinion_request *request)
{
	_Static_assert((MSG_ERRQUEUE & (SOCK_NONBLOCK | SOCK_CLOEXEC)) == 0, "not of an accept");
	return pin_request_has(request, PIN_OP_TAKES) || (request->flags & MSG_ERRQUEUE) != 0;
}

/* Of an attempt, or of the poll between two. True: another entry follows. */
static bool waits_or_retries(
	struct pin_ring *ring, struct pinion_request *request, int64_t *result, bool may_wait)
{
	struct pin_request *private = pin_request_of(request);

	if (*result >= 0) {
		PIN_DCHECK(private->asks_ready); /* else its caller would have ended it */
		private->asks_ready = false;
		/*
		 * A peer that sends no more ends any poll in a ring. A send
		 * that waits for room there would ask again and again.
		 */
		if ((*result & ~(int64_t)POLLRDHUP) == 0 || may_poll_in_vain(request)) {
			private->stall_count++;
			*result = -EAGAIN;
			return private->stall_count <= PIN_REQUEST_STALLS_MAX;
		}
		return true;
	}
	if (*result == -EAGAIN && may_wait && !private->asks_ready) {
		private->asks_ready = true;
		return true;
	}
	if (*result == -EAGAIN && !may_wait && request->op != PINION_OP_CONNECT) {
		return false; /* which is what it asked for */
	}
	return pin_request_may_retry(ring->meter, request, *result);
}

static bool is_attempt(struct pinion_request *request, int64_t result)
{
	return result >= 0 && !pin_request_of(request)->asks_ready;
}

bool pin_socket_accept_goes_on(
	struct pin_ring *ring, struct pinion_request *request, int64_t *result)
{
	if (!is_attempt(request, *result)) {
		return waits_or_retries(ring, request, result, true);
	}
	if (request->address != NULL) {
		request->done_bytes = pin_request_of(request)->address_bytes;
	}
	return false;
}

/*
 * A Unix socket answers -EAGAIN when its listener's queue is full, for which no
 * poll can wait. After an attempt that was interrupted, or has begun, the
 * kernel goes on alone: the next attempt gets the outcome, or that the socket
 * is connected.
 */
bool pin_socket_connect_goes_on(
	struct pin_ring *ring, struct pinion_request *request, int64_t *result)
{
	struct pin_request *private = pin_request_of(request);

	if (is_attempt(request, *result)) {
		return false;
	}
	if (*result == -EISCONN && private->stall_count > 0) {
		*result = 0;
		return false;
	}
	if (*result == -EINPROGRESS || *result == -EALREADY) {
		private->stall_count = 1;
		private->asks_ready = true;
		return true;
	}
	return waits_or_retries(ring, request, result, false);
}

static bool is_stream(int fd)
{
	socklen_t bytes = sizeof(int);
	int type = 0;

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 && type == SOCK_STREAM;
}

/* It wants all of its bytes, and this was a part: not of a message. */
static bool wants_rest(const struct pinion_request *request)
{
	return (request->flags & MSG_WAITALL) != 0 && (request->flags & MSG_PEEK) == 0 &&
		is_stream(request->file->fd);
}

/* Bytes that are looked at are counted when they are received. */
static void count_bytes(
	struct pin_atomic_u64 *meter, const struct pinion_request *request, uint64_t bytes)
{
	if (!pin_request_has(request, PIN_OP_FILLS) || (request->flags & MSG_PEEK) == 0) {
		pin_meter_add(meter, bytes);
	}
}

static bool moved_goes_on(struct pin_ring *ring, struct pinion_request *request, int64_t *result,
	struct pin_atomic_u64 *meter)
{
	uint64_t left = request->length_bytes - request->done_bytes;
	bool is_later_part = request->done_bytes > 0;
	uint64_t got;

	if (!is_attempt(request, *result)) {
		return waits_or_retries(
			ring, request, result, (request->flags & MSG_DONTWAIT) == 0);
	}
	/* A message that was cut may be longer (MSG_TRUNC). */
	got = pin_min_u64((uint64_t)*result, left);
	request->done_bytes += got;
	count_bytes(meter, request, got);
	if (got > 0 && got < left && wants_rest(request)) {
		pin_request_of(request)->stall_count = 0;
		return true;
	}
	if (is_later_part) {
		*result = (int64_t)request->done_bytes;
	}
	return false;
}

bool pin_socket_recv_goes_on(struct pin_ring *ring, struct pinion_request *request, int64_t *result)
{
	return moved_goes_on(ring, request, result, &ring->meter->received_bytes);
}

bool pin_socket_send_goes_on(struct pin_ring *ring, struct pinion_request *request, int64_t *result)
{
	return moved_goes_on(ring, request, result, &ring->meter->sent_bytes);
}

static uint64_t room_of(const struct msghdr *message)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < message->msg_iovlen; i++) {
		bytes += message->msg_iov[i].iov_len;
	}
	return bytes;
}

/* One message, or a part of it, and no more. */
static bool message_goes_on(struct pin_ring *ring, struct pinion_request *request, int64_t *result,
	struct pin_atomic_u64 *meter)
{
	if (!is_attempt(request, *result)) {
		return waits_or_retries(
			ring, request, result, (request->flags & MSG_DONTWAIT) == 0);
	}
	request->done_bytes = (uint64_t)*result;
	if ((request->flags & MSG_TRUNC) != 0) {
		/* The result is the whole length of a message that was cut. */
		request->done_bytes = pin_min_u64(request->done_bytes, room_of(request->message));
	}
	count_bytes(meter, request, request->done_bytes);
	return false;
}

bool pin_socket_sendmsg_goes_on(
	struct pin_ring *ring, struct pinion_request *request, int64_t *result)
{
	return message_goes_on(ring, request, result, &ring->meter->sent_bytes);
}

bool pin_socket_recvmsg_goes_on(
	struct pin_ring *ring, struct pinion_request *request, int64_t *result)
{
	return message_goes_on(ring, request, result, &ring->meter->received_bytes);
}

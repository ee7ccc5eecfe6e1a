/* SPDX-License-Identifier: MIT */
/*
 * Goal: each operation on sockets has the effect and the result of its system
 * call, of Unix and of TCP sockets, blocking or with O_NONBLOCK, with and
 * without a ring, and where a ring lacks SOCKET and SHUTDOWN: bytes, the peer's
 * address, half-closes, refusals, resets, a broken pipe without a signal, no
 * descriptor left; short sends are results, and MSG_WAITALL moves all.
 * Method: requests from outside, each against a peer that the test moves by
 * plain system calls before or after the request has begun.
 */
#include "tests/support/requests.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

enum {
	LIMIT_SECONDS = 60,
	LARGE = 8 << 20, /* more than the buffers of a socket have */
	SOME = 5000,
};

static struct pinion_runtime *runtime;
static uint8_t sent[LARGE];
static uint8_t received[LARGE];
static uint64_t received_bytes; /* by requests, as is sent_bytes */
static uint64_t sent_bytes;

static struct pinion_file file_of(int fd)
{
	expect_ready("descriptor", fd >= 0);
	return (struct pinion_file){.fd = fd};
}

static struct pinion_request *begin_bytes(struct requests_one *one, uint16_t op,
	struct pinion_file *file, uint8_t *bytes, uint64_t length_bytes, uint32_t flags)
{
	struct pinion_request *request =
		requests_begin_transfer(one, op, file, bytes, 0, length_bytes);

	request->flags = flags;
	return request;
}

static int64_t recv_some(struct pinion_file *file, uint64_t length_bytes, uint32_t flags)
{
	struct requests_one one;
	int64_t result;

	begin_bytes(&one, PINION_OP_RECV, file, received, length_bytes, flags);
	result = requests_do(runtime, &one);
	received_bytes += (flags & MSG_PEEK) != 0 ? 0 : one.request.done_bytes;
	return result;
}

static int64_t send_some(struct pinion_file *file, uint64_t length_bytes, uint32_t flags)
{
	struct requests_one one;
	int64_t result;

	begin_bytes(&one, PINION_OP_SEND, file, sent, length_bytes, flags);
	result = requests_do(runtime, &one);
	sent_bytes += one.request.done_bytes;
	return result;
}

static int64_t with_flags(uint16_t op, struct pinion_file *file, uint32_t flags)
{
	struct requests_one one;
	struct pinion_request *request = requests_begin(&one, op);

	request->file = file;
	request->flags = flags;
	return requests_do(runtime, &one);
}

static int64_t connect_to(struct pinion_file *file, const void *address, socklen_t bytes)
{
	struct requests_one one;
	struct pinion_request *request = requests_begin(&one, PINION_OP_CONNECT);

	request->file = file;
	request->address = (struct sockaddr *)(uintptr_t)address;
	request->length_bytes = bytes;
	return requests_do(runtime, &one);
}

static int64_t make_socket(int domain, int type, uint32_t flags)
{
	struct requests_one one;
	struct pinion_request *request = requests_begin(&one, PINION_OP_SOCKET);

	request->socket.domain = domain;
	request->flags = (uint32_t)type | flags;
	return requests_do(runtime, &one);
}

static void make_pair(struct pinion_file pair[2], int type, int flags)
{
	int fds[2];

	expect_ready("pair", socketpair(AF_UNIX, type | flags | SOCK_CLOEXEC, 0, fds) == 0);
	pair[0] = file_of(fds[0]);
	pair[1] = file_of(fds[1]);
}

static void close_pair(struct pinion_file pair[2])
{
	close(pair[0].fd);
	close(pair[1].fd);
}

/* ---- bytes ---- */

/* The request is in flight when the bytes come. */
static void check_waiting(int flags)
{
	struct pinion_file pair[2];
	struct requests_one one;

	make_pair(pair, SOCK_STREAM, flags);
	begin_bytes(&one, PINION_OP_RECV, &pair[0], received, LARGE, 0);
	expect_number("submit", 0, pinion_request_submit(runtime, &one.request));
	/* The worker has begun it before it takes another. */
	expect_number("behind it", 0, with_flags(PINION_OP_NOP, NULL, 0));
	expect_number("it waits", 0, pin_load_acquire_u32(&one.entered));
	expect_number("by call", SOME, write(pair[1].fd, sent, SOME));
	expect_number("received", SOME, requests_await(&one));
	expect_number("done", SOME, (long long)one.request.done_bytes);
	expect_true("those bytes", memcmp(received, sent, SOME) == 0);
	received_bytes += SOME;
	expect_number("in one", SOME, send_some(&pair[0], SOME, 0));
	expect_number("by call", SOME, read(pair[1].fd, received, LARGE));
	expect_true("those bytes too", memcmp(received, sent, SOME) == 0);
	/* Which is a matter of the call alone. */
	expect_number("not at once", -EAGAIN, recv_some(&pair[0], SOME, MSG_DONTWAIT));
	expect_number("nothing", 0, send_some(&pair[0], 0, 0));
	close_pair(pair);
}

static void check_whole(void)
{
	struct pinion_file pair[2];
	struct requests_one one;
	int64_t part;

	make_pair(pair, SOCK_STREAM, 0);
	part = send_some(&pair[0], LARGE, MSG_DONTWAIT);
	expect_true("as much as there is room for", part > 0 && part < LARGE);
	begin_bytes(&one, PINION_OP_RECV, &pair[1], received, LARGE, MSG_WAITALL);
	expect_number("submit", 0, pinion_request_submit(runtime, &one.request));
	sent_bytes += LARGE - (uint64_t)part;
	received_bytes += LARGE;
	{
		struct requests_one rest;

		begin_bytes(&rest, PINION_OP_SEND, &pair[0], sent + part, LARGE - (uint64_t)part,
			MSG_WAITALL);
		expect_number("the rest", LARGE - part, requests_do(runtime, &rest));
		expect_number("done", LARGE - part, (long long)rest.request.done_bytes);
	}
	expect_number("all", LARGE, requests_await(&one));
	expect_number("done", LARGE, (long long)one.request.done_bytes);
	expect_true("these bytes", memcmp(received, sent, LARGE) == 0);
	/* Until its end, if that comes first. */
	expect_number("some", SOME, send_some(&pair[0], SOME, 0));
	begin_bytes(&one, PINION_OP_RECV, &pair[1], received, LARGE, MSG_WAITALL);
	expect_number("submit", 0, pinion_request_submit(runtime, &one.request));
	expect_number("no more", 0, with_flags(PINION_OP_SHUTDOWN, &pair[0], SHUT_WR));
	expect_number("the last", SOME, requests_await(&one));
	received_bytes += SOME;
	close_pair(pair);
}

/* Each is whole, and a message that does not fit is cut. */
static void check_messages(void)
{
	struct pinion_file pair[2];

	make_pair(pair, SOCK_DGRAM, 0);
	expect_number("one", 100, send_some(&pair[0], 100, MSG_WAITALL));
	expect_number("another", 200, send_some(&pair[0], 200, 0));
	expect_number("the first", 100, recv_some(&pair[1], SOME, MSG_WAITALL));
	expect_number("looked at", 50, recv_some(&pair[1], 50, MSG_PEEK | MSG_WAITALL));
	expect_number("cut", 200, recv_some(&pair[1], 50, MSG_TRUNC));
	close_pair(pair);
}

/* In two pieces, with room for a descriptor beside them. */
struct letter {
	struct iovec pieces[2];
	struct msghdr head;
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
};

static void write_letter(struct letter *letter, uint8_t *bytes, size_t first, size_t second)
{
	*letter = (struct letter){.pieces = {{bytes, first}, {bytes + LARGE / 2, second}}};
	letter->head = (struct msghdr){.msg_iov = letter->pieces,
		.msg_iovlen = 2,
		.msg_control = letter->control.bytes,
		.msg_controllen = sizeof(letter->control.bytes)};
}

static void enclose(struct letter *letter, int fd)
{
	struct cmsghdr *enclosed = CMSG_FIRSTHDR(&letter->head);

	*enclosed = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)),
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS};
	memcpy(CMSG_DATA(enclosed), &fd, sizeof(fd));
}

static int enclosed_in(struct letter *letter)
{
	struct cmsghdr *enclosed = CMSG_FIRSTHDR(&letter->head);
	int fd = -1;

	expect_ready("enclosed", enclosed != NULL && enclosed->cmsg_type == SCM_RIGHTS);
	memcpy(&fd, CMSG_DATA(enclosed), sizeof(fd));
	return fd;
}

static struct pinion_request *begin_letter(struct requests_one *one, uint16_t op,
	struct pinion_file *file, struct letter *letter, uint32_t flags)
{
	struct pinion_request *request = requests_begin(one, op);

	request->file = file;
	request->message = &letter->head;
	request->flags = flags;
	return request;
}

static void check_letters(int flags)
{
	struct pinion_file pair[2];
	struct requests_one one;
	struct letter in;
	struct letter out;
	int fd;

	make_pair(pair, SOCK_STREAM, flags);
	write_letter(&in, received, 30, SOME);
	begin_letter(&one, PINION_OP_RECVMSG, &pair[0], &in, MSG_DONTWAIT);
	expect_number("not at once", -EAGAIN, requests_do(runtime, &one));
	begin_letter(&one, PINION_OP_RECVMSG, &pair[0], &in, 0);
	expect_number("submit", 0, pinion_request_submit(runtime, &one.request));
	expect_number("behind it", 0, with_flags(PINION_OP_NOP, NULL, 0));
	expect_number("it waits", 0, pin_load_acquire_u32(&one.entered));
	{
		struct requests_one letter;

		write_letter(&out, sent, 100, 200);
		enclose(&out, pair[0].fd);
		begin_letter(&letter, PINION_OP_SENDMSG, &pair[1], &out, 0);
		expect_number("sent", 300, requests_do(runtime, &letter));
		expect_number("done", 300, (long long)letter.request.done_bytes);
	}
	expect_number("received", 300, requests_await(&one));
	expect_number("done", 300, (long long)one.request.done_bytes);
	expect_true("the first piece", memcmp(received, sent, 30) == 0);
	expect_true("the second piece, from the first",
		memcmp(received + LARGE / 2, sent + 30, 70) == 0);
	expect_true("and from the second",
		memcmp(received + LARGE / 2 + 70, sent + LARGE / 2, 200) == 0);
	fd = enclosed_in(&in);
	expect_number("not for others", FD_CLOEXEC, fcntl(fd, F_GETFD));
	close(fd);
	received_bytes += 300;
	sent_bytes += 300;
	close(pair[0].fd);
	write_letter(&out, sent, 1, 0);
	out.head.msg_controllen = 0;
	begin_letter(&one, PINION_OP_SENDMSG, &pair[1], &out, 0);
	expect_number("broken, without a signal", -EPIPE, requests_do(runtime, &one));
	write_letter(&in, received, 30, SOME);
	begin_letter(&one, PINION_OP_RECVMSG, &pair[1], &in, 0);
	expect_number("the end", 0, requests_do(runtime, &one));
	close(pair[1].fd);
}

/* Of a message that is cut only the bytes that came count. */
static void check_cut_letter(void)
{
	struct pinion_file pair[2];
	struct requests_one one;
	struct letter letter;

	make_pair(pair, SOCK_DGRAM, 0);
	expect_number("one", 200, send_some(&pair[0], 200, 0));
	/* It is looked at first, which is not counted. */
	for (uint32_t i = 0; i < 2; i++) {
		write_letter(&letter, received, 30, 20);
		begin_letter(&one, PINION_OP_RECVMSG, &pair[1], &letter,
			i == 0 ? MSG_TRUNC | MSG_PEEK : MSG_TRUNC);
		expect_number("its length", 200, requests_do(runtime, &one));
		expect_number("done", 50, (long long)one.request.done_bytes);
	}
	received_bytes += 50;
	close_pair(pair);
}

/*
 * What no poll waits for ends: its poll is ready, and the attempt gets nowhere.
 */
static void check_vain_polls(void)
{
	struct sockaddr_un place = {.sun_family = AF_UNIX};
	socklen_t place_bytes = sizeof(place);
	struct pinion_file peer = file_of(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	struct pinion_file file =
		file_of(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	struct requests_one one;
	struct letter letter;

	expect_ready(
		"bind", bind(peer.fd, (struct sockaddr *)&place, sizeof(place.sun_family)) == 0);
	expect_ready("name", getsockname(peer.fd, (struct sockaddr *)&place, &place_bytes) == 0);
	while (sendto(file.fd, "x", 1, 0, (struct sockaddr *)&place, place_bytes) == 1) {
	}
	expect_number("its queue is full", EAGAIN, errno);
	write_letter(&letter, sent, 1, 0);
	letter.head.msg_controllen = 0;
	letter.head.msg_name = &place;
	letter.head.msg_namelen = place_bytes;
	begin_letter(&one, PINION_OP_SENDMSG, &file, &letter, 0);
	expect_number("no room", -EAGAIN, requests_do(runtime, &one));
	close(peer.fd);
	close(file.fd);
	file = file_of(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	expect_number("hung up", -EAGAIN, recv_some(&file, SOME, MSG_ERRQUEUE));
	close(file.fd);
}

static void check_ends(void)
{
	struct pinion_file unconnected = file_of((int)make_socket(AF_INET, SOCK_STREAM, 0));
	struct pinion_file pair[2];

	make_pair(pair, SOCK_STREAM, 0);
	expect_number("sends no more", 0, with_flags(PINION_OP_SHUTDOWN, &pair[0], SHUT_WR));
	expect_number("the end", 0, recv_some(&pair[1], SOME, 0));
	expect_number("the other way is open", SOME, send_some(&pair[1], SOME, 0));
	expect_number("the other way", SOME, recv_some(&pair[0], LARGE, 0));
	expect_number("its own way is not, and no signal", -EPIPE, send_some(&pair[0], SOME, 0));
	expect_number("by what is none", -ENOTCONN,
		with_flags(PINION_OP_SHUTDOWN, &unconnected, SHUT_WR));
	close(unconnected.fd);
	close_pair(pair);
	expect_number("closed", -EBADF, recv_some(&pair[0], SOME, 0));
	expect_number("closed", -EBADF, send_some(&pair[0], SOME, 0));
	expect_number("closed", -EBADF, with_flags(PINION_OP_SHUTDOWN, &pair[0], SHUT_WR));
	expect_number("closed", -EBADF, with_flags(PINION_OP_ACCEPT, &pair[0], 0));
	expect_number("closed", -EBADF, with_flags(PINION_OP_POLL, &pair[0], POLLIN));
	pair[0] = file_of(open("/dev/null", O_RDWR | O_CLOEXEC));
	expect_number("no socket", -ENOTSOCK, recv_some(&pair[0], SOME, 0));
	expect_number("no socket", -ENOTSOCK, with_flags(PINION_OP_ACCEPT, &pair[0], 0));
	close(pair[0].fd);
}

/* ---- polls ---- */

static void check_polls(void)
{
	struct pinion_file pair[2];
	struct requests_one one;
	struct pinion_request *request = requests_begin(&one, PINION_OP_POLL);

	make_pair(pair, SOCK_STREAM, 0);
	expect_number("at once", POLLOUT, with_flags(PINION_OP_POLL, &pair[0], POLLIN | POLLOUT));
	request->file = &pair[0];
	request->flags = POLLIN;
	expect_number("submit", 0, pinion_request_submit(runtime, request));
	expect_number("behind it", 0, with_flags(PINION_OP_NOP, NULL, 0));
	expect_number("it waits", 0, pin_load_acquire_u32(&one.entered));
	expect_number("by call", 1, write(pair[1].fd, sent, 1));
	expect_number("then", POLLIN, requests_await(&one));
	close(pair[1].fd);
	expect_number("its end, which is not asked for", POLLHUP | POLLRDHUP,
		with_flags(PINION_OP_POLL, &pair[0], POLLPRI));
	close(pair[0].fd);
}

/* ---- connections ---- */

struct place {
	union {
		struct sockaddr any;
		struct sockaddr_in inet;
		struct sockaddr_un unix_;
	};
	socklen_t bytes;
};

static struct place unix_place(const char *path)
{
	struct place place = {.unix_ = {.sun_family = AF_UNIX}};

	snprintf(place.unix_.sun_path, sizeof(place.unix_.sun_path), "%s", path);
	place.bytes = sizeof(place.unix_);
	return place;
}

static struct place tcp_place(void)
{
	return (struct place){
		.inet = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)},
		.bytes = sizeof(struct sockaddr_in)};
}

/* Bound, and listening if there is a queue; `place` is where it is then. */
static struct pinion_file bind_at(struct place *place, int flags, int queue)
{
	int fd = socket(place->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

	expect_ready("bind", bind(fd, &place->any, place->bytes) == 0);
	place->bytes = sizeof(place->unix_);
	expect_ready("place", getsockname(fd, &place->any, &place->bytes) == 0);
	expect_ready("listen", queue < 0 || listen(fd, queue) == 0);
	return file_of(fd);
}

static struct pinion_file new_of(const struct place *place, uint32_t flags)
{
	return file_of((int)make_socket(place->any.sa_family, SOCK_STREAM, flags));
}

/* The peer's address is that of the client; only as much as there is room. */
static void expect_peer(const struct requests_one *one, const struct place *got, int client_fd)
{
	struct place client = {.bytes = sizeof(client.unix_)};

	expect_ready("name", getsockname(client_fd, &client.any, &client.bytes) == 0);
	expect_number("its length", client.bytes, (long long)one->request.done_bytes);
	expect_true("its address", memcmp(&client.unix_, &got->unix_, client.bytes) == 0);
}

static void check_connection(struct place place, uint32_t flags)
{
	struct pinion_file listener = bind_at(&place, (int)flags, 8);
	struct pinion_file client = new_of(&place, flags);
	struct place peer = {0};
	struct requests_one accept;
	struct pinion_request *request = requests_begin(&accept, PINION_OP_ACCEPT);
	struct pinion_file server;

	request->file = &listener;
	request->address = &peer.any;
	request->length_bytes = sizeof(peer.unix_);
	request->flags = flags;
	expect_number("submit", 0, pinion_request_submit(runtime, request));
	expect_number("connect", 0, connect_to(&client, &place.any, place.bytes));
	server = file_of((int)requests_await(&accept));
	expect_peer(&accept, &peer, client.fd);
	expect_number("not for others", FD_CLOEXEC, fcntl(server.fd, F_GETFD));
	expect_number("not for others", FD_CLOEXEC, fcntl(client.fd, F_GETFD));
	expect_true("as it was asked for",
		((fcntl(server.fd, F_GETFL) & O_NONBLOCK) != 0) == (flags != 0) &&
			((fcntl(client.fd, F_GETFL) & O_NONBLOCK) != 0) == (flags != 0));
	expect_number("once more", -EISCONN, connect_to(&client, &place.any, place.bytes));
	expect_number("there", SOME, send_some(&client, SOME, 0));
	expect_number("and here", SOME, recv_some(&server, SOME, MSG_WAITALL));
	expect_true("those bytes", memcmp(received, sent, SOME) == 0);
	close(client.fd);
	expect_number("its end", 0, recv_some(&server, SOME, 0));
	close(server.fd);
	/* A client that is there already, and no word of it. */
	client = new_of(&place, 0);
	expect_number("connect", 0, connect_to(&client, &place.any, place.bytes));
	server = file_of((int)with_flags(PINION_OP_ACCEPT, &listener, 0));
	close(server.fd);
	close(client.fd);
	close(listener.fd);
}

/* With what it was sent unread it is reset. */
static void check_reset(void)
{
	struct place place = tcp_place();
	struct pinion_file listener = bind_at(&place, 0, 8);
	struct pinion_file client = new_of(&place, 0);
	int server;

	expect_number("connect", 0, connect_to(&client, &place.any, place.bytes));
	server = accept4(listener.fd, NULL, NULL, SOCK_CLOEXEC);
	expect_number("send", 1, send_some(&client, 1, 0));
	expect_number("by poll", POLLIN,
		with_flags(PINION_OP_POLL, &(struct pinion_file){.fd = server}, POLLIN));
	close(server);
	expect_number("reset", -ECONNRESET, recv_some(&client, SOME, 0));
	expect_number("broken", -EPIPE, send_some(&client, SOME, 0));
	close(client.fd);
	close(listener.fd);
}

static void check_refusals(void)
{
	struct place place = tcp_place();
	struct pinion_file bound = bind_at(&place, 0, -1);
	struct pinion_file client = new_of(&place, 0);
	struct place missing = unix_place("missing");

	expect_number(
		"nobody listens", -ECONNREFUSED, connect_to(&client, &place.any, place.bytes));
	expect_number("nor accepts", -EINVAL, with_flags(PINION_OP_ACCEPT, &bound, 0));
	close(client.fd);
	client = new_of(&place, SOCK_NONBLOCK);
	expect_number("nor of those", -ECONNREFUSED, connect_to(&client, &place.any, place.bytes));
	close(client.fd);
	close(bound.fd);
	client = new_of(&missing, 0);
	expect_number("no such place", -ENOENT, connect_to(&client, &missing.any, missing.bytes));
	expect_true("still blocking", (fcntl(client.fd, F_GETFL) & O_NONBLOCK) == 0);
	expect_number("another kind", -EAFNOSUPPORT, make_socket(12345, SOCK_STREAM, 0));
	close(client.fd);
}

static void check_no_descriptor(void)
{
	struct place place = tcp_place();
	struct pinion_file listener = bind_at(&place, 0, 8);
	struct pinion_file client = new_of(&place, 0);
	struct rlimit before;
	struct rlimit none;

	expect_number("connect", 0, connect_to(&client, &place.any, place.bytes));
	getrlimit(RLIMIT_NOFILE, &before);
	none = before;
	none.rlim_cur = 0;
	expect_ready("limit", setrlimit(RLIMIT_NOFILE, &none) == 0);
	expect_number("none to accept", -EMFILE, with_flags(PINION_OP_ACCEPT, &listener, 0));
	expect_number("none to make", -EMFILE, make_socket(AF_UNIX, SOCK_STREAM, 0));
	expect_ready("limit", setrlimit(RLIMIT_NOFILE, &before) == 0);
	/* It is there still. */
	close((int)with_flags(PINION_OP_ACCEPT, &listener, 0));
	close(client.fd);
	close(listener.fd);
}

/* ---- settings ---- */

static void check(uint32_t io_level, uint32_t without)
{
	struct pinion_runtime_stats counters;
	struct pinion_worker_stats worker;
	struct pinion_config config;

	runtimes_config(&config, 1, io_level);
	runtimes_tuning.io_without |= without;
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	received_bytes = 0;
	sent_bytes = 0;
	check_waiting(0);
	check_waiting(SOCK_NONBLOCK);
	check_whole();
	check_messages();
	check_letters(0);
	check_letters(SOCK_NONBLOCK);
	check_cut_letter();
	check_vain_polls();
	check_ends();
	check_polls();
	for (uint32_t flags = 0; flags <= SOCK_NONBLOCK; flags += SOCK_NONBLOCK) {
		check_connection(tcp_place(), flags);
		check_connection(unix_place("place"), flags);
		unlink("place");
	}
	check_reset();
	check_refusals();
	check_no_descriptor();
	counters = runtimes_counters(runtime);
	expect_number("worker", 0, pinion_worker_get_stats(runtime, 0, &worker, sizeof(worker)));
	expect_number("received", (long long)received_bytes, (long long)counters.received_bytes);
	expect_number("sent", (long long)sent_bytes, (long long)counters.sent_bytes);
	expect_number("none is tried in vain", 0, (long long)worker.retries_again);
	expect_number("files", 0, (long long)(counters.read_bytes + counters.write_bytes));
	expect_number("no device is asked", 0, (long long)counters.plain_file_transfers);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("sockets_move_what_calls_move");
	for (size_t i = 0; i < LARGE; i++) {
		sent[i] = (uint8_t)(i * 37 + i / 4096 + 1);
	}
	check(PINION_IO_AUTO, 0);
	check(PINION_IO_FALLBACK, 0);
	check(PINION_IO_AUTO, PINION_IO_SOCKET | PINION_IO_SHUTDOWN);
	scratch_leave();
	return expect_status();
}

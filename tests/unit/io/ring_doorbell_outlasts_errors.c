/* SPDX-License-Identifier: MIT */
/*
 * Goal: a doorbell message that the kernel refuses for want of memory, for now
 * or for a signal is sent again until the kernel takes it; a message refused
 * since the ring is full of completions is not, as these end the wait.
 * Method: a host whose ring_register answers from a script and whose yield is
 * counted; no ring is needed.
 */
#include "runtime/base/base.h"
#include "runtime/io/ring.h"
#include "tests/support/expect.h"

#include <errno.h>
#include <liburing.h>

enum {
	RING_FD = 7,
	ANSWERS_MAX = 6,
};

static const struct {
	const char *name;
	int answers[ANSWERS_MAX]; /* 0 is the last that is given */
	long long send_count;
} cases[] = {
	{"taken at once", {0}, 1},
	{"no memory, twice", {-ENOMEM, -ENOMEM, 0}, 3},
	{"each that passes", {-EAGAIN, -EINTR, -ENOMEM, 0}, 4},
	{"full", {-EOVERFLOW, 0}, 1},
	{"no memory, then full", {-ENOMEM, -EOVERFLOW, 0}, 2},
};

static const int *answers;
static long long send_count;
static long long yield_count;

static int answer(int fd, uint32_t opcode, const void *argument, uint32_t count)
{
	const struct io_uring_sqe *sqe = argument;

	expect_number("of no ring", -1, fd);
	expect_number("opcode", IORING_REGISTER_SEND_MSG_RING, opcode);
	expect_number("messages", 1, count);
	expect_number("to", RING_FD, sqe->fd);
	expect_true("says that it is a doorbell", sqe->off == PIN_RING_TAG_DOORBELL);
	return answers[send_count++];
}

static void count_yield(void)
{
	yield_count++;
}

int main(void)
{
	struct pin_host host = pin_host_linux;
	struct pin_ring ring = {
		.host = &host,
		.is_initialised = true,
		.doorbell_kind = PIN_DOORBELL_MESSAGE,
		.uring.ring_fd = RING_FD,
	};

	host.ring_register = answer;
	host.yield = count_yield;
	for (size_t i = 0; i < PIN_ARRAY_COUNT(cases); i++) {
		answers = cases[i].answers;
		send_count = 0;
		yield_count = 0;
		pin_ring_doorbell(&ring);
		expect_number(cases[i].name, cases[i].send_count, send_count);
		expect_number("others got the CPU between", cases[i].send_count - 1, yield_count);
	}
	return expect_status();
}

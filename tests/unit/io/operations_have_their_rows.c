/* SPDX-License-Identifier: MIT */
/*
 * Goal: what the rows of operations name fits together. An operation's entry is
 * of the opcode in its row, the calls that stand in for rings know that opcode,
 * and a second entry is the first once more, since an operation may be prepared
 * again (io/operation.h, rule 1). What a ring lacks is done by a call, and what
 * never gets to a ring is refused by one.
 * Method: each operation of the list is submitted to a fallback ring that is
 * never polled; its entry is looked at, and carried out by itself with nothing
 * in it that could have an effect.
 */
#include "runtime/io/in_flight.h"
#include "runtime/io/request.h"
#include "tests/support/rings.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

static struct pin_ring ring;
static struct pinion_file file = {.fd = -1, .memory_align_bytes = 1, .offset_align_bytes = 1};
static struct pinion_request request;
static uint8_t bytes[64];
static struct iovec piece = {bytes, 16};
static struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
static const struct iovec vector[] = {{bytes, 16}, {bytes + 16, 48}};

static const struct {
	const char *name;
	uint32_t needs;
	uint8_t opcode;
} rows[] = {
#define ROW(set, name, prefix, needs, traits, opcode, ...) {#name, needs, opcode},
	PIN_OPERATIONS(ROW, 0)
#undef ROW
};

static int never_run(struct pinion_task *task)
{
	(void)task;
	return 0;
}

static bool make_entry(struct io_uring_sqe *out_sqe)
{
	if (!pin_request_submit(&ring, &request) || !rings_take_entry(&ring, out_sqe)) {
		return false;
	}
	pin_in_flight_end(&request);
	return true;
}

/* Kernels got them in 5.11, 5.15, 5.19; the others with the rings of 5.10. */
static uint32_t needed_by(uint8_t opcode)
{
	if (opcode == IORING_OP_SOCKET) {
		return PINION_IO_SOCKET;
	}
	if (opcode == IORING_OP_SHUTDOWN) {
		return PINION_IO_SHUTDOWN;
	}
	if (opcode >= IORING_OP_MKDIRAT) {
		return PINION_IO_LINKAT;
	}
	return opcode >= IORING_OP_RENAMEAT ? PINION_IO_RENAMEAT : 0;
}

/* Of a missing name, a descriptor, a domain. */
static int error_of(uint32_t needed)
{
	if (needed == PINION_IO_SOCKET) {
		return -EAFNOSUPPORT;
	}
	return needed == PINION_IO_SHUTDOWN ? -EBADF : -ENOENT;
}

/* On a ring that lacks what it needs: not submitted, but done by a call. */
static void check_beyond(uint16_t op)
{
	uint32_t lacked = ring.lacks;

	ring.lacks |= rows[op].needs;
	expect_true(rows[op].name, !pin_request_submit(&ring, &request));
	expect_true(rows[op].name, pin_request_is_beyond(&ring, &request));
	expect_true(rows[op].name, pin_request_carry_out(&ring, &request));
	expect_number(rows[op].name, error_of(rows[op].needs), request.result);
	ring.lacks = lacked;
	expect_true(rows[op].name, !pin_request_is_beyond(&ring, &request));
}

/* One comparison or several, the set has what it has. */
static void check_sets(void)
{
	static const uint32_t sets[] = {1, 2, 3, 5, 7, 0x30003, 0x10001, 0x30000, 0x20001, 0x18001,
		0x55555, 0xc0, PIN_OPS_WITH(PIN_OP_MOVES), PIN_OPS_WITH(PIN_OP_IS_WHOLE)};

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		for (uint16_t op = 0; op < PIN_OP_COUNT; op++) {
			expect_number(
				"is in the set", sets[i] >> op & 1, pin_op_is_in(op, sets[i]));
		}
		expect_true("beyond all", !pin_op_is_in(UINT16_MAX, sets[i]));
	}
}

static void check(uint16_t op)
{
	static struct statx status;
	struct io_uring_sqe first = {0};
	struct io_uring_sqe second = {0};
	int64_t result;

	request = (struct pinion_request){.task.run = never_run,
		.op = op,
		.file = &file,
		.bytes = bytes,
		.length_bytes = sizeof(bytes),
		.path = "missing/file",
		.new_path = "missing/new",
		.status = &status};
	if ((rows[op].needs & PIN_NEEDS_NO_RING) != 0) {
		expect_true(rows[op].name, pin_request_is_beyond(&ring, &request));
		return;
	}
	expect_number(rows[op].name, needed_by(rows[op].opcode), rows[op].needs);
	if (pin_request_has(&request, PIN_OP_GATHERS)) {
		request.vector = vector;
		request.vector_count = 2;
	}
	if (pin_request_has(&request, PIN_OP_HAS_MESSAGE)) {
		request.message = &message;
	}
	file.way = PINION_WAY_ASKED; /* nothing is asked of its descriptor */
	expect_number(rows[op].name, 0, pin_request_check(&request));
	pin_request_reset(&request);
	expect_true(rows[op].name, make_entry(&first));
	expect_number(rows[op].name, rows[op].opcode, first.opcode);
	/* The place that entries come from was in use. */
	memset(ring.queued, 0xff, ring.credit * sizeof(*ring.queued));
	expect_true(rows[op].name, make_entry(&second));
	expect_number(rows[op].name, 0, memcmp(&first, &second, sizeof(first)));
	/* Each is carried out, and its error is negative. */
	result = pin_fallback_execute(&first);
	expect_true(rows[op].name, result <= 0 && result != -EOPNOTSUPP);
	if (rows[op].needs != 0) {
		check_beyond(op);
	}
}

int main(void)
{
	struct pin_ring_options options = {.entries = 8, .is_fallback = true};
	struct pin_meter meter = {0};

	scratch_enter("operations_have_their_rows");
	expect_ready("ring", pin_ring_init(&ring, &pin_host_linux, &meter, &options, NULL) == 0);
	check_sets();
	for (uint16_t op = 0; op < PIN_OP_COUNT; op++) {
		check(op);
	}
	expect_true("the library's own is none of the public ones",
		(int)PIN_OP_OPEN_PLAIN >= (int)PIN_OP_PUBLIC_COUNT);
	rings_end(&ring);
	scratch_leave();
	return expect_status();
}

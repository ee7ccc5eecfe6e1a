/* SPDX-License-Identifier: MIT */
/*
 * Goal: an enter that submits asks for deferred completions while there have
 * been some lately, and not where all was over at once. [G13]
 * Method: a copy of the host whose ring_enter notes the flags; NOPs, which are
 * over at once, before and after reads of a pipe that becomes ready later.
 */
#include "tests/support/rings.h"
#include "tests/support/runtimes.h"

enum {
	LIMIT_SECONDS = 30,
	NOPS = 20,
	/* More than ring.c asks for after the last time there was any. */
	NOPS_UNTIL_FORGOTTEN = 300,
};

static uint32_t asked_count; /* of the enters that submitted */
static uint32_t enter_count;

static int enter(int fd, uint32_t to_submit, uint32_t min_complete, uint32_t flags, void *argument,
	size_t argument_bytes)
{
	enter_count++;
	if (to_submit > 0 && (flags & IORING_ENTER_GETEVENTS) != 0) {
		asked_count++;
	}
	return pin_host_linux.ring_enter(
		fd, to_submit, min_complete, flags, argument, argument_bytes);
}

/* One at a time, each with an enter of its own; how many of these asked. */
static uint32_t nops(struct pin_ring *ring, uint32_t count)
{
	struct rings_delivered delivered = {0};

	asked_count = 0;
	enter_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		expect_true("a NOP", rings_submit_nop(ring, 8));
		pin_ring_poll(ring, rings_deliver, &delivered);
		expect_number("over at once", i + 1, delivered.count);
	}
	expect_number("enters", count, enter_count);
	return asked_count;
}

/* A read that is armed first and completes when there is something. */
static void read_late(struct pin_ring *ring)
{
	struct rings_delivered delivered = {0};
	struct io_uring_sqe *sqe = rings_entry(ring);
	char byte;
	int ends[2];

	expect_ready("pipe", pipe(ends) == 0);
	io_uring_prep_read(sqe, ends[0], &byte, 1, 0);
	sqe->user_data = 8;
	pin_ring_poll(ring, rings_deliver, &delivered);
	expect_number("nothing yet", 0, delivered.count);
	expect_ready("write", write(ends[1], "x", 1) == 1);
	while (delivered.count == 0) {
		pin_ring_poll(ring, rings_deliver, &delivered);
	}
	expect_number("its byte", 1, delivered.last_result);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	struct pin_host host = pin_host_linux;
	struct pin_ring ring;

	runtimes_watchdog(LIMIT_SECONDS);
	rings_require();
	if (!pin_kernel_has(&rings_kernel, PINION_IO_DEFER_TASKRUN)) {
		printf("skipped: completions are not deferred here\n");
		return EXPECT_SKIPPED;
	}
	host.ring_enter = enter;
	expect_ready("ring", rings_init(&ring, &host, 64) == 0);

	expect_number("where there was nothing", 0, nops(&ring, NOPS));
	read_late(&ring);
	expect_number("after there was something", NOPS, nops(&ring, NOPS));
	(void)nops(&ring, NOPS_UNTIL_FORGOTTEN);
	expect_number("when that is long ago", 0, nops(&ring, NOPS));
	read_late(&ring);
	expect_number("and again", NOPS, nops(&ring, NOPS));

	rings_end(&ring);
	return expect_status();
}

/* SPDX-License-Identifier: MIT */
/*
 * Goal: the credit bounds the number in flight, NULL is the answer beyond it,
 * and all completions are delivered, also far more than one enter hands over.
 * G1. Hazard that others met: deferred completions come by twenty at a time.
 * Method: entries until refused, NOPs and reads of pipes that become ready all
 * at once; then again, which needs the credit back.
 */
#include "tests/support/rings.h"
#include "tests/support/runtimes.h"

enum {
	ENTRIES = 64,
	PIPES = 100,
	LIMIT_SECONDS = 30,
};

static uint32_t fill_with_nops(struct pin_ring *ring)
{
	uint32_t count = 0;

	while (rings_submit_nop(ring, 8)) {
		count++;
	}
	return count;
}

static void check_credit(struct pin_ring *ring)
{
	uint32_t credit = 0;

	for (int i = 0; i < 3; i++) {
		struct rings_delivered delivered = {0};
		uint32_t count = fill_with_nops(ring);

		expect_number("refused at the credit", ring->credit, count);
		expect_true("the same each time", i == 0 || count == credit);
		credit = count;
		rings_await(ring, &delivered, count);
		expect_number("delivered", count, delivered.count);
		expect_true("an idle ring has no work", !pin_ring_has_work(ring));
	}
}

/* All become ready between two polls, as task work of one moment. */
static void check_burst(struct pin_ring *ring)
{
	struct rings_delivered delivered = {0};
	char bytes[PIPES];
	int ends[2];

	expect_ready("pipe", pipe(ends) == 0);
	for (uint64_t i = 0; i < PIPES; i++) {
		struct io_uring_sqe *sqe = rings_entry(ring);

		if (!expect_true("an entry", sqe != NULL)) {
			break;
		}
		io_uring_prep_read(sqe, ends[0], &bytes[i], 1, 0);
		sqe->user_data = 8 * (i + 1);
	}
	expect_number("none is ready yet", 0, pin_ring_poll(ring, rings_deliver, &delivered));
	memset(bytes, 0, sizeof(bytes));
	expect_ready("write", write(ends[1], bytes, PIPES) == PIPES);
	while (delivered.count < PIPES) {
		pin_ring_poll(ring, rings_deliver, &delivered);
	}
	expect_number("delivered", PIPES, delivered.count);
	expect_number("each once", 8 * PIPES * (PIPES + 1) / 2, (long long)delivered.user_data_sum);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	struct pin_ring ring;

	runtimes_watchdog(LIMIT_SECONDS);
	rings_require();
	expect_ready("ring", rings_init(&ring, &pin_host_linux, ENTRIES) == 0);
	check_credit(&ring);
	check_burst(&ring);
	check_credit(&ring);
	rings_end(&ring);
	return expect_status();
}

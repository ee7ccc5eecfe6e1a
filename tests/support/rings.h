/* SPDX-License-Identifier: MIT */
/*
 * A ring alone, for white-box tests: options as a worker gives them, and
 * completions kept in the order in which they came.
 */
#ifndef PIN_TESTS_SUPPORT_RINGS_H
#define PIN_TESTS_SUPPORT_RINGS_H

#include "runtime/io/ring.h"
#include "tests/support/expect.h"

#include <errno.h>

static struct pin_kernel rings_kernel;
static struct pin_meter rings_meter;
static struct pin_log rings_log;

struct rings_delivered {
	uint32_t count;
	uint64_t user_data_sum;
	int32_t last_result;
	uint32_t failed_count; /* with a negative result */
};

static inline void rings_deliver(void *arg, uint64_t user_data, int32_t result)
{
	struct rings_delivered *delivered = arg;

	delivered->count++;
	delivered->user_data_sum += user_data;
	delivered->last_result = result;
	delivered->failed_count += result < 0 ? 1 : 0;
}

/* Exits with 77 where the kernel has no rings at all. */
static inline void rings_require(void)
{
	pin_kernel_probe(&rings_kernel);
	if (rings_kernel.ring_error != 0) {
		printf("skipped: no io_uring here (errno %d)\n", -rings_kernel.ring_error);
		exit(EXPECT_SKIPPED);
	}
}

static inline int rings_init(struct pin_ring *ring, const struct pin_host *host, uint32_t entries)
{
	struct pin_ring_options options = {
		.entries = entries,
		.helper_count = 1,
		.kernel = &rings_kernel,
	};

	return pin_ring_init(ring, host, &rings_meter, &options, &rings_log);
}

static inline void rings_end(struct pin_ring *ring)
{
	pin_ring_retire(ring);
	pin_ring_fini(ring);
}

/* Waits until `count` completions are in `delivered`. */
static inline void rings_await(
	struct pin_ring *ring, struct rings_delivered *delivered, uint32_t count)
{
	for (;;) {
		pin_ring_poll(ring, rings_deliver, delivered);
		if (delivered->count >= count) {
			return;
		}
		pin_ring_prepare_wait(ring);
		pin_ring_wait(ring, PIN_NO_DEADLINE);
	}
}

/* An entry that does nothing and completes with 0. */
static inline bool rings_submit_nop(struct pin_ring *ring, uint64_t user_data)
{
	struct io_uring_sqe *sqe = pin_ring_entry(ring);

	if (sqe == NULL) {
		return false;
	}
	sqe->opcode = IORING_OP_NOP;
	sqe->user_data = user_data;
	return true;
}

#endif

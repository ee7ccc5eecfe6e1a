/* SPDX-License-Identifier: MIT */
/*
 * A ring alone, for white-box tests: options as a worker gives them, and
 * completions kept in the order in which they came.
 */
#ifndef PIN_TESTS_SUPPORT_RINGS_H
#define PIN_TESTS_SUPPORT_RINGS_H

#include "runtime/host/kernel.h"
#include "runtime/io/ring.h"
#include "tests/support/expect.h"

#include <errno.h>
#include <pinion/config.h>

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

/*
 * Exits with 77 where the kernel has no rings at all, or `make check-levels`
 * says that there are none; with 1 if something has failed before.
 */
static inline void rings_require(void)
{
	struct pinion_config told;
	struct pinion_tuning tuning;

	pin_kernel_probe(&rings_kernel);
	pinion_config_init(&told);
	pinion_tuning_init(&tuning);
	expect_number("environment", 0, pinion_config_from_env(&told, &tuning));
	expect_number("level", 0, pin_level_apply(&rings_kernel, told.io_level, tuning.io_without));
	if (told.io_level == PINION_IO_FALLBACK) {
		rings_kernel.ring_error = -EOPNOTSUPP;
	}
	if (rings_kernel.ring_error != 0) {
		printf("skipped: no io_uring here (errno %d)\n", -rings_kernel.ring_error);
		exit(expect_failure_count == 0 ? EXPECT_SKIPPED : 1);
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

static uint32_t rings_refused_flag;
static uint32_t rings_setup_count;

static inline int rings_refuse_setup(
	struct io_uring *ring, uint32_t entries, struct io_uring_params *params)
{
	rings_setup_count++;
	return (params->flags & rings_refused_flag) != 0
		? -EINVAL
		: pin_host_linux.ring_setup(ring, entries, params);
}

/* A kernel that does not know the flag; returns how often it was asked. */
static inline uint32_t rings_expect_refused(
	const struct pin_ring_options *options, uint32_t setup_flag)
{
	struct pin_host host = pin_host_linux;
	struct pin_ring ring;

	host.ring_setup = rings_refuse_setup;
	rings_refused_flag = setup_flag;
	rings_setup_count = 0;
	expect_number(
		"refused", -EINVAL, pin_ring_init(&ring, &host, &rings_meter, options, &rings_log));
	pin_ring_fini(&ring);
	return rings_setup_count;
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

/* For rings made from now on; one that the kernel lacks is not to be set. */
static inline void rings_set_feature(enum pinion_io_feature feature, bool is_used)
{
	rings_kernel.features &= ~(uint32_t)feature;
	rings_kernel.features |= is_used ? (uint32_t)feature : 0;
}

/* Steps of the set-up flags that are left, from the one rings begin with. */
static inline int rings_step_count(void)
{
	int more = pin_kernel_has(&rings_kernel, PINION_IO_NO_SQARRAY) ? 1 : 0;

	if (pin_kernel_has(&rings_kernel, PINION_IO_DEFER_TASKRUN)) {
		return 3 + more;
	}
	return (pin_kernel_has(&rings_kernel, PINION_IO_COOP_TASKRUN) ? 2 : 1) + more;
}

/*
 * A zeroed submission entry, counted as in flight; NULL when the credit is
 * used up.
 */
static inline struct io_uring_sqe *rings_entry(struct pin_ring *ring)
{
	return pin_ring_room(ring) > 0
		? memset(pin_ring_entry_again(ring), 0, sizeof(struct io_uring_sqe))
		: NULL;
}

/* Takes the one queued entry away, as if the kernel had. False: none is. */
static inline bool rings_take_entry(struct pin_ring *ring, struct io_uring_sqe *out_sqe)
{
	if (ring->queued_count != 1) {
		return false;
	}
	*out_sqe = ring->queued[ring->queued_head];
	ring->queued_head = (ring->queued_head + 1) % ring->credit;
	ring->queued_count--;
	ring->in_flight--;
	return true;
}

/* An entry that does nothing and completes with 0. */
static inline bool rings_submit_nop(struct pin_ring *ring, uint64_t user_data)
{
	struct io_uring_sqe *sqe = rings_entry(ring);

	if (sqe == NULL) {
		return false;
	}
	sqe->opcode = IORING_OP_NOP;
	sqe->user_data = user_data;
	return true;
}

#endif

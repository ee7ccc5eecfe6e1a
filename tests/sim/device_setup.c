/* SPDX-License-Identifier: MIT */
/*
 * A ring's set-up, registrations and end, some of which liburing does by
 * itself.
 */
#include "runtime/base/base.h"
#include "tests/sim/device_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool refuses(uint32_t flags)
{
	uint32_t unknown = 0;

	if (device.kind != RING_DEFERRED) {
		unknown |= IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SINGLE_ISSUER;
	}
	if (device.kind == RING_PLAIN) {
		unknown |= IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
	}
	if (!device.has_no_sqarray) {
		unknown |= IORING_SETUP_NO_SQARRAY;
	}
	if (device.commanding == COMMANDS_NO_RING) {
		unknown |= IORING_SETUP_SQE128;
	}
	if (device.polling == POLLING_NO_RING) {
		unknown |= IORING_SETUP_IOPOLL;
	}
	return (flags & unknown) != 0;
}

static enum ring_kind kind_of(uint32_t flags)
{
	if ((flags & IORING_SETUP_DEFER_TASKRUN) != 0) {
		return RING_DEFERRED;
	}
	return (flags & IORING_SETUP_COOP_TASKRUN) != 0 ? RING_COOPERATIVE : RING_PLAIN;
}

static uint32_t power_of_two(uint32_t count)
{
	uint32_t power = 1;

	while (power < count) {
		power *= 2;
	}
	return power;
}

static void map_rings(struct ring *ring, struct io_uring *uring)
{
	*uring = (struct io_uring){
		.ring_fd = RING_FD + (int)index_of(ring),
		.enter_ring_fd = RING_FD + (int)index_of(ring),
		.sq =
			{
				.khead = &ring->sq_head,
				.ktail = &ring->sq_tail,
				.kring_mask = &ring->sq_mask,
				.kring_entries = &ring->sq_entries,
				.kflags = &ring->sq_flags,
				.kdropped = &ring->sq_dropped,
				.array = ring->has_no_sqarray ? NULL : ring->sq_array,
				.sqes = ring->sqes,
				.ring_mask = ring->sq_mask,
				.ring_entries = ring->sq_entries,
			},
		.cq =
			{
				.khead = &ring->cq_head,
				.ktail = &ring->cq_tail,
				.kring_mask = &ring->cq_mask,
				.kring_entries = &ring->cq_entries,
				.kflags = &ring->cq_flags,
				.koverflow = &ring->cq_overflow,
				.cqes = ring->cqes,
				.ring_mask = ring->cq_mask,
				.ring_entries = ring->cq_entries,
			},
	};
}

int device_ring_setup(struct io_uring *uring, uint32_t entries, struct io_uring_params *params)
{
	bool is_sqe128 = (params->flags & IORING_SETUP_SQE128) != 0;
	size_t parts = is_sqe128 ? 2 : 1;
	struct ring *ring;

	world_point();
	WORLD_CHECK(is_sqe128 == ((params->flags & IORING_SETUP_CQE32) != 0));
	if (refuses(params->flags)) {
		return -EINVAL;
	}
	if (world_chance(device.faults.no_ring_memory)) {
		return -ENOMEM;
	}
	WORLD_CHECK(device.ring_count < RINGS_MAX);
	ring = &device.rings[device.ring_count];
	device.ring_count++;
	ring->sq_entries = power_of_two(entries);
	ring->cq_entries = power_of_two(params->cq_entries);
	ring->sq_mask = ring->sq_entries - 1;
	ring->cq_mask = ring->cq_entries - 1;
	ring->sq_array = calloc(ring->sq_entries, sizeof(*ring->sq_array));
	ring->sqes = calloc(ring->sq_entries, parts * sizeof(*ring->sqes));
	ring->cqes = calloc(ring->cq_entries, parts * sizeof(*ring->cqes));
	WORLD_CHECK(ring->sq_array != NULL && ring->sqes != NULL && ring->cqes != NULL);
	ring->is_open = true;
	ring->is_polled = (params->flags & IORING_SETUP_IOPOLL) != 0;
	ring->is_sqe128 = is_sqe128;
	ring->has_no_sqarray = (params->flags & IORING_SETUP_NO_SQARRAY) != 0;
	/* Nothing but an enter hands over what it has. */
	ring->kind = ring->is_polled ? RING_DEFERRED : kind_of(params->flags);
	params->sq_entries = ring->sq_entries;
	params->cq_entries = ring->cq_entries;
	map_rings(ring, uring);
	uring->flags = params->flags;
	world_event("sets up a ring", ring->sq_entries, ring->cq_entries);
	return 0;
}

void device_ring_exit(struct io_uring *uring)
{
	struct ring *ring = ring_of(uring->ring_fd, false);

	world_point();
	WORLD_CHECK(ring->operation_count == 0);
	WORLD_CHECK(device_unseen_count(uring) == 0);
	WORLD_CHECK(!ring->is_registered);
	ring->is_open = false;
	ring->is_polling = false;
	ring->is_watching = false;
	free(ring->sq_array);
	free(ring->sqes);
	free(ring->cqes);
}

/* ---- what liburing does by itself ---- */

int io_uring_register_ring_fd(struct io_uring *uring)
{
	struct ring *ring = ring_of(uring->ring_fd, false);

	world_point();
	if (!device.has_registered_ring || device.shares_rings) {
		return -EINVAL;
	}
	own(ring);
	ring->is_registered = true;
	uring->enter_ring_fd = REGISTERED_FD + (int)index_of(ring);
	return 1;
}

int io_uring_unregister_ring_fd(struct io_uring *uring)
{
	struct ring *ring = ring_of(uring->ring_fd, false);

	own(ring);
	ring->is_registered = false;
	uring->enter_ring_fd = uring->ring_fd;
	return 1;
}

int io_uring_ring_dontfork(struct io_uring *uring)
{
	(void)uring;
	return 0;
}

int io_uring_register_iowq_max_workers(struct io_uring *uring, unsigned int *counts)
{
	(void)uring;
	(void)counts;
	return 0;
}

int io_uring_register_buffers(
	struct io_uring *uring, const struct iovec *ranges, unsigned range_count)
{
	struct ring *ring = ring_of(uring->ring_fd, false);

	world_point();
	WORLD_CHECK(range_count > 0 && range_count <= TABLE_MAX);
	WORLD_CHECK(ring->table_count == 0);
	if (world_chance(device.faults.no_locked_memory)) {
		return -ENOMEM;
	}
	memcpy(ring->table, ranges, range_count * sizeof(*ranges));
	ring->table_count = range_count;
	return 0;
}

int io_uring_unregister_buffers(struct io_uring *uring)
{
	struct ring *ring = ring_of(uring->ring_fd, false);

	own(ring);
	world_point();
	WORLD_CHECK(ring->table_count > 0);
	memset(ring->table, 0, sizeof(ring->table));
	ring->table_count = 0;
	return 0;
}

int device_update_buffers(int fd, const struct io_uring_rsrc_update2 *update)
{
	struct ring *ring = ring_of(fd, false);
	const struct iovec *range = (const struct iovec *)(uintptr_t)update->data;

	own(ring);
	WORLD_CHECK(update->nr == 1 && update->offset < ring->table_count);
	if (range->iov_len > 0 && world_chance(device.faults.no_locked_memory)) {
		return -ENOMEM;
	}
	ring->table[update->offset] = *range;
	return 1;
}

static bool overlaps(const uint8_t *memory, size_t bytes, const void *start, size_t length)
{
	const uint8_t *first = start;

	return first < memory + bytes && memory < first + length;
}

/* Its pages go: no ring may hold them, no request be on its way to them. */
void device_check_unused(const uint8_t *memory, size_t bytes)
{
	for (uint32_t i = 0; i < RINGS_MAX; i++) {
		const struct ring *ring = &device.rings[i];

		for (uint32_t j = 0; ring->is_open && j < ring->table_count; j++) {
			WORLD_CHECK(!overlaps(
				memory, bytes, ring->table[j].iov_base, ring->table[j].iov_len));
		}
		for (uint32_t j = 0; ring->is_open && j < OPERATIONS_MAX; j++) {
			const struct io_uring_sqe *sqe = &ring->operations[j].sqe;

			WORLD_CHECK(ring->operations[j].due_ns == 0 ||
				!overlaps(memory, bytes, (const void *)(uintptr_t)sqe->addr,
					sqe->len));
		}
	}
}

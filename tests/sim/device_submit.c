/* SPDX-License-Identifier: MIT */
/*
 * The fate of submitted entries: operations of the disk, polls, cancels, and
 * refusals at once.
 */
#include "runtime/base/base.h"
#include "tests/sim/device_state.h"
#include "tests/sim/disk.h"
#include "tests/sim/workload.h"
#include "tests/sim/world.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

enum {
	CANCEL_NS_SPREAD = 3 * 1000,
	CANCELLED_PER_MILLE = 700,
	LOST_BYTES_PER_MILLE = 100,
};

/* When it is over. */
static uint64_t due_ns(const struct ring *ring, const struct io_uring_sqe *sqe)
{
	if (disk_waits(sqe->opcode)) {
		return disk_peer_ns();
	}
	/* A request that cannot be cancelled would never end. */
	return !ring->is_polled && !ring->is_sqe128 && disk_is_hung()
		? WORLD_NEVER
		: world_now_ns() + disk_latency_ns();
}

static void start_operation(struct ring *ring, const struct io_uring_sqe *sqe)
{
	const uint8_t *bytes = (const uint8_t *)(uintptr_t)sqe->addr;
	uint32_t i = 0;

	if (sqe->opcode == IORING_OP_READ_FIXED || sqe->opcode == IORING_OP_WRITE_FIXED) {
		const struct iovec *entry = &ring->table[sqe->buf_index];
		const uint8_t *start = entry->iov_base;

		WORLD_CHECK(sqe->buf_index < ring->table_count && start != NULL);
		WORLD_CHECK(bytes >= start && bytes + sqe->len <= start + entry->iov_len);
	}
	if (ring->operation_count + cq_ready(ring) + ring->backlog_count >= ring->cq_entries) {
		world_fail("%u requests and a completion queue of %u", ring->operation_count + 1,
			ring->cq_entries);
	}
	while (ring->operations[i].due_ns != 0) {
		i++;
		WORLD_CHECK(i < OPERATIONS_MAX);
	}
	workload_request_starts(sqe->user_data);
	ring->operations[i] = (struct operation){
		.sqe = *sqe,
		.due_ns = due_ns(ring, sqe),
	};
	if (ring->is_sqe128) {
		memcpy(&ring->operations[i].command, sqe->cmd, sizeof(struct nvme_uring_cmd));
	}
	ring->operation_count++;
	if (ring->operations[i].due_ns < device.next_ns) {
		device.next_ns = ring->operations[i].due_ns;
	}
}

static void end_poll(struct ring *ring, int32_t result)
{
	ring->is_polling = false;
	device_complete(ring, ring->poll_user_data, result, 0);
}

void device_poll_fires(struct ring *ring)
{
	if (world_chance(device.faults.poll_ends)) {
		end_poll(ring, 1);
	} else {
		device_complete(ring, ring->poll_user_data, 1, IORING_CQE_F_MORE);
	}
}

/* Of a command ring: its thread is in the kernel, so all it has is queued. */
static void start_watch(struct ring *ring, const struct io_uring_sqe *sqe)
{
	struct ring *sqe128 = ring_of(sqe->fd, false);

	WORLD_CHECK(!ring->is_watching && !ring->is_sqe128 && sqe128->is_sqe128);
	own(sqe128);
	device_hand_over(sqe128, UINT32_MAX);
	if (cq_ready(sqe128) > 0) {
		device_complete(ring, sqe->user_data, POLLIN, 0);
		return;
	}
	ring->is_watching = true;
	ring->watched = index_of(sqe128);
	ring->watch_user_data = sqe->user_data;
}

static void start_poll(struct ring *ring, const struct io_uring_sqe *sqe)
{
	if ((sqe->len & IORING_POLL_ADD_MULTI) == 0) {
		start_watch(ring, sqe);
		return;
	}
	WORLD_CHECK(!ring->is_polling);
	WORLD_CHECK(device.event_is_open[sqe->fd - EVENT_FD]);
	ring->is_polling = true;
	ring->poll_fd = sqe->fd;
	ring->poll_user_data = sqe->user_data;
	if (device.event_counts[sqe->fd - EVENT_FD] > 0) {
		device_poll_fires(ring);
	}
}

static bool is_operation(const struct operation *operation, uint64_t user_data)
{
	return operation->due_ns != 0 && operation->sqe.user_data == user_data;
}

/*
 * Requests that the disk has already got run to their end all the same; a hung
 * one is not there yet.
 */
static void cancel(struct ring *ring, const struct io_uring_sqe *sqe)
{
	int32_t result = -ENOENT;

	WORLD_CHECK(sqe->cancel_flags == 0 && is_request(sqe->addr));
	for (uint32_t i = 0; i < OPERATIONS_MAX && result == -ENOENT; i++) {
		struct operation *operation = &ring->operations[i];

		if (!is_operation(operation, sqe->addr)) {
			continue;
		}
		if (world_chance(device.faults.cancel_misses)) {
			break;
		}
		result = -EALREADY;
		if (operation->due_ns == WORLD_NEVER || world_chance(CANCELLED_PER_MILLE)) {
			operation->is_cancelled = true;
			operation->due_ns = world_now_ns() + 1 + world_random(CANCEL_NS_SPREAD);
			result = 0;
		}
	}
	device_find_next();
	device_complete(ring, sqe->user_data, result, 0);
}

/* Why this one is not polled, or 0. */
static int32_t refusal(void)
{
	static const int32_t errors[] = {0, -EOPNOTSUPP, -EINVAL, -EAGAIN};

	switch (device.polling) {
	case POLLING_REFUSED:
		return -EOPNOTSUPP;
	case POLLING_AT_TIMES:
		return errors[world_random(PIN_ARRAY_COUNT(errors))];
	case POLLING_WORKS:
	case POLLING_NO_RING:
	case POLLING_KINDS:
		break;
	}
	return 0;
}

/* Whether it ends at once. */
static bool is_refused(struct ring *ring, const struct io_uring_sqe *sqe)
{
	bool is_read = sqe->opcode == IORING_OP_READ || sqe->opcode == IORING_OP_READ_FIXED ||
		sqe->opcode == IORING_OP_READV;
	bool is_write = sqe->opcode == IORING_OP_WRITE || sqe->opcode == IORING_OP_WRITE_FIXED ||
		sqe->opcode == IORING_OP_WRITEV;
	/* Linux 6.1 does that: has read, and says 0. */
	bool has_lost_bytes =
		is_read && device.polling == POLLING_AT_TIMES && world_chance(LOST_BYTES_PER_MILLE);
	int32_t result = has_lost_bytes ? 0 : refusal();

	WORLD_CHECK(is_read || is_write);
	if (result == 0 && !has_lost_bytes) {
		return false;
	}
	workload_request_starts(sqe->user_data);
	workload_request_completes(sqe->user_data);
	device_complete(ring, sqe->user_data, result, 0);
	return true;
}

/* The kernel's word on a command, which then is not begun; or 0. */
static int32_t word_on_command(void)
{
	static const int32_t errors[] = {0, 0, -EINVAL, -EAGAIN, -EINTR};

	switch (device.commanding) {
	case COMMANDS_REFUSED:
		return -EOPNOTSUPP;
	case COMMANDS_AT_TIMES:
		return errors[world_random(PIN_ARRAY_COUNT(errors))];
	case COMMANDS_WORK:
	case COMMANDS_NO_RING:
	case COMMANDS_KINDS:
		break;
	}
	return 0;
}

static void start_command(struct ring *ring, const struct io_uring_sqe *sqe)
{
	int32_t word = word_on_command();

	world_event("commands", sqe->opcode, (uint64_t)(int64_t)word);
	WORLD_CHECK(sqe->opcode == IORING_OP_URING_CMD && sqe->cmd_op == NVME_URING_CMD_IO);
	WORLD_CHECK(sqe->fd == DISK_NAMESPACE_FD);
	if (word == 0) {
		start_operation(ring, sqe);
		return;
	}
	workload_request_starts(sqe->user_data);
	workload_request_completes(sqe->user_data);
	device_complete(ring, sqe->user_data, word, 0);
}

static void start(struct ring *ring, const struct io_uring_sqe *sqe)
{
	if (ring->is_sqe128) {
		start_command(ring, sqe);
		return;
	}
	world_event(ring->is_polled ? "submits, to be polled" : "submits", sqe->opcode, sqe->len);
	if (ring->is_polled && is_refused(ring, sqe)) {
		return;
	}
	switch (sqe->opcode) {
	case IORING_OP_POLL_ADD:
		if (is_request(sqe->user_data)) {
			start_operation(ring, sqe);
		} else {
			start_poll(ring, sqe);
		}
		break;
	case IORING_OP_ASYNC_CANCEL:
		cancel(ring, sqe);
		break;
	default:
		if (!disk_takes(sqe->opcode)) {
			world_fail("entry %u is of no operation", sqe->opcode);
		}
		start_operation(ring, sqe);
		break;
	}
}

uint32_t device_submit(struct ring *ring, uint32_t to_submit)
{
	uint32_t count = to_submit;

	WORLD_CHECK(to_submit <= ring->sq_tail - ring->sq_head);
	WORLD_CHECK(to_submit <= ring->sq_entries);
	if (count > 0 && world_chance(device.faults.enter_short)) {
		count = (uint32_t)world_random(count);
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t place = ring->sq_head & ring->sq_mask;
		uint32_t entry = ring->has_no_sqarray ? place : ring->sq_array[place];

		WORLD_CHECK(entry < ring->sq_entries);
		ring->sq_head++;
		start(ring, &ring->sqes[(size_t)entry << (ring->is_sqe128 ? 1 : 0)]);
	}
	return count;
}

/* SPDX-License-Identifier: MIT */
/*
 * Rings and doorbells.
 *
 * Longer than most files here, since the operations share one small table of
 * rings and say little each.
 */
#include "tests/sim/device.h"
#include "runtime/base/base.h"
#include "tests/sim/disk.h"
#include "tests/sim/workload.h"
#include "tests/sim/world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	RINGS_MAX = SIM_WORKERS_MAX,
	RING_FD = 1000,
	REGISTERED_FD = 500,
	EVENT_FD = 3000,
	OPERATIONS_MAX = 256,
	BACKLOG_MAX = 512,
	/* What one enter hands over at most; the kernel's own figure. */
	DEFERRED_BATCH = 20,
	CANCEL_NS_SPREAD = 3 * 1000,
	CANCELLED_PER_MILLE = 700,
};

enum ring_kind { RING_DEFERRED, RING_COOPERATIVE, RING_PLAIN, RING_KINDS };

struct operation {
	struct io_uring_sqe sqe;
	uint64_t due_ns; /* 0: free */
	bool is_cancelled;
};

struct ring {
	bool is_open;
	bool has_owner;
	uint32_t owner;
	bool is_registered; /* in its owner's table of rings */
	uint8_t *registered;
	size_t registered_bytes;
	/* What liburing points into. */
	uint32_t sq_head;
	uint32_t sq_tail;
	uint32_t sq_mask;
	uint32_t sq_entries;
	uint32_t sq_flags;
	uint32_t sq_dropped;
	uint32_t *sq_array;
	struct io_uring_sqe *sqes;
	uint32_t cq_head;
	uint32_t cq_tail;
	uint32_t cq_mask;
	uint32_t cq_entries;
	uint32_t cq_flags;
	uint32_t cq_overflow;
	struct io_uring_cqe *cqes;
	/* In flight, and done but not yet in the queue. */
	struct operation operations[OPERATIONS_MAX];
	uint32_t operation_count;
	struct io_uring_cqe backlog[BACKLOG_MAX];
	uint32_t backlog_count;
	/* Its multishot poll of an eventfd. */
	bool is_polling;
	int poll_fd;
	uint64_t poll_user_data;
};

static struct {
	struct sim_faults faults;
	enum ring_kind kind;
	bool has_ring;
	bool has_message;
	bool has_registered_ring;
	struct ring rings[RINGS_MAX];
	uint32_t ring_count;
	uint64_t event_counts[RINGS_MAX];
	bool event_is_open[RINGS_MAX];
	uint32_t event_count;
	uint64_t next_ns;
} device;

void device_begin(const struct sim_faults *faults)
{
	memset(&device, 0, sizeof(device));
	device.faults = *faults;
	device.kind = (enum ring_kind)world_random(RING_KINDS);
	device.has_ring = !world_chance(faults->no_ring);
	device.has_message = device.kind == RING_DEFERRED && world_chance(500);
	device.has_registered_ring = world_chance(700);
	device.next_ns = WORLD_NEVER;
}

void device_end(void)
{
	for (uint32_t i = 0; i < device.ring_count; i++) {
		WORLD_CHECK(!device.rings[i].is_open);
		WORLD_CHECK(!device.event_is_open[i]);
	}
}

void device_probe(struct pin_kernel *kernel)
{
	memset(kernel, 0, sizeof(*kernel));
	kernel->ring_error = device.has_ring ? 0 : -ENOSYS;
	kernel->has_send_msg_ring = device.has_message;
	kernel->has_no_iowait = device.kind == RING_DEFERRED;
}

/* ---- completions ---- */

static uint32_t index_of(const struct ring *ring)
{
	return (uint32_t)(ring - device.rings);
}

static uint32_t cq_ready(const struct ring *ring)
{
	return ring->cq_tail - ring->cq_head;
}

static void update_flags(struct ring *ring)
{
	bool has_flag = device.kind != RING_PLAIN && ring->backlog_count > 0;

	ring->sq_flags = has_flag ? IORING_SQ_TASKRUN : 0;
}

static void hand_over(struct ring *ring, uint32_t count_max)
{
	uint32_t count = ring->backlog_count < count_max ? ring->backlog_count : count_max;

	for (uint32_t i = 0; i < count; i++) {
		if (cq_ready(ring) == ring->cq_entries) {
			world_fail("a completion queue of %u overflows", ring->cq_entries);
		}
		ring->cqes[ring->cq_tail & ring->cq_mask] = ring->backlog[i];
		ring->cq_tail++;
	}
	ring->backlog_count -= count;
	memmove(ring->backlog, ring->backlog + count,
		ring->backlog_count * sizeof(ring->backlog[0]));
	update_flags(ring);
}

static void complete(struct ring *ring, uint64_t user_data, int32_t result, uint32_t flags)
{
	if (ring->backlog_count == BACKLOG_MAX) {
		world_fail("more than %d completions wait", BACKLOG_MAX);
	}
	ring->backlog[ring->backlog_count] =
		(struct io_uring_cqe){.user_data = user_data, .res = result, .flags = flags};
	ring->backlog_count++;
	world_event("completes", index_of(ring), (uint64_t)(int64_t)result);
	if (device.kind == RING_PLAIN) {
		hand_over(ring, UINT32_MAX);
	}
	update_flags(ring);
}

static void find_next(void)
{
	device.next_ns = WORLD_NEVER;
	for (uint32_t i = 0; i < device.ring_count; i++) {
		const struct ring *ring = &device.rings[i];
		uint32_t left = ring->operation_count;

		for (uint32_t j = 0; left > 0; j++) {
			uint64_t due_ns = ring->operations[j].due_ns;

			left -= due_ns != 0 ? 1 : 0;
			if (due_ns != 0 && due_ns < device.next_ns) {
				device.next_ns = due_ns;
			}
		}
	}
}

uint64_t device_next_ns(void)
{
	return device.next_ns;
}

static void finish(struct ring *ring, struct operation *operation)
{
	int32_t result = operation->is_cancelled ? -ECANCELED : disk_execute(&operation->sqe);

	operation->due_ns = 0;
	ring->operation_count--;
	workload_request_completes(operation->sqe.user_data);
	complete(ring, operation->sqe.user_data, result, 0);
}

void device_advance(uint64_t now_ns)
{
	if (now_ns < device.next_ns) {
		return;
	}
	for (uint32_t i = 0; i < device.ring_count; i++) {
		struct ring *ring = &device.rings[i];

		for (uint32_t j = 0; j < OPERATIONS_MAX && ring->operation_count > 0; j++) {
			struct operation *operation = &ring->operations[j];

			if (operation->due_ns != 0 && operation->due_ns <= now_ns) {
				finish(ring, operation);
			}
		}
	}
	find_next();
}

static bool is_request(uint64_t user_data)
{
	/* The ring's own tags are small; requests are addresses. */
	return user_data > 4096;
}

uint32_t device_unseen_count(const struct io_uring *uring)
{
	const struct ring *ring = &device.rings[uring->ring_fd - RING_FD];
	uint32_t count = 0;

	for (uint32_t i = ring->cq_head; i != ring->cq_tail; i++) {
		count += is_request(ring->cqes[i & ring->cq_mask].user_data) ? 1 : 0;
	}
	for (uint32_t i = 0; i < ring->backlog_count; i++) {
		count += is_request(ring->backlog[i].user_data) ? 1 : 0;
	}
	return count;
}

void device_thread_enters_kernel(void)
{
	if (device.kind != RING_COOPERATIVE) {
		return;
	}
	for (uint32_t i = 0; i < device.ring_count; i++) {
		struct ring *ring = &device.rings[i];

		if (ring->is_open && ring->has_owner && ring->owner == world_thread_current()) {
			hand_over(ring, UINT32_MAX);
		}
	}
}

/* ---- submissions ---- */

static void start_read(struct ring *ring, const struct io_uring_sqe *sqe)
{
	const uint8_t *bytes = (const uint8_t *)(uintptr_t)sqe->addr;
	uint32_t i = 0;

	if (sqe->opcode == IORING_OP_READ_FIXED) {
		WORLD_CHECK(sqe->buf_index == 0 && bytes >= ring->registered);
		WORLD_CHECK(bytes + sqe->len <= ring->registered + ring->registered_bytes);
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
		.due_ns = disk_is_stuck() ? WORLD_NEVER : world_now_ns() + disk_latency_ns(),
	};
	ring->operation_count++;
	if (ring->operations[i].due_ns < device.next_ns) {
		device.next_ns = ring->operations[i].due_ns;
	}
}

static void end_poll(struct ring *ring, int32_t result)
{
	ring->is_polling = false;
	complete(ring, ring->poll_user_data, result, 0);
}

static void poll_fires(struct ring *ring)
{
	if (world_chance(device.faults.poll_ends)) {
		end_poll(ring, 1);
	} else {
		complete(ring, ring->poll_user_data, 1, IORING_CQE_F_MORE);
	}
}

static void start_poll(struct ring *ring, const struct io_uring_sqe *sqe)
{
	WORLD_CHECK(!ring->is_polling && (sqe->len & IORING_POLL_ADD_MULTI) != 0);
	WORLD_CHECK(device.event_is_open[sqe->fd - EVENT_FD]);
	ring->is_polling = true;
	ring->poll_fd = sqe->fd;
	ring->poll_user_data = sqe->user_data;
	if (device.event_counts[sqe->fd - EVENT_FD] > 0) {
		poll_fires(ring);
	}
}

/* A read that the disk has already got runs to its end all the same. */
static void cancel_all(struct ring *ring, const struct io_uring_sqe *sqe)
{
	int32_t count = 0;

	WORLD_CHECK((sqe->cancel_flags & IORING_ASYNC_CANCEL_ANY) != 0);
	for (uint32_t i = 0; i < OPERATIONS_MAX; i++) {
		struct operation *operation = &ring->operations[i];

		if (operation->due_ns == WORLD_NEVER ||
			(operation->due_ns != 0 && world_chance(CANCELLED_PER_MILLE))) {
			operation->is_cancelled = true;
			operation->due_ns = world_now_ns() + 1 + world_random(CANCEL_NS_SPREAD);
			count++;
		}
	}
	find_next();
	if (ring->is_polling) {
		end_poll(ring, -ECANCELED);
		count++;
	}
	complete(ring, sqe->user_data, count, 0);
}

static void start(struct ring *ring, const struct io_uring_sqe *sqe)
{
	world_event("submits", sqe->opcode, sqe->len);
	switch (sqe->opcode) {
	case IORING_OP_READ:
	case IORING_OP_READ_FIXED:
		start_read(ring, sqe);
		break;
	case IORING_OP_POLL_ADD:
		start_poll(ring, sqe);
		break;
	case IORING_OP_ASYNC_CANCEL:
		cancel_all(ring, sqe);
		break;
	default:
		world_fail("operation %u is not simulated", sqe->opcode);
	}
}

static uint32_t submit(struct ring *ring, uint32_t to_submit)
{
	uint32_t count = to_submit;

	WORLD_CHECK(to_submit <= ring->sq_tail - ring->sq_head);
	WORLD_CHECK(to_submit <= ring->sq_entries);
	if (count > 0 && world_chance(device.faults.enter_short)) {
		count = (uint32_t)world_random(count);
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t entry = ring->sq_array[ring->sq_head & ring->sq_mask];

		WORLD_CHECK(entry < ring->sq_entries);
		ring->sq_head++;
		start(ring, &ring->sqes[entry]);
	}
	return count;
}

/* ---- system calls ---- */

static bool has_completions(const void *arg)
{
	const struct ring *ring = arg;

	return cq_ready(ring) > 0 || ring->backlog_count > 0;
}

static struct ring *ring_of(int fd, bool by_table)
{
	uint32_t index = (uint32_t)(fd - (by_table ? REGISTERED_FD : RING_FD));

	WORLD_CHECK(index < device.ring_count && device.rings[index].is_open);
	WORLD_CHECK(!by_table || device.rings[index].is_registered);
	return &device.rings[index];
}

static void own(struct ring *ring)
{
	if (!ring->has_owner) {
		ring->has_owner = true;
		ring->owner = world_thread_current();
	}
	WORLD_CHECK(ring->owner == world_thread_current());
}

static int draw_enter_error(void)
{
	static const int errors[] = {-EINTR, -EAGAIN, -EBUSY, -ENOMEM};

	return errors[world_random(PIN_ARRAY_COUNT(errors))];
}

int device_ring_enter(int fd, uint32_t to_submit, uint32_t min_complete, uint32_t flags,
	void *argument, size_t argument_bytes)
{
	struct ring *ring = ring_of(fd, (flags & IORING_ENTER_REGISTERED_RING) != 0);
	uint32_t submitted;

	(void)argument;
	(void)argument_bytes;
	WORLD_CHECK(min_complete <= 1);
	world_point();
	own(ring);
	world_event("enters its ring", to_submit, min_complete);
	if (world_chance(device.faults.enter_fails)) {
		return draw_enter_error();
	}
	submitted = submit(ring, to_submit);
	if (device.kind == RING_COOPERATIVE) {
		hand_over(ring, UINT32_MAX);
	}
	if ((flags & IORING_ENTER_GETEVENTS) == 0 || submitted != to_submit) {
		return (int)submitted;
	}
	if (min_complete > 0 && !has_completions(ring) && !world_chance(device.faults.spurious)) {
		world_sleep(WORLD_RING, NULL, has_completions, ring, WORLD_NEVER);
		world_event("wakes in its ring", ring->backlog_count, cq_ready(ring));
	}
	hand_over(ring, DEFERRED_BATCH);
	if (submitted == 0 && min_complete > 0 && cq_ready(ring) == 0) {
		return -EINTR;
	}
	return (int)submitted;
}

static bool refuses(uint32_t flags)
{
	uint32_t unknown = 0;

	if (device.kind != RING_DEFERRED) {
		unknown |= IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SINGLE_ISSUER;
	}
	if (device.kind == RING_PLAIN) {
		unknown |= IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
	}
	return (flags & unknown) != 0;
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
				.array = ring->sq_array,
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
	struct ring *ring;

	world_point();
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
	ring->sqes = calloc(ring->sq_entries, sizeof(*ring->sqes));
	ring->cqes = calloc(ring->cq_entries, sizeof(*ring->cqes));
	WORLD_CHECK(ring->sq_array != NULL && ring->sqes != NULL && ring->cqes != NULL);
	ring->is_open = true;
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
	free(ring->sq_array);
	free(ring->sqes);
	free(ring->cqes);
}

static int send_message(const struct io_uring_sqe *sqe)
{
	static const int errors[] = {-ENOMEM, -EAGAIN, -EINTR};
	struct ring *ring = ring_of(sqe->fd, false);

	WORLD_CHECK(device.has_message && sqe->opcode == IORING_OP_MSG_RING);
	if (world_chance(device.faults.doorbell_fails)) {
		world_event("doorbell fails", index_of(ring), 0);
		return errors[world_random(PIN_ARRAY_COUNT(errors))];
	}
	world_event("rings a doorbell", index_of(ring), 0);
	complete(ring, sqe->off, (int32_t)sqe->len, 0);
	return 0;
}

int device_ring_register(int fd, uint32_t opcode, const void *argument, uint32_t count)
{
	world_point();
	if (opcode == IORING_REGISTER_SEND_MSG_RING) {
		WORLD_CHECK(fd == -1 && count == 1);
		return send_message(argument);
	}
	world_fail("registering by opcode %u is not simulated", opcode);
}

/* ---- eventfd ---- */

int device_eventfd(void)
{
	uint32_t index = device.event_count;

	WORLD_CHECK(index < RINGS_MAX);
	device.event_count++;
	device.event_is_open[index] = true;
	return EVENT_FD + (int)index;
}

ssize_t device_eventfd_write(int fd, const void *bytes, size_t length)
{
	uint32_t index = (uint32_t)(fd - EVENT_FD);

	world_point();
	WORLD_CHECK(index < device.event_count && device.event_is_open[index]);
	WORLD_CHECK(length == sizeof(uint64_t) && *(const uint64_t *)bytes == 1);
	device.event_counts[index]++;
	world_event("writes an eventfd", index, device.event_counts[index]);
	for (uint32_t i = 0; i < device.ring_count; i++) {
		struct ring *ring = &device.rings[i];

		if (ring->is_open && ring->is_polling && ring->poll_fd == fd) {
			poll_fires(ring);
		}
	}
	return (ssize_t)length;
}

void device_eventfd_close(int fd)
{
	uint32_t index = (uint32_t)(fd - EVENT_FD);

	WORLD_CHECK(index < device.event_count && device.event_is_open[index]);
	device.event_is_open[index] = false;
}

/* ---- what liburing does by itself ---- */

int io_uring_register_ring_fd(struct io_uring *uring)
{
	struct ring *ring = ring_of(uring->ring_fd, false);

	world_point();
	if (!device.has_registered_ring) {
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
	WORLD_CHECK(range_count == 1);
	if (world_chance(device.faults.no_locked_memory)) {
		return -ENOMEM;
	}
	ring->registered = ranges[0].iov_base;
	ring->registered_bytes = ranges[0].iov_len;
	return 0;
}

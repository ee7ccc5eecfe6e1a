/* SPDX-License-Identifier: MIT */
/*
 * What happens in rings: completions, doorbells, the calls that enter them.
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
	/* What one enter hands over at most; the kernel's own figure. */
	DEFERRED_BATCH = 20,
};

struct device device;

void device_begin(const struct sim_faults *faults)
{
	memset(&device, 0, sizeof(device));
	device.faults = *faults;
	device.kind = (enum ring_kind)world_random(RING_KINDS);
	device.has_ring = !world_chance(faults->no_ring);
	device.has_message = device.kind == RING_DEFERRED && world_chance(500);
	device.has_registered_ring = world_chance(700);
	device.has_no_sqarray = world_chance(500);
	device.has_names = world_chance(500);
	device.next_ns = WORLD_NEVER;
}

void device_share_rings(void)
{
	device.shares_rings = true;
}

void device_poll(void)
{
	device.polling = (enum polling)world_random(POLLING_KINDS);
}

void device_take_commands(bool takes_none)
{
	device.takes_commands = true;
	device.commanding =
		takes_none ? COMMANDS_REFUSED : (enum commanding)world_random(COMMANDS_KINDS);
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
	if (!device.has_ring) {
		return;
	}
	kernel->ring_features = IORING_FEAT_NODROP;
	/* All but what is of files, or what the double does not do. */
	kernel->features = PIN_FEATURES_ALL &
		~(uint32_t)(PINION_IO_SINGLE_ISSUER | PINION_IO_STATX_DIOALIGN |
			PINION_IO_CACHESTAT | PINION_IO_CLONE_BUFFERS | PINION_IO_DONTCACHE |
			PINION_IO_REGISTERED_FILES |
			(device.has_names ? 0
					  : PINION_IO_RENAMEAT | PINION_IO_LINKAT |
						PINION_IO_SHUTDOWN | PINION_IO_SOCKET) |
			(device.has_message ? 0 : PINION_IO_SEND_MSG_RING) |
			(device.kind == RING_DEFERRED ? 0 : PINION_IO_NO_IOWAIT) |
			(device.takes_commands ? 0 : PINION_IO_NVME_COMMANDS));
}

/* ---- completions ---- */

static void update_flags(struct ring *ring)
{
	bool has_flag = ring->kind != RING_PLAIN && !ring->is_polled && ring->backlog_count > 0;

	ring->sq_flags = has_flag ? IORING_SQ_TASKRUN : 0;
}

static struct io_uring_cqe *cqe_of(const struct ring *ring, uint32_t number)
{
	return &ring->cqes[(size_t)(number & ring->cq_mask) << (ring->is_sqe128 ? 1 : 0)];
}

/* A poll of it ends with the completions in its queue now. */
static void tell_watcher(const struct ring *sqe128)
{
	for (uint32_t i = 0; i < device.ring_count; i++) {
		struct ring *ring = &device.rings[i];

		if (ring->is_watching && ring->watched == index_of(sqe128)) {
			ring->is_watching = false;
			device_complete(ring, ring->watch_user_data, POLLIN, 0);
		}
	}
}

void device_hand_over(struct ring *ring, uint32_t count_max)
{
	uint32_t count = ring->backlog_count < count_max ? ring->backlog_count : count_max;

	for (uint32_t i = 0; i < count; i++) {
		if (cq_ready(ring) == ring->cq_entries) {
			world_fail("a completion queue of %u overflows", ring->cq_entries);
		}
		*cqe_of(ring, ring->cq_tail) = ring->backlog[i];
		ring->cq_tail++;
	}
	ring->backlog_count -= count;
	memmove(ring->backlog, ring->backlog + count,
		ring->backlog_count * sizeof(ring->backlog[0]));
	update_flags(ring);
	if (ring->is_sqe128 && count > 0) {
		tell_watcher(ring);
	}
}

void device_complete(struct ring *ring, uint64_t user_data, int32_t result, uint32_t flags)
{
	if (ring->backlog_count == BACKLOG_MAX) {
		world_fail("more than %d completions wait", BACKLOG_MAX);
	}
	ring->backlog[ring->backlog_count] =
		(struct io_uring_cqe){.user_data = user_data, .res = result, .flags = flags};
	ring->backlog_count++;
	world_event("completes", index_of(ring), (uint64_t)(int64_t)result);
	if (ring->kind == RING_PLAIN) {
		device_hand_over(ring, UINT32_MAX);
	}
	update_flags(ring);
}

void device_find_next(void)
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

static int32_t result_of(const struct ring *ring, const struct operation *operation)
{
	if (ring->is_sqe128) {
		return disk_execute_command(&operation->command);
	}
	return operation->is_cancelled ? -ECANCELED : disk_execute(&operation->sqe);
}

static void finish(struct ring *ring, struct operation *operation)
{
	int32_t result = result_of(ring, operation);

	operation->due_ns = 0;
	ring->operation_count--;
	workload_request_completes(operation->sqe.user_data);
	device_complete(ring, operation->sqe.user_data, result, 0);
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
	device_find_next();
}

uint32_t device_unseen_count(const struct io_uring *uring)
{
	const struct ring *ring = &device.rings[uring->ring_fd - RING_FD];
	uint32_t count = 0;

	for (uint32_t i = ring->cq_head; i != ring->cq_tail; i++) {
		count += is_request(cqe_of(ring, i)->user_data) ? 1 : 0;
	}
	for (uint32_t i = 0; i < ring->backlog_count; i++) {
		count += is_request(ring->backlog[i].user_data) ? 1 : 0;
	}
	return count;
}

void device_thread_enters_kernel(void)
{
	for (uint32_t i = 0; i < device.ring_count; i++) {
		struct ring *ring = &device.rings[i];

		if (ring->kind == RING_COOPERATIVE && ring->is_open && ring->has_owner &&
			ring->owner == world_thread_current()) {
			device_hand_over(ring, UINT32_MAX);
		}
	}
}

/* ---- system calls ---- */

/* Or the ring that it watches has some, which end that poll. */
static bool has_completions(const void *arg)
{
	const struct ring *ring = arg;

	return cq_ready(ring) > 0 || ring->backlog_count > 0 ||
		(ring->is_watching && device.rings[ring->watched].backlog_count > 0);
}

static int draw_enter_error(void)
{
	static const int errors[] = {-EINTR, -EAGAIN, -EBUSY, -ENOMEM};

	return errors[world_random(PIN_ARRAY_COUNT(errors))];
}

static uint64_t wait_ns(const struct io_uring_getevents_arg *argument)
{
	const struct __kernel_timespec *limit =
		(const struct __kernel_timespec *)(uintptr_t)argument->ts;

	return (uint64_t)limit->tv_sec * 1000000000 + (uint64_t)limit->tv_nsec;
}

int device_ring_enter(int fd, uint32_t to_submit, uint32_t min_complete, uint32_t flags,
	void *argument, size_t argument_bytes)
{
	struct ring *ring = ring_of(fd, (flags & IORING_ENTER_REGISTERED_RING) != 0);
	uint64_t deadline_ns = WORLD_NEVER;
	uint32_t submitted;

	if ((flags & IORING_ENTER_EXT_ARG) != 0) {
		WORLD_CHECK(argument_bytes == sizeof(struct io_uring_getevents_arg));
		deadline_ns = world_now_ns() + wait_ns(argument);
	}
	WORLD_CHECK(min_complete <= (ring->is_polled || ring->is_sqe128 ? 0 : 1));
	world_point();
	own(ring);
	world_event("enters its ring", to_submit, min_complete);
	if (world_chance(device.faults.enter_fails)) {
		return draw_enter_error();
	}
	submitted = device_submit(ring, to_submit);
	if (ring->kind == RING_COOPERATIVE) {
		device_hand_over(ring, UINT32_MAX);
	}
	device_thread_enters_kernel();
	if ((flags & IORING_ENTER_GETEVENTS) == 0 || submitted != to_submit) {
		return (int)submitted;
	}
	if (min_complete > 0 && !has_completions(ring) && !world_chance(device.faults.spurious)) {
		world_sleep(WORLD_RING, NULL, has_completions, ring, deadline_ns);
		world_event("wakes in its ring", ring->backlog_count, cq_ready(ring));
		device_thread_enters_kernel();
	}
	device_hand_over(ring, DEFERRED_BATCH);
	if (submitted == 0 && min_complete > 0 && cq_ready(ring) == 0) {
		return deadline_ns <= world_now_ns() ? -ETIME : -EINTR;
	}
	return (int)submitted;
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
	device_complete(ring, sqe->off, (int32_t)sqe->len, 0);
	return 0;
}

int device_ring_register(int fd, uint32_t opcode, const void *argument, uint32_t count)
{
	world_point();
	if (opcode == IORING_REGISTER_SEND_MSG_RING) {
		WORLD_CHECK(fd == -1 && count == 1);
		return send_message(argument);
	}
	if (opcode == IORING_REGISTER_BUFFERS_UPDATE) {
		WORLD_CHECK(count == sizeof(struct io_uring_rsrc_update2));
		return device_update_buffers(fd, argument);
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
			device_poll_fires(ring);
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

bool device_eventfd_is_raised(int fd)
{
	uint32_t index = (uint32_t)(fd - EVENT_FD);

	WORLD_CHECK(index < device.event_count && device.event_is_open[index]);
	return device.event_counts[index] > 0;
}

bool device_eventfd_clear(int fd)
{
	bool was_raised = device_eventfd_is_raised(fd);

	world_point();
	device.event_counts[fd - EVENT_FD] = 0;
	return was_raised;
}

/* SPDX-License-Identifier: MIT */
/*
 * Polls of descriptors where io_uring is missing or forbidden: of all entries
 * that a worker then carries out, only polls wait.
 *
 * A poll whose event is there is over at once. The worker keeps all others in
 * an array, which it checks with one call: when it has run something since the
 * last check, and when it sleeps, in that same call, as it would in its ring.
 * So there is no thread that only waits. The first element of the array is the
 * doorbell, by which other threads end that sleep; it is made with the first
 * poll that waits, since most workers have none.
 *
 * ring.c calls this, on the worker; sync_ring.c has the calls that do not wait.
 *
 * Invariant: an entry is in the queue of ring.c or in the array, and counts as
 * in flight in both, so each has room for all of them.
 *
 * Source: poll(2).
 */
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/host/heap.h"
#include "runtime/io/ring.h"

#include <errno.h>
#include <sys/resource.h>

static uint32_t count_of(const struct pin_sync_waits *waits)
{
	return pin_load_relaxed_u32(&waits->count);
}

/* Relaxed: others guess by it. */
static void set_count(struct pin_sync_waits *waits, uint32_t count)
{
	pin_store_relaxed_u32(&waits->count, count);
}

int pin_sync_waits_init(struct pin_ring *ring)
{
	struct pin_sync_waits *waits = &ring->waits;

	waits->descriptors = pin_heap_zeroed(
		ring->host, PIN_HEAP_ALIGN, (size_t)ring->credit + 1, sizeof(*waits->descriptors));
	waits->user_data = pin_heap_zeroed(
		ring->host, PIN_HEAP_ALIGN, ring->credit, sizeof(*waits->user_data));
	if (waits->descriptors == NULL || waits->user_data == NULL) {
		pin_sync_waits_fini(ring);
		return -ENOMEM;
	}
	return 0;
}

void pin_sync_waits_fini(struct pin_ring *ring)
{
	struct pin_sync_waits *waits = &ring->waits;

	PIN_CHECK(count_of(waits) == 0);
	pin_heap_release(ring->host, waits->descriptors, PIN_HEAP_ALIGN, (size_t)ring->credit + 1,
		sizeof(*waits->descriptors));
	pin_heap_release(ring->host, waits->user_data, PIN_HEAP_ALIGN, ring->credit,
		sizeof(*waits->user_data));
	if (ring->doorbell_fd >= 0) {
		ring->host->event_close(ring->doorbell_fd);
		ring->doorbell_fd = -1;
	}
}

/* Before its worker first sleeps in a wait, so that others find it there. */
static int make_doorbell(struct pin_ring *ring)
{
	int fd;

	if (ring->doorbell_fd >= 0) {
		return 0;
	}
	fd = ring->host->event_create();
	if (fd < 0) {
		return fd;
	}
	if (ring->host->fd_is_scarce(fd)) {
		ring->host->event_close(fd);
		return -EMFILE;
	}
	ring->doorbell_fd = fd;
	ring->waits.descriptors[0] = (struct pollfd){.fd = fd, .events = POLLIN};
	return 0;
}

/* One call takes no more descriptors than the process may have. */
static int check_limit(uint32_t count)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 && count > limit.rlim_cur ? -EMFILE : 0;
}

/* What a poll in a ring would say. */
static int32_t result_of(const struct pollfd *descriptor)
{
	PIN_DCHECK(descriptor->revents != 0);
	return (descriptor->revents & POLLNVAL) != 0 ? -EBADF : descriptor->revents;
}

int32_t pin_sync_wait_begin(struct pin_ring *ring, const struct io_uring_sqe *sqe)
{
	struct pin_sync_waits *waits = &ring->waits;
	/* Where bytes are in another order its halves are exchanged. */
	uint32_t events = sqe->poll32_events | sqe->poll32_events >> 16;
	struct pollfd descriptor = {.fd = sqe->fd, .events = (short)events};
	uint32_t count = count_of(waits);
	int rc;

	PIN_DCHECK(ring->is_fallback && sqe->opcode == IORING_OP_POLL_ADD);
	if (sqe->fd < 0) {
		return -EBADF;
	}
	if (ring->host->descriptors_wait(&descriptor, 1, 0) > 0) {
		return result_of(&descriptor);
	}
	PIN_CHECK(count < ring->credit); /* the invariant */
	rc = make_doorbell(ring);
	rc = rc == 0 ? check_limit(count + 2) : rc;
	if (rc < 0) {
		return rc;
	}
	waits->user_data[count] = sqe->user_data;
	waits->descriptors[count + 1] = descriptor;
	waits->begun++;
	set_count(waits, count + 1);
	return 0;
}

/* The last one takes its place. */
static void drop(struct pin_sync_waits *waits, uint32_t index)
{
	uint32_t count = count_of(waits);

	PIN_DCHECK(index < count);
	waits->descriptors[index + 1] = waits->descriptors[count];
	waits->user_data[index] = waits->user_data[count - 1];
	set_count(waits, count - 1);
}

uint32_t pin_sync_waits_look(struct pin_ring *ring, pin_ring_deliver_fn deliver, void *arg)
{
	struct pin_sync_waits *waits = &ring->waits;
	uint32_t count = count_of(waits);
	uint32_t delivered = 0;
	int rc;

	PIN_DCHECK(count > 0);
	pin_store_relaxed_u64(&waits->looked_run, pin_load_relaxed_u64(&ring->meter->tasks_run));
	/* With the doorbell, so that it fails where the sleep would. */
	rc = ring->host->descriptors_wait(waits->descriptors, count + 1, 0);
	if (rc <= 0 && rc != -EINVAL) {
		return 0;
	}
	/* From the end on: what takes a dropped one's place was looked at. */
	for (uint32_t i = count; i > 0; i--) {
		uint64_t user_data = waits->user_data[i - 1];
		int32_t result;

		if (PIN_UNLIKELY(rc == -EINVAL)) {
			result = -EMFILE; /* the limit is lower than at its begin */
		} else if (waits->descriptors[i].revents == 0) {
			continue;
		} else {
			result = result_of(&waits->descriptors[i]);
		}
		drop(waits, i - 1);
		PIN_CHECK(ring->in_flight > 0);
		ring->in_flight--;
		delivered++;
		deliver(arg, user_data, result);
	}
	return delivered;
}

void pin_sync_waits_sleep(struct pin_ring *ring, uint64_t deadline_ns)
{
	struct pin_sync_waits *waits = &ring->waits;
	bool has_rung;
	int rc;

	PIN_CHECK(count_of(waits) > 0 && ring->doorbell_fd >= 0); /* else nothing would end it */
	rc = ring->host->descriptors_wait(waits->descriptors, count_of(waits) + 1, deadline_ns);
	has_rung = rc > 0 && waits->descriptors[0].revents != 0;
	if (has_rung) {
		(void)ring->host->event_clear(ring->doorbell_fd);
	}
	if (rc > (has_rung ? 1 : 0) || rc == -EINVAL) {
		pin_store_relaxed_u64(&waits->looked_run, UINT64_MAX);
	}
}

static uint32_t find(const struct pin_sync_waits *waits, uint64_t user_data)
{
	uint32_t i = 0;

	while (i < count_of(waits) && waits->user_data[i] != user_data) {
		i++;
	}
	return i;
}

bool pin_sync_waits_hold(const struct pin_ring *ring, uint64_t user_data)
{
	return find(&ring->waits, user_data) < count_of(&ring->waits);
}

bool pin_sync_waits_drop(struct pin_ring *ring, uint64_t user_data)
{
	uint32_t index = find(&ring->waits, user_data);

	if (index == count_of(&ring->waits)) {
		return false;
	}
	drop(&ring->waits, index);
	return true;
}

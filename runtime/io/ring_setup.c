/* SPDX-License-Identifier: MIT */
/*
 * Makes and ends one io_uring: its set-up flags, the fallbacks where the kernel
 * refuses, and its registered memory.
 *
 * A worker calls it on its own thread: with a single issuer the kernel accepts
 * no other thread's submissions later.
 */
#include "runtime/io/ring.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/host/heap.h"
#include "runtime/io/operation.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
	ENTRIES_MIN = 64,
	CQ_PER_SQ = 4,
	/*
	 * The share of the completion queue that requests in flight may fill,
	 * in sixteenths: each may be cancelled, which completes as well, and
	 * the rest is for doorbells. The queue has the size that the kernel
	 * gave it, 65536 at most.
	 */
	CREDIT_SIXTEENTHS = 7,
	SETUP_TRIES_MAX = 32,
};

/* From most wanted to least: each kernel stops at the first it knows. */
static const uint32_t setup_ladder[] = {
	IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP | IORING_SETUP_SUBMIT_ALL |
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
	IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP | IORING_SETUP_SUBMIT_ALL |
		IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
	IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP,
};

/*
 * A single issuer would be the only one to enter, and with cooperative or
 * deferred task work completions would appear only when it does. Those of a
 * ring of 128-byte entries have to appear while its thread waits in another.
 */
static size_t first_step(const struct pin_ring_options *options)
{
	if (options->is_shared) {
		return PIN_ARRAY_COUNT(setup_ladder) - 1;
	}
	if (pin_kernel_has(options->kernel, PINION_IO_DEFER_TASKRUN) && !options->is_sqe128) {
		return 0;
	}
	return pin_kernel_has(options->kernel, PINION_IO_COOP_TASKRUN) ? 1 : 2;
}

/* What the kernel counts of it, its headers left out. */
static uint64_t queue_bytes(const struct io_uring_params *params, uint32_t entries)
{
	bool is_sqe128 = (params->flags & IORING_SETUP_SQE128) != 0;

	return (uint64_t)entries * sizeof(struct io_uring_sqe) * (is_sqe128 ? 2 : 1) +
		(uint64_t)params->cq_entries * sizeof(struct io_uring_cqe) * (is_sqe128 ? 2 : 1);
}

/*
 * Gives up one demand after the other: the missing index array, then flags of
 * the ladder from the top, then, for want of memory, half of the entries.
 */
static int setup_uring(struct pin_ring *ring, const struct pin_ring_options *options)
{
	uint32_t entries = options->entries;
	uint32_t always = (options->is_polled ? IORING_SETUP_IOPOLL : 0) |
		(options->is_sqe128 ? IORING_SETUP_SQE128 | IORING_SETUP_CQE32 : 0) |
		(pin_kernel_has(options->kernel, PINION_IO_NO_SQARRAY) ? IORING_SETUP_NO_SQARRAY
								       : 0);
	size_t step = first_step(options);
	uint32_t tries = 0;

	PIN_CHECK(entries > 0);
	PIN_CHECK(!options->is_polled || !options->is_sqe128);
	for (uint32_t i = 0; i < SETUP_TRIES_MAX; i++) {
		struct io_uring_params params = {
			.flags = setup_ladder[step] | always,
			.cq_entries = entries * CQ_PER_SQ,
		};
		int rc = ring->host->ring_setup(&ring->uring, entries, &params);

		PIN_CHECK(rc <= 0);
		if (rc == 0) {
			ring->setup_flags = params.flags;
			if ((params.flags & IORING_SETUP_NO_SQARRAY) != 0) {
				ring->uring.sq.array = NULL; /* its offset is 0 */
			}
			PIN_CHECK(pin_is_power_of_two(ring->uring.sq.ring_entries));
			ring->credit = params.cq_entries / 16 * CREDIT_SIXTEENTHS;
			/* invariant 1 */
			PIN_CHECK(ring->credit > 0 && 2 * ring->credit < params.cq_entries);
			return 0;
		}
		if (rc == -EINVAL && (always & IORING_SETUP_NO_SQARRAY) != 0) {
			always &= ~IORING_SETUP_NO_SQARRAY;
		} else if (rc == -EINVAL && step + 1 < PIN_ARRAY_COUNT(setup_ladder)) {
			step++;
		} else if (rc == -ENOMEM &&
			ring->host->locked_await(queue_bytes(&params, entries), &tries)) {
			continue;
		} else if (rc == -ENOMEM && entries > ENTRIES_MIN) {
			entries /= 2;
		} else {
			return rc;
		}
	}
	return -ENOMEM;
}

/* Returns its descriptor, or a negative errno. */
static int create_eventfd(const struct pin_host *host)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (fd < 0) {
		return -errno;
	}
	if (host->fd_is_scarce(fd)) {
		close(fd);
		return -EMFILE;
	}
	return fd;
}

static int setup_doorbell(
	struct pin_ring *ring, const struct pin_kernel *kernel, const struct pin_log *log)
{
	int fd;

	PIN_CHECK(ring->doorbell_kind == PIN_DOORBELL_NONE);
	if (pin_kernel_has(kernel, PINION_IO_SEND_MSG_RING)) {
		ring->doorbell_kind = PIN_DOORBELL_MESSAGE;
		return 0;
	}
	fd = create_eventfd(ring->host);
	if (fd < 0) {
		pin_log(log, PINION_LOG_ERROR, "no descriptor for a worker's doorbell: %s%s",
			strerror(-fd), fd == -EMFILE ? ": raise `ulimit -n`" : "");
		return fd;
	}
	ring->doorbell_fd = fd;
	ring->doorbell_kind = PIN_DOORBELL_EVENTFD;
	return 0;
}

static int init_fallback(struct pin_ring *ring, uint32_t entries)
{
	PIN_CHECK(entries > 0); /* places in its queue are counted modulo that */
	ring->is_fallback = true;
	ring->lacks = PIN_NEEDS_NO_RING;
	ring->credit = entries;
	ring->queued = pin_heap_zeroed(ring->host, PIN_HEAP_ALIGN, entries, sizeof(*ring->queued));
	if (ring->queued == NULL) {
		return -ENOMEM;
	}
	if (pin_sync_waits_init(ring) < 0) {
		pin_heap_release(
			ring->host, ring->queued, PIN_HEAP_ALIGN, entries, sizeof(*ring->queued));
		return -ENOMEM;
	}
	ring->is_initialised = true;
	return 0;
}

/*
 * Makes a complete ring or none. A secondary ring has no doorbell, since no
 * worker waits in it.
 */
int pin_ring_init(struct pin_ring *ring, const struct pin_host *host, struct pin_meter *meter,
	const struct pin_ring_options *options, const struct pin_log *log)
{
	uint32_t helper_counts[2] = {options->helper_count, options->helper_count};
	int rc;

	*ring = (struct pin_ring){
		.host = host,
		.meter = meter,
		.log = log,
		.doorbell_fd = -1,
		.noted_bytes = PIN_RING_LARGE_BYTES,
	};
	if (options->is_fallback) {
		return init_fallback(ring, options->entries);
	}
	rc = setup_uring(ring, options);
	if (rc < 0) {
		return rc;
	}
	ring->is_initialised = true;
	ring->lacks = ~options->kernel->features;
	ring->is_polled = options->is_polled;
	ring->is_sqe128 = options->is_sqe128;
	ring->is_deferred = (ring->setup_flags & IORING_SETUP_DEFER_TASKRUN) != 0;
	ring->has_task_flag = (ring->setup_flags & IORING_SETUP_TASKRUN_FLAG) != 0;
	ring->has_no_iowait = pin_kernel_has(options->kernel, PINION_IO_NO_IOWAIT);
	if (!ring->is_polled && !ring->is_sqe128) {
		rc = setup_doorbell(ring, options->kernel, log);
		if (rc < 0) {
			pin_ring_fini(ring);
			return rc;
		}
	}
	ring->enter_fd = ring->uring.ring_fd;
	/* Its number there is one of this thread alone. */
	if (pin_kernel_has(options->kernel, PINION_IO_REGISTERED_RING) && !options->is_shared &&
		io_uring_register_ring_fd(&ring->uring) == 1) {
		ring->enter_fd = ring->uring.enter_ring_fd;
		ring->enter_flags = IORING_ENTER_REGISTERED_RING;
	}
	PIN_CHECK(ring->enter_fd >= 0);
	PIN_CHECK(!ring->is_deferred || ring->has_task_flag); /* else they would be missed */
	io_uring_ring_dontfork(&ring->uring);
	/* Uncapped, the kernel may start hundreds of threads for cold opens. */
	io_uring_register_iowq_max_workers(&ring->uring, helper_counts);
	return 0;
}

void pin_ring_retire(struct pin_ring *ring)
{
	/*
	 * The kernel takes a closed ring apart later, and only then gives back
	 * its locked memory; the next runtime may want it at once.
	 */
	if (ring->is_initialised &&
		(ring->registry != NULL || ring->slots == PIN_RING_SLOTS_OPEN)) {
		io_uring_unregister_buffers(&ring->uring);
	}
	if (ring->is_initialised && ring->enter_flags != 0) {
		/*
		 * The slot belongs to this thread; another would free one of
		 * its own.
		 */
		io_uring_unregister_ring_fd(&ring->uring);
		ring->enter_fd = ring->uring.ring_fd;
		ring->enter_flags = 0;
	}
}

void pin_ring_fini(struct pin_ring *ring)
{
	if (!ring->is_initialised) {
		return;
	}
	PIN_CHECK(ring->in_flight == 0);
	if (ring->is_fallback) {
		PIN_CHECK(ring->queued_count == 0);
		pin_heap_release(ring->host, ring->queued, PIN_HEAP_ALIGN, ring->credit,
			sizeof(*ring->queued));
		pin_sync_waits_fini(ring);
	} else {
		ring->host->ring_exit(&ring->uring);
	}
	if (!ring->is_fallback && ring->doorbell_fd >= 0) {
		close(ring->doorbell_fd);
	}
	ring->is_initialised = false;
}

/*
 * Registers the memory of this worker alone; shared registration goes by
 * pin_ring_clone().
 */
size_t pin_ring_register(struct pin_ring *ring, uint8_t *memory, size_t bytes, size_t range_bytes,
	uint32_t slot_count, int *out_error)
{
	size_t registered_bytes;

	PIN_CHECK(ring->registry == NULL);
	*out_error = 0;
	if (ring->is_fallback) {
		return 0;
	}
	ring->own_region = (struct pin_region){.memory = memory, .bytes = bytes};
	ring->own_registry = (struct pin_registry){
		.range_bytes = range_bytes,
		.region_count = 1,
		.regions = &ring->own_region,
		.slot_count = slot_count,
	};
	registered_bytes =
		pin_registry_register(&ring->own_registry, ring->host, &ring->uring, out_error);
	PIN_CHECK(registered_bytes <= bytes);
	if (registered_bytes > 0) {
		ring->registry = &ring->own_registry;
		ring->home_region = 0;
	}
	return registered_bytes;
}

int pin_ring_clone(struct pin_ring *ring, const struct io_uring *source,
	const struct pin_registry *registry, uint32_t home_region)
{
	struct pin_clone_buffers clone = {.src_fd = (uint32_t)source->ring_fd};
	int rc;

	PIN_CHECK(ring->registry == NULL);
	PIN_CHECK(home_region < registry->region_count);
	if (ring->is_fallback) {
		return -EOPNOTSUPP;
	}
	rc = ring->host->ring_register(
		ring->uring.ring_fd, IORING_REGISTER_CLONE_BUFFERS, &clone, 1);
	if (rc < 0) {
		return rc;
	}
	ring->registry = registry;
	ring->home_region = home_region;
	return 0;
}

/* A table of empty entries alone (Linux 5.13); -EINVAL before. */
static int register_slots(struct pin_ring *ring, uint32_t count)
{
	struct iovec *empty = pin_heap_zeroed(ring->host, PIN_HEAP_ALIGN, count, sizeof(*empty));
	int rc = empty == NULL ? -ENOMEM : io_uring_register_buffers(&ring->uring, empty, count);

	pin_heap_release(ring->host, empty, PIN_HEAP_ALIGN, count, sizeof(*empty));
	return rc;
}

/*
 * A table that holds something already was made, or cloned, with these entries
 * at its end.
 */
int pin_ring_open_slots(struct pin_ring *ring, const struct pin_grown grown[PIN_GROWN_KINDS])
{
	uint32_t count = grown[PIN_GROWN_LARGE].step_count + grown[PIN_GROWN_SMALL].step_count;
	uint32_t index = ring->registry != NULL ? ring->registry->range_count : 0;
	int rc = 0;

	PIN_CHECK(ring->slots == PIN_RING_SLOTS_UNTRIED);
	ring->slots = PIN_RING_SLOTS_REFUSED;
	if (ring->is_fallback) {
		return -EOPNOTSUPP;
	}
	if (ring->registry == NULL) {
		rc = register_slots(ring, count);
	} else if (ring->registry->slot_count < count) {
		rc = -ENOBUFS;
	}
	if (rc < 0) {
		return rc;
	}
	for (uint32_t i = 0; i < PIN_GROWN_KINDS; i++) {
		ring->grown[i] = grown[i];
		ring->grown[i].bytes = 0;
		ring->grown[i].first_index = index;
		index += grown[i].step_count;
	}
	ring->slots = PIN_RING_SLOTS_OPEN;
	return 0;
}

static int set_slot(struct pin_ring *ring, uint32_t index, const struct iovec *range)
{
	struct io_uring_rsrc_update2 update = {
		.offset = index,
		.data = (uintptr_t)range,
		.nr = 1,
	};
	int rc = ring->host->ring_register(
		ring->uring.ring_fd, IORING_REGISTER_BUFFERS_UPDATE, &update, sizeof(update));

	return rc < 0 ? rc : 0;
}

int pin_ring_grow(struct pin_ring *ring, enum pin_grown_kind kind, size_t offset, size_t bytes)
{
	struct pin_grown *grown = &ring->grown[kind];
	struct iovec range = {.iov_base = grown->memory + offset, .iov_len = bytes};
	int rc;

	if (ring->slots != PIN_RING_SLOTS_OPEN || grown->bytes != offset) {
		return 0;
	}
	PIN_CHECK(offset % grown->step_bytes == 0 && bytes <= grown->step_bytes);
	PIN_CHECK(offset / grown->step_bytes < grown->step_count);
	rc = set_slot(ring, grown->first_index + (uint32_t)(offset / grown->step_bytes), &range);
	if (rc == 0) {
		grown->bytes = offset + bytes;
	}
	return rc;
}

/*
 * Where the kernel has no memory for an empty entry the old one stays, and
 * keeps its pages; nothing uses it, and the next step there replaces it.
 */
void pin_ring_shrink(struct pin_ring *ring, enum pin_grown_kind kind, size_t offset)
{
	static const struct iovec nothing;
	struct pin_grown *grown = &ring->grown[kind];
	size_t end = grown->bytes;

	if (ring->slots != PIN_RING_SLOTS_OPEN || end <= offset) {
		return;
	}
	PIN_CHECK(offset % grown->step_bytes == 0);
	grown->bytes = offset;
	for (size_t at = offset; at < end; at += grown->step_bytes) {
		(void)set_slot(
			ring, grown->first_index + (uint32_t)(at / grown->step_bytes), &nothing);
	}
}

void pin_ring_forget_buffers(struct pin_ring *ring)
{
	/* Or its entries would keep pages that are given back. */
	pin_ring_shrink(ring, PIN_GROWN_LARGE, 0);
	pin_ring_shrink(ring, PIN_GROWN_SMALL, 0);
	ring->registry = NULL;
	ring->slots = PIN_RING_SLOTS_REFUSED;
}

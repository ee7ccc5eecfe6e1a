/* SPDX-License-Identifier: MIT */
/*
 * Reads and opens as submission entries, and what to make of their completions.
 */
#include "runtime/io/request.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/io/file.h"

#include <errno.h>
#include <sys/stat.h>

enum {
	/* Added to an open's address as user_data; addresses are 8-aligned. */
	TAG_OPEN = 4,
	/* Attempts in a row without a byte before a request is given up. */
	STALLS_MAX = 64,
	/* MAX_RW_COUNT of the kernel: no read returns more. */
	LENGTH_MAX = 0x7ffff000,
};

struct request_private {
	uint32_t done_bytes;
	uint32_t stall_count;
};

_Static_assert(sizeof(struct request_private) <= sizeof(((struct pinion_request *)0)->private_),
	"a request's private part fits");
_Static_assert(_Alignof(struct pinion_request) >= 8, "low bits of its address are free");

static struct request_private *private_of(struct pinion_request *request)
{
	return (struct request_private *)(void *)request->private_;
}

static int submit_rest(struct pin_ring *ring, struct pinion_request *request)
{
	uint32_t done = private_of(request)->done_bytes;
	uint8_t *bytes = request->bytes + done;
	uint32_t length = request->length_bytes - done;
	int index = pin_ring_registered_index(ring, bytes, length);
	struct io_uring_sqe *sqe = pin_ring_entry(ring);

	if (sqe == NULL) {
		return -EAGAIN;
	}
	if (index >= 0) {
		io_uring_prep_read_fixed(
			sqe, request->file->fd, bytes, length, request->offset_bytes + done, index);
	} else {
		io_uring_prep_read(
			sqe, request->file->fd, bytes, length, request->offset_bytes + done);
		pin_meter_add(&ring->meter->unregistered_reads, 1);
	}
	sqe->user_data = (uint64_t)(uintptr_t)request;
	return 0;
}

int pin_request_submit(struct pin_ring *ring, struct pinion_request *request)
{
	const struct pinion_file *file = request->file;

	if (request->task.run == NULL || file == NULL || request->length_bytes == 0 ||
		request->length_bytes > LENGTH_MAX) {
		return -EINVAL;
	}
	if ((uintptr_t)request->bytes % file->memory_align_bytes != 0 ||
		request->offset_bytes % file->offset_align_bytes != 0 ||
		request->length_bytes % file->offset_align_bytes != 0) {
		return -EINVAL;
	}
	*private_of(request) = (struct request_private){0};
	return submit_rest(ring, request);
}

static int submit_open(struct pin_ring *ring, struct pin_open *open)
{
	struct io_uring_sqe *sqe = pin_ring_entry(ring);

	if (sqe == NULL) {
		return -EAGAIN;
	}
	io_uring_prep_openat(sqe, AT_FDCWD, open->path, open->flags, 0);
	sqe->user_data = (uint64_t)(uintptr_t)open | TAG_OPEN;
	return 0;
}

int pin_open_submit(struct pin_ring *ring, struct pin_open *open)
{
	open->stall_count = 0;
	return submit_open(ring, open);
}

static bool should_retry(int32_t result, uint32_t *stall_count)
{
	if (result != -EINTR && result != -EAGAIN) {
		return false;
	}
	(*stall_count)++;
	return *stall_count <= STALLS_MAX;
}

static struct pinion_task *complete_open(
	struct pin_ring *ring, struct pin_open *open, int32_t result)
{
	/* The completion just freed the credit that a new attempt needs. */
	if (should_retry(result, &open->stall_count) && submit_open(ring, open) == 0) {
		return NULL;
	}
	open->result = result;
	return &open->task;
}

/* True when the file ends where the request has got to. */
static bool is_at_end(const struct pinion_request *request, uint64_t position)
{
	struct stat status;

	if (request->file->size_bytes > 0 && position >= request->file->size_bytes) {
		return true;
	}
	return fstat(request->file->fd, &status) == 0 && status.st_size > 0 &&
		position >= (uint64_t)status.st_size;
}

/*
 * After a short read: true when the request goes on, with done_bytes set to
 * where; false when it is finished with *out_result.
 */
static bool continue_short(struct pinion_request *request, uint32_t got, int32_t *out_result)
{
	struct request_private *private = private_of(request);
	uint32_t total = private->done_bytes + got;
	uint32_t resume = (uint32_t)pin_round_down(total, request->file->offset_align_bytes);

	*out_result = (int32_t)total;
	if (got == 0 || total == request->length_bytes ||
		is_at_end(request, request->offset_bytes + total)) {
		return false;
	}
	/*
	 * O_DIRECT goes on at aligned offsets only, so a part may be read
	 * twice; without a new aligned block that could go on for ever.
	 */
	if (resume > private->done_bytes) {
		private->stall_count = 0;
	} else {
		private->stall_count++;
		if (private->stall_count > STALLS_MAX) {
			*out_result = -EIO;
			return false;
		}
	}
	private->done_bytes = resume;
	return true;
}

static struct pinion_task *complete_read(
	struct pin_ring *ring, struct pinion_request *request, int32_t result)
{
	struct request_private *private = private_of(request);

	if (result == -EINVAL && request->file->is_direct && private->stall_count == 0) {
		/*
		 * It took the flag and refuses the read, as some overlays do.
		 */
		pin_file_leave_direct(request->file);
		private->stall_count++;
		if (submit_rest(ring, request) == 0) {
			return NULL;
		}
	}
	if (should_retry(result, &private->stall_count) && submit_rest(ring, request) == 0) {
		return NULL;
	}
	if (result >= 0) {
		if (continue_short(request, (uint32_t)result, &result) &&
			submit_rest(ring, request) == 0) {
			return NULL;
		}
	}
	if (result > 0) {
		pin_meter_add(&ring->meter->read_bytes, (uint64_t)result);
	}
	request->result = result;
	return &request->task;
}

struct pinion_task *pin_request_complete(struct pin_ring *ring, uint64_t user_data, int32_t result)
{
	uintptr_t address = (uintptr_t)(user_data & ~(uint64_t)TAG_OPEN);

	PIN_CHECK(address != 0);
	if ((user_data & TAG_OPEN) != 0) {
		return complete_open(ring, (struct pin_open *)address, result);
	}
	return complete_read(ring, (struct pinion_request *)address, result);
}

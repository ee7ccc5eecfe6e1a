/* SPDX-License-Identifier: MIT */
/*
 * The bare ring.
 */
#include "tools/bench/rawring.h"

#include "tools/signals.h"

#include <errno.h>
#include <liburing.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Known to kernels since 6.0 and 6.1, whatever the headers here know. */
#ifndef IORING_SETUP_SINGLE_ISSUER
#define IORING_SETUP_SINGLE_ISSUER (1U << 12)
#endif
#ifndef IORING_SETUP_DEFER_TASKRUN
#define IORING_SETUP_DEFER_TASKRUN (1U << 13)
#endif

enum {
	HUGE_BYTES = 2 << 20,
	/* From here on two at a time: three the kernel would make one. */
	LARGE_BYTES = 128 << 10,
};

struct rawring {
	struct io_uring ring;
	bool has_ring;
	uint32_t depth_count;
	uint32_t block_bytes;
	uint8_t *memory;
	bool has_buffers; /* registered */
	bool has_files;
	const struct fileset *set;
};

static int set_up(struct rawring *rawring)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN};
	int rc = io_uring_queue_init_params(rawring->depth_count, &rawring->ring, &params);

	if (rc == -EINVAL) {
		params = (struct io_uring_params){0};
		rc = io_uring_queue_init_params(rawring->depth_count, &rawring->ring, &params);
	}
	rawring->has_ring = rc == 0;
	if (rc == 0) {
		/* Costs a few percent where the kernel does not know it. */
		(void)io_uring_register_ring_fd(&rawring->ring);
	}
	return rc;
}

/*
 * On huge pages, as ours. Buffers that cannot be registered are read all the
 * same.
 */
static int provide_memory(struct rawring *rawring)
{
	struct iovec whole;
	size_t bytes = (size_t)rawring->depth_count * rawring->block_bytes;

	bytes = (bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
	rawring->memory = aligned_alloc(HUGE_BYTES, bytes);
	if (rawring->memory == NULL) {
		return -ENOMEM;
	}
	(void)madvise(rawring->memory, bytes, MADV_HUGEPAGE);
	fileset_fill(rawring->memory, bytes, 1);
	whole = (struct iovec){rawring->memory, bytes};
	rawring->has_buffers = io_uring_register_buffers(&rawring->ring, &whole, 1) == 0;
	return 0;
}

static int register_files(struct rawring *rawring)
{
	int *descriptors = calloc(rawring->set->count, sizeof(*descriptors));

	if (descriptors == NULL) {
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < rawring->set->count; i++) {
		descriptors[i] = rawring->set->files[i].fd;
	}
	rawring->has_files =
		io_uring_register_files(&rawring->ring, descriptors, rawring->set->count) == 0;
	free(descriptors);
	return 0;
}

int rawring_create(uint32_t depth_count, uint32_t block_bytes, const struct fileset *set,
	struct rawring **out_rawring)
{
	struct rawring *rawring = calloc(1, sizeof(*rawring));
	int rc;

	if (rawring == NULL) {
		return -ENOMEM;
	}
	rawring->depth_count = depth_count;
	rawring->block_bytes = block_bytes;
	rawring->set = set;
	rc = set_up(rawring);
	if (rc == 0 && set != NULL) {
		rc = provide_memory(rawring);
	}
	if (rc == 0 && set != NULL) {
		rc = register_files(rawring);
	}
	if (rc != 0) {
		rawring_destroy(rawring);
		return rc;
	}
	*out_rawring = rawring;
	return 0;
}

void rawring_destroy(struct rawring *rawring)
{
	if (rawring == NULL) {
		return;
	}
	if (rawring->has_ring) {
		io_uring_queue_exit(&rawring->ring);
	}
	free(rawring->memory);
	free(rawring);
}

int rawring_nops(struct rawring *rawring, uint32_t count)
{
	struct io_uring_cqe *cqes[64];
	uint32_t back_count = 0;

	for (uint32_t done = 0; done < count; done += rawring->depth_count) {
		int rc;

		for (uint32_t i = 0; i < rawring->depth_count; i++) {
			io_uring_prep_nop(io_uring_get_sqe(&rawring->ring));
		}
		rc = io_uring_submit_and_wait(&rawring->ring, rawring->depth_count);
		if (rc < 0) {
			return rc;
		}
		while (back_count < done + rawring->depth_count) {
			uint32_t found = io_uring_peek_batch_cqe(&rawring->ring, cqes, 64);

			io_uring_cq_advance(&rawring->ring, found);
			back_count += found;
		}
	}
	return 0;
}

/* Blocks under way: the places of the next ones, and their number. */
struct course {
	struct placing *placing;
	bool is_written;
	uint32_t unbegun_count;
	uint32_t in_flight_count;
};

static void prepare(const struct rawring *rawring, struct io_uring_sqe *sqe, uint8_t *bytes, int fd,
	uint64_t offset_bytes, bool is_written)
{
	if (!rawring->has_buffers && is_written) {
		io_uring_prep_write(sqe, fd, bytes, rawring->block_bytes, offset_bytes);
	} else if (!rawring->has_buffers) {
		io_uring_prep_read(sqe, fd, bytes, rawring->block_bytes, offset_bytes);
	} else if (is_written) {
		io_uring_prep_write_fixed(sqe, fd, bytes, rawring->block_bytes, offset_bytes, 0);
	} else {
		io_uring_prep_read_fixed(sqe, fd, bytes, rawring->block_bytes, offset_bytes, 0);
	}
}

static void begin_block(struct rawring *rawring, struct course *course, uint32_t slot)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&rawring->ring);
	uint8_t *bytes = &rawring->memory[(size_t)slot * rawring->block_bytes];
	uint32_t file_index;
	uint64_t offset_bytes = placing_next(course->placing, &file_index);

	if (rawring->has_files) {
		prepare(rawring, sqe, bytes, (int)file_index, offset_bytes, course->is_written);
		sqe->flags |= IOSQE_FIXED_FILE;
	} else {
		prepare(rawring, sqe, bytes, rawring->set->files[file_index].fd, offset_bytes,
			course->is_written);
	}
	sqe->user_data = slot;
	course->unbegun_count--;
	course->in_flight_count++;
	if (rawring->block_bytes >= LARGE_BYTES && io_uring_sq_ready(&rawring->ring) >= 2) {
		/* What it refuses the next enter submits, or says why not. */
		(void)io_uring_submit(&rawring->ring);
	}
}

/* Takes completions, and begins as many new ones as are wanted. */
static int turn_around(struct rawring *rawring, struct course *course)
{
	struct io_uring_cqe *cqes[64];
	uint32_t found = io_uring_peek_batch_cqe(&rawring->ring, cqes, 64);
	int rc = 0;

	for (uint32_t i = 0; i < found; i++) {
		if (cqes[i]->res != (int)rawring->block_bytes) {
			rc = cqes[i]->res < 0 ? cqes[i]->res : -EIO;
		}
		course->in_flight_count--;
		if (course->unbegun_count > 0) {
			begin_block(rawring, course, (uint32_t)cqes[i]->user_data);
		}
	}
	io_uring_cq_advance(&rawring->ring, found);
	return rc;
}

int rawring_blocks(
	struct rawring *rawring, struct placing *placing, uint32_t count, bool is_written)
{
	struct course course = {placing, is_written, count, 0};
	int error = 0;

	for (uint32_t slot = 0; slot < rawring->depth_count && course.unbegun_count > 0; slot++) {
		begin_block(rawring, &course, slot);
	}
	while (course.in_flight_count > 0) {
		int rc = io_uring_submit_and_wait(&rawring->ring, 1);

		if (rc < 0 && rc != -EINTR) {
			return rc;
		}
		rc = turn_around(rawring, &course);
		error = error == 0 ? rc : error;
		/* Waits for all in flight; begins no new ones. */
		if (error != 0 || signals_interrupted()) {
			error = error == 0 ? -ECANCELED : error;
			course.unbegun_count = 0;
		}
	}
	return error;
}

int rawring_await_byte(struct rawring *rawring, int fd)
{
	struct io_uring_cqe *cqe;
	uint8_t byte;
	int rc;

	/* A read that waits itself, as ours: no poll before it. */
	io_uring_prep_read(io_uring_get_sqe(&rawring->ring), fd, &byte, 1, 0);
	do {
		rc = io_uring_submit_and_wait(&rawring->ring, 1);
	} while (rc == -EINTR);
	if (rc >= 0) {
		rc = io_uring_peek_cqe(&rawring->ring, &cqe);
	}
	if (rc == 0) {
		rc = cqe->res;
		io_uring_cqe_seen(&rawring->ring, cqe);
	}
	return rc;
}

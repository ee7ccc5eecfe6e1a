/* SPDX-License-Identifier: MIT */
/*
 * Checks what the caller of a read or write asks for: memory, range and
 * alignments, before anything of it is submitted.
 *
 * request.c calls it through the table of operations.
 *
 * Invariant: after a check that returned 0 no sum of offset and lengths wraps,
 * so transfer.c computes with them freely.
 */
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/io/file.h"
#include "runtime/io/request.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>

static bool is_power_of_two(uint32_t value)
{
	return value != 0 && (value & (value - 1)) == 0;
}

static int refuse_range(const struct pinion_request *request, struct pin_refusal *why)
{
	unsigned long long offset = request->offset_bytes;
	unsigned long long length = request->length_bytes;

	if (request->length_bytes - 1 >= INT64_MAX && !pin_request_has(request, PIN_OP_GATHERS)) {
		return pin_refuse(
			why, -EINVAL, "length_bytes is %llu, not 1 to 9223372036854775807", length);
	}
	return pin_refuse(why, -EINVAL,
		"offset_bytes is %llu and length_bytes %llu: they end after 9223372036854775807",
		offset, length);
}

/* 0: that of the file makes sense. */
static int check_file_alignment(const struct pinion_file *file, struct pin_refusal *why)
{
	if (!is_power_of_two(file->memory_align_bytes)) {
		return pin_refuse(why, -EINVAL,
			"file->memory_align_bytes is %u, not a power of two: "
			"make the file by pinion_file_from_fd()",
			file->memory_align_bytes);
	}
	if (!is_power_of_two(file->offset_align_bytes)) {
		return pin_refuse(why, -EINVAL,
			"file->offset_align_bytes is %u, not a power of two: "
			"make the file by pinion_file_from_fd()",
			file->offset_align_bytes);
	}
	return 0;
}

static int refuse_offset(const struct pinion_request *request, struct pin_refusal *why)
{
	return pin_refuse(why, -EINVAL,
		"offset_bytes is %llu, not a multiple of the file's offset_align_bytes, %u",
		(unsigned long long)request->offset_bytes, request->file->offset_align_bytes);
}

static int check_alignment(const struct pinion_request *request, struct pin_refusal *why)
{
	const struct pinion_file *file = request->file;
	uint32_t offset_align = file->offset_align_bytes;
	int rc = check_file_alignment(file, why);

	if (rc < 0) {
		return rc;
	}
	if (((uintptr_t)request->bytes & (file->memory_align_bytes - 1)) != 0) {
		return pin_refuse(why, -EINVAL,
			"bytes is %p, not a multiple of the file's memory_align_bytes, %u",
			(void *)request->bytes, file->memory_align_bytes);
	}
	if ((request->offset_bytes & (offset_align - 1)) != 0) {
		return refuse_offset(request, why);
	}
	if ((request->length_bytes & (offset_align - 1)) != 0) {
		return pin_refuse(why, -EINVAL,
			"length_bytes is %llu, not a multiple of the file's offset_align_bytes, %u",
			(unsigned long long)request->length_bytes, offset_align);
	}
	return 0;
}

/*
 * A file that was filled in by hand may be anything. Of a pipe or socket a
 * transfer goes on until its length has been moved, which may be never. Asked
 * each time: the program may put another descriptor into the struct. The kernel
 * answers from what it has, without asking a server.
 */
static PIN_APART int check_given(const struct pinion_request *request, struct pin_refusal *why)
{
	const struct pinion_file *file = request->file;
	struct statx status;
	const char *kind;

	if (statx(file->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &status) < 0) {
		return 0;
	}
	kind = S_ISFIFO(status.stx_mode) ? "a pipe" : S_ISSOCK(status.stx_mode) ? "a socket" : NULL;
	return kind == NULL
		? 0
		: pin_refuse(why, -ESPIPE,
			  "file->fd is %d, %s: a %s it would wait for its full length", file->fd,
			  kind, pin_request_has(request, PIN_OP_READS) ? "read of" : "write to");
}

/* ---- memory in one piece ---- */

/*
 * Only after a quick test of several values in one expression has failed: tests
 * each by itself.
 */
static PIN_APART int check_each(const struct pinion_request *request, struct pin_refusal *why)
{
	int rc;

	if (request->file == NULL) {
		return pin_refuse(why, -EINVAL, "file is NULL");
	}
	if (request->length_bytes - 1 >= INT64_MAX ||
		((request->offset_bytes | (request->offset_bytes + request->length_bytes)) >> 63) !=
			0) {
		return refuse_range(request, why);
	}
	if (request->bytes == NULL) {
		return pin_refuse(why, -EINVAL, "bytes is NULL");
	}
	rc = check_alignment(request, why);
	return rc < 0 || request->file->way != PINION_WAY_UNKNOWN ? rc : check_given(request, why);
}

int pin_transfer_check(const struct pinion_request *request, struct pin_refusal *why)
{
	const struct pinion_file *file = request->file;

	/*
	 * The upper bit is set where the length is 0, and where an offset would
	 * be negative as an off_t: the sum is at most 2^64 - 1.
	 */
	if (file == NULL || request->bytes == NULL ||
		((request->length_bytes - 1) | request->offset_bytes |
			(request->offset_bytes + request->length_bytes)) >>
				63 !=
			0) {
		return check_each(request, why);
	}
	/* Alignments are powers of two. */
	if (((uintptr_t)request->bytes & (file->memory_align_bytes - 1)) != 0 ||
		((request->offset_bytes | request->length_bytes) &
			(file->offset_align_bytes - 1)) != 0) {
		return check_each(request, why);
	}
	return PIN_LIKELY(file->way != PINION_WAY_UNKNOWN) ? 0 : check_given(request, why);
}

/* ---- vectors ---- */

/* Of one element, and of those before it, in `sum` bytes. */
static int check_element(
	const struct pinion_request *request, uint32_t index, uint64_t sum, struct pin_refusal *why)
{
	const struct iovec *element = &request->vector[index];
	const struct pinion_file *file = request->file;

	if (element->iov_base == NULL && element->iov_len > 0) {
		return pin_refuse(why, -EINVAL, "vector[%u].iov_base is NULL", index);
	}
	if (((uintptr_t)element->iov_base & (file->memory_align_bytes - 1)) != 0) {
		return pin_refuse(why, -EINVAL,
			"vector[%u].iov_base is %p, not a multiple of the file's "
			"memory_align_bytes, %u",
			index, element->iov_base, file->memory_align_bytes);
	}
	if ((element->iov_len & (file->offset_align_bytes - 1)) != 0) {
		return pin_refuse(why, -EINVAL,
			"vector[%u].iov_len is %zu, not a multiple of the file's "
			"offset_align_bytes, %u",
			index, element->iov_len, file->offset_align_bytes);
	}
	if (element->iov_len > INT64_MAX - sum) {
		return pin_refuse(why, -EINVAL,
			"vector[%u].iov_len is %zu: with the %llu bytes before it more than "
			"9223372036854775807",
			index, element->iov_len, (unsigned long long)sum);
	}
	return 0;
}

static int check_elements(const struct pinion_request *request, struct pin_refusal *why)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < request->vector_count; i++) {
		int rc = check_element(request, i, sum, why);

		if (rc < 0) {
			return rc;
		}
		sum += request->vector[i].iov_len;
	}
	if (request->length_bytes != sum) {
		return pin_refuse(why, -EINVAL,
			"length_bytes is %llu, not the sum of the vector's iov_len, %llu",
			(unsigned long long)request->length_bytes, (unsigned long long)sum);
	}
	return 0;
}

/*
 * Each element is checked against the file's alignments, and their sum against
 * `length_bytes`, before anything is submitted.
 */
int pin_vector_check(const struct pinion_request *request, struct pin_refusal *why)
{
	const struct pinion_file *file = request->file;
	int rc;

	if (file == NULL) {
		return pin_refuse(why, -EINVAL, "file is NULL");
	}
	if (request->vector_count > PIN_VECTOR_COUNT_MAX) {
		return pin_refuse(why, -EINVAL, "vector_count is %u, not 0 to %d",
			request->vector_count, PIN_VECTOR_COUNT_MAX);
	}
	if (request->vector == NULL && request->vector_count > 0) {
		return pin_refuse(why, -EINVAL, "vector is NULL");
	}
	rc = check_file_alignment(file, why);
	rc = rc < 0 ? rc : check_elements(request, why);
	if (rc < 0) {
		return rc;
	}
	if (((request->offset_bytes | (request->offset_bytes + request->length_bytes)) >> 63) !=
		0) {
		return refuse_range(request, why);
	}
	if ((request->offset_bytes & (file->offset_align_bytes - 1)) != 0) {
		return refuse_offset(request, why);
	}
	return file->way != PINION_WAY_UNKNOWN ? 0 : check_given(request, why);
}

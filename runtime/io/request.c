/* SPDX-License-Identifier: MIT */
/*
 * The way of a request into a ring and back: its check, its entries, its end.
 *
 * worker/submit.c asks for entries here, worker/complete.c passes completions
 * in; what an operation has of its own is in operation_table.c and transfer.c.
 *
 * Invariant: after a check that returned 0 no sum of offset and lengths wraps,
 * so transfer.c computes with them freely.
 *
 * Invariant: a completion either ends its request or has it submitted again,
 * never both.
 */
#include "runtime/io/request.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/io/file.h"
#include "runtime/io/in_flight.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>

_Static_assert(sizeof(struct pin_request) <= sizeof(((struct pinion_request *)0)->private_),
	"a request's private part fits");
_Static_assert(_Alignof(struct pinion_request) >= 8, "the ring's own tags are no addresses");

/* ---- checks ---- */

/* The compiler warns of a member of the enumeration that has no row. */
static bool is_public(enum pinion_op op)
{
	switch (op) {
#define PINION_CASE(name) case PINION_OP_##name:
#define PIN_CASE(name)
#define CASE(set, name, prefix, ...) prefix##_CASE(name)
		PIN_OPERATIONS(CASE, 0)
#undef CASE
#undef PIN_CASE
#undef PINION_CASE
		return true;
	}
	return false;
}

/* No bit that is unknown, and one lane at most. */
static PIN_INLINE bool has_task_flags(const struct pinion_request *request)
{
	_Static_assert(PINION_TASK_MANDATORY == 1 && PINION_TASK_HIGH == 2 && PINION_TASK_LOW == 4,
		"higher values have an unknown bit or both lanes");
	return request->task.flags <= (PINION_TASK_LOW | PINION_TASK_MANDATORY);
}

int pin_request_check(const struct pinion_request *request)
{
	if (request->task.run == NULL || request->op >= PIN_OP_COUNT || !has_task_flags(request)) {
		return -EINVAL;
	}
	return pin_operations[request->op].check(request, NULL);
}

int pin_request_explain(const struct pinion_request *request, struct pin_refusal *why)
{
	if (!is_public((enum pinion_op)request->op)) {
		return pin_refuse(why, -EINVAL, "op is %u, not 0 to %d", request->op,
			PIN_OP_PUBLIC_COUNT - 1);
	}
	if (request->task.run == NULL) {
		return pin_refuse(why, -EINVAL, "task.run is NULL");
	}
	if (!has_task_flags(request)) {
		return pin_refuse(why, -EINVAL,
			"task.flags is 0x%x, neither PINION_TASK_HIGH nor _LOW nor 0, "
			"with or without _MANDATORY",
			request->task.flags);
	}
	return pin_operations[request->op].check(request, why);
}

PIN_COLD _Noreturn void pin_request_report_changed(
	const struct pin_ring *ring, const struct pinion_request *request)
{
	pin_check_misused(ring->log, PIN_REQUEST_CHANGED, (const void *)request);
}

/* ---- checks of reads and writes: memory, range, alignments ---- */

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
	if (!pin_is_power_of_two(file->memory_align_bytes)) {
		return pin_refuse(why, -EINVAL,
			"file->memory_align_bytes is %u, not a power of two: "
			"make the file by pinion_file_from_fd()",
			file->memory_align_bytes);
	}
	if (!pin_is_power_of_two(file->offset_align_bytes)) {
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

	PIN_DCHECK(file->way == PINION_WAY_UNKNOWN); /* others were checked when opened */
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

	PIN_DCHECK(index < request->vector_count);
	PIN_DCHECK(sum <= INT64_MAX); /* so no sum here wraps */
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

/* ---- into the ring ---- */

static PIN_INLINE void submit_rest(struct pin_ring *ring, struct pinion_request *request)
{
	struct io_uring_sqe *sqe = pin_ring_entry_again(ring);

	/* The one field that liburing leaves alone, so it may come first. */
	sqe->user_data = (uint64_t)(uintptr_t)request;
	pin_operations[request->op].prepare(ring, sqe, request);
	PIN_DCHECK(sqe->user_data == (uint64_t)(uintptr_t)request);
	PIN_DCHECK(sqe->user_data > PIN_RING_TAG_WATCH); /* no tag of the ring's own */
	pin_in_flight_begin(request);
}

/* The part of it that a command is to read now, or reads. */
static uint32_t command_length(struct pinion_request *request)
{
	uint64_t done = pin_request_of(request)->resume_bytes;

	return pin_command_length(
		request->file, request->offset_bytes + done, pin_request_part(request, done));
}

static void submit_command(struct pin_ring *ring, struct pinion_request *request)
{
	struct io_uring_sqe *sqe = pin_ring_sqe128_entry(ring);
	uint64_t done = pin_request_of(request)->resume_bytes;
	uint8_t *bytes = request->bytes + done;
	uint32_t length = command_length(request);
	int index = pin_ring_registered_index(ring, bytes, length);

	PIN_DCHECK(done < request->length_bytes); /* else it has ended */
	pin_command_prepare(sqe, request->file, bytes, request->offset_bytes + done, length, index);
	if (index < 0) {
		pin_meter_add(&ring->meter->unregistered_reads, 1);
	}
	sqe->user_data = (uint64_t)(uintptr_t)request;
	pin_in_flight_begin(request);
}

bool pin_request_submit_command(struct pin_ring *ring, struct pinion_request *request)
{
	if (!pin_op_is_in(request->op, PIN_OPS_READING_BYTES) || pin_ring_room(ring) == 0 ||
		command_length(request) == 0) {
		return false;
	}
	PIN_DCHECK(ring->is_sqe128);
	submit_command(ring, request);
	return true;
}

bool pin_request_is_beyond(const struct pin_ring *ring, const struct pinion_request *request)
{
	return (pin_operations[request->op].needs & ring->lacks) != 0;
}

/* Of a large one, or of any where calls are bounded: they may be due now. */
static PIN_APART void note_gathered(struct pin_ring *ring, const struct pinion_request *request)
{
	PIN_DCHECK(request->length_bytes >= ring->noted_bytes);
	if (ring->is_bounded &&
		pin_submit_bound_add(&ring->bound,
			(uint32_t)pin_min_u64(request->length_bytes, PIN_REQUEST_PART_BYTES))) {
		pin_ring_submit(ring);
	} else if (request->length_bytes >= PIN_RING_LARGE_BYTES && request->file != NULL &&
		request->file->is_direct) {
		pin_ring_submit_pair(ring);
	}
}

bool pin_request_submit(struct pin_ring *ring, struct pinion_request *request)
{
	PIN_DCHECK(!ring->is_sqe128); /* its entries have another size */
	if (PIN_UNLIKELY(!pin_ring_has_room(ring, 1) || pin_request_is_beyond(ring, request))) {
		return false;
	}
	submit_rest(ring, request);
	if (PIN_UNLIKELY(request->length_bytes >= ring->noted_bytes)) {
		note_gathered(ring, request);
	}
	return true;
}

/* For operations that are done whole or not at all. */
static void carry_out_whole(struct pin_ring *ring, struct pinion_request *request)
{
	const struct pin_operation *operation = &pin_operations[request->op];
	struct io_uring_sqe sqe;
	int64_t result;

	do {
		operation->prepare(ring, &sqe, request);
		result = pin_fallback_execute(&sqe);
	} while (
		(result < 0 || !operation->is_whole) && operation->goes_on(ring, request, &result));
	request->result = result;
}

bool pin_request_carry_out(struct pin_ring *ring, struct pinion_request *request)
{
	if (pin_request_moves_bytes(request)) {
		return pin_transfer_carry_out(ring, request);
	}
	carry_out_whole(ring, request);
	return true;
}

void pin_request_abandon(struct pin_ring *ring, struct pinion_request *request)
{
	PIN_CHECK(pin_request_of(request)->ended_by != 0);
	PIN_DCHECK(ring->is_fallback || ring->in_flight > 0);
	pin_ring_cancel(ring, (uint64_t)(uintptr_t)request);
}

/* ---- back from the ring ---- */

/* Kernel threads that work for a ring are cancelled by a signal. */
static bool is_cancelled(int64_t result)
{
	return result == -ECANCELED || result == -EINTR || result == -EAGAIN;
}

/*
 * The kernel's own codes for a call that a signal interrupted (ERESTARTSYS,
 * ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK). No user should see
 * them; a read that its helper thread gave up in Linux 6.1 shows the first.
 */
static int32_t without_restarts(int32_t error)
{
	return error == -512 || error == -513 || error == -514 || error == -516 ? -EINTR : error;
}

static void submit_again(struct pin_ring *ring, struct pinion_request *request)
{
	if (PIN_UNLIKELY(ring->is_sqe128)) {
		submit_command(ring, request);
	} else {
		submit_rest(ring, request);
	}
}

/* Of a transfer that goes on: not an attempt that is made once more. */
static bool is_between_parts(struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);

	return pin_request_moves_bytes(request) && private->resume_bytes != 0 &&
		pin_request_ends_part(request, private->resume_bytes) && private->stall_count == 0;
}

/* In an enter of its own: the kernel makes it one with no other. */
static PIN_APART void submit_alone(struct pin_ring *ring, struct pinion_request *request)
{
	PIN_DCHECK(pin_request_moves_bytes(request)); /* only these meet bad sectors */
	pin_ring_submit(ring);
	submit_again(ring, request);
	pin_ring_submit(ring);
}

static void go_on(struct pin_ring *ring, struct pinion_request *request)
{
	PIN_DCHECK(pin_request_of(request)->ended_by == 0); /* an abandoned one goes no further */
	if (PIN_UNLIKELY(is_between_parts(request)) && ring->ask_part != NULL &&
		!ring->ask_part(ring->ask_arg, request)) {
		return;
	}
	submit_again(ring, request);
}

/* Asks the operation whether that is its end. */
static PIN_APART struct pinion_request *end_or_go_on(
	struct pin_ring *ring, struct pinion_request *request, int32_t completed)
{
	struct pin_request *private = pin_request_of(request);
	int64_t result = without_restarts(completed);

	PIN_DCHECK(private->ended_by == 0 || private->ended_by == -ECANCELED ||
		private->ended_by == -ETIME);
	if (pin_operations[request->op].goes_on(ring, request, &result)) {
		if (PIN_UNLIKELY(private->ended_by != 0)) {
			result = private->ended_by;
		} else if (pin_request_is_of_sectors(completed)) {
			submit_alone(ring, request);
			return NULL;
		} else {
			go_on(ring, request);
			return NULL;
		}
	} else if (PIN_UNLIKELY(private->ended_by != 0) && is_cancelled(result)) {
		result = private->ended_by;
	}
	request->result = result;
	return request;
}

/* There is nothing to be asked. */
static PIN_INLINE bool ends_at_once(
	struct pin_ring *ring, struct pinion_request *request, int32_t result)
{
	return pin_request_moves_bytes(request)
		? pin_transfer_ends_whole(ring, request, result)
		: result >= 0 && pin_operations[request->op].is_whole;
}

struct pinion_request *pin_request_complete(
	struct pin_ring *ring, uint64_t user_data, int32_t result)
{
	struct pinion_request *request = (struct pinion_request *)(uintptr_t)user_data;

	if (PIN_UNLIKELY(request == NULL || request->op >= PIN_OP_COUNT)) {
		pin_request_report_changed(ring, request);
	}
	pin_in_flight_end(request);
	if (PIN_UNLIKELY(!ends_at_once(ring, request, result))) {
		return end_or_go_on(ring, request, result);
	}
	request->result = result;
	return request;
}

struct pinion_request *pin_request_complete_command(
	struct pin_ring *ring, uint64_t user_data, int32_t result)
{
	struct pinion_request *request = (struct pinion_request *)(uintptr_t)user_data;

	PIN_DCHECK(ring->is_sqe128);
	return pin_request_complete(
		ring, user_data, pin_command_result(result, command_length(request)));
}

/* SPDX-License-Identifier: MIT */
/*
 * Requests of a workload, which begin at a task or outside: reads for the most
 * part, and what their program mixes in; and whether they did what they say.
 */
#include "tests/sim/workload.h"
#include "runtime/base/base.h"
#include "runtime/io/operation.h"
#include "tests/sim/disk.h"
#include "tests/sim/watch.h"
#include "tests/sim/workload_state.h"
#include "tests/sim/world.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

/* For reads that find no buffer: a block each, aligned as the disk asks. */
static uint8_t own_memory[WORKLOAD_TASKS_MAX][WORKLOAD_READ_BYTES_MAX]
	__attribute__((aligned(DISK_BLOCK_BYTES)));

/* ---- memory ---- */

static void take_memory(struct workload_entry *read)
{
	int rc = -EAGAIN;

	/* A worker's buffers go back on it, and these reads end anywhere. */
	if (workload.test->ring_sharing == 0) {
		rc = pinion_buffer_acquire(
			workload.runtime, WORKLOAD_READ_BYTES_MAX, &read->buffer);
	}
	read->has_buffer = rc == 0;
	if (rc != 0 && rc != -EAGAIN) {
		world_fail("acquiring a buffer returns %d", rc);
	}
	read->memory = read->has_buffer ? read->buffer.bytes : own_memory[workload_number(read)];
	read->worker_index = workload.test->ring_sharing == 0
		? (uint32_t)pinion_worker_index(workload.runtime)
		: UINT32_MAX;
}

static void give_memory_back(struct workload_entry *read)
{
	if (read->has_buffer) {
		pinion_buffer_release(workload.runtime, &read->buffer);
		read->has_buffer = false;
	}
}

/* ---- when it has ended ---- */

static bool is_of_namespace(const struct pinion_request *request)
{
	return request->file == &workload.namespace;
}

/* Errors that are as they should be. A namespace is read, and no more. */
static bool fails_rightly(const struct pinion_request *request)
{
	bool may_fail = workload.test->faults.io_error > 0;

	if (!is_of_namespace(request)) {
		return request->result == -EIO && may_fail;
	}
	if (!pin_request_has(request, PIN_OP_READS)) {
		return request->result == -EROFS;
	}
	return (request->result == -ENODATA || request->result == -EREMOTEIO) && may_fail;
}

/*
 * Each piece is of some blocks, and they are in its memory from the end on, so
 * that no two neighbours of the file are neighbours there. Or it has no pieces.
 */
static void cut_memory(struct workload_entry *read)
{
	struct pinion_request *request = &read->request;
	uint64_t left = request->length_bytes;
	uint32_t count = 0;

	if (pin_request_has(request, PIN_OP_HAS_MESSAGE)) {
		read->vector[0] = (struct iovec){.iov_base = read->memory, .iov_len = left};
		read->message = (struct msghdr){.msg_iov = read->vector, .msg_iovlen = 1};
		request->message = &read->message;
		return;
	}
	if (!pin_request_has(request, PIN_OP_GATHERS)) {
		request->bytes = read->memory;
		return;
	}
	while (left > 0) {
		uint64_t length = (1 + world_random(left / DISK_BLOCK_BYTES)) * DISK_BLOCK_BYTES;

		if (count + 1 == WORKLOAD_VECTOR_COUNT) {
			length = left;
		}
		left -= length;
		read->vector[count] =
			(struct iovec){.iov_base = read->memory + left, .iov_len = length};
		count++;
	}
	request->vector = read->vector;
	request->vector_count = count;
}

/* Fills its memory as the disk would. */
static void fill_memory(const struct workload_entry *read)
{
	const struct pinion_request *request = &read->request;
	uint64_t offset = request->offset_bytes;

	if (!pin_request_has(request, PIN_OP_GATHERS)) {
		disk_fill(read->memory, offset, (uint32_t)request->length_bytes);
		return;
	}
	for (uint32_t i = 0; i < request->vector_count; i++) {
		disk_fill(read->vector[i].iov_base, offset, (uint32_t)read->vector[i].iov_len);
		offset += read->vector[i].iov_len;
	}
}

/* The bytes of the disk that its memory has. */
static bool memory_holds(const struct workload_entry *read, uint32_t length)
{
	const struct pinion_request *request = &read->request;
	uint64_t offset = request->offset_bytes;

	if (!pin_request_has(request, PIN_OP_GATHERS)) {
		return disk_holds(read->memory, offset, length);
	}
	for (uint32_t i = 0; length > 0; i++) {
		uint32_t part = (uint32_t)read->vector[i].iov_len;

		part = part < length ? part : length;
		if (!disk_holds(read->vector[i].iov_base, offset, part)) {
			return false;
		}
		offset += part;
		length -= part;
	}
	return true;
}

/* Bytes of a stream: some, or all that were asked for. */
static bool is_moved_right(const struct workload_entry *read)
{
	const struct pinion_request *request = &read->request;
	uint64_t result = (uint64_t)request->result;

	return result == request->done_bytes &&
		((request->flags & MSG_WAITALL) != 0
				? result == request->length_bytes
				: result > 0 && result <= request->length_bytes) &&
		(request->op != PINION_OP_RECV ||
			disk_holds(read->memory, (uintptr_t)read->memory, (uint32_t)result));
}

/* What it did, when it says that it went well. */
static bool is_done_right(const struct workload_entry *read)
{
	const struct pinion_request *request = &read->request;
	uint64_t left = DISK_FILE_BYTES - request->offset_bytes;
	uint32_t expected = (uint32_t)(request->length_bytes < left ? request->length_bytes : left);

	switch (request->op) {
	case PINION_OP_READ:
	case PINION_OP_READV:
		return request->result == (int64_t)expected && memory_holds(read, expected);
	case PINION_OP_WRITE:
	case PINION_OP_WRITEV:
		return request->result == (int64_t)expected &&
			disk_was_written(request->offset_bytes, expected);
	case PINION_OP_CANCEL:
		return request->result >= 0;
	case PINION_OP_CLOSE:
		return request->result == 0 && read->opened.fd == -1;
	case PINION_OP_POLL:
		return request->result == POLLIN;
	case PINION_OP_ACCEPT:
	case PINION_OP_SOCKET:
		return request->result == DISK_NEW_SOCKET_FD;
	case PINION_OP_RECV:
	case PINION_OP_SEND:
	case PINION_OP_SENDMSG:
	case PINION_OP_RECVMSG:
		return is_moved_right(read);
	case PINION_OP_STATX:
		return request->result == 0 && read->status.stx_size == DISK_FILE_BYTES;
	default:
		return request->result == 0;
	}
}

static void check_result(const struct workload_entry *read)
{
	const struct pinion_request *request = &read->request;
	int64_t result = request->result;
	bool may_cancel = workload.is_stopping || workload.cancels_all || read->was_cancelled ||
		(workload.is_draining && request->deadline_ns == 0 &&
			pin_request_has(request, PIN_OP_WAITS_FOR_PEER));

	if (fails_rightly(request) || (result == -ECANCELED && may_cancel) ||
		(result == -ETIME && request->deadline_ns != 0 &&
			world_now_ns() >= request->deadline_ns) ||
		/* A close that is interrupted is over. */
		(result == -EINTR && request->op == PINION_OP_CLOSE) ||
		(result == -EAGAIN && request->op == PINION_OP_CLOSE)) {
		return;
	}
	if (!is_done_right(read)) {
		world_fail("request %u of %u bytes at %u ends with %lld, operation %u",
			workload_number(read), (uint32_t)request->length_bytes,
			(uint32_t)request->offset_bytes, (long long)result, request->op);
	}
}

static int run_read(struct pinion_task *task)
{
	struct workload_entry *read = workload_entry_of(task);
	struct workload_entry *parent = read->parent;

	workload_enter(read, "has read");
	workload.run++;
	check_result(read);
	if (read->worker_index != UINT32_MAX &&
		pinion_worker_index(workload.runtime) != (int)read->worker_index) {
		world_fail("read %u ends on another worker", workload_number(read));
	}
	give_memory_back(read);
	if (parent == NULL) {
		return 0;
	}
	parent->reads_left--;
	if (parent->reads_left == 0) {
		(void)workload_spawn_children(parent);
	}
	return 0;
}

/* ---- beginning one ---- */

static struct workload_entry *new_read(const struct sim_program *program)
{
	struct workload_entry *read = workload_new_entry(WORKLOAD_READ, program);

	read->request.task.run = run_read;
	return read;
}

static uint16_t choose_op(const struct sim_program *program)
{
	/* All that users have, but the first two. */
	uint16_t first_other = PINION_OP_WRITE + 1;
	uint64_t share;

	/* No random choice for parts that the case lacks. */
	if (program->write_percent + program->other_percent == 0) {
		return PINION_OP_READ;
	}
	share = world_random(100);
	if (share < program->write_percent) {
		return PINION_OP_WRITE;
	}
	return share < program->write_percent + program->other_percent
		? (uint16_t)(first_other + world_random(PIN_OP_PUBLIC_COUNT - first_other))
		: PINION_OP_READ;
}

static void shape_range(struct workload_entry *read)
{
	uint64_t blocks = read->program->read_bytes / DISK_BLOCK_BYTES;
	struct pinion_request *request = &read->request;
	uint64_t places = DISK_FILE_BYTES / DISK_BLOCK_BYTES;

	request->length_bytes = (1 + world_random(blocks)) * DISK_BLOCK_BYTES;
	/* Some reads cross the end of the file, none begins after it. */
	if (!pin_request_has(request, PIN_OP_READS)) {
		places -= request->length_bytes / DISK_BLOCK_BYTES;
	}
	request->offset_bytes = world_random(places) * DISK_BLOCK_BYTES;
}

/* What it does; its memory and its runtime come later. */
static void shape(struct workload_entry *read)
{
	const struct sim_program *program = read->program;
	struct pinion_request *request = &read->request;

	request->op = choose_op(program);
	request->file = &workload.file;
	shape_range(read);
	if (workload.test->commands != 0 && pin_request_has(request, PIN_OP_MOVES) &&
		world_random(2) == 0) {
		request->file = &workload.namespace;
	}
	if (request->op == PINION_OP_OPEN || request->op == PINION_OP_CLOSE) {
		disk_open(&read->opened);
		request->file = &read->opened;
	}
	if (pin_request_has(request, PIN_OP_WAITS_FOR_PEER)) {
		read->opened = (struct pinion_file){.fd = DISK_SOCKET_FD};
		request->file = &read->opened;
	}
	if (pin_request_has(request, PIN_OP_FILLS | PIN_OP_TAKES) &&
		!pin_request_has(request, PIN_OP_HAS_MESSAGE) && request->op != PINION_OP_ACCEPT) {
		request->flags = world_random(2) == 0 ? MSG_WAITALL : 0;
	}
	if (program->urgent_percent > 0 && pin_request_has(request, PIN_OP_MOVES) &&
		world_random(100) < program->urgent_percent) {
		request->task.flags = PINION_TASK_HIGH;
	}
	/* Only STATX could do with the file alone. */
	request->path = request->op == PINION_OP_STATX ? NULL : "file";
	request->new_path = "new";
	request->status = &read->status;
	if (request->op == PINION_OP_CANCEL) {
		return;
	}
	if (request->op == PINION_OP_TIMEOUT ||
		(program->deadline_percent > 0 && world_random(100) < program->deadline_percent)) {
		request->deadline_ns =
			world_now_ns() + world_random((uint64_t)program->deadline_us * 1000 + 1);
	}
}

static void prepare_memory(struct workload_entry *read)
{
	cut_memory(read);
	if (pin_request_has(&read->request, PIN_OP_MOVES) &&
		!pin_request_has(&read->request, PIN_OP_READS)) {
		fill_memory(read);
	} else {
		memset(read->memory, 0, (size_t)read->request.length_bytes);
	}
}

static void after_submit(struct workload_entry *read)
{
	const struct sim_program *program = read->program;

	workload.submitted++;
	if (program->cancel_percent > 0 && world_random(100) < program->cancel_percent) {
		read->was_cancelled = true;
		(void)pinion_request_cancel(workload.runtime, &read->request);
	}
}

/* 0, -EAGAIN or -ESHUTDOWN; the read is gone unless accepted. */
static int start_read(struct workload_entry *parent)
{
	struct workload_entry *read = new_read(parent->program);
	int rc;

	read->parent = parent;
	shape(read);
	read->is_accepted = true;
	if (read->request.op == PINION_OP_CANCEL) {
		/* It ends on another worker, so it must not have a buffer. */
		read->worker_index = UINT32_MAX;
		workload.cancels_all = true;
	} else {
		take_memory(read);
		prepare_memory(read);
	}
	rc = pinion_request_submit(workload.runtime, &read->request);
	world_event("submits a request", workload_number(read), (uint64_t)(int64_t)rc);
	if (rc == 0) {
		after_submit(read);
		return 0;
	}
	give_memory_back(read);
	workload.entry_count -= read == &workload_entries[workload.entry_count - 1] ? 1 : 0;
	read->is_accepted = false;
	if (rc != -EAGAIN && rc != -ESHUTDOWN) {
		world_fail("submitting a request returns %d", rc);
	}
	return rc;
}

void workload_start_reads(struct workload_entry *entry)
{
	while (entry->reads_to_start > 0) {
		int rc = start_read(entry);

		if (rc == -ESHUTDOWN) {
			entry->reads_left -= entry->reads_to_start;
			entry->reads_to_start = 0;
			return;
		}
		if (rc == -EAGAIN) {
			workload_spawn(entry, false);
			return;
		}
		entry->reads_to_start--;
	}
}

/* ---- outside of workers ---- */

bool workload_submit_outside(const struct sim_program *program)
{
	struct workload_entry *read = new_read(program);
	int rc;

	read->worker_index = UINT32_MAX;
	read->memory = own_memory[workload_number(read)];
	shape(read);
	prepare_memory(read);
	read->is_accepted = true; /* it may be entered before the call returns */
	workload.cancels_all |= read->request.op == PINION_OP_CANCEL;
	if (read->request.op != PINION_OP_CANCEL) {
		watch_task_ready(workload_number(read));
	}
	rc = pinion_request_submit(workload.runtime, &read->request);
	world_event("submits from outside", workload_number(read), (uint64_t)(int64_t)rc);
	if (rc == 0) {
		after_submit(read);
		return true;
	}
	if (rc != -ESHUTDOWN || read->is_entered) {
		world_fail("submitting from outside returns %d", rc);
	}
	read->is_accepted = false;
	watch_task_gone(workload_number(read));
	return false;
}

void workload_cancel_any(void)
{
	struct workload_entry *entry = &workload_entries[world_random(workload.entry_count)];
	int rc;

	if (entry->kind != WORKLOAD_READ || !entry->is_accepted) {
		return;
	}
	/* It may end before the call returns. */
	entry->was_cancelled = true;
	rc = pinion_request_cancel(workload.runtime, &entry->request);
	world_event("cancels", workload_number(entry), (uint64_t)(int64_t)rc);
	WORLD_CHECK(rc == 0 || rc == -EALREADY);
}

/* ---- for the device ---- */

/* A request's address is its user_data, and it comes first in its entry. */
static uint32_t number_of_request(uint64_t user_data)
{
	uint64_t distance = user_data - (uint64_t)(uintptr_t)workload_entries;

	WORLD_CHECK(distance % sizeof(workload_entries[0]) == 0);
	WORLD_CHECK(distance / sizeof(workload_entries[0]) < workload.entry_count);
	return (uint32_t)(distance / sizeof(workload_entries[0]));
}

void workload_request_starts(uint64_t user_data)
{
	watch_task_gone(number_of_request(user_data));
}

void workload_request_completes(uint64_t user_data)
{
	if (workload.test->rings_wait == 0) {
		watch_task_ready(number_of_request(user_data));
	}
}

void workload_request_is_over(uint64_t user_data)
{
	uint32_t number = number_of_request(user_data);
	const struct pinion_request *request = &workload_entries[number].request;

	watch_task_bound(number, (request->task.flags & PINION_TASK_HIGH) != 0);
}

/* SPDX-License-Identifier: MIT */
/*
 * How long a request takes, what it does, and how it fails.
 */
#include "tests/sim/disk.h"
#include "runtime/base/base.h"
#include "runtime/host/block_device.h"
#include "runtime/io/file.h"
#include "runtime/io/operation.h"
#include "tests/sim/world.h"

#include <errno.h>
#include <pinion/file.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum {
	LATENCY_NS_MIN = 2 * 1000,
	LATENCY_NS_SPREAD = 60 * 1000,
	PEER_NS_SPREAD = 300 * 1000,
	SILENT_PER_MILLE = 50,
	/* Of commands: their status. */
	NVME_READ = 0x02,
	STATUS_INTERRUPTED = 0x021,
	STATUS_UNREADABLE = 0x281,
	STATUS_DO_NOT_RETRY = 0x4000,
};

static struct sim_faults faults;
static bool is_written[DISK_FILE_BYTES / DISK_BLOCK_BYTES];

void disk_begin(const struct sim_faults *given)
{
	faults = *given;
	memset(is_written, 0, sizeof(is_written));
}

/* Each 16th byte depends on its offset; the others cost time only. */
static uint8_t byte_at(uint64_t offset_bytes)
{
	return (uint8_t)((offset_bytes >> 4) * 151 + (offset_bytes >> 12) * 29 + 7);
}

static uint64_t first_marked(uint64_t offset_bytes)
{
	return pin_round_up(offset_bytes, 16);
}

void disk_fill(uint8_t *bytes, uint64_t offset_bytes, uint32_t length_bytes)
{
	uint64_t end = offset_bytes + length_bytes;

	for (uint64_t at = first_marked(offset_bytes); at < end; at += 16) {
		bytes[at - offset_bytes] = byte_at(at);
	}
}

bool disk_holds(const uint8_t *bytes, uint64_t offset_bytes, uint32_t length_bytes)
{
	uint64_t end = offset_bytes + length_bytes;

	for (uint64_t at = first_marked(offset_bytes); at < end; at += 16) {
		if (bytes[at - offset_bytes] != byte_at(at)) {
			return false;
		}
	}
	return true;
}

void disk_open(struct pinion_file *file)
{
	*file = (struct pinion_file){
		.fd = DISK_FD,
		.is_direct = 1,
		.memory_align_bytes = DISK_BLOCK_BYTES,
		.offset_align_bytes = DISK_BLOCK_BYTES,
		.size_bytes = DISK_FILE_BYTES,
		.allocated_bytes = DISK_FILE_BYTES,
		.way = PINION_WAY_DIRECT,
	};
}

void disk_open_namespace(struct pinion_file *file)
{
	*file = (struct pinion_file){
		.fd = DISK_NAMESPACE_FD,
		.is_direct = 1,
		.memory_align_bytes = 4,
		.offset_align_bytes = DISK_BLOCK_BYTES,
		.size_bytes = DISK_FILE_BYTES,
		.inode = DISK_NAMESPACE_ID,
		.way = PINION_WAY_DIRECT,
		.flags = PIN_FILE_COMMANDS | (DISK_COMMAND_BLOCKS - 1) << PIN_FILE_BLOCKS_SHIFT,
	};
}

bool disk_was_written(uint64_t offset_bytes, uint32_t length_bytes)
{
	for (uint32_t i = 0; i < length_bytes / DISK_BLOCK_BYTES; i++) {
		if (!is_written[offset_bytes / DISK_BLOCK_BYTES + i]) {
			return false;
		}
	}
	return true;
}

static uint32_t cut_short(uint32_t length)
{
	uint32_t shorter = (uint32_t)world_random((uint64_t)length + 1);

	/* Nothing at all would be the end of the file. */
	return shorter == 0 && length > 0 ? 1 : shorter;
}

/* Of all pieces, each of which is aligned as the disk asks. */
static uint32_t sum_of(const struct iovec *pieces, uint32_t count)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < count; i++) {
		WORLD_CHECK(pieces[i].iov_len % DISK_BLOCK_BYTES == 0);
		WORLD_CHECK((uintptr_t)pieces[i].iov_base % DISK_BLOCK_BYTES == 0);
		sum += (uint32_t)pieces[i].iov_len;
	}
	return sum;
}

static void move(uint8_t *bytes, uint64_t offset, uint32_t length, bool is_write)
{
	if (!is_write) {
		disk_fill(bytes, offset, length);
		return;
	}
	WORLD_CHECK(disk_holds(bytes, offset, length));
	for (uint32_t i = 0; i < length / DISK_BLOCK_BYTES; i++) {
		is_written[offset / DISK_BLOCK_BYTES + i] = true;
	}
}

static int32_t transfer_pieces(
	uint64_t offset, const struct iovec *pieces, uint32_t count, bool is_write)
{
	uint64_t left = offset < DISK_FILE_BYTES ? DISK_FILE_BYTES - offset : 0;
	uint32_t wanted = sum_of(pieces, count);
	uint32_t length = wanted < left ? wanted : (uint32_t)left;
	uint32_t done = 0;

	WORLD_CHECK(wanted > 0 && offset % DISK_BLOCK_BYTES == 0);
	if (world_chance(faults.short_read)) {
		length = cut_short(length);
	}
	for (uint32_t i = 0; done < length; i++) {
		uint32_t part = (uint32_t)pieces[i].iov_len;

		part = part < length - done ? part : length - done;
		move(pieces[i].iov_base, offset + done, part, is_write);
		done += part;
	}
	return (int32_t)length;
}

static int32_t transfer(const struct io_uring_sqe *sqe, bool is_write)
{
	struct iovec piece = {.iov_base = (void *)(uintptr_t)sqe->addr, .iov_len = sqe->len};

	return transfer_pieces(sqe->off, &piece, 1, is_write);
}

static int32_t transfer_vector(const struct io_uring_sqe *sqe, bool is_write)
{
	return transfer_pieces(
		sqe->off, (const struct iovec *)(uintptr_t)sqe->addr, sqe->len, is_write);
}

static int32_t look(const struct io_uring_sqe *sqe)
{
	struct statx *status = (struct statx *)(uintptr_t)sqe->off;

	status->stx_size = DISK_FILE_BYTES;
	return 0;
}

bool disk_takes(uint8_t opcode)
{
	switch (opcode) {
	case IORING_OP_READ_FIXED:
	case IORING_OP_WRITE_FIXED:
		return true;
#define TAKEN(set, name, prefix, needs, traits, taken, ...) (taken) == opcode ||
	default:
		return PIN_OPERATIONS(TAKEN, 0) false;
#undef TAKEN
	}
}

bool disk_waits(uint8_t opcode)
{
	return opcode == IORING_OP_POLL_ADD || opcode == IORING_OP_ACCEPT ||
		opcode == IORING_OP_CONNECT || opcode == IORING_OP_RECV ||
		opcode == IORING_OP_SEND || opcode == IORING_OP_SENDMSG ||
		opcode == IORING_OP_RECVMSG;
}

uint64_t disk_peer_ns(void)
{
	return world_chance(SILENT_PER_MILLE) ? WORLD_NEVER
					      : world_now_ns() + 1 + world_random(PEER_NS_SPREAD);
}

/*
 * A stream: some bytes, at least one. Those that are received follow each other
 * in memory.
 */
static int32_t move_some(const struct io_uring_sqe *sqe)
{
	uint32_t length = cut_short(sqe->len);

	WORLD_CHECK(sqe->len > 0);
	if (sqe->opcode == IORING_OP_RECV) {
		disk_fill((uint8_t *)(uintptr_t)sqe->addr, sqe->addr, length);
	}
	return (int32_t)length;
}

/* Of a message of one piece, which is not received. */
static int32_t move_message(const struct msghdr *message)
{
	WORLD_CHECK(message->msg_iovlen == 1);
	return (int32_t)cut_short((uint32_t)message->msg_iov[0].iov_len);
}

int32_t disk_execute(const struct io_uring_sqe *sqe)
{
	if (world_chance(faults.io_error)) {
		return -EIO;
	}
	if (world_chance(faults.interrupted)) {
		return world_random(2) == 0 ? -EINTR : -EAGAIN;
	}
	switch (sqe->opcode) {
	case IORING_OP_READ:
	case IORING_OP_READ_FIXED:
		WORLD_CHECK(sqe->fd == DISK_FD);
		return transfer(sqe, false);
	case IORING_OP_WRITE:
	case IORING_OP_WRITE_FIXED:
		WORLD_CHECK(sqe->fd == DISK_FD);
		return transfer(sqe, true);
	case IORING_OP_READV:
		WORLD_CHECK(sqe->fd == DISK_FD);
		return transfer_vector(sqe, false);
	case IORING_OP_WRITEV:
		WORLD_CHECK(sqe->fd == DISK_FD);
		return transfer_vector(sqe, true);
	case IORING_OP_STATX:
		return look(sqe);
	case IORING_OP_OPENAT:
		return DISK_FD;
	case IORING_OP_POLL_ADD:
		WORLD_CHECK(sqe->fd == DISK_SOCKET_FD);
		return POLLIN;
	case IORING_OP_RECV:
	case IORING_OP_SEND:
		WORLD_CHECK(sqe->fd == DISK_SOCKET_FD);
		return move_some(sqe);
	case IORING_OP_SENDMSG:
	case IORING_OP_RECVMSG:
		WORLD_CHECK(sqe->fd == DISK_SOCKET_FD);
		return move_message((const struct msghdr *)(uintptr_t)sqe->addr);
	case IORING_OP_ACCEPT:
		WORLD_CHECK(sqe->fd == DISK_SOCKET_FD);
		return DISK_NEW_SOCKET_FD;
	case IORING_OP_SOCKET:
		return DISK_NEW_SOCKET_FD;
	case IORING_OP_FSYNC:
	case IORING_OP_FALLOCATE:
	case IORING_OP_CLOSE:
		WORLD_CHECK(sqe->fd == DISK_FD);
		return 0;
	default:
		/* Operations without effect here succeed. */
		WORLD_CHECK(disk_takes(sqe->opcode));
		return 0;
	}
}

int32_t disk_execute_command(const struct nvme_uring_cmd *command)
{
	uint64_t first_block = (uint64_t)command->cdw11 << 32 | command->cdw10;
	uint32_t block_count = command->cdw12 + 1;
	uint8_t *bytes = (uint8_t *)(uintptr_t)command->addr;

	WORLD_CHECK(command->opcode == NVME_READ && command->nsid == DISK_NAMESPACE_ID);
	WORLD_CHECK(block_count <= DISK_COMMAND_BLOCKS);
	WORLD_CHECK(command->data_len == block_count * DISK_BLOCK_BYTES);
	WORLD_CHECK(first_block + block_count <= DISK_FILE_BYTES / DISK_BLOCK_BYTES);
	if (world_chance(faults.io_error)) {
		return world_random(2) == 0 ? STATUS_UNREADABLE
					    : STATUS_INTERRUPTED | STATUS_DO_NOT_RETRY;
	}
	if (world_chance(faults.interrupted)) {
		return STATUS_INTERRUPTED;
	}
	disk_fill(bytes, first_block * DISK_BLOCK_BYTES, command->data_len);
	return 0;
}

uint64_t disk_latency_ns(void)
{
	uint64_t latency_ns = LATENCY_NS_MIN + world_random(LATENCY_NS_SPREAD);

	if (world_chance(faults.late)) {
		latency_ns += world_random((uint64_t)faults.late_us * 1000);
	}
	return latency_ns;
}

bool disk_is_hung(void)
{
	return world_chance(faults.hung);
}

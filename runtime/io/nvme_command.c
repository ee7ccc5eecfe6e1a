/* SPDX-License-Identifier: MIT */
/*
 * Turns a range of bytes of an NVMe namespace into a read command, for a ring
 * of 128-byte entries or for ioctl(2).
 *
 * transfer.c calls it for each part; the file's opening has checked that blocks
 * have no metadata.
 */
#include "runtime/base/check.h"
#include "runtime/host/kernel.h"
#include "runtime/io/request.h"

#include <string.h>

_Static_assert(offsetof(struct io_uring_sqe, cmd) + sizeof(struct nvme_uring_cmd) <=
		2 * sizeof(struct io_uring_sqe),
	"a command fits a 128-byte entry");

uint32_t pin_command_length(const struct pinion_file *file, uint64_t offset, uint64_t length)
{
	uint64_t most = (uint64_t)pin_file_command_blocks(file) * file->offset_align_bytes;
	uint64_t left = offset < file->size_bytes ? file->size_bytes - offset : 0;

	PIN_DCHECK(most <= INT32_MAX); /* a completion can say so */
	length = length < left ? length : left;
	return (uint32_t)(length < most ? length : most);
}

static void fill_in(struct nvme_uring_cmd *command, const struct pinion_file *file, uint8_t *bytes,
	uint64_t offset, uint32_t length)
{
	uint32_t block_bytes = file->offset_align_bytes;

	PIN_CHECK(length > 0 && (offset | length) % block_bytes == 0);
	PIN_CHECK(length / block_bytes <= pin_file_command_blocks(file));
	pin_nvme_read_command(command, (uint32_t)file->inode, bytes, offset / block_bytes,
		length / block_bytes, length);
}

void pin_command_prepare(struct io_uring_sqe *sqe, const struct pinion_file *file, uint8_t *bytes,
	uint64_t offset, uint32_t length, int index)
{
	struct nvme_uring_cmd command;

	fill_in(&command, file, bytes, offset, length);
	memset(sqe, 0, 2 * sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = file->fd;
	sqe->cmd_op = NVME_URING_CMD_IO;
	if (index >= 0) {
		PIN_DCHECK(index <= UINT16_MAX);
		sqe->uring_cmd_flags = IORING_URING_CMD_FIXED;
		sqe->buf_index = (uint16_t)index;
	}
	memcpy(sqe->cmd, &command, sizeof(command));
}

int32_t pin_command_result(int32_t result, uint32_t length)
{
	if (result == 0) {
		PIN_DCHECK(length <= INT32_MAX);
		return (int32_t)length;
	}
	/* The device's word is positive, the kernel's negative. */
	return result < 0 ? result : pin_nvme_error((uint32_t)result);
}

int32_t pin_command_read(
	const struct pinion_file *file, uint8_t *bytes, uint64_t offset, uint64_t length)
{
	uint32_t part = pin_command_length(file, offset, length);
	struct nvme_uring_cmd command;
	int rc;

	if (part == 0) {
		return 0;
	}
	fill_in(&command, file, bytes, offset, part);
	rc = pin_nvme_read(file->fd, &command);
	return rc < 0 ? rc : (int32_t)part;
}

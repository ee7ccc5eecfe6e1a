/* SPDX-License-Identifier: MIT */
/*
 * Reads of an NVMe namespace (host/block_device_nvme.h) as what a ring, or a
 * call, is given: commands, each of at most so many blocks as the device takes
 * at once.
 *
 * A command is done whole or not at all, and knows no end of file; so the range
 * that is asked for is cut here, to the namespace and to one command, and what
 * is longer goes on where the command has ended (io/transfer.c).
 *
 * The file's `inode` is the namespace's number, its offset alignment one block;
 * how many of those a command may have, less one, is in the upper half of its
 * `flags`.
 */
#ifndef PIN_IO_NVME_COMMAND_H
#define PIN_IO_NVME_COMMAND_H

#include "runtime/host/block_device_nvme.h"
#include "runtime/io/file.h"
#include "runtime/io/ring.h"

/* Which part of `length` bytes from `offset` on the next command reads. */
uint32_t pin_command_length(const struct pinion_file *file, uint64_t offset, uint64_t length);

/*
 * Fills in an entry of a wide ring, all but its user_data. The range is one
 * that pin_command_length() has cut, and not empty. `index` is that of the
 * registered range that holds the memory, or -1.
 */
void pin_command_prepare(struct io_uring_sqe *sqe, const struct pinion_file *file, uint8_t *bytes,
	uint64_t offset, uint32_t length, int index);

/* What has come of it, given what its ring says: its length, or an error. */
int32_t pin_command_result(int32_t result, uint32_t length);

/* Does it here and now. Bytes that were read, 0 at the end; or an error. */
int32_t pin_command_read(
	const struct pinion_file *file, uint8_t *bytes, uint64_t offset, uint64_t length);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * How long a read takes, what it delivers, and how it fails.
 */
#include "tests/sim/disk.h"
#include "runtime/base/base.h"
#include "tests/sim/world.h"

#include <errno.h>
#include <pinion/file.h>

enum {
	LATENCY_NS_MIN = 2 * 1000,
	LATENCY_NS_SPREAD = 60 * 1000,
};

static struct sim_faults faults;

void disk_begin(const struct sim_faults *given)
{
	faults = *given;
}

/* Each 16th byte says where it stands; the others cost time only. */
static uint8_t byte_at(uint64_t offset_bytes)
{
	return (uint8_t)((offset_bytes >> 4) * 151 + (offset_bytes >> 12) * 29 + 7);
}

static uint64_t first_marked(uint64_t offset_bytes)
{
	return pin_round_up(offset_bytes, 16);
}

static void fill(uint8_t *bytes, uint64_t offset_bytes, uint32_t length_bytes)
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
	};
}

int32_t disk_execute(const struct io_uring_sqe *sqe)
{
	uint64_t left = sqe->off < DISK_FILE_BYTES ? DISK_FILE_BYTES - sqe->off : 0;
	uint32_t length = sqe->len < left ? sqe->len : (uint32_t)left;

	WORLD_CHECK(sqe->fd == DISK_FD);
	WORLD_CHECK(sqe->len > 0 && sqe->len % DISK_BLOCK_BYTES == 0);
	WORLD_CHECK(sqe->off % DISK_BLOCK_BYTES == 0);
	if (world_chance(faults.io_error)) {
		return -EIO;
	}
	if (world_chance(faults.interrupted)) {
		return world_random(2) == 0 ? -EINTR : -EAGAIN;
	}
	if (world_chance(faults.short_read)) {
		length = (uint32_t)world_random(length + 1);
		/* Nothing at all would be the end of the file. */
		length = length == 0 && left > 0 ? 1 : length;
	}
	fill((uint8_t *)(uintptr_t)sqe->addr, sqe->off, length);
	return (int32_t)length;
}

uint64_t disk_latency_ns(void)
{
	uint64_t latency_ns = LATENCY_NS_MIN + world_random(LATENCY_NS_SPREAD);

	if (world_chance(faults.late)) {
		latency_ns += world_random((uint64_t)faults.late_us * 1000);
	}
	return latency_ns;
}

bool disk_is_stuck(void)
{
	return world_chance(faults.stuck);
}

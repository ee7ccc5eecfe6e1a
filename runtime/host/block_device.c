/* SPDX-License-Identifier: MIT */
/*
 * Partitions are folders in that of their disk.
 */
#include "runtime/host/block_device.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/types.h>

enum {
	/* From a namespace by its controller to the port. */
	NODE_LEVELS = 4,
};

int pin_block_read_numbers(const char *path, unsigned *out_first, unsigned *out_second)
{
	FILE *stream = fopen(path, "re");
	int count;

	if (stream == NULL) {
		return 0;
	}
	count = fscanf(stream, "%u:%u", out_first, out_second);
	fclose(stream);
	return count < 0 ? 0 : count;
}

static int read_numbers(const char *root, uint64_t device, const char *name, unsigned *out_first,
	unsigned *out_second)
{
	char path[1024];

	snprintf(path, sizeof(path), "%s/sys/dev/block/%u:%u/%s", root, major((dev_t)device),
		minor((dev_t)device), name);
	return pin_block_read_numbers(path, out_first, out_second);
}

struct pin_block pin_block_find(const char *root, uint64_t device)
{
	struct pin_block block = {.device = device};
	unsigned first = 0;
	unsigned second = 0;

	/* Major 0 is for what has no device. */
	if (major((dev_t)device) == 0) {
		return block;
	}
	if (read_numbers(root, device, "partition", &first, &second) == 1 &&
		read_numbers(root, device, "../dev", &first, &second) == 2) {
		block.device = makedev(first, second);
	}
	if (read_numbers(root, block.device, "queue/rotational", &first, &second) == 1) {
		block.is_rotational = first == 1;
	}
	if (read_numbers(root, block.device, "queue/io_poll", &first, &second) == 1) {
		block.is_polled = first == 1;
	}
	return block;
}

/* Of the queue; that of a partition is its disk's, one level up. */
static unsigned read_limit(const char *root, uint64_t device, const char *name)
{
	static const char *const folders[] = {"queue", "../queue"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		char file[64];
		unsigned first = 0;
		unsigned second = 0;

		snprintf(file, sizeof(file), "%s/%s", folders[i], name);
		if (read_numbers(root, device, file, &first, &second) == 1) {
			return first;
		}
	}
	return 0;
}

uint32_t pin_block_transfer_bytes(const char *root, uint64_t device)
{
	uint64_t bytes;
	unsigned preferred;

	if (major((dev_t)device) == 0) {
		return 0;
	}
	bytes = (uint64_t)read_limit(root, device, "max_sectors_kb") << 10;
	bytes = bytes < UINT32_MAX ? bytes : UINT32_MAX & ~UINT32_C(4095);
	preferred = read_limit(root, device, "optimal_io_size");
	if (preferred != 0 && preferred <= bytes) {
		bytes -= bytes % preferred;
	}
	return (uint32_t)bytes;
}

int32_t pin_block_node(const char *root, uint64_t device)
{
	struct pin_block block = pin_block_find(root, device);
	char name[64] = "device/";
	unsigned first = 0;
	unsigned second = 0;

	if (major((dev_t)block.device) == 0) {
		return -1;
	}
	/* A disk's controller may be some devices above: the first to know. */
	for (uint32_t i = 0; i < NODE_LEVELS; i++) {
		size_t length = strlen(name);

		snprintf(name + length, sizeof(name) - length, "numa_node");
		if (read_numbers(root, block.device, name, &first, &second) == 1) {
			/* Said to be -1 where it belongs to no node. */
			return first <= INT32_MAX ? (int32_t)first : -1;
		}
		snprintf(name + length, sizeof(name) - length, "../");
	}
	return -1;
}

/* SPDX-License-Identifier: MIT */
/*
 * Finds the alignments that direct reads and writes of a device need: asks the
 * kernel, then sysfs, then tries a read of a block.
 *
 * file.c asks for each file that it examines; each worker, and each caller of
 * pinion_file_open(), remembers some devices.
 *
 * Invariant: an alignment that is not 0 is a power of two, of at most a page.
 */
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/host/block_device.h"
#include "runtime/host/kernel.h"
#include "runtime/io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/*
 * For devices without statx's alignments (before Linux 6.1); 0 if sysfs does
 * not say.
 */
static uint32_t logical_block_bytes(uint64_t device)
{
	/* A partition's limits are those of its disk, one level up. */
	static const char *const folders[] = {"queue", "../queue"};

	for (size_t i = 0; i < PIN_ARRAY_COUNT(folders); i++) {
		char path[96];
		unsigned bytes = 0;
		FILE *stream;

		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s/logical_block_size",
			major((dev_t)device), minor((dev_t)device), folders[i]);
		stream = fopen(path, "re");
		if (stream == NULL) {
			continue;
		}
		if (fscanf(stream, "%u", &bytes) != 1) {
			bytes = 0;
		}
		fclose(stream);
		if (pin_is_power_of_two(bytes)) {
			return bytes;
		}
	}
	return 0;
}

/* 0 on success; then a zero alignment means that O_DIRECT is not supported. */
static int ask_alignment(int fd, struct pin_device *device)
{
	struct statx status;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) < 0 ||
		(status.stx_mask & STATX_DIOALIGN) == 0) {
		return -EOPNOTSUPP;
	}
	device->memory_align_bytes = status.stx_dio_mem_align;
	device->offset_align_bytes = status.stx_dio_offset_align;
	return 0;
}

/*
 * Where kernel or file system do not report it: tries by reading one block.
 */
static bool try_direct_read(int fd, uint32_t align)
{
	int flags = fcntl(fd, F_GETFL);
	void *block;
	bool works = false;

	PIN_CHECK(align <= PIN_PAGE_BYTES);
	PIN_DCHECK(pin_is_power_of_two(align));
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_DIRECT) < 0) {
		return false;
	}
	if ((flags & O_ACCMODE) == O_WRONLY) {
		/* Not to be tried without writing; a write will show. */
		fcntl(fd, F_SETFL, flags);
		return true;
	}
	block = aligned_alloc(PIN_PAGE_BYTES, PIN_PAGE_BYTES);
	if (block != NULL) {
		works = pread(fd, block, align, 0) >= 0;
		free(block);
	}
	fcntl(fd, F_SETFL, flags);
	return works;
}

/*
 * Asks statx(2) first; else takes the block size of sysfs and proves it by one
 * direct read.
 */
static void examine_device(struct pin_device *device, int fd, bool may_ask)
{
	uint32_t block_bytes;

	device->memory_align_bytes = 0;
	device->offset_align_bytes = 0;
	if (may_ask && ask_alignment(fd, device) == 0) {
		return;
	}
	block_bytes = logical_block_bytes(device->device);
	if (block_bytes < 512 || block_bytes > PIN_PAGE_BYTES) {
		block_bytes = PIN_PAGE_BYTES;
	}
	if (try_direct_read(fd, block_bytes)) {
		device->memory_align_bytes = block_bytes;
		device->offset_align_bytes = block_bytes;
	}
}

/*
 * The alignments of the file's device, remembered from an earlier file of it; a
 * block device itself is always asked anew.
 */
struct pin_device pin_device_find(
	struct pin_device_cache *remembered, int fd, uint64_t number, bool is_file)
{
	bool may_ask = remembered == NULL || !remembered->skips_dioalign;
	struct pin_device_cache *cache = is_file ? NULL : remembered;
	struct pin_device device = {.device = number};

	PIN_CHECK(cache == NULL || cache->count <= PIN_DEVICES_REMEMBERED);
	for (uint32_t i = 0; cache != NULL && i < cache->count; i++) {
		if (cache->devices[i].device == number) {
			return cache->devices[i];
		}
	}
	examine_device(&device, fd, may_ask);
	if (device.offset_align_bytes != 0) {
		device.transfer_bytes = pin_block_transfer_bytes("", device.device);
	}
	if (cache != NULL) {
		PIN_CHECK(cache->next < PIN_DEVICES_REMEMBERED);
		cache->devices[cache->next] = device;
		cache->next = (cache->next + 1) % PIN_DEVICES_REMEMBERED;
		if (cache->count < PIN_DEVICES_REMEMBERED) {
			cache->count++;
		}
	}
	return device;
}

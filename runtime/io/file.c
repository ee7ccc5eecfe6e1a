/* SPDX-License-Identifier: MIT */
/*
 * Alignment discovery and the choice between O_DIRECT and the page cache.
 */
#include "runtime/io/file.h"
#include "runtime/base/check.h"
#include "runtime/host/kernel.h"
#include "runtime/host/longpath.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	/*
	 * From this share of cached pages on, the page cache is the faster way.
	 */
	CACHED_PERCENT_MIN = 50,
	CACHED_UNKNOWN = 255,
};

int pin_file_open_flags(bool follow_links)
{
	/*
	 * O_NONBLOCK: opening a FIFO or a tape must neither wait nor act. It
	 * has no effect on regular files.
	 */
	return O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (follow_links ? 0 : O_NOFOLLOW);
}

static uint32_t logical_block_bytes(uint64_t device)
{
	/*
	 * A partition's limits are those of the disk it lies on, one level up.
	 */
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

/* Asks a kernel or a file system that does not tell: by reading one block. */
static bool try_direct_read(int fd, uint32_t align)
{
	int flags = fcntl(fd, F_GETFL);
	void *block;
	bool works = false;

	PIN_CHECK(align <= PIN_PAGE_BYTES);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_DIRECT) < 0) {
		return false;
	}
	block = aligned_alloc(PIN_PAGE_BYTES, PIN_PAGE_BYTES);
	if (block != NULL) {
		works = pread(fd, block, align, 0) >= 0;
		free(block);
	}
	fcntl(fd, F_SETFL, flags);
	return works;
}

static void examine_device(struct pin_device *device, int fd)
{
	uint32_t block_bytes;

	device->memory_align_bytes = 0;
	device->offset_align_bytes = 0;
	if (ask_alignment(fd, device) == 0) {
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

static struct pin_device find_device(struct pin_device_cache *cache, uint64_t id, int fd)
{
	struct pin_device device = {.device = id};

	for (uint32_t i = 0; cache != NULL && i < cache->count; i++) {
		if (cache->devices[i].device == id) {
			return cache->devices[i];
		}
	}
	examine_device(&device, fd);
	if (cache != NULL) {
		cache->devices[cache->next] = device;
		cache->next = (cache->next + 1) % PIN_DEVICES_REMEMBERED;
		if (cache->count < PIN_DEVICES_REMEMBERED) {
			cache->count++;
		}
	}
	return device;
}

/* Where the kernel will not say how much is cached: is the first byte? */
static uint32_t probe_cached(int fd)
{
	uint8_t byte;
	struct iovec vector = {.iov_base = &byte, .iov_len = 1};
	ssize_t rc;

	/* A miss would start read-ahead; RANDOM keeps that to one page. */
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	rc = preadv2(fd, &vector, 1, 0, RWF_NOWAIT);
	if (rc < 0) {
		rc = errno == EAGAIN ? 0 : -errno;
	}
	posix_fadvise(fd, 0, 0, POSIX_FADV_NORMAL);
	if (rc < 0) {
		return CACHED_UNKNOWN;
	}
	return rc > 0 ? 100 : 0;
}

static uint32_t find_cached_percent(int fd, uint64_t size_bytes)
{
	uint64_t pages = (size_bytes + PIN_PAGE_BYTES - 1) / PIN_PAGE_BYTES;
	struct pin_cachestat_range range = {.length_bytes = size_bytes};
	struct pin_cachestat counts;

	if (size_bytes == 0) {
		return CACHED_UNKNOWN;
	}
	/* Newer kernels answer only for files one owns or may write. */
	if (syscall(__NR_cachestat, fd, &range, &counts, 0) < 0) {
		return probe_cached(fd);
	}
	return counts.cached_count >= pages ? 100 : (uint32_t)(counts.cached_count * 100 / pages);
}

int pin_file_check_kind(const char *path)
{
	struct stat status;
	int fd;
	int rc;

	if (stat(path, &status) == 0) {
		rc = 0;
	} else if (errno == ENAMETOOLONG) {
		/*
		 * O_PATH opens the name, not the thing: nothing happens to it.
		 */
		fd = pin_open_long(path, O_PATH | O_CLOEXEC);
		if (fd < 0) {
			return fd;
		}
		rc = fstat(fd, &status) < 0 ? -errno : 0;
		close(fd);
	} else {
		rc = -errno;
	}
	if (rc < 0) {
		return rc;
	}
	return S_ISREG(status.st_mode) || S_ISDIR(status.st_mode) ? 0 : -ENOTSUP;
}

static int check_kind(const struct stat *status)
{
	if (S_ISREG(status->st_mode)) {
		return 0;
	}
	return S_ISDIR(status->st_mode) ? -EISDIR : -ENOTSUP;
}

static void choose_direct(struct pinion_file *file, uint32_t direct, struct pin_device_cache *cache)
{
	struct pin_device device;
	int flags;

	/*
	 * Files that tell no size are made up as they are read: nothing to
	 * bypass.
	 */
	if (direct == PINION_DIRECT_NEVER || file->size_bytes == 0) {
		return;
	}
	if (direct == PINION_DIRECT_AUTO && file->cached_percent != CACHED_UNKNOWN &&
		file->cached_percent >= CACHED_PERCENT_MIN) {
		return;
	}
	device = find_device(cache, file->device, file->fd);
	/* Windows start at pages and buffers are aligned to them. */
	if (device.offset_align_bytes == 0 || device.offset_align_bytes > PIN_PAGE_BYTES ||
		device.memory_align_bytes > PIN_PAGE_BYTES) {
		return;
	}
	flags = fcntl(file->fd, F_GETFL);
	if (flags < 0 || fcntl(file->fd, F_SETFL, flags | O_DIRECT) < 0) {
		return;
	}
	file->is_direct = 1;
	file->memory_align_bytes = device.memory_align_bytes;
	file->offset_align_bytes = device.offset_align_bytes;
}

int pin_file_adopt(
	struct pinion_file *file, int fd, uint32_t direct, struct pin_device_cache *cache)
{
	struct stat status;
	int rc = fstat(fd, &status) < 0 ? -errno : check_kind(&status);

	if (rc < 0) {
		close(fd);
		file->fd = -1;
		return rc;
	}
	*file = (struct pinion_file){
		.fd = fd,
		.memory_align_bytes = 1,
		.offset_align_bytes = 1,
		.size_bytes = (uint64_t)status.st_size,
		.allocated_bytes = (uint64_t)status.st_blocks * 512,
		.device = status.st_dev,
		.inode = status.st_ino,
		.cached_percent = CACHED_UNKNOWN,
	};
	if (direct != PINION_DIRECT_ALWAYS) {
		file->cached_percent = find_cached_percent(fd, file->size_bytes);
	}
	choose_direct(file, direct, cache);
	if (file->cached_percent == 0 && !file->is_direct) {
		file->flags |= PIN_FILE_EVICT;
	}
	if (file->allocated_bytes < file->size_bytes) {
		file->flags |= PIN_FILE_SPARSE;
	}
	return 0;
}

void pin_file_leave_direct(const struct pinion_file *file)
{
	int flags = fcntl(file->fd, F_GETFL);

	if (flags >= 0) {
		fcntl(file->fd, F_SETFL, flags & ~O_DIRECT);
	}
}

int pinion_file_open(struct pinion_file *file, const char *path, uint32_t direct)
{
	int rc;

	if (file == NULL || path == NULL || direct > PINION_DIRECT_NEVER) {
		return -EINVAL;
	}
	file->fd = -1;
	/*
	 * Opening some devices has effects, and a FIFO's writer would notice.
	 */
	rc = pin_file_check_kind(path);
	if (rc < 0) {
		return rc;
	}
	rc = pin_open_long(path, pin_file_open_flags(true));
	return rc < 0 ? rc : pin_file_adopt(file, rc, direct, NULL);
}

void pinion_file_close(struct pinion_file *file)
{
	if (file->fd >= 0) {
		close(file->fd);
		file->fd = -1;
	}
}

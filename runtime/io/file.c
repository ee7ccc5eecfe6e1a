/* SPDX-License-Identifier: MIT */
/*
 * Alignment discovery and the choice between O_DIRECT and the page cache.
 */
#include "runtime/io/file.h"
#include "runtime/base/check.h"
#include "runtime/base/sized.h"
#include "runtime/host/block.h"
#include "runtime/host/kernel.h"
#include "runtime/host/longpath.h"
#include "runtime/host/nvme.h"
#include "runtime/io/file_record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546u /* as in newer <linux/magic.h> */
#endif

enum {
	/*
	 * From this share of cached pages on, the page cache is the faster way.
	 */
	CACHED_PERCENT_MIN = 50,
	CACHED_UNKNOWN = 255,
};

#define FILE_FLAGS \
	((uint32_t)(PINION_FILE_READ | PINION_FILE_WRITE | PINION_FILE_CREATE | \
		PINION_FILE_EXCLUSIVE | PINION_FILE_TRUNCATE | PINION_FILE_NO_FOLLOW))

/* ---- how to open ---- */

void pinion_file_options_init_sized(struct pinion_file_options *options, uint32_t size)
{
	struct pinion_file_options defaults = {
		.size = size,
		.direct = PINION_DIRECT_AUTO,
		.flags = PINION_FILE_READ,
		.mode = 0666,
		.folder_fd = AT_FDCWD,
	};

	memset(options, 0, size);
	memcpy(options, &defaults, size < sizeof(defaults) ? size : sizeof(defaults));
}

static int check_options(const struct pinion_file_options *options)
{
	bool writes = (options->flags & PINION_FILE_WRITE) != 0;
	bool creates = (options->flags & PINION_FILE_CREATE) != 0;

	if ((options->flags & ~FILE_FLAGS) != 0 || options->direct > PINION_DIRECT_NEVER ||
		options->mode > 07777 || options->reserved != 0) {
		return -EINVAL;
	}
	if ((options->flags & (PINION_FILE_READ | PINION_FILE_WRITE)) == 0 ||
		((options->flags & PINION_FILE_TRUNCATE) != 0 && !writes) ||
		((options->flags & PINION_FILE_EXCLUSIVE) != 0 && !creates)) {
		return -EINVAL;
	}
	return 0;
}

int pin_file_options_accept(
	struct pinion_file_options *out, const struct pinion_file_options *given)
{
	int rc;

	pinion_file_options_init(out);
	if (given == NULL) {
		return 0;
	}
	if (given->size < sizeof(given->size)) {
		return -EINVAL;
	}
	rc = pin_sized_take(out, sizeof(*out), given, given->size);
	out->size = sizeof(*out);
	return rc < 0 ? rc : check_options(out);
}

struct open_how pin_file_open_how(const struct pinion_file_options *options)
{
	uint32_t flags = options->flags;
	bool follows = (flags & PINION_FILE_NO_FOLLOW) == 0;
	uint64_t how = (uint64_t)(unsigned)pin_file_open_flags(follows);

	/* O_RDONLY is 0. */
	if ((flags & PINION_FILE_WRITE) != 0) {
		how |= (flags & PINION_FILE_READ) != 0 ? O_RDWR : O_WRONLY;
	}
	how |= (flags & PINION_FILE_CREATE) != 0 ? O_CREAT : 0;
	how |= (flags & PINION_FILE_EXCLUSIVE) != 0 ? O_EXCL : 0;
	how |= (flags & PINION_FILE_TRUNCATE) != 0 ? O_TRUNC : 0;
	return (struct open_how){
		.flags = how,
		/* openat2 refuses a mode that has no use. */
		.mode = (flags & PINION_FILE_CREATE) != 0 ? options->mode : 0,
		.resolve = options->resolve,
	};
}

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
	if ((flags & O_ACCMODE) == O_WRONLY) {
		/* Not to be tried without writing; a write tells. */
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
 * Of the file's device. A block device that is the file itself is asked anew:
 * what holds for it need not hold for the file system on it.
 */
static struct pin_device find_device(
	struct pin_device_cache *remembered, const struct pinion_file *file)
{
	bool may_ask = remembered == NULL || !remembered->skips_dioalign;
	struct pin_device_cache *cache =
		(file->flags & PIN_FILE_BLOCK_DEVICE) != 0 ? NULL : remembered;
	struct pin_device device = {.device = file->device};

	for (uint32_t i = 0; cache != NULL && i < cache->count; i++) {
		if (cache->devices[i].device == file->device) {
			return cache->devices[i];
		}
	}
	examine_device(&device, file->fd, may_ask);
	if (device.offset_align_bytes != 0) {
		device.transfer_bytes = pin_block_transfer_bytes("", device.device);
	}
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

static uint32_t find_cached_percent(int fd, uint64_t size_bytes, bool may_ask)
{
	uint64_t pages = (size_bytes + PIN_PAGE_BYTES - 1) / PIN_PAGE_BYTES;
	struct pin_cachestat_range range = {.length_bytes = size_bytes};
	struct pin_cachestat counts;

	if (size_bytes == 0) {
		return CACHED_UNKNOWN;
	}
	/* Newer kernels answer only for files one owns or may write. */
	if (!may_ask || syscall(__NR_cachestat, fd, &range, &counts, 0) < 0) {
		return probe_cached(fd);
	}
	return counts.cached_count >= pages ? 100 : (uint32_t)(counts.cached_count * 100 / pages);
}

static bool is_namespace(const struct stat *status)
{
	return S_ISCHR(status->st_mode) && pin_nvme_is("", status->st_rdev);
}

static int check_kind(const struct stat *status)
{
	if (S_ISREG(status->st_mode) || S_ISBLK(status->st_mode) || is_namespace(status)) {
		return 0;
	}
	return S_ISDIR(status->st_mode) ? -EISDIR : -ENOTSUP;
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
	return S_ISDIR(status.st_mode) ? 0 : check_kind(&status);
}

/* A file of no size may be one that is made up as it is read, as in /proc. */
static enum pinion_way wanted_way(const struct pinion_file *file, uint32_t direct)
{
	bool is_known = file->cached_percent != CACHED_UNKNOWN;

	if (direct == PINION_DIRECT_NEVER) {
		return PINION_WAY_ASKED;
	}
	if (file->size_bytes == 0 &&
		(direct != PINION_DIRECT_ALWAYS || (file->flags & PIN_FILE_WRITABLE) == 0)) {
		return PINION_WAY_EMPTY;
	}
	if (direct == PINION_DIRECT_AUTO && is_known &&
		file->cached_percent >= CACHED_PERCENT_MIN) {
		return PINION_WAY_CACHED;
	}
	return PINION_WAY_DIRECT;
}

static void choose_direct(struct pinion_file *file, uint32_t direct, struct pin_device_cache *cache)
{
	struct pin_device device;
	int flags;

	file->way = wanted_way(file, direct);
	if (file->way != PINION_WAY_DIRECT) {
		return;
	}
	file->way = PINION_WAY_UNABLE;
	device = find_device(cache, file);
	/* Windows start at pages and buffers are aligned to them. */
	if (device.offset_align_bytes == 0 || device.offset_align_bytes > PIN_PAGE_BYTES ||
		device.memory_align_bytes > PIN_PAGE_BYTES) {
		return;
	}
	flags = fcntl(file->fd, F_GETFL);
	if (flags < 0 || fcntl(file->fd, F_SETFL, flags | O_DIRECT) < 0) {
		return;
	}
	file->way = PINION_WAY_DIRECT;
	file->is_direct = 1;
	file->transfer_bytes = device.transfer_bytes;
	file->memory_align_bytes = device.memory_align_bytes;
	file->offset_align_bytes = device.offset_align_bytes;
}

/*
 * io_uring goes on by itself after a short read, from where the file system
 * says it has got to. FUSE does not say it when its server has asked for
 * direct I/O, so the same bytes come again (seen with 6.18; fuse_direct_IO).
 */
static bool needs_plain_reads(int fd, const struct stat *status)
{
	struct statfs system;

	/*
	 * It has no device of its own; all others are spared the call, which
	 * its server may fail.
	 */
	return major(status->st_dev) == 0 &&
		(fstatfs(fd, &system) < 0 || (uint32_t)system.f_type == FUSE_SUPER_MAGIC);
}

/*
 * Whether the file system drops what it reads if asked to; those that do not
 * know it refuse. A read behind the end asks without reading.
 */
static bool takes_dontcache(int fd, uint64_t size_bytes)
{
	uint64_t behind = pin_round_up(size_bytes, PIN_PAGE_BYTES) + PIN_PAGE_BYTES;
	uint8_t byte;
	struct iovec vector = {.iov_base = &byte, .iov_len = 1};

	return behind <= INT64_MAX && preadv2(fd, &vector, 1, (off_t)behind, RWF_DONTCACHE) >= 0;
}

static uint32_t eviction_of(const struct pinion_file *file, const struct pin_device_cache *cache)
{
	bool may_ask = cache == NULL || !cache->skips_dontcache;

	if (file->cached_percent != 0 || file->is_direct) {
		return 0;
	}
	return PIN_FILE_EVICT |
		(may_ask && takes_dontcache(file->fd, file->size_bytes) ? PIN_FILE_DONTCACHE : 0);
}

_Static_assert(PINION_WAY_UNABLE + 1 == PIN_METER_WAYS, "one for each way");

static void count_way(const struct pin_device_cache *cache, uint32_t way)
{
	if (cache != NULL && cache->meter != NULL) {
		pin_meter_add(&cache->meter->files_by_way[way], 1);
	}
}

/* Nothing of it is ever cached, and nothing to be chosen. */
static int adopt_namespace(
	struct pinion_file *file, int fd, uint32_t flags, const struct stat *status)
{
	struct pin_nvme nvme;
	int rc = (flags & PIN_FILE_WRITABLE) != 0 ? -EROFS
						  : pin_nvme_identify(fd, status->st_rdev, &nvme);

	if (rc < 0) {
		close(fd);
		file->fd = -1;
		return rc;
	}
	*file = (struct pinion_file){
		.fd = fd,
		.is_direct = 1,
		.memory_align_bytes = nvme.block_bytes,
		.offset_align_bytes = nvme.block_bytes,
		.size_bytes = nvme.size_bytes,
		.allocated_bytes = nvme.size_bytes,
		.device = nvme.device,
		.inode = nvme.namespace_id,
		.way = PINION_WAY_DIRECT,
		.transfer_bytes = nvme.transfer_blocks * nvme.block_bytes,
		.flags = PIN_FILE_COMMANDS | (nvme.transfer_blocks - 1) << PIN_FILE_BLOCKS_SHIFT,
	};
	return 0;
}

/* Its name has neither its size nor its number. */
static int note_block_device(struct pinion_file *file, const struct stat *status)
{
	uint64_t bytes;

	if (ioctl(file->fd, BLKGETSIZE64, &bytes) < 0) {
		return -errno;
	}
	file->size_bytes = bytes;
	file->allocated_bytes = bytes;
	file->device = status->st_rdev;
	file->inode = 0; /* under whichever name */
	file->flags |= PIN_FILE_BLOCK_DEVICE;
	return 0;
}

static int adopt(struct pinion_file *file, int fd, uint32_t direct, uint32_t flags,
	struct pin_device_cache *cache)
{
	struct stat status;
	int rc = fstat(fd, &status) < 0 ? -errno : check_kind(&status);

	if (rc < 0) {
		close(fd);
		file->fd = -1;
		return rc;
	}
	if (S_ISCHR(status.st_mode)) {
		rc = adopt_namespace(file, fd, flags, &status);
		if (rc == 0) {
			count_way(cache, file->way);
		}
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
		.flags = flags,
	};
	if (S_ISBLK(status.st_mode)) {
		rc = note_block_device(file, &status);
		if (rc < 0) {
			pinion_file_close(file);
			return rc;
		}
	}
	if (direct != PINION_DIRECT_ALWAYS) {
		file->cached_percent = find_cached_percent(
			fd, file->size_bytes, cache == NULL || !cache->skips_cachestat);
	}
	choose_direct(file, direct, cache);
	count_way(cache, file->way);
	file->flags |= eviction_of(file, cache);
	if (needs_plain_reads(fd, &status)) {
		file->flags |= PIN_FILE_PLAIN;
	}
	if (file->allocated_bytes < file->size_bytes) {
		file->flags |= PIN_FILE_SPARSE;
	}
	return 0;
}

int pin_file_adopt(
	struct pinion_file *file, int fd, uint32_t direct, struct pin_device_cache *cache)
{
	return adopt(file, fd, direct, 0, cache);
}

int pin_file_adopt_with(struct pinion_file *file, int fd, const struct pinion_file_options *options,
	struct pin_device_cache *cache)
{
	bool writes = (options->flags & PINION_FILE_WRITE) != 0;
	int rc = adopt(file, fd, options->direct, writes ? PIN_FILE_WRITABLE : 0, cache);

	/* Who asks for the cache by name wants to find it there. */
	if (rc == 0 && options->direct == PINION_DIRECT_NEVER) {
		file->flags &= ~(uint32_t)(PIN_FILE_EVICT | PIN_FILE_DONTCACHE);
	}
	/*
	 * A ring lets go of it some time after its close. Of what was written
	 * that would be felt: it could not be executed meanwhile.
	 */
	if (rc == 0 && !writes) {
		file->private_ = (uint64_t)(uintptr_t)pin_file_record_create(&pin_host_linux);
	}
	return rc;
}

void pin_file_leave_direct(const struct pinion_file *file)
{
	int flags = fcntl(file->fd, F_GETFL);

	if (flags >= 0) {
		fcntl(file->fd, F_SETFL, flags & ~O_DIRECT);
	}
}

static int open_as(int folder_fd, const char *path, const struct open_how *how)
{
	long fd = how->resolve != 0 ? syscall(__NR_openat2, folder_fd, path, how, sizeof(*how))
				    : openat(folder_fd, path, (int)how->flags, (mode_t)how->mode);

	return fd < 0 ? -errno : (int)fd;
}

/*
 * Looks at what is to be opened: opening some devices has effects, and a FIFO's
 * reader or writer would notice.
 */
static int check_path(const struct pinion_file_options *options, const char *path)
{
	bool follows = (options->flags & PINION_FILE_NO_FOLLOW) == 0;
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | (follows ? 0 : O_NOFOLLOW),
		.resolve = options->resolve,
	};
	struct stat status;
	int fd = open_as(options->folder_fd, path, &how);
	int rc;

	if (fd < 0) {
		/* What does not exist can be made. */
		return fd == -ENOENT && (options->flags & PINION_FILE_CREATE) != 0 ? 0 : fd;
	}
	rc = fstat(fd, &status) < 0 ? -errno : 0;
	close(fd);
	if (rc < 0) {
		return rc;
	}
	return S_ISLNK(status.st_mode) ? -ELOOP : check_kind(&status);
}

/* As open_as(), for a path that may be longer than one call takes. */
static int open_any_length(
	const struct pinion_file_options *options, const char *path, const struct open_how *how)
{
	int rc;

	if (strlen(path) < PATH_MAX || options->folder_fd != AT_FDCWD || how->resolve != 0 ||
		(how->flags & O_CREAT) != 0) {
		rc = check_path(options, path);
		return rc < 0 ? rc : open_as(options->folder_fd, path, how);
	}
	rc = pin_file_check_kind(path);
	return rc < 0 ? rc : pin_open_long(path, (int)how->flags);
}

int pinion_file_open_with(
	struct pinion_file *file, const char *path, const struct pinion_file_options *options)
{
	struct pinion_file_options accepted;
	struct open_how how;
	int rc;

	if (file == NULL || path == NULL) {
		return -EINVAL;
	}
	rc = pin_file_options_accept(&accepted, options);
	if (rc < 0) {
		return rc;
	}
	file->fd = -1;
	how = pin_file_open_how(&accepted);
	rc = open_any_length(&accepted, path, &how);
	return rc < 0 ? rc : pin_file_adopt_with(file, rc, &accepted, NULL);
}

int pinion_file_open(struct pinion_file *file, const char *path, uint32_t direct)
{
	struct pinion_file_options options;

	pinion_file_options_init(&options);
	options.direct = direct;
	return pinion_file_open_with(file, path, &options);
}

int pinion_file_node(const struct pinion_file *file)
{
	int32_t node_index = pin_block_node("", file->device);

	return node_index >= 0 ? node_index : -ENODATA;
}

int pinion_file_resize(struct pinion_file *file, uint64_t size_bytes)
{
	int rc;

	if (size_bytes > INT64_MAX) {
		return -EFBIG;
	}
	do {
		rc = ftruncate(file->fd, (off_t)size_bytes);
	} while (rc < 0 && errno == EINTR);
	if (rc < 0) {
		return -errno;
	}
	file->size_bytes = size_bytes;
	return 0;
}

void pinion_file_close(struct pinion_file *file)
{
	if (file->fd >= 0) {
		pin_file_forget(file);
		close(file->fd);
		file->fd = -1;
	}
}

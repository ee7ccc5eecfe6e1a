/* SPDX-License-Identifier: MIT */
/*
 * Examines an open descriptor: type, size, cached part, alignments; and chooses
 * between O_DIRECT and the page cache.
 *
 * Opens by pinion_file_open() and by requests end here, and each scan's file.
 * Properties of a device are remembered for its next file.
 *
 * Invariant: a file is given to the caller complete, or not at all; a refused
 * property falls back to the page cache.
 */
#include "runtime/io/file.h"
#include "runtime/base/check.h"
#include "runtime/host/block_device.h"
#include "runtime/host/kernel.h"
#include "runtime/io/registered_files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)

#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546u /* as in newer <linux/magic.h> */
#endif
#ifndef CONFIGFS_MAGIC
#define CONFIGFS_MAGIC 0x62656570u /* fs/configfs/mount.c */
#endif

enum {
	/*
	 * From this share of cached pages on, the page cache is the faster way.
	 */
	CACHED_PERCENT_MIN = 50,
	CACHED_UNKNOWN = 255,
	/*
	 * After this number of files in a row that were in the page cache the
	 * next is taken to be there. A wrong guess costs some read-ahead.
	 */
	ASSUMED_AFTER = 16,
};

/* Where the kernel reports no share: whether the first byte is cached. */
static uint32_t probe_cached(int fd)
{
	uint8_t byte;
	struct iovec vector = {.iov_base = &byte, .iov_len = 1};
	ssize_t rc;

	/* A miss would start read-ahead; RANDOM keeps that to one page. */
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	rc = preadv2(fd, &vector, 1, 0, RWF_NOWAIT);
	PIN_DCHECK(rc <= 1);
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

/* Holes are in no page, so a file that has any is not assumed. */
static bool may_assume_cached(
	const struct pinion_file *file, uint64_t bytes_max, const struct pin_device_cache *cache)
{
	return cache != NULL && cache->cached_row >= ASSUMED_AFTER && file->size_bytes > 0 &&
		file->size_bytes <= bytes_max && file->allocated_bytes >= file->size_bytes;
}

static void note_cached(struct pin_device_cache *cache, uint32_t percent)
{
	if (cache == NULL) {
		return;
	}
	PIN_DCHECK(cache->cached_row <= ASSUMED_AFTER);
	if (percent < 100 || percent == CACHED_UNKNOWN) {
		cache->cached_row = 0;
	} else if (cache->cached_row < ASSUMED_AFTER) {
		cache->cached_row++;
	}
}

/* How much of it is in the page cache. */
static void ask_cached(struct pinion_file *file, struct pin_device_cache *cache)
{
	file->cached_percent = find_cached_percent(
		file->fd, file->size_bytes, cache == NULL || !cache->skips_cachestat);
	note_cached(cache, file->cached_percent);
}

void pin_file_correct(struct pinion_file *file, int64_t got, struct pin_device_cache *cache)
{
	PIN_CHECK((file->flags & PIN_FILE_ASSUMED) != 0);
	PIN_DCHECK(!file->is_direct && got < (int64_t)file->size_bytes);
	file->flags &= ~(uint32_t)PIN_FILE_ASSUMED;
	if (got == -EAGAIN) {
		/*
		 * What the attempt has begun to read is in the cache without
		 * being marked, so that it takes a DONTNEED.
		 */
		file->cached_percent = 0;
		file->flags |= PIN_FILE_EVICT;
	} else if (got > 0) {
		file->cached_percent = (uint32_t)((uint64_t)got * 100 / file->size_bytes);
	} else {
		ask_cached(file, cache); /* RWF_NOWAIT says nothing here */
	}
	cache->cached_row = 0;
}

static bool is_namespace(const struct stat *status)
{
	return S_ISCHR(status->st_mode) && pin_nvme_is("", status->st_rdev);
}

int pin_file_check_status(const struct stat *status)
{
	if (S_ISREG(status->st_mode) || S_ISBLK(status->st_mode) || is_namespace(status)) {
		return 0;
	}
	return S_ISDIR(status->st_mode) ? -EISDIR : -ENOTSUP;
}

int pin_file_check_directory(const struct stat *status)
{
	return S_ISDIR(status->st_mode) ? 0 : -ENOTDIR;
}

/* A file of no size may be generated as it is read, as in /proc. */
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

/*
 * Any doubt leaves the file to the page cache: alignments that are unknown or
 * larger than a page, or a descriptor that refuses the flag.
 */
static void choose_direct(struct pinion_file *file, uint32_t direct, struct pin_device_cache *cache)
{
	struct pin_device device;
	int flags;

	PIN_DCHECK(!file->is_direct);
	file->way = wanted_way(file, direct);
	if (file->way != PINION_WAY_DIRECT) {
		return;
	}
	file->way = PINION_WAY_UNABLE;
	device = pin_device_find(
		cache, file->fd, file->device, (file->flags & PIN_FILE_BLOCK_DEVICE) != 0);
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
	PIN_CHECK(pin_is_power_of_two(file->memory_align_bytes)); /* requests are cut by these */
	PIN_CHECK(pin_is_power_of_two(file->offset_align_bytes));
}

static bool is_made_up(uint32_t type)
{
	static const uint32_t types[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC, TRACEFS_MAGIC,
		DEBUGFS_MAGIC, SECURITYFS_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
		CONFIGFS_MAGIC, SELINUX_MAGIC, PSTOREFS_MAGIC, EFIVARFS_MAGIC};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (types[i] == type) {
			return true;
		}
	}
	return false;
}

/*
 * Sets flags that follow from the file system. io_uring goes on by itself after
 * a short read, at the position that the file system reports. FUSE does not
 * report it when its server has asked for direct I/O, so the same bytes come
 * again (seen with 6.18; fuse_direct_IO).
 */
static uint32_t system_flags(int fd, const struct stat *status)
{
	struct statfs system;

	/*
	 * Neither FUSE nor virtual file systems have a device of their own; all
	 * others are spared the call, which a server may fail.
	 */
	if (major(status->st_dev) != 0) {
		return 0;
	}
	if (fstatfs(fd, &system) < 0 || (uint32_t)system.f_type == FUSE_SUPER_MAGIC) {
		return PIN_FILE_PLAIN;
	}
	return is_made_up((uint32_t)system.f_type) ? PIN_FILE_MADE_UP : 0;
}

/*
 * Whether the file system drops what it reads if asked to; those that do not
 * know it refuse. A read past the end asks without reading.
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

	PIN_DCHECK(file->cached_percent <= 100 || file->cached_percent == CACHED_UNKNOWN);
	if (file->cached_percent != 0 || file->is_direct) {
		return 0;
	}
	return PIN_FILE_EVICT |
		(may_ask && takes_dontcache(file->fd, file->size_bytes) ? PIN_FILE_DONTCACHE : 0);
}

_Static_assert(PINION_WAY_UNABLE + 1 == PIN_METER_WAYS, "one for each way");

static void count_way(const struct pin_device_cache *cache, uint32_t way)
{
	PIN_CHECK(way < PIN_METER_WAYS);
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
		return rc;
	}
	PIN_CHECK(pin_is_power_of_two(nvme.block_bytes));
	PIN_CHECK(nvme.transfer_blocks > 0);
	PIN_CHECK(nvme.transfer_blocks <= 1u << (32 - PIN_FILE_BLOCKS_SHIFT)); /* fits its bits */
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
	PIN_CHECK(bytes <= INT64_MAX); /* offsets are signed */
	file->size_bytes = bytes;
	file->allocated_bytes = bytes;
	file->device = status->st_rdev;
	file->inode = 0; /* under whichever name */
	file->flags |= PIN_FILE_BLOCK_DEVICE;
	return 0;
}

static int adopt_directory(
	struct pinion_file *file, int fd, uint32_t flags, const struct stat *status)
{
	*file = (struct pinion_file){
		.fd = fd,
		.memory_align_bytes = 1,
		.offset_align_bytes = 1,
		.device = status->st_dev,
		.inode = status->st_ino,
		.cached_percent = CACHED_UNKNOWN,
		.way = PINION_WAY_UNABLE,
		.flags = flags,
	};
	return pin_file_check_directory(status);
}

/* What a descriptor is adopted for. */
struct wanted {
	uint32_t direct;
	uint32_t flags;
	uint64_t assumed_bytes_max;
};

static int64_t ns_of(const struct timespec *time)
{
	return (int64_t)time->tv_sec * NS_PER_S + time->tv_nsec;
}

/* Fills `file` for the descriptor, which stays open whatever comes out. */
static int fill(struct pinion_file *file, int fd, const struct wanted *wanted,
	struct pin_device_cache *cache)
{
	uint32_t direct = wanted->direct;
	uint32_t flags = wanted->flags;
	struct stat status;
	int rc = fstat(fd, &status) < 0 ? -errno : 0;

	if (rc == 0 && (flags & PIN_FILE_DIRECTORY) != 0) {
		return adopt_directory(file, fd, flags, &status);
	}
	rc = rc < 0 ? rc : pin_file_check_status(&status);
	if (rc < 0) {
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
		.modified_ns = S_ISREG(status.st_mode) ? ns_of(&status.st_mtim) : 0,
		.changed_ns = S_ISREG(status.st_mode) ? ns_of(&status.st_ctim) : 0,
		.device = status.st_dev,
		.inode = status.st_ino,
		.cached_percent = CACHED_UNKNOWN,
		.flags = flags,
	};
	if (S_ISBLK(status.st_mode)) {
		rc = note_block_device(file, &status);
		if (rc < 0) {
			return rc;
		}
	}
	PIN_CHECK(status.st_size >= 0);
	if (direct == PINION_DIRECT_AUTO &&
		may_assume_cached(file, wanted->assumed_bytes_max, cache)) {
		file->cached_percent = 100;
		file->flags |= PIN_FILE_ASSUMED;
	} else if (direct != PINION_DIRECT_ALWAYS) {
		ask_cached(file, cache);
	}
	choose_direct(file, direct, cache);
	count_way(cache, file->way);
	file->flags |= eviction_of(file, cache);
	file->flags |= system_flags(fd, &status);
	if (file->allocated_bytes < file->size_bytes) {
		file->flags |= PIN_FILE_SPARSE;
	}
	return 0;
}

static int adopt(struct pinion_file *file, int fd, const struct wanted *wanted,
	struct pin_device_cache *cache)
{
	int rc = fill(file, fd, wanted, cache);

	if (rc < 0) {
		close(fd);
		file->fd = -1;
	}
	return rc;
}

int pin_file_adopt(struct pinion_file *file, int fd, uint32_t direct, uint64_t assumed_bytes_max,
	struct pin_device_cache *cache)
{
	struct wanted wanted = {.direct = direct, .assumed_bytes_max = assumed_bytes_max};

	return adopt(file, fd, &wanted, cache);
}

void pin_file_leave_direct(const struct pinion_file *file)
{
	int flags = fcntl(file->fd, F_GETFL);

	if (flags >= 0) {
		fcntl(file->fd, F_SETFL, flags & ~O_DIRECT);
	}
}

/* Notes the caller's options beyond the facts of the descriptor itself. */
static void note_options(struct pinion_file *file, const struct pinion_file_options *options)
{
	/*
	 * A caller that asks for the cache by name wants to find the data
	 * there.
	 */
	PIN_DCHECK(file->private_ == 0); /* a record would be lost */
	if (options->direct == PINION_DIRECT_NEVER) {
		PIN_DCHECK(!file->is_direct);
		file->flags &= ~(uint32_t)(PIN_FILE_EVICT | PIN_FILE_DONTCACHE);
	}
	/*
	 * A ring lets go of it some time after its close. For a file open for
	 * writing that would be felt: it could not be executed meanwhile.
	 */
	if ((options->flags & (PINION_FILE_WRITE | PINION_FILE_DIRECTORY)) == 0) {
		file->private_ = (uint64_t)(uintptr_t)pin_file_record_create(&pin_host_linux);
	}
}

static struct wanted wanted_by(const struct pinion_file_options *options)
{
	return (struct wanted){
		.direct = options->direct,
		.flags = ((options->flags & PINION_FILE_WRITE) != 0 ? PIN_FILE_WRITABLE : 0) |
			((options->flags & PINION_FILE_DIRECTORY) != 0 ? PIN_FILE_DIRECTORY : 0),
	};
}

int pin_file_adopt_with(struct pinion_file *file, int fd, const struct pinion_file_options *options,
	struct pin_device_cache *cache)
{
	struct wanted wanted = wanted_by(options);
	int rc = adopt(file, fd, &wanted, cache);

	if (rc == 0) {
		note_options(file, options);
	}
	return rc;
}

/*
 * A descriptor that has O_DIRECT set is examined through the cache first, and
 * keeps or loses the flag by the result.
 */
int pin_file_take(struct pinion_file *file, int fd, const struct pinion_file_options *options,
	int status_flags)
{
	bool was_direct = (status_flags & O_DIRECT) != 0;
	struct pinion_file filled = {.fd = fd};
	struct wanted wanted = wanted_by(options);
	int rc;

	/* The probes read through the cache; then O_DIRECT is set or not. */
	if (was_direct) {
		pin_file_leave_direct(&filled);
	}
	rc = fill(&filled, fd, &wanted, NULL);
	if (rc < 0) {
		if (was_direct) {
			fcntl(fd, F_SETFL, status_flags);
		}
		return rc;
	}
	note_options(&filled, options);
	*file = filled;
	return 0;
}

int pinion_file_node(const struct pinion_file *file)
{
	int32_t node_index = pin_block_node("", file->device);

	return node_index >= 0 ? node_index : -ENODATA;
}

/* A plain call: rare, short, and not worth a request. */
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

/* SPDX-License-Identifier: MIT */
/*
 * Finding out how an open file is best read: size, whether its data is cached,
 * whether O_DIRECT works. file_device.h has what holds for a whole file system;
 * what differs from file to file is asked each time.
 */
#ifndef PIN_IO_FILE_H
#define PIN_IO_FILE_H

#include "runtime/base/base.h"
#include "runtime/io/file_device.h"

#include <pinion/file.h>
#include <stdbool.h>
#include <sys/stat.h>

/* Bits of pinion_file.flags. */
enum {
	/*
	 * Nothing of it was cached: what a buffered read brings in is dropped
	 * again, by a DONTNEED behind it where there is no better way.
	 */
	PIN_FILE_EVICT = 1,
	/* Fewer blocks than its size needs: it has holes. */
	PIN_FILE_SPARSE = 2,
	/* Open for writing: its size may be another by now. */
	PIN_FILE_WRITABLE = 4,
	/*
	 * On FUSE: a ring may hand over wrong bytes where a read comes out
	 * short, so it is read by plain calls.
	 */
	PIN_FILE_PLAIN = 8,
	/* With EVICT: its file system drops it by itself, if asked to. */
	PIN_FILE_DONTCACHE = 16,
	/*
	 * An NVMe namespace's character device: read by commands,
	 * nvme_command.h.
	 */
	PIN_FILE_COMMANDS = 32,
	/* The file is a block device: its name does not tell its size. */
	PIN_FILE_BLOCK_DEVICE = 64,
	/*
	 * On procfs, sysfs and their like: the kernel makes it up as it is
	 * read, and it may have no end, whatever size it claims (/proc/kcore).
	 */
	PIN_FILE_MADE_UP = 128,
	/* From this bit on, with COMMANDS: blocks of a command, less one. */
	PIN_FILE_BLOCKS_SHIFT = 16,
};

/*
 * Whether that can be opened as a file: 0 for a regular one, a block device and
 * an NVMe namespace; -EISDIR, or -ENOTSUP for anything else.
 */
int pin_file_check_status(const struct stat *status);

/*
 * Fills `file` for an open descriptor, which it takes over; on failure the
 * descriptor is closed. `cache` may be NULL. Errors as pinion_file_open().
 */
int pin_file_adopt(
	struct pinion_file *file, int fd, uint32_t direct, struct pin_device_cache *cache);

/* The same for one that was opened as `options` say, which were accepted. */
int pin_file_adopt_with(struct pinion_file *file, int fd, const struct pinion_file_options *options,
	struct pin_device_cache *cache);

/*
 * The same for a descriptor of the caller's, with what F_GETFL says of it. On
 * failure it stays the caller's, and `file` is as it was.
 */
int pin_file_take(struct pinion_file *file, int fd, const struct pinion_file_options *options,
	int status_flags);

/* With COMMANDS: so many blocks a command may have. */
static inline uint32_t pin_file_command_blocks(const struct pinion_file *file)
{
	return (file->flags >> PIN_FILE_BLOCKS_SHIFT) + 1;
}

/* Leaves O_DIRECT for this descriptor, for all who use it. */
void pin_file_leave_direct(const struct pinion_file *file);

#endif

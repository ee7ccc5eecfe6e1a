/* SPDX-License-Identifier: MIT */
/*
 * Finds out how to read an open file best: its size, whether its data is
 * cached, whether O_DIRECT works. Properties of a whole file system are kept;
 * those of a file are asked for each time.
 */
#ifndef PIN_IO_FILE_H
#define PIN_IO_FILE_H

#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/base/metrics.h"

#include <linux/openat2.h>
#include <pinion/file.h>
#include <stdbool.h>
#include <sys/stat.h>

/* ---- refusals ---- */

/*
 * Why a request cannot be submitted, in words: which field, which value, what
 * it may be. Checks that refuse take a buffer for the words, NULL on the hot
 * path; a caller that was refused and has a log asks once more with a buffer.
 */

struct pin_refusal {
	char text[224];
};

/* Writes the words, unless `why` is NULL. Returns `error`. */
int pin_refuse(struct pin_refusal *why, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- file systems ---- */

/*
 * The needs of a device for reads past the page cache: alignments, and how much
 * it transfers at once. They hold for all files of a file system, so a worker
 * asks once per device and remembers them.
 */

struct pin_device {
	uint64_t device;
	uint32_t memory_align_bytes; /* 0: no O_DIRECT here */
	uint32_t offset_align_bytes;
	uint32_t transfer_bytes; /* at once; 0: not known */
};

#define PIN_DEVICES_REMEMBERED 16u

/* [own] One worker's memory of devices; the oldest is forgotten first. */
struct pin_device_cache {
	struct pin_device devices[PIN_DEVICES_REMEMBERED];
	uint32_t count;
	uint32_t next;
	struct pin_meter *meter; /* counts the choice; NULL: not counted */
	uint32_t cached_row;	 /* files in a row that were all in the page cache */
	/*
	 * What the kernel may have and is not asked, see host/kernel.h.
	 */
	bool skips_dioalign;
	bool skips_cachestat;
	bool skips_dontcache;
};

/*
 * Of the device with that number, which holds the file of `fd`. A block device
 * that is the file itself (`is_file`) is asked anew: what holds for it need not
 * hold for the file system on it. `remembered` may be NULL.
 */
struct pin_device pin_device_find(
	struct pin_device_cache *remembered, int fd, uint64_t number, bool is_file);

/* ---- files ---- */

/* Bits of pinion_file.flags. */
enum {
	/*
	 * None of it was cached: pages that a buffered read brings in are
	 * dropped again, by a DONTNEED after it where there is no better way.
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
	 * nvme_command.c.
	 */
	PIN_FILE_COMMANDS = 32,
	/* The file is a block device: its name does not give its size. */
	PIN_FILE_BLOCK_DEVICE = 64,
	/*
	 * On procfs, sysfs and their like: the kernel makes it up as it is
	 * read, and it may have no end, whatever size it claims (/proc/kcore).
	 */
	PIN_FILE_MADE_UP = 128,
	/* A directory: nothing of it is read or written. */
	PIN_FILE_DIRECTORY = 256,
	/* Taken to be in the page cache, as others before it were. */
	PIN_FILE_ASSUMED = 512,
	/* From this bit on, with COMMANDS: blocks of a command, less one. */
	PIN_FILE_BLOCKS_SHIFT = 16,
};

/*
 * Whether that can be opened as a file: 0 for a regular one, a block device and
 * an NVMe namespace; -EISDIR, or -ENOTSUP for anything else.
 */
int pin_file_check_status(const struct stat *status);

/* The same for PINION_FILE_DIRECTORY: 0, or -ENOTDIR. */
int pin_file_check_directory(const struct stat *status);

/*
 * The same for a path, by accepted options. 0 also if an open would make the
 * file. Opens the name alone, so that neither a device nor the other end of a
 * FIFO notices. Other errors are those of openat2(2).
 */
int pin_file_check_path(const struct pinion_file_options *options, const char *path);

/*
 * Fills `file` for an open descriptor, which it takes over; on failure the
 * descriptor is closed. `cache` may be NULL. Errors as pinion_file_open().
 *
 * If many files before it were in the page cache, a file of up to
 * `assumed_bytes_max` bytes is assumed to be there, too, and the kernel is not
 * asked. Its reader first tries to read all of it with RWF_NOWAIT, and passes a
 * result that is not the whole file to pin_file_correct(). 0: none is assumed.
 */
int pin_file_adopt(struct pinion_file *file, int fd, uint32_t direct, uint64_t assumed_bytes_max,
	struct pin_device_cache *cache);

/*
 * With ASSUMED: the file is not in the page cache. `got`: the bytes that were,
 * from its start, or a negative errno. The attempt has made the kernel read the
 * rest into the cache: if the file's first byte was not there, its pages are
 * dropped when it has been read.
 */
void pin_file_correct(struct pinion_file *file, int64_t got, struct pin_device_cache *cache);

/* As pin_file_adopt(), for a descriptor opened with accepted `options`. */
int pin_file_adopt_with(struct pinion_file *file, int fd, const struct pinion_file_options *options,
	struct pin_device_cache *cache);

/*
 * The same for a descriptor of the caller's, with what F_GETFL says of it. On
 * failure it stays the caller's, and `file` is as it was.
 */
int pin_file_take(struct pinion_file *file, int fd, const struct pinion_file_options *options,
	int status_flags);

/* With COMMANDS: the most blocks a command may have. */
static inline uint32_t pin_file_command_blocks(const struct pinion_file *file)
{
	PIN_DCHECK((file->flags & PIN_FILE_COMMANDS) != 0);
	return (file->flags >> PIN_FILE_BLOCKS_SHIFT) + 1;
}

/* Leaves O_DIRECT for this descriptor, for all who use it. */
void pin_file_leave_direct(const struct pinion_file *file);

/* ---- opening ---- */

/*
 * Opens files: checks the caller's options, makes the kernel's of them, and
 * opens no file on which an open has an effect.
 */

/*
 * Fills *out from what the caller gave, NULL or another version's struct.
 * Errors as pinion_file_open_with(); `why` may be NULL.
 */
int pin_file_options_accept(struct pinion_file_options *out,
	const struct pinion_file_options *given, struct pin_refusal *why);

/* The arguments of openat2(2); `options` were accepted. */
struct open_how pin_file_open_how(const struct pinion_file_options *options);

/* Flags with which a file that may turn out to be anything is opened. */
int pin_file_open_flags(bool follow_links);

/*
 * Looks at what a path leads to without opening it: 0 for a regular file, a
 * directory, a block device and an NVMe namespace, -ENOTSUP for anything else,
 * whose type bits are stored; other errors as stat(2).
 */
int pin_file_check_kind(const char *path, uint32_t *out_mode);

/* The same for a path beneath a directory (host/long_path.h). */
int pin_file_check_kind_beneath(int directory_fd, const char *path, uint32_t *out_mode);

#endif

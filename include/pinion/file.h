/* SPDX-License-Identifier: MIT */
/*
 * An open regular file or block device, with the facts that reading and writing
 * it past the page cache needs: alignment, size, and whether O_DIRECT works
 * here at all. It may also be an NVMe namespace, by its character device
 * /dev/ngXnY: this is read by commands, always past the cache, and not written;
 * or, where PINION_FILE_DIRECTORY asks for it, a directory.
 */
#ifndef PINION_FILE_H
#define PINION_FILE_H

#include <pinion/version.h>
#include <stdint.h>

PINION_BEGIN_DECLS

/* Whether reads and writes go past the page cache. */
enum pinion_direct {
	/*
	 * Past the cache unless the file's data is already in it: O_DIRECT on
	 * cached data is several times slower than reading the cache. An empty
	 * file is written through the cache. So the state of the cache at the
	 * open decides whether requests have to be aligned: use NEVER if yours
	 * are not.
	 */
	PINION_DIRECT_AUTO = 0,
	PINION_DIRECT_ALWAYS = 1, /* wherever the file system allows it */
	PINION_DIRECT_NEVER = 2,
};

/* How a file is read and written, and why so. */
enum pinion_way {
	PINION_WAY_UNKNOWN = 0, /* filled in by hand */
	PINION_WAY_DIRECT = 1,	/* past the cache */
	/* The others through the cache: */
	PINION_WAY_ASKED = 2,  /* PINION_DIRECT_NEVER */
	PINION_WAY_CACHED = 3, /* half of the file or more was there */
	PINION_WAY_EMPTY = 4,  /* the file was empty, or seemed to be */
	PINION_WAY_UNABLE = 5, /* there is no O_DIRECT, or none that fits 4096 bytes */
};

/*
 * Shape: embeddable; every field is set by pinion_file_open() and may be read.
 * For a descriptor that the program has from elsewhere call
 * pinion_file_from_fd(). A program that fills the struct by hand zeroes it
 * first, then sets `fd` and both alignments; reads and writes refuse a file
 * without alignments (-EINVAL), and a pipe or socket (-ESPIPE), for which each
 * submission asks the kernel.
 * Owns: the descriptor, until pinion_file_close(). Of several copies close one,
 * and use none from then on.
 * Since: 0.1
 */
struct pinion_file {
	int fd;
	/*
	 * Nonzero: reads and writes need the alignments below and bypass the
	 * page cache.
	 */
	uint32_t is_direct;
	/*
	 * Alignment of memory and of offset and length, bytes; 1 when not
	 * direct.
	 */
	uint32_t memory_align_bytes;
	uint32_t offset_align_bytes;
	/*
	 * Size when it was opened. 0 also for files that only look empty
	 * (/proc).
	 */
	uint64_t size_bytes;
	/*
	 * Bytes of it that occupy disk space; less than size_bytes means holes.
	 */
	uint64_t allocated_bytes;
	/*
	 * Device of the file's file system, and its number there. Of a block
	 * device its own number, and 0; of a namespace its block device, and
	 * its number there.
	 */
	uint64_t device;
	uint64_t inode;
	/*
	 * Share of it found in the page cache when opened, 0 … 100, or 255:
	 * unknown. A scan assumes that a small file is cached, 100, if those
	 * before it were, until it reads it.
	 */
	uint32_t cached_percent;
	uint32_t flags;
	uint32_t way; /* enum pinion_way */
	/*
	 * Where it is direct: the most bytes of one transfer of its device, a
	 * multiple of the size that the device prefers; longer transfers are
	 * split on their way there. 0: not known, as for file systems on
	 * several devices.
	 */
	uint32_t transfer_bytes;
	uint64_t private_; /* zero in a struct that is filled in by hand */
	/*
	 * Times of its last modification and change when it was opened,
	 * nanoseconds since 1970; 0: it is no regular file.
	 */
	int64_t modified_ns;
	int64_t changed_ns;
};

enum pinion_file_flags {
	PINION_FILE_READ = 1,
	PINION_FILE_WRITE = 2,
	PINION_FILE_CREATE = 4,	    /* unless it exists */
	PINION_FILE_EXCLUSIVE = 8,  /* with CREATE: -EEXIST if it does */
	PINION_FILE_TRUNCATE = 16,  /* to no bytes; with WRITE */
	PINION_FILE_NO_FOLLOW = 32, /* -ELOOP: the last component is a link */
	/*
	 * A directory, or -ENOTDIR; with READ alone, which reads nothing. It
	 * serves PINION_OP_FSYNC, _STATX and _CLOSE, and its `fd` as a
	 * directory_fd.
	 */
	PINION_FILE_DIRECTORY = 64,
};

/*
 * How to open a file.
 *
 * Shape: size-versioned; only ever appended to. Initialise with
 * pinion_file_options_init(), then change fields.
 * Since: 0.1
 */
struct pinion_file_options {
	/*
	 * Bytes of this struct the caller knows. Set by
	 * pinion_file_options_init().
	 */
	uint32_t size;
	uint32_t direct; /* enum pinion_direct; default auto */
	uint32_t flags;	 /* enum pinion_file_flags; default READ */
	uint32_t mode;	 /* of a new file, less the umask; default 0666 */
	/* Start of a relative path; default AT_FDCWD, the working directory. */
	int32_t directory_fd;
	uint32_t reserved; /* zero */
	/*
	 * RESOLVE_* of openat2(2), to keep a path within a directory or off
	 * links. Default 0: no restriction.
	 */
	uint64_t resolve;
};

/*
 * Writes every default; the macro passes the size this program was compiled
 * with.
 *
 * Context: any thread; never blocks.
 * Since: 0.1
 */
PINION_API void pinion_file_options_init_sized(struct pinion_file_options *options, uint32_t size);
#define pinion_file_options_init(options) \
	pinion_file_options_init_sized((options), (uint32_t)sizeof(struct pinion_file_options))

/*
 * Opens `path` as `options` say and finds out how to read and write it. NULL
 * options are those of pinion_file_options_init().
 *
 * Units: `path` may be longer than PATH_MAX if it starts at the working
 * directory, without CREATE and `resolve`.
 * Context: any thread; blocks.
 * Errors: those of openat2(2): -EXDEV, -ELOOP: `resolve` forbids the path.
 * -EISDIR: a directory, without PINION_FILE_DIRECTORY. -ENOTSUP: not a regular
 * file, block device or NVMe namespace (FIFO, socket, other device); it is
 * never opened in a way that blocks. -EBUSY: a mounted block device to be
 * written, on some kernels. -ENXIO, -ENOMEDIUM: a block device without a
 * medium. -EROFS: a namespace, to be written. -EMEDIUMTYPE: a namespace whose
 * blocks have metadata or are larger than 4096 bytes; its block device,
 * /dev/nvmeXnY, may be readable. -EACCES: also a namespace that this user may
 * not send commands; -EIO: a namespace that does not identify itself. -EINVAL:
 * an unknown flag or value, or flags that contradict each other. -E2BIG: the
 * struct is newer than the library and an unknown field is set. -ENOSYS:
 * `resolve` on a kernel without openat2, before 5.6. RESOLVE_BENEATH |
 * RESOLVE_NO_SYMLINKS without CREATE works there, too, and where a filter
 * refuses openat2.
 * Since: 0.1
 */
PINION_API int pinion_file_open_with(
	struct pinion_file *file, const char *path, const struct pinion_file_options *options);

/*
 * Opens `path` for reading and finds out how to read it: the short form of
 * pinion_file_open_with().
 *
 * Units: `direct` is one of enum pinion_direct. `path` may be longer than
 * PATH_MAX. Symbolic links in the last component are followed.
 * Context: any thread; blocks.
 * Errors: those of open(2). -EISDIR: a directory. -ENOTSUP: not a regular file,
 * block device or NVMe namespace (FIFO, socket, other device); it is never
 * opened in a way that blocks or has effects. -EMEDIUMTYPE, -EACCES, -EIO: of a
 * namespace, as pinion_file_open_with().
 * Source: statx(2) STATX_DIOALIGN, BLKSSZGET, cachestat(2).
 * Since: 0.1
 */
PINION_API int pinion_file_open(struct pinion_file *file, const char *path, uint32_t direct);

/*
 * Makes a file of an open descriptor, and finds out how to read and write it,
 * as pinion_file_open_with() does: alignment, size, whether O_DIRECT works.
 * `options->direct` chooses the path; `flags` may hold READ and WRITE alone and
 * say what the file is for. NULL: direct auto, and the descriptor's own mode.
 * `mode` and `directory_fd` have no effect.
 *
 * Owns: on success the descriptor belongs to `file` until pinion_file_close().
 * On failure it stays the caller's, as it was, and `file` is not written.
 * O_DIRECT of the open file description is set or cleared to match `is_direct`;
 * descriptors duplicated from it share that flag.
 * Context: any thread; blocks.
 * Errors: -EBADF: not an open descriptor, one of O_PATH, or not open for the
 * use that `flags` ask for. -ESPIPE: a pipe, FIFO or socket: a read of it would
 * wait for its full length. -EISDIR: a directory. -ENOTSUP: not a regular file,
 * block device or NVMe namespace. -EINVAL: an unknown flag or value, a flag
 * that only an open can serve, `resolve`, or WRITE with O_APPEND, where writes
 * ignore their offset. -EROFS, -EMEDIUMTYPE, -EACCES, -EIO: of a namespace, as
 * pinion_file_open_with(). -E2BIG: as there.
 * Source: statx(2) STATX_DIOALIGN, fcntl(2) F_GETFL.
 * Since: 0.1
 */
PINION_API int pinion_file_from_fd(
	struct pinion_file *file, int fd, const struct pinion_file_options *options);

/*
 * Returns the NUMA node of the file's device: workers with CPUs and memory
 * there read it without crossing between sockets. If all files of a runtime are
 * on that device, `numactl --cpunodebind=NODE` in front of the program keeps
 * all workers there.
 *
 * Units: the index of the node, as in /sys/devices/system/node.
 * Context: any thread; blocks, for some 50 us; asks anew each time.
 * Errors: -ENODATA: not known, as where the machine has one node only, and for
 * file systems on several devices or none.
 * Source: numa_node in sysfs, of the disk's controller or its parents.
 * Since: 0.1
 */
PINION_API int pinion_file_node(const struct pinion_file *file);

/*
 * Cuts or extends a file that is open for writing, and updates `size_bytes`.
 * Writes past the cache are whole blocks: this removes the rest of the last
 * one.
 *
 * Context: any thread, with no request on the file in flight; blocks.
 * Errors: those of ftruncate(2).
 * Since: 0.1
 */
PINION_API int pinion_file_resize(struct pinion_file *file, uint64_t size_bytes);

/*
 * Closes the file; a file whose open failed (fd < 0) is accepted. A struct that
 * was never opened needs `.fd = -1` for that: 0 is a descriptor.
 *
 * Requests on it have to be over, since the number of its descriptor may soon
 * be another file's. A file that was open for reading alone and was read often
 * may be registered with workers' rings: a worker removes it when it next reads
 * its inbox, for which it is woken. Until then the kernel regards the file as
 * open: its locks of flock(2) hold, and its file system is in use.
 *
 * Context: any thread.
 * Since: 0.1
 */
PINION_API void pinion_file_close(struct pinion_file *file);

PINION_END_DECLS

#endif

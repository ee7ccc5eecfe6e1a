/* SPDX-License-Identifier: MIT */
/*
 * A scan: many files, each read as windows and handed to the user's engine,
 * as many at once as the machine can use. Files and trees are added from
 * outside while earlier ones are being read.
 *
 * A window carries new bytes, and in front of them a prefix: the bytes before
 * it, so that a match across a border is seen whole. Small files are one
 * window.
 */
#ifndef PINION_SCAN_H
#define PINION_SCAN_H

#include <pinion/file.h>
#include <pinion/runtime.h>
#include <pinion/walk.h>
#include <stdbool.h>

PINION_BEGIN_DECLS

struct pinion_scan;

enum pinion_scan_order {
	/*
	 * Windows of one file may be handled at the same time on several
	 * workers.
	 */
	PINION_SCAN_PARALLEL = 0,
	/*
	 * Windows of one file come one after the other, from its start to its
	 * end.
	 */
	PINION_SCAN_IN_ORDER = 1,
};

/* In which order the files of a tree are added. */
enum pinion_scan_walk_order {
	/*
	 * Any: tasks of the runtime list directories, many at once.
	 */
	PINION_SCAN_WALK_ANY = 0,
	/*
	 * Directories depth first, as the file system lists them: the adding
	 * thread lists them alone.
	 */
	PINION_SCAN_WALK_LISTED = 1,
	/*
	 * By path, byte by byte: PINION_WALK_BY_PATH of walk.h. The adding
	 * thread lists alone; files are read many at once all the same.
	 */
	PINION_SCAN_WALK_BY_PATH = 2,
	/*
	 * By place on the device: some 1000 files at a time, taken as LISTED
	 * has them, are sorted by the address of their first extent (FIEMAP),
	 * files without one first; by inode where the file system gives no
	 * addresses. The adding thread opens each file for that.
	 */
	PINION_SCAN_WALK_BY_EXTENT = 3,
};

/* The outcome of a path. */
enum pinion_scan_outcome {
	PINION_SCAN_DONE = 0,	   /* the engine got every byte, or has enough */
	PINION_SCAN_FAILED = 1,	   /* `error` says why; windows read before were delivered */
	PINION_SCAN_SKIPPED = 2,   /* symbolic link or special file */
	PINION_SCAN_CANCELLED = 3, /* the scan was cancelled first */
	PINION_SCAN_IGNORED = 4,   /* left out by `skip_ignored` or `filter` */
};

/*
 * A file while it is being scanned.
 *
 * Owns: the library, from the `open` to the `close` callback. `path` has no
 * limit on its length. `user` points to `file_user_bytes` bytes of the
 * caller's, aligned to 64, zeroed before each `open`.
 * Since: 0.1
 */
struct pinion_scan_file {
	const char *path;
	size_t path_bytes;
	/* Counts up from 0 in the order in which paths were added. */
	uint64_t sequence;
	struct pinion_file file;
	void *user;
	/*
	 * In a report with -ENOTSUP: the type bits of st_mode (S_IFIFO, …) as
	 * the walk saw them; 0: not known, as the file became special just
	 * then. Otherwise 0.
	 */
	uint32_t mode;
	uint32_t reason; /* in a report as IGNORED: enum pinion_walk_reason */
	/*
	 * 0 at `open`, which may set it to where the first window is to begin:
	 * a multiple of 4096 below `file.size_bytes`, else the file fails with
	 * -EINVAL. The first window has index 0, and a prefix as any other.
	 */
	uint64_t start_offset_bytes;
};

/*
 * A range that could not be read, although its neighbours could: whole pages of
 * 4096 bytes, as far as they are in the window it is reported with.
 * Since: 0.1
 */
struct pinion_gap {
	uint64_t offset_bytes; /* in the file */
	uint64_t length_bytes;
	int32_t error; /* negative errno of the first page */
	uint32_t reserved;
};

/*
 * Shape: `bytes` holds `prefix_bytes` old bytes, then new ones, up to
 * `length_bytes` in all. bytes[0] is at `base_offset_bytes` of the file. The
 * prefix is min(overlap_bytes, bytes before it) long. There may be no new
 * bytes: where a file shrank, or after the last byte of a file whose size was
 * not known.
 * Since: 0.1
 */
struct pinion_window {
	const uint8_t *bytes;
	size_t length_bytes;
	size_t prefix_bytes;
	uint64_t base_offset_bytes;
	uint64_t index; /* 0, 1, … in file order, without gaps */
	bool is_last;	/* the file ends where this window ends */
	/*
	 * A hole in a sparse file: the new bytes are zeros that take no space,
	 * and so are at least `overlap_bytes` before them. `bytes` is NULL, the
	 * window may be longer than others, and `prefix_bytes` is 0. Only with
	 * `report_holes`.
	 */
	bool is_hole;
	/*
	 * Ranges of the window, prefix included, that could not be read, in the
	 * order of their offsets. `bytes` holds zeros there, which are not the
	 * file's: an engine restarts after each gap and reports nothing that
	 * touches it. A gap in the prefix was new in an earlier window. Only
	 * with `report_gaps`.
	 */
	const struct pinion_gap *gaps;
	size_t gap_count;
};

/*
 * Returned by `window` when it needs no more of the file, or by `open` when it
 * needs nothing of it: no window of it is read or delivered from then on, and
 * the file ends as if it had been read to its end. In parallel, windows whose
 * callback has begun by then go on.
 * Since: 0.1
 */
enum { PINION_SCAN_ENOUGH = 1 };

/*
 * Returned by `open` of an engine that reads this file as a stream: its windows
 * come in order, one after the other, whatever `order` is, so that state in
 * `user` may be kept from window to window. Other files are read as before.
 * Since: 0.1
 */
enum { PINION_SCAN_STREAM = 2 };

/*
 * The callbacks of the engine. Each returns 0 to go on or a negative errno,
 * which ends this file as FAILED; -ECANCELED ends it as CANCELLED. `open` and
 * `window` may also return PINION_SCAN_ENOUGH, and `open` PINION_SCAN_STREAM.
 * Other positive results count as -EINVAL.
 *
 * Context: `open`, `window` and `close` run on workers; those of one file never
 * overlap, except `window` under PINION_SCAN_PARALLEL. `close` is the last,
 * once for each file whose `open` did not fail. `report` is called exactly once
 * for every path, after `close`, from a worker or from the adding thread. A
 * callback runs as a task does: it may spawn and submit, and a call that blocks
 * is -EDEADLK in it. The bytes of a window are the library's and valid until
 * `window` returns; an engine that needs them for longer copies them.
 */
struct pinion_scan_ops {
	int (*open)(void *arg, struct pinion_scan_file *file); /* may be NULL */
	int (*window)(void *arg, struct pinion_scan_file *file, const struct pinion_window *window);
	int (*close)(void *arg, struct pinion_scan_file *file, int error); /* may be NULL */
	/*
	 * `file->user` still holds what the engine left there, NULL for a path
	 * that was never opened. `error`: 0 or a negative errno. -ESTALE: the
	 * file shrank or grew while it was read; -ETIME: no byte came for
	 * `file_timeout_ns`; -EFBIG, with `file->user`: a file of a virtual
	 * file system had not ended after that time; -ENOTSUP: a special file;
	 * -ELOOP: a symbolic link to itself; -EXDEV: it is not beneath its
	 * tree's root, or the directory given, as a part of its path is, or has
	 * become, a symbolic link; -EISDIR: a directory given to
	 * pinion_scan_add_file; -EFBIG, -EILSEQ: an ignore file that cannot be
	 * used (pinion_walk_with).
	 */
	void (*report)(void *arg, const struct pinion_scan_file *file,
		enum pinion_scan_outcome outcome, int error);
};

struct pinion_scan_stats;

struct pinion_scan_config {
	uint32_t size;
	uint32_t order;	 /* enum pinion_scan_order; default parallel */
	uint32_t direct; /* enum pinion_direct; default auto */
	/* Most old bytes in front of a window, 0 … 1 MiB. Default 0. */
	uint32_t overlap_bytes;
	/*
	 * New bytes in each window, a multiple of 4096; with the overlap,
	 * rounded up to 4096, at most the runtime's `buffer_bytes`. Default 0:
	 * as many as fit, and fewer where data comes from the page cache.
	 */
	uint32_t window_bytes;
	/* Files open at once, 1 … 65536. Default 0: 64 per worker. */
	uint32_t files_in_flight;
	/*
	 * Windows of one file read at once, at most, 1 … 1024; the depth of its
	 * device (limit.h) limits them as well. Default 64.
	 */
	uint32_t windows_in_flight;
	/* Bytes of `user` memory per file in flight, 0 … 1 MiB. Default 0. */
	uint32_t file_user_bytes;
	/*
	 * Deliver holes of sparse files as such instead of reading zeros: 0 or
	 * 1.
	 */
	uint32_t report_holes;
	/*
	 * Walks trees with the option of that name (walk.h): an entry that
	 * .gitignore and its like hide is reported as IGNORED, a directory once
	 * for all its contents. 0 or 1. Default 0: every file is read.
	 */
	uint32_t skip_ignored;
	/*
	 * Go on after an error of the medium (-EIO, -ENODATA, -EBADMSG,
	 * -EILSEQ, -EREMOTEIO, -EUCLEAN): the window is read again page by
	 * page and handed over with its gaps. The file still ends as FAILED,
	 * with the error of its first gap. 0 or 1. Default 0: such an error
	 * ends the file, and later windows of it are not handed over.
	 */
	uint32_t report_gaps;
	uint32_t walk_order; /* enum pinion_scan_walk_order; default any */
	/*
	 * Nanoseconds that the open of a file may take, or a read that brings
	 * no byte while no other read of that file ends; then it is cancelled,
	 * as by a deadline of a request, and the file ends as FAILED with
	 * -ETIME. The time that a read waits inside pinion, for a rate or the
	 * depth of its device (limit.h), does not count. A read that would
	 * block (EAGAIN, as of /proc/kmsg without io_uring) is tried again
	 * until then, instead of failing with that. A file on procfs, sysfs,
	 * tracefs, debugfs, securityfs, cgroup or another virtual file system
	 * may have no end: no window of it is begun after this time, waits of
	 * its reads included, and it ends as FAILED with -EFBIG. 0 … 2^62.
	 * Default 0: no limit, since only the caller knows which devices are
	 * slow.
	 */
	uint64_t file_timeout_ns;
	/*
	 * Entries of trees that are left out (walk.h), and reported as IGNORED;
	 * NULL, the default: none.
	 */
	const struct pinion_walk_filter *filter;
	uint32_t follow_links; /* of trees, as in walk.h: 0 or 1. Default 0 */
	/*
	 * A bound on `sequence` of paths in flight at once, for callers that
	 * put reports in order: after this number of paths adding waits until
	 * all of them are reported. Default 0: no bound. A few thousand cost no
	 * time that can be measured.
	 */
	uint32_t paths_ahead_max;
	/*
	 * Called with the counts so far, with the scan's `arg`: when the end of
	 * a window or a report comes and the last call began `progress_ns` ago,
	 * and once more by pinion_scan_finish(), with the final counts. So no
	 * call comes while nothing ends. NULL, the default: never.
	 *
	 * Context: the worker, or the adding thread, whose window or report it
	 * was; never two at once, and each sees what an earlier call wrote. As
	 * other callbacks it does not block. The counts of each worker are
	 * those after some report or window of it; `seen` is the sum of the
	 * outcomes.
	 * Costs: with it, a read of the clock and 9 stores to memory of its own
	 * for each window and report; a call reads O(workers) cache lines.
	 */
	void (*progress)(void *arg, const struct pinion_scan_stats *stats);
	uint64_t progress_ns; /* 0 … 2^62. Default 0: each time */
	/*
	 * Shares trees out: called, with the scan's `arg`, for each directory
	 * and each file below the root of a tree, once the filter has let it
	 * pass. True: the entry is left to another scan, which gets it with
	 * pinion_scan_add_part(); this one neither enters nor reports it.
	 * `beneath` is the path below the root, not ended by a NUL. Not called
	 * with PINION_SCAN_WALK_BY_PATH. NULL, the default: all is scanned.
	 *
	 * Context: of files the adding thread; of directories that, or workers,
	 * several at once. As other callbacks it does not block.
	 */
	bool (*share)(void *arg, const char *beneath, size_t beneath_bytes, bool is_directory);
};

PINION_API void pinion_scan_config_init_sized(struct pinion_scan_config *config, uint32_t size);
#define pinion_scan_config_init(config) \
	pinion_scan_config_init_sized((config), (uint32_t)sizeof(struct pinion_scan_config))

/* Counts of paths by outcome; seen is always the sum of the others. */
struct pinion_scan_stats {
	uint64_t seen;
	uint64_t done;
	uint64_t failed;
	uint64_t skipped;
	uint64_t cancelled;
	/*
	 * New bytes delivered, without gaps; of holes, those for which `window`
	 * returned 0, since it alone knows how far it got in others.
	 */
	uint64_t read_bytes;
	uint64_t hole_bytes;   /* of those, holes */
	uint64_t direct_files; /* files read past the page cache */
	uint64_t ignored;      /* of those seen; a directory is one */
};

/*
 * Prepares a scan on a running runtime.
 *
 * Owns: `ops` and `config` are copied; `config` NULL: every default; `arg` must
 * outlive the scan. The scan allocates all its memory here.
 * Context: any thread but a worker's.
 * Errors: -EINVAL: a field out of range, or `window` or `report` is NULL.
 * -E2BIG: the struct is newer than the library and an unknown field is set. A
 * message in the log names the field, its value, and the range. -ENOMEM.
 * Since: 0.1
 */
PINION_API int pinion_scan_create(struct pinion_runtime *runtime,
	const struct pinion_scan_config *config, const struct pinion_scan_ops *ops, void *arg,
	struct pinion_scan **out_scan);

/*
 * Adds one path; waits while `files_in_flight` are open. A directory is
 * reported as FAILED with -EISDIR.
 *
 * Context: one thread at a time, not a worker's; blocks.
 * Errors: -ECANCELED: pinion_scan_cancel() was called; the path is still
 * reported, as cancelled. -ENOMEM: the path could not be copied; it is
 * reported, as failed. -EDEADLK: on a worker thread of any runtime; a message
 * in the log says so, and nothing has changed.
 * Since: 0.1
 */
PINION_API int pinion_scan_add_file(struct pinion_scan *scan, const char *path);

/*
 * Adds a file below a directory that the caller has open, as
 * pinion_scan_add_file(): whatever the owner of the files exchanges meanwhile,
 * nothing outside the directory is opened. A path is refused where any part of
 * it, the last one included, is a symbolic link. Mounts below the directory are
 * entered.
 *
 * Shape: `path` is relative to the directory, has no part "..", and may be of
 * any length. The report of the file has that path.
 * Owns: `directory_fd` stays the caller's, open until the file is reported;
 * O_PATH is enough. AT_FDCWD: the current directory.
 * Context: as pinion_scan_add_file().
 * Errors: as pinion_scan_add_file(). The file is reported as FAILED, with
 * -EXDEV if the path does not stay below the directory or a part of it is a
 * symbolic link, with -EBADF or -ENOTDIR if `directory_fd` is not an open
 * directory.
 * Since: 0.1
 */
PINION_API int pinion_scan_add_file_beneath(
	struct pinion_scan *scan, int directory_fd, const char *path);

/*
 * Adds a path as pinion_scan_add_file(), but walks a directory and adds all
 * files below it, in the order of `walk_order`. Tasks of the runtime help to
 * list directories; the calling thread goes on without them where all workers
 * are busy.
 *
 * Context: as pinion_scan_add_file().
 * Errors: as there, but a file whose path could not be copied ends nothing:
 * it is reported, as failed. -ENOMEM: the walk could not go on; `path` is
 * reported, as failed, beside the files that were found before.
 * Since: 0.1
 */
PINION_API int pinion_scan_add_tree(struct pinion_scan *scan, const char *path);

/*
 * A part of a tree: a directory and all below it, or some of its entries.
 * Since: 0.1
 */
struct pinion_scan_part {
	const char *root; /* as pinion_scan_add_tree() gets it */
	/*
	 * Below the root: names with a slash between. Empty: the root itself.
	 */
	const char *directory;
	/* Of entries in it, each with a NUL after it; NULL: all of them. */
	const char *names;
	size_t names_bytes;
};

/*
 * Adds a part of a tree as pinion_scan_add_tree() would come to it: by the same
 * ignore files, with the same paths in the reports. `share` is asked about
 * entries below the part's directory; of a part with `names` neither about
 * these nor about any file below them, only about directories below them.
 *
 * Owns: the texts stay the caller's, until this returns.
 * Context: as pinion_scan_add_tree().
 * Errors: as pinion_scan_add_tree(). -EINVAL: a name is empty, `.`, `..`, or
 * has a slash or PATH_MAX bytes, `names` does not end with a NUL, or the scan
 * walks by path.
 * Since: 0.1
 */
PINION_API int pinion_scan_add_part(struct pinion_scan *scan, const struct pinion_scan_part *part);

/*
 * Reports a path that could not even be added (an unreadable list entry) so
 * that it counts: seen and failed.
 */
PINION_API void pinion_scan_add_failure(struct pinion_scan *scan, const char *path, int error);

/*
 * Asks the scan to end early: paths not yet opened are reported as cancelled,
 * reads in flight are cancelled as by pinion_request_cancel(), and open files
 * end at their next window and are reported as cancelled. A read that a device,
 * or a worker without io_uring, has begun ends when the device ends it.
 *
 * Context: any thread, a callback, a signal handler on a thread that is no
 * worker's; never blocks or allocates, O(workers), once.
 * Since: 0.1
 */
PINION_API void pinion_scan_cancel(struct pinion_scan *scan);

/*
 * Waits until every path added is reported.
 *
 * Shape: the counts are size-versioned; pass sizeof(*out_stats).
 * Owns: `out_stats` may be NULL, `size` is ignored then.
 * Context: the adding thread; blocks.
 * Errors: -EDEADLK: on a worker thread of any runtime; a message in the log
 * says so, and nothing has changed.
 * Since: 0.1
 */
PINION_API int pinion_scan_finish(
	struct pinion_scan *scan, struct pinion_scan_stats *out_stats, size_t size);

/*
 * Frees a finished scan; finishes it first if need be, and after a cancel waits
 * until each worker has ended its current task; 0. NULL is accepted. It comes
 * before pinion_runtime_destroy() of its runtime, which refuses until then. A
 * second call aborts, with a message.
 *
 * Context: as pinion_scan_finish().
 * Errors: as pinion_scan_finish(); the scan is as before.
 * Since: 0.1
 */
PINION_API int pinion_scan_destroy(struct pinion_scan *scan);

PINION_END_DECLS

#endif

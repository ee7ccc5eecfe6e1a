/* SPDX-License-Identifier: MIT */
/*
 * A walk over a directory tree that cannot be trapped: it never follows
 * symbolic links below its root, never opens special files, has no limit on
 * path length, and holds two or three descriptors however deep the tree is. It
 * stays below its root while the owner of the tree exchanges directories for
 * links.
 */
#ifndef PINION_WALK_H
#define PINION_WALK_H

#include <pinion/version.h>
#include <stddef.h>
#include <stdint.h>

PINION_BEGIN_DECLS

struct pinion_runtime;

enum pinion_walk_kind {
	PINION_WALK_FILE = 0,	 /* regular, or of unknown type */
	PINION_WALK_SYMLINK = 1, /* below the root; not followed */
	PINION_WALK_SPECIAL = 2, /* FIFO, socket or device; never opened */
	PINION_WALK_ERROR = 3,	 /* a path that could not be entered or examined */
	PINION_WALK_IGNORED = 4, /* left out, for a reason; a directory is not entered */
};

/* Why an entry is left out. */
enum pinion_walk_reason {
	PINION_WALK_BY_IGNORE_FILE = 0, /* `skip_ignored` */
	/* A field of struct pinion_walk_filter. */
	PINION_WALK_BY_NAME = 1,	/* `skip_hidden` */
	PINION_WALK_BY_PATTERN = 2,	/* `exclude`, `include` */
	PINION_WALK_BY_FILE_SYSTEM = 3, /* `one_file_system` */
	PINION_WALK_BY_SIZE = 4,	/* `bytes_min`, `bytes_max` */
	PINION_WALK_BY_TIME = 5,	/* `modified_from_ns`, `modified_to_ns` */
	PINION_WALK_BY_LINK = 6,	/* `hard_links_once` */
	PINION_WALK_BY_SHARD = 7,	/* `shard_count` */
	PINION_WALK_REASONS,
};

/*
 * Shape: `path` is the root as given plus "/" and the names below it, NUL
 * terminated, of any length, in whatever bytes the file system has. `beneath`
 * is the end of it: the names below the root.
 *
 * A visitor that opens the entry by `path` follows every link that has come
 * into the path since the entry was listed, out of the tree as well. To stay in
 * the tree it opens `beneath` at `root_fd`, as pinion_file_open_with() does
 * where `directory_fd` is that and `resolve` is RESOLVE_BENEATH |
 * RESOLVE_NO_SYMLINKS.
 *
 * Owns: valid during the visit only; dup(2) keeps the descriptor for longer.
 */
struct pinion_walk_entry {
	const char *path;
	size_t path_bytes;
	enum pinion_walk_kind kind;
	/*
	 * Kind ERROR: negative errno. -EXDEV: a part of the path has become a
	 * symbolic link, and is not followed. Kind SYMLINK: 0, or -ELOOP: the
	 * link leads back to itself below the root. Where openat2 is refused
	 * the walk does not find that out.
	 */
	int error;
	uint32_t mode; /* kinds SPECIAL, IGNORED: st_mode's type bits (S_IFIFO, …) */
	/*
	 * The root, a directory that is open for listing. -1: the entry is the
	 * root itself, or an ignore file above it; then `beneath` is NULL.
	 */
	int root_fd;
	const char *beneath;
	uint32_t reason; /* kind IGNORED: enum pinion_walk_reason */
};

/*
 * Called for each entry that is not a directory, and for each failure.
 * Returns 0 to go on; anything else ends the walk and is returned from it.
 */
typedef int (*pinion_walk_fn)(void *arg, const struct pinion_walk_entry *entry);

/*
 * Visits everything below `root`, directories depth first, in the order the
 * file system lists them. A root that is a file is visited as a file; a root
 * that is a symbolic link is followed.
 *
 * Context: any thread but a worker's; blocks, allocates in proportion to the
 * directories still to be entered. The visits happen on the calling thread.
 * Errors: -ENOMEM; otherwise the return value of the visit function. A root
 * that does not exist is a visit of kind ERROR, not an error of the walk.
 * Since: 0.1
 */
PINION_API int pinion_walk(const char *root, pinion_walk_fn visit, void *arg);

/*
 * Entries below a root that a walk leaves out: it visits them as IGNORED. A
 * struct that is zero but for `size` leaves out none. The root itself is never
 * left out.
 *
 * Owns: the texts are copied by the call that takes the struct.
 * Since: 0.1
 */
struct pinion_walk_filter {
	uint32_t size;
	/* Directories on other devices than the root are not entered: 0, 1. */
	uint32_t one_file_system;
	/* Names that begin with a dot are left out: 0 or 1. */
	uint32_t skip_hidden;
	/*
	 * Of the names of a file only the first found counts, whatever its
	 * root: 0 or 1. The walk remembers up to a million files of several
	 * names, in 16 MiB; further files are visited by each name.
	 */
	uint32_t hard_links_once;
	/*
	 * Lines of gitignore(5), each with a newline after it but the last;
	 * paths are below the root. Entries that `exclude` hides are left out,
	 * and files that `include` does not hide. NULL: no lines.
	 */
	const char *exclude;
	const char *include;
	/* Of regular files; 0: no bound. */
	uint64_t bytes_min;
	uint64_t bytes_max;
	/* Nanoseconds since 1970, of the time of modification; 0: no bound. */
	int64_t modified_from_ns;
	int64_t modified_to_ns;
	/*
	 * The walk reports only entries of this shard, 0 to `shard_count` - 1,
	 * and all directories. pinion_walk_shard() of an entry's path below the
	 * root is its shard, so each entry is in exactly one. With 0 shards, or
	 * 1, the walk reports all.
	 */
	uint32_t shard_index;
	uint32_t shard_count;
};

PINION_API void pinion_walk_filter_init_sized(struct pinion_walk_filter *filter, uint32_t size);
#define pinion_walk_filter_init(filter) \
	pinion_walk_filter_init_sized((filter), (uint32_t)sizeof(struct pinion_walk_filter))

/*
 * The shard that a path belongs to: 0 to `shard_count` - 1, by a hash of its
 * bytes, the same on every machine and in every version. 0 shards count as 1.
 *
 * Context: any thread; never blocks.
 * Since: 0.1
 */
PINION_API uint32_t pinion_walk_shard(const char *path, size_t path_bytes, uint32_t shard_count);

/* In which order entries are visited. */
enum pinion_walk_order {
	/* Directories depth first, as the file system lists them. */
	PINION_WALK_LISTED = 0,
	/*
	 * By path, byte by byte, as `LC_ALL=C sort` has them. Sorting takes up
	 * to 80 MiB, whatever the tree: a directory with more names, some
	 * 700,000, is listed several times.
	 */
	PINION_WALK_BY_PATH = 1,
};

/*
 * A filter for paths that are in no file system, such as those of a repository
 * or an archive: as a walk would decide about regular files of these paths,
 * from the root down. Sizes, times, links and devices do not count.
 *
 * Owns: the texts are copied.
 * Context: any thread; the matcher is constant.
 * Errors: -EINVAL, -E2BIG: as pinion_walk_with(). -EFBIG, -EILSEQ: a line is
 * too long, or has a NUL. -ENOMEM.
 * Since: 0.1
 */
struct pinion_walk_matcher;
PINION_API int pinion_walk_matcher_create(
	const struct pinion_walk_filter *filter, struct pinion_walk_matcher **out_matcher);

/*
 * Why a file is left out, or PINION_WALK_REASONS: it is not. `path` is
 * relative, its names are separated by slashes.
 */
PINION_API uint32_t pinion_walk_matcher_path(
	const struct pinion_walk_matcher *matcher, const char *path, size_t path_bytes);

/* NULL is accepted. */
PINION_API void pinion_walk_matcher_destroy(struct pinion_walk_matcher *matcher);

struct pinion_walk_config {
	uint32_t size;
	/*
	 * Entries that .gitignore, .ignore, .pinionignore and .git/info/exclude
	 * hide, and `.git` itself, are visited as IGNORED: 0 or 1. Default 0:
	 * nothing is hidden. The rules are gitignore(5)'s, also outside of a
	 * repository. The root is always walked; if it is inside a repository,
	 * ignore files above it count, too.
	 */
	uint32_t skip_ignored;
	/*
	 * Tasks of it list directories, many at once; the calling thread, which
	 * is no worker, makes the visits, in any order. NULL, the default: the
	 * calling thread walks alone, as it does by path.
	 */
	struct pinion_runtime *runtime;
	/* Entries that are left out; NULL, the default: none. */
	const struct pinion_walk_filter *filter;
	/*
	 * Links below the root are followed, out of the tree as well: 0 or 1.
	 * Default 0. A directory that is one of those above it is an error,
	 * -ELOOP; a file with several paths is visited by each. Entries have no
	 * `root_fd`, and names that are exchanged meanwhile are followed, too.
	 */
	uint32_t follow_links;
	uint32_t order; /* enum pinion_walk_order */
};

PINION_API void pinion_walk_config_init_sized(struct pinion_walk_config *config, uint32_t size);
#define pinion_walk_config_init(config) \
	pinion_walk_config_init_sized((config), (uint32_t)sizeof(struct pinion_walk_config))

/*
 * Visits as pinion_walk(), with options; `config` NULL: every default. With
 * `skip_ignored` an ignore file that cannot be used is a visit of kind ERROR,
 * in place of its own: -EFBIG: it is larger than 1 MiB, has a line of more than
 * 4096 bytes, or 4 MiB of rules are in force already; -EILSEQ: it holds NULs. A
 * symbolic link is not followed as an ignore file. The walk holds one more
 * descriptor while it reads one.
 *
 * Errors: as pinion_walk(). -EINVAL: a field out of range. -E2BIG: the struct
 * is newer than the library and an unknown field is set. -EDEADLK: with
 * `runtime`, on a worker thread of any runtime.
 * Since: 0.1
 */
PINION_API int pinion_walk_with(
	const char *root, const struct pinion_walk_config *config, pinion_walk_fn visit, void *arg);

PINION_END_DECLS

#endif

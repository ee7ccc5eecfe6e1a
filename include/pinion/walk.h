/* SPDX-License-Identifier: MIT */
/*
 * A walk over a directory tree that cannot be trapped: it never follows
 * symbolic links below its root, never opens special files, has no limit on
 * path length, and holds two descriptors however deep the tree is. It stays
 * below its root while the owner of the tree exchanges directories for links.
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
	PINION_WALK_IGNORED = 4, /* an ignore file names it; a directory is not entered */
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
};

/*
 * Called for each entry that is not a directory, and for each failure.
 * Returns 0 to go on; anything else ends the walk and is returned from it.
 */
typedef int (*pinion_walk_fn)(void *arg, const struct pinion_walk_entry *entry);

/*
 * Visits everything below `root`, directories depth first, in the order the
 * file system lists them. A root that is a file is visited as one; a root that
 * is a symbolic link is followed.
 *
 * Context: any thread but a worker's; blocks, allocates in proportion to the
 * directories still to be entered. The visits happen on the calling thread.
 * Errors: -ENOMEM; otherwise the return value of the visit function. A root
 * that does not exist is a visit of kind ERROR, not an error of the walk.
 * Since: 0.1
 */
PINION_API int pinion_walk(const char *root, pinion_walk_fn visit, void *arg);

struct pinion_walk_config {
	uint32_t size;
	/*
	 * Entries that .gitignore, .ignore and .git/info/exclude hide, and
	 * `.git` itself, are visited as IGNORED: 0 or 1. Default 0: nothing is
	 * hidden. The rules are gitignore(5)'s, also outside of a repository.
	 * The root is always walked; if it is inside a repository, ignore files
	 * above it count, too.
	 */
	uint32_t skip_ignored;
	/*
	 * Tasks of it list directories, many at once; the calling thread, which
	 * is no worker, makes the visits, in any order. NULL, the default: the
	 * calling thread walks alone.
	 */
	struct pinion_runtime *runtime;
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

/* SPDX-License-Identifier: MIT */
/*
 * A walk: directories that are to be listed, and those that list them.
 *
 * Trees come hostile: deeper than PATH_MAX, with more levels than descriptors,
 * with a million entries in one place, changing under the walk, looping. So a
 * directory is opened, listed to its end and closed; its other entries are
 * visited as they come, and of its subdirectories the names are kept, without
 * a descriptor or a C frame for each.
 *
 *     root           a directory is a node that knows its parent; it lives
 *      |             while it, or one below it, is to be listed
 *      +-- usr       names of subdirectories wait as text with their parent;
 *      |    +-- lib  a name becomes a node when its turn comes
 *      +-- "var\0home\0srv\0"
 *
 * The parents with names that wait are a stack, so the walk is depth first, and
 * a walk by one thread in the order in which the file system lists.
 *
 * The root's descriptor stays open. All below is opened from it, or, deep down,
 * from a directory below it (anchor.h), and no link below the root is followed
 * (host/long_path.h): the tree's owner may exchange directories for links at
 * any time. Visitors get the descriptor and that part, to do the same.
 *
 * Several threads may list, a directory each: walk_tasks.h. Then the stack is
 * under a lock. A walk in the order of paths: walk_sorted.h.
 *
 * Invariants: (1) a node has one user for each node below it, one while names
 * wait with it, one while it is listed, one for each block (walk_list.h) with
 * entries of it. (2) all of a node but its names and links is constant once the
 * first name below it waits. (3) memory is proportional to the names that wait,
 * the depth, and the longest path; that of ignore files is bounded (ignore.h).
 *
 * Elsewhere: host/long_path.c opens a root of any length; ignore.c knows the
 * ignored entries; scan.c uses the files.
 * Source: getdents64(2), openat(2).
 */
#ifndef PIN_SCAN_WALK_TREE_H
#define PIN_SCAN_WALK_TREE_H

#include "runtime/base/atomic.h"
#include "runtime/host/host.h"
#include "runtime/scan/ignore.h"
#include "runtime/scan/walk_filter.h"

#include <pinion/walk.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Names of subdirectories, each with a NUL after it, in the order listed. */
struct pin_names {
	struct pin_names *next;
	size_t count; /* that wait */
	size_t bytes;
	size_t position; /* of the first that waits */
	char text[];
};

struct pin_directory {
	struct pin_directory *parent; /* [const] NULL: the root */
	struct pin_directory *next;   /* below it on the stack */
	struct pin_names *first;      /* names that wait */
	struct pin_names *last;
	struct pin_ignore_level *ignore; /* that applies in it; NULL: none */
	bool owns_ignore;		 /* it is of this directory */
	struct pin_atomic_u32 users;	 /* invariant 1 */
	dev_t device;
	ino_t inode;
	size_t depth;	   /* 0: the root */
	size_t path_bytes; /* of the whole path */
	size_t name_bytes;
	char name[];
};

/*
 * Part of a tree: a directory, or some entries of it, and all below. The
 * directories on the way to it, the root included, are opened, and their ignore
 * files read, but not listed.
 */
struct pin_walk_part {
	const char *directory; /* below the root, names with a slash between; "": the root */
	size_t depth;	       /* names in it */
	const char *names; /* in the directory, with a NUL after each; NULL: all that is there */
	size_t names_bytes;
};

struct pin_walk {
	/* [const] while the root is walked */
	const struct pin_host *host;
	const struct pin_atomic_u32 *is_cancelled; /* NULL: never */
	pinion_walk_fn visit;
	void *arg;
	int root_fd;	    /* -1: the root is not entered */
	size_t root_bytes;  /* of the root as given */
	size_t names_start; /* in a path, of the part below the root */
	bool has_ignores;
	bool follows; /* links; then paths are opened as they are */
	bool is_sorted;
	bool has_no_anchors;
	struct pin_ignore ignore;
	struct pin_walk_filter *filter;	  /* NULL: nothing is left out by it */
	const struct pin_walk_part *part; /* NULL: all of it */
	/*
	 * Whether a directory is left to another walk; NULL: none is. Called by
	 * any thread that lists.
	 */
	bool (*share)(void *arg, const char *beneath, size_t bytes, bool is_directory);
	void *share_arg;
	dev_t root_device;
	/* Directories with names that wait, the deepest first; these names */
	struct pin_directory *top;
	size_t waiting_count;
	size_t waiting_bytes;
};

/* A directory named `name` in `parent`, with one user; NULL: no memory. */
struct pin_directory *pin_directory_create(const struct pin_walk *walk,
	struct pin_directory *parent, const char *name, size_t name_bytes);

/* Gives up one user; the last frees it, and so on upwards. */
void pin_directory_release(const struct pin_walk *walk, struct pin_directory *directory);

/* A copy of `count` names; NULL: no memory. */
struct pin_names *pin_names_create(
	const struct pin_walk *walk, const void *text, size_t bytes, size_t count);

/* The names wait from now on. */
void pin_walk_add_names(
	struct pin_walk *walk, struct pin_directory *directory, struct pin_names *names);

/*
 * The next directory whose name waits, with one user, which is the caller's;
 * NULL: none waits. -ENOMEM.
 */
int pin_walk_take_directory(struct pin_walk *walk, struct pin_directory **out_directory);

/* Frees all that wait. */
void pin_walk_drop_names(struct pin_walk *walk);

static inline bool pin_walk_is_cancelled(const struct pin_walk *walk)
{
	return walk->is_cancelled != NULL && pin_load_acquire_u32(walk->is_cancelled) != 0;
}

/* A directory of which less than all is listed: on the way to a part, or it. */
static inline bool pin_walk_is_partial(
	const struct pin_walk *walk, const struct pin_directory *directory)
{
	const struct pin_walk_part *part = walk->part;

	return part != NULL &&
		(directory->depth < part->depth ||
			(directory->depth == part->depth && part->names != NULL));
}

struct pinion_runtime;

/* The threads that walk a tree, and their limits. */
struct pin_walk_means {
	const struct pin_host *host;
	/* When it is not 0 the walk ends with -ECANCELED; NULL: never. */
	const struct pin_atomic_u32 *is_cancelled;
	struct pin_walk_filter *filter; /* NULL: none */
	/* As in struct pin_walk. */
	const struct pin_walk_part *part;
	bool (*share)(void *arg, const char *beneath, size_t bytes, bool is_directory);
	void *share_arg;
	/* Whose tasks help; NULL: the caller's thread walks alone. */
	struct pinion_runtime *runtime;
	uint32_t open_max;   /* directories open at once by these; 0: a few */
	bool has_no_anchors; /* too few descriptors are left (anchor.h) */
	/*
	 * Of names that wait, before directories are put aside; 0: some MiB. Of
	 * a sorted walk: walk_sorted.h.
	 */
	size_t waiting_bytes_max;
	uint32_t block_bytes; /* 0: PIN_WALK_BLOCK_BYTES */
};

#endif

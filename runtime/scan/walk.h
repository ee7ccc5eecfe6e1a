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
 * The root's descriptor stays open. All below is opened from it, by the part of
 * the path that is below the root, and no link in that part is followed
 * (host/long_path.h): the tree's owner may exchange directories for links at
 * any time. Visitors get the descriptor and that part, to do the same.
 *
 * Invariants: (1) a node has one user for each node below it, one while names
 * wait with it, one for who lists it. (2) all of a node but its names and links
 * is constant once the first name below it waits. (3) memory is proportional to
 * the names that wait, the depth, and the longest path; that of ignore files is
 * bounded (ignore.h).
 *
 * Elsewhere: host/long_path.c opens a root of any length; ignore.c knows the
 * ignored entries; scan.c uses the files.
 * Source: getdents64(2), openat(2).
 */
#ifndef PIN_SCAN_WALK_H
#define PIN_SCAN_WALK_H

#include "runtime/base/atomic.h"
#include "runtime/host/host.h"
#include "runtime/scan/ignore.h"

#include <pinion/walk.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Some 2000 entries a call; more saves nothing measurable. */
enum { PIN_WALK_LIST_BYTES = 64 << 10 };

/* ---- directories that wait: walk_tree.c ---- */

/* Names of subdirectories, each with a NUL after it, in the order listed. */
struct pin_names {
	struct pin_names *next;
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
	struct pin_ignore ignore;
	/* Directories with names that wait, the deepest first. */
	struct pin_directory *top;
};

/* A directory named `name` in `parent`, with one user; NULL: no memory. */
struct pin_directory *pin_directory_create(const struct pin_walk *walk,
	struct pin_directory *parent, const char *name, size_t name_bytes);

/* Gives up one user; the last frees it, and so on upwards. */
void pin_directory_release(const struct pin_walk *walk, struct pin_directory *directory);

/* A copy of names; NULL: no memory. */
struct pin_names *pin_names_create(const struct pin_walk *walk, const void *text, size_t bytes);

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

/* ---- one directory after the other: walk_list.c ---- */

/* Bytes with a NUL after them. */
struct pin_walk_path {
	char *bytes;
	size_t length;
	size_t capacity;
};

/* An open directory, and the part of its list that was read. */
struct pin_listing {
	struct pin_directory *directory;
	int fd;
	uint32_t position; /* of the next entry in `list` */
	uint32_t end;
	uint32_t kept_bytes; /* names of subdirectories, moved to the front */
	struct pin_ignore_errors errors;
	uint64_t list[PIN_WALK_LIST_BYTES / sizeof(uint64_t)];
};

/* Lists directories, one at a time; one thread at a time uses it. */
struct pin_walker {
	struct pin_walk *walk;
	struct pin_listing *listing; /* NULL: none is open */
	struct pin_listing *spare;   /* NULL, or one that is not used */
	struct pin_walk_path path;   /* of the directory that is listed */
	struct pin_walk_path match;  /* the same as ignore rules see it */
	int rc;			     /* ends the walk: a visitor's, or -ENOMEM */
};

enum pin_listing_state {
	PIN_LISTING_READ,  /* to the end of the part that was read */
	PIN_LISTING_DONE,  /* to its end, or as far as it can be read */
	PIN_LISTING_ENDED, /* the walker's rc says why the walk ends */
};

/*
 * Opens a directory, of which the caller is a user. False: it was visited as an
 * error, and released, or `rc` is set.
 */
bool pin_walker_open(struct pin_walker *walker, struct pin_directory *directory);

/* Goes on with the open directory. */
enum pin_listing_state pin_walker_list(struct pin_walker *walker);

/* The names of subdirectories that it has met since wait from now on. */
int pin_walker_put_names(struct pin_walker *walker);

/* Closes the listing and gives up its directory. */
void pin_walker_close(struct pin_walker *walker);

void pin_walker_fini(struct pin_walker *walker);

/* Visits one path. */
int pin_walk_visit(const struct pin_walk *walk, const struct pin_walk_path *path,
	enum pinion_walk_kind kind, int error, uint32_t mode);

/* Makes it `bytes` bytes of text; -ENOMEM. */
int pin_walk_path_set(
	const struct pin_walk *walk, struct pin_walk_path *path, const char *text, size_t bytes);

/* Puts a slash, unless it ends in one, and a name after it; -ENOMEM. */
int pin_walk_path_add(const struct pin_walk *walk, struct pin_walk_path *path, const char *name,
	size_t name_bytes);

void pin_walk_path_free(const struct pin_walk *walk, struct pin_walk_path *path);

/* ---- walk.c ---- */

/*
 * pinion_walk_with() on the heap of a host. When *is_cancelled is not 0 the
 * walk enters no further directory and returns -ECANCELED; NULL: it is never
 * cancelled.
 */
int pin_walk(const struct pin_host *host, const char *root, const struct pinion_walk_config *config,
	const struct pin_atomic_u32 *is_cancelled, pinion_walk_fn visit, void *arg);

#endif

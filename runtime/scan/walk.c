/* SPDX-License-Identifier: MIT */
/*
 * The walk: directories are a stack of names in memory, never of descriptors
 * or of C frames.
 *
 * Trees come hostile: deeper than PATH_MAX, with more levels than descriptors,
 * with a million entries in one place, changing under the walk, looping. So a
 * directory is opened, listed to its end, its other entries visited as they
 * come and its subdirectories put on a stack, and closed before the next is
 * opened. One path buffer serves all: the stack is depth first, so the next
 * directory's parent is always a prefix of what the buffer holds, and a stack
 * element needs its own name and that prefix' length only.
 *
 * The root's descriptor stays open. All below is opened from it, by the part of
 * the path that is below the root, and no link in that part is followed
 * (host/long_path.h): the tree's owner may exchange directories for links at
 * any time. Visitors get the descriptor and that part, to do the same.
 *
 * Runs on the caller's thread; see pinion/walk.h for the contract.
 *
 * Ignore files are read when a directory is entered, and asked before an entry
 * becomes a visit or an element of the stack.
 *
 * Invariants: (1) at most two descriptors are open while a visit runs, the
 * root's and that of the directory being listed, which may be the root. (2)
 * bytes [0, parent_bytes) of the path buffer are the parent's path for the
 * element on top of the stack. (3) ancestors[0 … depth) are the identities of
 * the directories above the one being listed. (4) memory is proportional to
 * the directories on the stack, the depth, and the longest path; that of
 * ignore files is bounded (ignore.h).
 *
 * Elsewhere: host/long_path.c opens a root of any length; ignore.c knows the
 * ignored entries; scan.c uses the files.
 * Source: getdents64(2), openat(2).
 */
#include "runtime/base/check.h"
#include "runtime/base/versioned.h"
#include "runtime/host/heap.h"
#include "runtime/host/long_path.h"
#include "runtime/scan/ignore.h"
#include "runtime/scan/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Some 2000 entries a call; more saves nothing measurable. */
#define LIST_BYTES (64u << 10)

/* A directory still to be entered. */
struct pending {
	struct pending *next;
	size_t parent_bytes; /* of the path buffer, without the slash after it */
	size_t depth;	     /* 0: the root */
	size_t name_bytes;
	char name[];
};

struct identity {
	dev_t device;
	ino_t inode;
};

struct walk {
	const struct pin_host *host;
	const struct pin_atomic_u32 *is_cancelled; /* NULL: never */
	pinion_walk_fn visit;
	void *arg;
	struct pending *top;
	char *path; /* NUL-terminated */
	size_t path_bytes;
	size_t path_capacity;
	int root_fd;	    /* -1: the root is not entered */
	size_t root_bytes;  /* of the root as given */
	size_t names_start; /* in the path, of the part below the root */
	struct identity *ancestors;
	size_t ancestor_capacity;
	uint8_t *list; /* LIST_BYTES for getdents64 */
	bool has_ignores;
	struct pin_ignore ignore;
};

/* As the kernel writes it. */
struct list_entry {
	uint64_t inode;
	int64_t offset;
	uint16_t record_bytes;
	uint8_t type;
	char name[];
};

static PIN_APART int path_grow(struct walk *walk, size_t bytes)
{
	size_t capacity = walk->path_capacity == 0 ? 512 : walk->path_capacity;
	char *path;

	PIN_DCHECK(bytes > walk->path_capacity && bytes <= SIZE_MAX / 2);
	while (capacity < bytes) {
		capacity *= 2;
	}
	path = pin_heap_resize(
		walk->host, walk->path, walk->path_capacity, walk->path_bytes, capacity);
	if (path == NULL) {
		return -ENOMEM;
	}
	walk->path = path;
	walk->path_capacity = capacity;
	return 0;
}

/* Makes the path its first `parent_bytes` bytes, a slash and the name. */
static PIN_INLINE int path_set(
	struct walk *walk, size_t parent_bytes, const char *name, size_t name_bytes)
{
	size_t end = parent_bytes;

	if (parent_bytes + name_bytes + 2 > walk->path_capacity) {
		int rc = path_grow(walk, parent_bytes + name_bytes + 2);

		if (rc != 0) {
			return rc;
		}
	}
	PIN_CHECK(parent_bytes <= walk->path_bytes);
	/* A root given as "/" or "dir/" brings its slash along. */
	if (end > 0 && walk->path[end - 1] != '/') {
		walk->path[end++] = '/';
	}
	memcpy(walk->path + end, name, name_bytes);
	walk->path_bytes = end + name_bytes;
	PIN_DCHECK(walk->path_bytes < walk->path_capacity);
	walk->path[walk->path_bytes] = '\0';
	return 0;
}

/* Back to the directory being listed. */
static void path_cut(struct walk *walk, size_t bytes)
{
	PIN_CHECK(bytes <= walk->path_bytes);
	walk->path_bytes = bytes;
	walk->path[bytes] = '\0';
}

static int report(struct walk *walk, enum pinion_walk_kind kind, int error, uint32_t mode)
{
	bool is_below = walk->root_fd >= 0 && walk->path_bytes > walk->root_bytes;
	struct pinion_walk_entry entry = {
		.path = walk->path,
		.path_bytes = walk->path_bytes,
		.kind = kind,
		.error = error,
		.mode = mode,
		.root_fd = is_below ? walk->root_fd : -1,
		.beneath = is_below ? walk->path + walk->names_start : NULL,
	};

	PIN_DCHECK(walk->path[walk->path_bytes] == '\0');
	PIN_DCHECK(!is_below || walk->names_start < walk->path_bytes);
	PIN_DCHECK(kind == PINION_WALK_ERROR ? error < 0 : error == 0 || error == -ELOOP);
	return walk->visit(walk->arg, &entry);
}

static int report_mode(struct walk *walk, mode_t mode)
{
	if (S_ISREG(mode)) {
		return report(walk, PINION_WALK_FILE, 0, 0);
	}
	PIN_DCHECK(!S_ISDIR(mode) && !S_ISLNK(mode));
	return report(walk, PINION_WALK_SPECIAL, 0, (uint32_t)(mode & S_IFMT));
}

/*
 * Only a loop is reported to the visitor. It is looked for below the root;
 * where the path is too long for that, in the directory that the link is in.
 */
static int report_symlink(struct walk *walk, int directory_fd, const char *name)
{
	const char *beneath = walk->path + walk->names_start;
	bool is_loop;

	PIN_DCHECK(walk->root_fd >= 0 && walk->names_start < walk->path_bytes);
	is_loop = strlen(beneath) < PATH_MAX ? pin_beneath_loops(walk->root_fd, beneath)
					     : pin_beneath_loops(directory_fd, name);
	return report(walk, PINION_WALK_SYMLINK, is_loop ? -ELOOP : 0, 0);
}

static int pending_create(const struct walk *walk, const char *name, size_t name_bytes,
	size_t parent_bytes, size_t depth, struct pending **out_pending)
{
	struct pending *pending =
		pin_heap_allocate(walk->host, PIN_HEAP_ALIGN, sizeof(*pending) + name_bytes, 1);

	PIN_CHECK(parent_bytes <= walk->path_bytes);
	PIN_DCHECK(*out_pending == NULL); /* the end of a list */
	PIN_DCHECK(depth == 0 || (name_bytes > 0 && memchr(name, '/', name_bytes) == NULL));
	if (pending == NULL) {
		return -ENOMEM;
	}
	pending->next = NULL;
	pending->parent_bytes = parent_bytes;
	pending->depth = depth;
	pending->name_bytes = name_bytes;
	memcpy(pending->name, name, name_bytes);
	*out_pending = pending;
	return 0;
}

static mode_t mode_of_type(uint8_t type)
{
	switch (type) {
	case DT_REG:
	case DT_DIR:
	case DT_LNK:
	case DT_FIFO:
	case DT_SOCK:
	case DT_CHR:
	case DT_BLK:
		return DTTOIF((mode_t)type);
	default:
		return 0;
	}
}

/* A directory being listed. */
struct listing {
	int fd;
	size_t path_bytes;
	size_t depth;
	struct pending *first; /* subdirectories in the order listed */
	struct pending **tail;
};

/* The type of an entry, by fstatat(2) where the list does not have it. */
static int examine(int directory_fd, const struct list_entry *entry, mode_t *out_mode)
{
	struct stat status;

	*out_mode = mode_of_type(entry->type);
	if (*out_mode != 0) {
		return 0;
	}
	if (fstatat(directory_fd, entry->name, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) !=
		0) {
		return -errno;
	}
	*out_mode = status.st_mode;
	return 0;
}

/* Visits an entry if it is ignored. False: it is one as any other. */
static bool list_ignored(struct walk *walk, const struct listing *listing, const char *name,
	size_t name_bytes, mode_t mode, int *out_rc)
{
	*out_rc = 0;
	PIN_DCHECK(walk->ignore.count == walk->ignore.above_count + listing->depth + 1);
	/* Visited as an error when the directory was entered. */
	if (pin_ignore_has_failed(&walk->ignore, name)) {
		return true;
	}
	if (!pin_ignore_hides(&walk->ignore, name, name_bytes, S_ISDIR(mode))) {
		return false;
	}
	*out_rc = path_set(walk, listing->path_bytes, name, name_bytes);
	if (*out_rc == 0) {
		*out_rc = report(walk, PINION_WALK_IGNORED, 0, (uint32_t)(mode & S_IFMT));
		path_cut(walk, listing->path_bytes);
	}
	return true;
}

/*
 * One entry of a directory: subdirectories are put aside for later, all else is
 * visited now.
 */
static int list_one(struct walk *walk, struct listing *listing, const struct list_entry *entry)
{
	size_t name_bytes = strlen(entry->name);
	mode_t mode;
	int error = examine(listing->fd, entry, &mode);
	int rc;

	PIN_DCHECK(walk->path_bytes == listing->path_bytes);
	if (walk->has_ignores && error == 0 &&
		list_ignored(walk, listing, entry->name, name_bytes, mode, &rc)) {
		return rc;
	}
	if (S_ISDIR(mode)) {
		rc = pending_create(walk, entry->name, name_bytes, listing->path_bytes,
			listing->depth + 1, listing->tail);
		if (rc == 0) {
			listing->tail = &(*listing->tail)->next;
		}
		return rc;
	}
	rc = path_set(walk, listing->path_bytes, entry->name, name_bytes);
	if (rc != 0) {
		return rc;
	}
	if (error != 0) {
		rc = report(walk, PINION_WALK_ERROR, error, 0);
	} else if (S_ISLNK(mode)) {
		rc = report_symlink(walk, listing->fd, entry->name);
	} else {
		rc = report_mode(walk, mode);
	}
	path_cut(walk, listing->path_bytes);
	return rc;
}

static bool is_dot(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* Lists to the end, or to the first error of the visitor or of memory. */
static int list_all(struct walk *walk, struct listing *listing)
{
	for (;;) {
		long bytes = syscall(SYS_getdents64, listing->fd, walk->list, LIST_BYTES);

		if (bytes == 0) {
			return 0;
		}
		/* Entries listed so far count; the rest is one failure. */
		if (bytes < 0) {
			return report(walk, PINION_WALK_ERROR, -errno, 0);
		}
		PIN_DCHECK(bytes <= (long)LIST_BYTES);
		for (long position = 0; position < bytes;) {
			const struct list_entry *entry = (const void *)(walk->list + position);
			int rc = is_dot(entry->name) ? 0 : list_one(walk, listing, entry);

			if (rc != 0) {
				return rc;
			}
			PIN_CHECK(entry->record_bytes > 0);
			PIN_CHECK(entry->record_bytes <= bytes - position);
			position += entry->record_bytes;
		}
	}
}

/*
 * Records the open directory as ancestor number `depth`. -ELOOP when it is one
 * of those above it, which bind mounts and broken file systems can do.
 */
static int ancestors_enter(struct walk *walk, int fd, size_t depth)
{
	struct stat status;

	if (fstat(fd, &status) != 0) {
		return -errno;
	}
	for (size_t i = 0; i < depth; i++) {
		if (walk->ancestors[i].inode == status.st_ino &&
			walk->ancestors[i].device == status.st_dev) {
			return -ELOOP;
		}
	}
	if (depth >= walk->ancestor_capacity) {
		size_t capacity = walk->ancestor_capacity == 0 ? 64 : 2 * walk->ancestor_capacity;
		size_t bytes = walk->ancestor_capacity * sizeof(*walk->ancestors);
		struct identity *ancestors = pin_heap_resize(
			walk->host, walk->ancestors, bytes, bytes, capacity * sizeof(*ancestors));

		if (ancestors == NULL) {
			return -ENOMEM;
		}
		walk->ancestors = ancestors;
		walk->ancestor_capacity = capacity;
	}
	/* Invariant 3: a directory's parent was entered before it. */
	PIN_CHECK(depth < walk->ancestor_capacity);
	walk->ancestors[depth] = (struct identity){
		.device = status.st_dev,
		.inode = status.st_ino,
	};
	return 0;
}

/* ---- ignore files ---- */

/* Visits those of the directory whose path is in the buffer that failed. */
static int report_ignore_files(struct walk *walk)
{
	size_t path_bytes = walk->path_bytes;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < PIN_IGNORE_FILES; i++) {
		const char *name = pin_ignore_names[i];

		if (walk->ignore.errors[i] == 0) {
			continue;
		}
		rc = path_set(walk, path_bytes, name, strlen(name));
		if (rc == 0) {
			rc = report(walk, PINION_WALK_ERROR, walk->ignore.errors[i], 0);
			path_cut(walk, path_bytes);
		}
	}
	PIN_DCHECK(rc != 0 || walk->path_bytes == path_bytes);
	return rc;
}

/*
 * Reads the ignore files above the root; then the buffer holds the root again.
 */
static int read_above(struct walk *walk, const char *root, uid_t owner)
{
	struct pin_ignore *ignore = &walk->ignore;
	int rc = pin_ignore_begin(ignore, walk->host, root, owner);

	for (size_t i = 0; rc == 0 && i < ignore->above_count; i++) {
		size_t path_bytes;

		rc = pin_ignore_enter_above(ignore, i, &path_bytes);
		if (rc == 0) {
			rc = path_set(walk, 0, ignore->path, path_bytes);
		}
		if (rc == 0) {
			rc = report_ignore_files(walk);
		}
	}
	return rc == 0 ? path_set(walk, 0, root, strlen(root)) : rc;
}

static int read_ignore_files(
	struct walk *walk, const struct listing *listing, const struct pending *pending)
{
	int rc = pin_ignore_enter(
		&walk->ignore, listing->fd, pending->depth, pending->name, pending->name_bytes);

	return rc == 0 ? report_ignore_files(walk) : rc;
}

/* ---- the tree ---- */

/* Opens the directory whose path is in the buffer. */
static int open_directory(struct walk *walk, size_t depth)
{
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOCTTY;

	if (depth > 0) {
		PIN_CHECK(walk->path_bytes > walk->names_start);
		return pin_beneath_open(walk->root_fd, walk->path + walk->names_start, flags);
	}
	PIN_CHECK(walk->root_fd < 0);
	walk->root_fd = pin_open_long(walk->path, flags);
	return walk->root_fd;
}

static void close_directory(const struct walk *walk, int fd)
{
	if (fd != walk->root_fd) {
		close(fd);
	}
}

/* Enters the directory whose path is in the buffer. */
static int enter(struct walk *walk, const struct pending *pending)
{
	size_t depth = pending->depth;
	struct listing listing = {
		.path_bytes = walk->path_bytes,
		.depth = depth,
	};
	int rc;

	PIN_DCHECK((depth == 0) == (walk->root_fd < 0));
	listing.tail = &listing.first;
	listing.fd = open_directory(walk, depth);
	if (listing.fd < 0) {
		return report(walk, PINION_WALK_ERROR, listing.fd, 0);
	}
	rc = ancestors_enter(walk, listing.fd, depth);
	if (rc != 0 && rc != -ENOMEM) {
		rc = report(walk, PINION_WALK_ERROR, rc, 0);
		close_directory(walk, listing.fd);
		return rc;
	}
	if (rc == 0 && walk->has_ignores) {
		rc = read_ignore_files(walk, &listing, pending);
	}
	if (rc == 0) {
		rc = list_all(walk, &listing);
		PIN_DCHECK(*listing.tail == NULL && listing.path_bytes <= walk->path_bytes);
		*listing.tail = walk->top;
		walk->top = listing.first;
	}
	close_directory(walk, listing.fd);
	return rc;
}

/* Visits a root that is no directory; puts a directory on the stack. */
static int start(struct walk *walk, const char *root)
{
	size_t root_bytes = strlen(root);
	struct stat status;
	int rc = path_set(walk, 0, root, root_bytes);
	int fd;

	if (rc != 0) {
		return rc;
	}
	walk->root_bytes = root_bytes;
	/* As path_set() joins them. */
	walk->names_start = root_bytes;
	if (root_bytes > 0 && root[root_bytes - 1] != '/') {
		walk->names_start++;
	}
	/* O_PATH looks without opening: a FIFO would block, a device act. */
	fd = pin_open_long(root, O_PATH | O_CLOEXEC);
	if (fd < 0) {
		return report(walk, PINION_WALK_ERROR, fd, 0);
	}
	rc = fstat(fd, &status) == 0 ? 0 : -errno;
	close(fd);
	if (rc != 0) {
		return report(walk, PINION_WALK_ERROR, rc, 0);
	}
	if (!S_ISDIR(status.st_mode)) {
		return report_mode(walk, status.st_mode);
	}
	PIN_DCHECK(walk->top == NULL && walk->root_fd < 0);
	if (walk->has_ignores) {
		rc = read_above(walk, root, status.st_uid);
		if (rc != 0) {
			return rc;
		}
	}
	return pending_create(walk, root, root_bytes, 0, 0, &walk->top);
}

static void pending_release(const struct walk *walk, struct pending *pending)
{
	pin_heap_release(
		walk->host, pending, PIN_HEAP_ALIGN, sizeof(*pending) + pending->name_bytes, 1);
}

static bool is_cancelled(const struct walk *walk)
{
	return walk->is_cancelled != NULL && pin_load_acquire_u32(walk->is_cancelled) != 0;
}

/*
 * Enters directories from the stack until it is empty. A tree may have many
 * without an entry to visit, so a cancel is looked for before each.
 */
static int run(struct walk *walk)
{
	int rc = 0;

	while (rc == 0 && walk->top != NULL) {
		struct pending *pending = walk->top;

		if (is_cancelled(walk)) {
			return -ECANCELED;
		}
		walk->top = pending->next;
		rc = path_set(walk, pending->parent_bytes, pending->name, pending->name_bytes);
		if (rc == 0) {
			rc = enter(walk, pending);
		}
		pending_release(walk, pending);
	}
	return rc;
}

static void fini(struct walk *walk)
{
	while (walk->top != NULL) {
		struct pending *pending = walk->top;

		walk->top = pending->next;
		pending_release(walk, pending);
	}
	if (walk->root_fd >= 0) {
		close(walk->root_fd);
	}
	pin_ignore_fini(&walk->ignore);
	pin_heap_release(walk->host, walk->list, PIN_HEAP_ALIGN, LIST_BYTES, 1);
	pin_heap_release(walk->host, walk->path, PIN_HEAP_ALIGN, walk->path_capacity, 1);
	pin_heap_release(walk->host, walk->ancestors, PIN_HEAP_ALIGN, walk->ancestor_capacity,
		sizeof(*walk->ancestors));
}

void pinion_walk_config_init_sized(struct pinion_walk_config *config, uint32_t size)
{
	struct pinion_walk_config full = {.size = size};

	pin_sized_give(config, size, &full, sizeof(full));
}

/*
 * The walk may fail only for want of memory or by the visitor's wish; every
 * other failure is an entry of its own.
 */
int pin_walk(const struct pin_host *host, const char *root, const struct pinion_walk_config *config,
	const struct pin_atomic_u32 *is_cancelled, pinion_walk_fn visit, void *arg)
{
	struct walk walk = {
		.host = host,
		.is_cancelled = is_cancelled,
		.visit = visit,
		.arg = arg,
		.root_fd = -1,
	};
	struct pinion_walk_config complete;
	struct pinion_walk_config standard;
	int saved_errno = errno;
	int rc;

	if (config == NULL) {
		pinion_walk_config_init(&standard);
		config = &standard;
	}
	if (config->size < sizeof(complete)) {
		return -EINVAL;
	}
	rc = pin_sized_take(&complete, sizeof(complete), config, config->size);
	if (rc == 0 && complete.skip_ignored > 1) {
		rc = -EINVAL;
	}
	if (rc != 0) {
		return rc;
	}
	walk.has_ignores = complete.skip_ignored != 0;
	walk.list = pin_heap_allocate(host, PIN_HEAP_ALIGN, LIST_BYTES, 1);
	rc = walk.list == NULL ? -ENOMEM : start(&walk, root);
	if (rc == 0) {
		rc = run(&walk);
	}
	fini(&walk);
	errno = saved_errno;
	return rc;
}

int pinion_walk_with(
	const char *root, const struct pinion_walk_config *config, pinion_walk_fn visit, void *arg)
{
	return pin_walk(&pin_host_linux, root, config, NULL, visit, arg);
}

int pinion_walk(const char *root, pinion_walk_fn visit, void *arg)
{
	struct pinion_walk_config config;

	pinion_walk_config_init(&config);
	return pinion_walk_with(root, &config, visit, arg);
}

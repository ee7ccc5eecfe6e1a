/* SPDX-License-Identifier: MIT */
/*
 * One directory of a walk: opened, listed, its entries visited or kept.
 *
 * Ignore files are read when a directory is entered, and asked before an entry
 * becomes a visit or a name that waits.
 *
 * Invariants: (1) at most two descriptors are open while a visit runs, the
 * root's and that of the directory being listed, which may be the root; and a
 * third, the anchor's, where paths are long and descriptors left. (2) the
 * walker's path is that of the directory being listed, but for the time of a
 * visit.
 */
#include "runtime/scan/walk_list.h"
#include "runtime/base/check.h"
#include "runtime/host/heap.h"
#include "runtime/host/long_path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- entries ---- */

/* 0: the list does not have it. */
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

/* The type of an entry, by fstatat(2) where the list does not have it. */
static int examine(int directory_fd, const struct pin_list_entry *entry, mode_t *out_mode)
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

/*
 * Only a loop is reported to the visitor. It is looked for below the root;
 * where the path is too long for that, in the directory that the link is in.
 */
static int check_loop(struct pin_walker *walker, struct pin_walk_found *found)
{
	const struct pin_walk *walk = walker->walk;
	size_t length = walker->path.length;
	int rc = pin_walk_path_add(walk, &walker->path, found->name, found->name_bytes);
	const char *beneath;
	bool is_loop;

	if (rc != 0) {
		return rc;
	}
	PIN_DCHECK(walk->root_fd >= 0 && walk->names_start < walker->path.length);
	beneath = walker->path.bytes + walk->names_start;
	is_loop = strlen(beneath) < PATH_MAX ? pin_beneath_loops(walk->root_fd, beneath)
					     : pin_beneath_loops(walker->listing->fd, found->name);
	found->sight.error = is_loop ? -ELOOP : 0;
	pin_walk_path_cut(&walker->path, length);
	return 0;
}

/* Whether ignore files hide it; -ENOMEM. */
static int check_ignored(
	struct pin_walker *walker, const struct pin_walk_found *found, bool *out_is_hidden)
{
	const struct pin_ignore_level *level = walker->listing->directory->ignore;
	size_t length = walker->match.length;
	int rc = pin_walk_path_reserve(walker->walk, &walker->match, length + found->name_bytes);

	if (rc != 0) {
		return rc;
	}
	memcpy(walker->match.bytes + length, found->name, found->name_bytes + 1);
	*out_is_hidden = pin_ignore_hides(level, walker->match.bytes, length + found->name_bytes,
		found->name_bytes, S_ISDIR(found->sight.mode));
	return 0;
}

/*
 * To the front of the list, over entries that are no longer needed: each had
 * more bytes than its name.
 */
static void keep_name(struct pin_listing *listing, const struct pin_walk_found *found)
{
	char *names = (char *)listing->list;

	PIN_CHECK(listing->kept_bytes <= listing->position);
	memmove(names + listing->kept_bytes, found->name, found->name_bytes + 1);
	listing->kept_bytes += (uint32_t)found->name_bytes + 1;
	listing->kept_count++;
}

/* Of a mode that is known. */
static enum pinion_walk_kind kind_of(mode_t mode)
{
	if (S_ISLNK(mode)) {
		return PINION_WALK_SYMLINK;
	}
	return S_ISREG(mode) ? PINION_WALK_FILE : PINION_WALK_SPECIAL;
}

/*
 * What a link leads to, where links are followed; a link that leads nowhere
 * stays one.
 */
static void follow(struct pin_walker *walker, struct pin_walk_found *found)
{
	struct stat status;

	if (fstatat(walker->listing->fd, found->name, &status, AT_NO_AUTOMOUNT) == 0) {
		found->sight.kind = kind_of(status.st_mode);
		found->sight.mode = status.st_mode & S_IFMT;
	} else {
		found->sight.error = errno == ELOOP ? -ELOOP : 0;
	}
}

/* By its name, and, of a regular file, by its status where that is asked. */
static int check_filter(
	struct pin_walker *walker, struct pin_walk_found *found, uint32_t *out_reason)
{
	struct pin_walk_filter *filter = walker->walk->filter;
	size_t length = walker->path.length;
	struct pin_ignore_path path = {
		.name_bytes = found->name_bytes,
		.is_directory = S_ISDIR(found->sight.mode),
	};
	struct stat status;
	int rc = pin_walk_path_add(walker->walk, &walker->path, found->name, found->name_bytes);

	if (rc != 0) {
		return rc;
	}
	path.bytes = walker->path.bytes + walker->walk->names_start;
	path.path_bytes = walker->path.length - walker->walk->names_start;
	*out_reason = pin_walk_filter_path(filter, &path);
	pin_walk_path_cut(&walker->path, length);
	if (*out_reason != PIN_WALK_KEPT || !filter->examines || !S_ISREG(found->sight.mode)) {
		return 0;
	}
	if (fstatat(walker->listing->fd, found->name, &status,
		    AT_NO_AUTOMOUNT | (walker->walk->follows ? 0 : AT_SYMLINK_NOFOLLOW)) != 0) {
		found->sight = (struct pin_walk_sight){.kind = PINION_WALK_ERROR, .error = -errno};
	} else if (S_ISREG(status.st_mode)) {
		*out_reason = pin_walk_filter_status(filter, &status);
	}
	return 0;
}

/* Whether it is left out, and why; -ENOMEM. */
static int check_left_out(
	struct pin_walker *walker, struct pin_walk_found *found, uint32_t *out_reason)
{
	bool is_hidden = false;
	int rc = 0;

	*out_reason = PIN_WALK_KEPT;
	if (walker->walk->has_ignores) {
		rc = check_ignored(walker, found, &is_hidden);
	}
	if (is_hidden) {
		*out_reason = PINION_WALK_BY_IGNORE_FILE;
	} else if (rc == 0 && walker->walk->filter != NULL) {
		rc = check_filter(walker, found, out_reason);
	}
	return rc;
}

int pin_walker_look(struct pin_walker *walker, struct pin_walk_found *found, mode_t mode,
	bool *out_is_directory)
{
	struct pin_walk_sight *sight = &found->sight;
	uint32_t reason;
	int rc;

	*out_is_directory = false;
	/* Visited as an error when the directory was entered. */
	if (walker->walk->has_ignores &&
		pin_ignore_has_failed(&walker->listing->errors, found->name)) {
		return 0;
	}
	*sight = (struct pin_walk_sight){.kind = kind_of(mode), .mode = mode & S_IFMT};
	if (walker->walk->follows && S_ISLNK(mode)) {
		follow(walker, found);
	}
	rc = check_left_out(walker, found, &reason);
	if (rc == 0 && reason != PIN_WALK_KEPT) {
		sight->kind = PINION_WALK_IGNORED;
		sight->reason = reason;
	} else if (rc == 0 && S_ISDIR(sight->mode)) {
		*out_is_directory = true;
		return 0;
	} else if (rc == 0 && sight->kind == PINION_WALK_SYMLINK && !walker->walk->follows) {
		rc = check_loop(walker, found);
	}
	if (sight->kind == PINION_WALK_FILE || sight->kind == PINION_WALK_SYMLINK) {
		sight->mode = 0;
	}
	return rc == 0 ? pin_walker_visit(walker, found) : rc;
}

/*
 * One entry of a directory: subdirectories are put aside for later, all else is
 * visited now.
 */
static int list_one(struct pin_walker *walker, const struct pin_list_entry *entry)
{
	struct pin_walk_found found = {.name = entry->name, .name_bytes = strlen(entry->name)};
	bool is_directory;
	bool is_shared = false;
	mode_t mode;
	int error = examine(walker->listing->fd, entry, &mode);
	int rc;

	if (error != 0) {
		return pin_walker_visit_error(walker, entry->name, error);
	}
	rc = pin_walker_look(walker, &found, mode, &is_directory);
	if (rc == 0 && is_directory && walker->walk->share != NULL) {
		rc = pin_walker_share(walker, &found, &is_shared);
	}
	if (rc == 0 && is_directory && !is_shared) {
		keep_name(walker->listing, &found);
	}
	return rc;
}

static bool is_dot(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

static enum pin_listing_state end(struct pin_walker *walker, int rc)
{
	walker->rc = rc;
	return rc == 0 ? PIN_LISTING_DONE : PIN_LISTING_ENDED;
}

/* In place of the last part. */
enum pin_listing_state pin_walker_read(struct pin_walker *walker)
{
	struct pin_listing *listing = walker->listing;
	long bytes;

	PIN_CHECK(listing->kept_bytes == 0); /* taken */
	if (!pin_walker_has_room(walker, 0)) {
		return PIN_LISTING_FULL;
	}
	bytes = pin_walk_is_partial(walker->walk, listing->directory)
		? pin_walk_part_read(walker->walk, listing)
		: syscall(SYS_getdents64, listing->fd, listing->list, PIN_WALK_LIST_BYTES);
	/* Entries listed so far count; the rest is one failure. */
	if (bytes <= 0) {
		return end(walker, bytes == 0 ? 0 : pin_walker_visit_error(walker, NULL, -errno));
	}
	PIN_CHECK(bytes <= (long)PIN_WALK_LIST_BYTES);
	listing->position = 0;
	listing->end = (uint32_t)bytes;
	return PIN_LISTING_READ;
}

enum pin_listing_state pin_walker_list(struct pin_walker *walker)
{
	struct pin_listing *listing = walker->listing;

	if (listing->position == listing->end) {
		enum pin_listing_state state = pin_walker_read(walker);

		if (state != PIN_LISTING_READ) {
			return state;
		}
	}
	while (listing->position < listing->end) {
		const struct pin_list_entry *entry =
			(const void *)((const char *)listing->list + listing->position);
		uint32_t record_bytes = entry->record_bytes;
		int rc;

		/* A name is shorter than its record. */
		if (!pin_walker_has_room(walker, record_bytes)) {
			return PIN_LISTING_FULL;
		}
		rc = is_dot(entry->name) ? 0 : list_one(walker, entry);
		if (rc != 0) {
			return end(walker, rc);
		}
		PIN_CHECK(record_bytes > 0);
		PIN_CHECK(record_bytes <= listing->end - listing->position);
		listing->position += record_bytes;
	}
	return PIN_LISTING_READ;
}

bool pin_walker_next(struct pin_walker *walker, struct pin_walk_name *out_name)
{
	struct pin_listing *listing = walker->listing;

	while (listing->position < listing->end) {
		const struct pin_list_entry *entry =
			(const void *)((const char *)listing->list + listing->position);
		struct pin_walk_found found = {.name = entry->name};

		PIN_CHECK(entry->record_bytes > 0);
		listing->position += entry->record_bytes;
		if (is_dot(entry->name)) {
			continue;
		}
		*out_name = (struct pin_walk_name){.text = entry->name};
		out_name->error = examine(listing->fd, entry, &out_name->mode);
		found.sight.mode = out_name->mode;
		if (walker->walk->follows && S_ISLNK(out_name->mode)) {
			follow(walker, &found);
		}
		out_name->is_directory = S_ISDIR(found.sight.mode);
		return true;
	}
	return false;
}

/* ---- directories ---- */

/* The anchor gives up its descriptor where no other is left. */
static int open_beneath(struct pin_walker *walker, int flags)
{
	const struct pin_walk *walk = walker->walk;
	const char *path = walker->path.bytes + walk->names_start;
	size_t bytes = walker->path.length - walk->names_start;
	size_t start;
	int from_fd =
		pin_anchor_reach(walk->host, &walker->anchor, walk->root_fd, path, bytes, &start);
	int fd = pin_beneath_open(from_fd, path + start, flags);

	if ((fd == -EMFILE || fd == -ENFILE) && pin_anchor_drop(&walker->anchor)) {
		fd = pin_beneath_open(walk->root_fd, path, flags);
	}
	return fd;
}

/* Opens the directory whose path is the walker's. */
static int open_directory(struct pin_walker *walker, const struct pin_directory *directory)
{
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOCTTY;
	struct pin_walk *walk = walker->walk;

	if (directory->depth > 0) {
		PIN_CHECK(walker->path.length > walk->names_start);
		return walk->follows ? pin_open_long(walker->path.bytes, flags)
				     : open_beneath(walker, flags);
	}
	PIN_CHECK(walk->root_fd < 0);
	walk->root_fd = pin_open_long(walker->path.bytes, flags);
	return walk->root_fd;
}

/*
 * Notes the identity of an open directory. -ELOOP when it is one of those above
 * it, which bind mounts and broken file systems can do.
 */
static int identify(struct pin_walk *walk, struct pin_directory *directory, int fd)
{
	struct stat status;

	if (fstat(fd, &status) != 0) {
		return -errno;
	}
	directory->device = status.st_dev;
	directory->inode = status.st_ino;
	if (directory->depth == 0) {
		walk->root_device = status.st_dev;
	}
	for (const struct pin_directory *above = directory->parent; above != NULL;
		above = above->parent) {
		if (above->inode == status.st_ino && above->device == status.st_dev) {
			return -ELOOP;
		}
	}
	return 0;
}

/* An open one for the directory; NULL: no memory, and `fd` is closed. */
static struct pin_listing *listing_create(
	struct pin_walker *walker, struct pin_directory *directory, int fd)
{
	struct pin_listing *listing = walker->spare;

	if (listing == NULL) {
		listing =
			pin_heap_allocate(walker->walk->host, PIN_HEAP_ALIGN, 1, sizeof(*listing));
	}
	if (listing == NULL) {
		return NULL;
	}
	walker->spare = NULL;
	listing->directory = directory;
	listing->fd = fd;
	listing->position = 0;
	listing->end = 0;
	listing->kept_bytes = 0;
	listing->kept_count = 0;
	listing->part_position = 0;
	listing->errors = (struct pin_ignore_errors){.of = {0}};
	return listing;
}

static void close_directory(const struct pin_walk *walk, int fd)
{
	if (fd != walk->root_fd) {
		close(fd);
	}
}

/* The directory cannot be entered; its path is the walker's. */
static enum pin_listing_state refuse(struct pin_walker *walker, int error)
{
	bool is_wanting = error == -EMFILE || error == -ENFILE;

	if (is_wanting && walker->is_patient) {
		return PIN_LISTING_WANTING;
	}
	walker->rc = error == -ENOMEM ? error : pin_walker_visit_error(walker, NULL, error);
	pin_directory_release(walker->walk, walker->directory);
	return walker->rc == 0 ? PIN_LISTING_DONE : PIN_LISTING_ENDED;
}

static bool is_elsewhere(const struct pin_walk *walk, const struct pin_directory *directory)
{
	return walk->filter != NULL && walk->filter->config.one_file_system != 0 &&
		directory->device != walk->root_device;
}

/* The open directory is on another file system than the root. */
static enum pin_listing_state leave_out(struct pin_walker *walker)
{
	walker->rc = pin_walker_visit(walker,
		&(struct pin_walk_found){
			.sight =
				{
					.kind = PINION_WALK_IGNORED,
					.mode = S_IFDIR,
					.reason = PINION_WALK_BY_FILE_SYSTEM,
				},
		});
	pin_walker_close(walker);
	return walker->rc == 0 ? PIN_LISTING_DONE : PIN_LISTING_ENDED;
}

enum pin_listing_state pin_walker_open(struct pin_walker *walker, struct pin_directory *directory)
{
	const struct pin_walk *walk = walker->walk;
	int error;
	int fd;

	PIN_CHECK(walker->listing == NULL && walker->rc == 0);
	PIN_CHECK(pin_walker_may_open(walker));
	walker->directory = directory;
	error = pin_walk_path_of(walk, &walker->path, directory);
	if (error != 0) {
		return refuse(walker, error);
	}
	fd = open_directory(walker, directory);
	if (fd < 0) {
		return refuse(walker, fd);
	}
	error = identify(walker->walk, directory, fd);
	if (error == 0) {
		walker->listing = listing_create(walker, directory, fd);
		error = walker->listing == NULL ? -ENOMEM : 0;
	}
	if (error != 0) {
		close_directory(walk, fd);
		return refuse(walker, error);
	}
	if (is_elsewhere(walk, directory)) {
		return leave_out(walker);
	}
	walker->rc = walk->has_ignores ? pin_walker_read_ignores(walker) : 0;
	return walker->rc == 0 ? PIN_LISTING_READ : PIN_LISTING_ENDED;
}

int pin_walker_resume(struct pin_walker *walker, struct pin_listing *listing)
{
	const struct pin_walk *walk = walker->walk;
	int rc = pin_walk_path_of(walk, &walker->path, listing->directory);

	PIN_CHECK(walker->listing == NULL && listing->fd >= 0);
	walker->listing = listing;
	walker->directory = listing->directory;
	return rc == 0 && walk->has_ignores ? pin_walker_set_match(walker) : rc;
}

void pin_walker_leave(struct pin_walker *walker)
{
	if (walker->listing->fd >= 0) {
		close_directory(walker->walk, walker->listing->fd);
	}
	PIN_CHECK(walker->spare == NULL);
	walker->spare = walker->listing;
	walker->listing = NULL;
}

int pin_walker_return(struct pin_walker *walker, struct pin_directory *directory, bool opens)
{
	const struct pin_walk *walk = walker->walk;
	int rc = pin_walk_path_of(walk, &walker->path, directory);
	int fd = -1;

	PIN_CHECK(walker->listing == NULL && walker->spare != NULL);
	if (rc == 0 && opens) {
		fd = directory->depth == 0 ? walk->root_fd : open_directory(walker, directory);
		rc = fd < 0 ? fd : lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0;
	}
	walker->directory = directory;
	walker->listing = listing_create(walker, directory, fd);
	return rc == 0 && walk->has_ignores ? pin_walker_set_match(walker) : rc;
}

struct pin_names *pin_walker_take_names(struct pin_walker *walker)
{
	struct pin_listing *listing = walker->listing;
	struct pin_names *names;

	if (listing->kept_bytes == 0) {
		return NULL;
	}
	names = pin_names_create(
		walker->walk, listing->list, listing->kept_bytes, listing->kept_count);
	listing->kept_bytes = 0;
	listing->kept_count = 0;
	walker->rc = names == NULL ? -ENOMEM : 0;
	return names;
}

static void listing_free(const struct pin_walk *walk, struct pin_listing *listing)
{
	pin_heap_release(walk->host, listing, PIN_HEAP_ALIGN, 1, sizeof(*listing));
}

void pin_walker_close(struct pin_walker *walker)
{
	struct pin_listing *listing = walker->listing;

	close_directory(walker->walk, listing->fd);
	pin_directory_release(walker->walk, listing->directory);
	walker->listing = NULL;
	if (walker->spare == NULL) {
		walker->spare = listing;
	} else {
		listing_free(walker->walk, listing);
	}
}

void pin_walker_fini(struct pin_walker *walker)
{
	const struct pin_walk *walk = walker->walk;

	if (walker->listing != NULL) {
		pin_walker_close(walker);
	}
	listing_free(walk, walker->spare);
	walker->spare = NULL;
	pin_walk_path_free(walk, &walker->path);
	pin_walk_path_free(walk, &walker->match);
	pin_anchor_fini(walk->host, &walker->anchor);
}

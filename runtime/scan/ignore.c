/* SPDX-License-Identifier: MIT */
/*
 * The ignore files on the way from the repository's top to a directory that is
 * being walked.
 *
 * The walk makes a level for each directory that has rules, and asks it for
 * each entry; gitignore.c applies the rules of a single file.
 *
 * Invariant: memory and time are bounded by the limits of ignore.h, whatever
 * the files contain.
 */
#include "runtime/scan/ignore.h"

#include "runtime/base/check.h"
#include "runtime/host/heap.h"
#include "runtime/host/long_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	/* A read that is interrupted, or refused for now, is made again. */
	RETRIES_MAX = 64,
};

const char *const pin_ignore_names[PIN_IGNORE_FILES] = {
	".git/info/exclude", /* only where there is a repository */
	".gitignore",
	".ignore",
	".pinionignore",
};

/* ---- one file ---- */

/* Up to `bytes_max` bytes; as many: there may be more. */
static ssize_t read_text(int fd, char *text, size_t bytes_max)
{
	size_t length = 0;
	int retries = 0;

	while (length < bytes_max) {
		ssize_t count = pread(fd, text + length, bytes_max - length, (off_t)length);

		if (count == 0) {
			break;
		}
		if (count > 0) {
			length += (size_t)count;
		} else if ((errno != EINTR && errno != EAGAIN) || ++retries > RETRIES_MAX) {
			return -errno;
		}
	}
	PIN_DCHECK(length <= bytes_max);
	return (ssize_t)length;
}

/*
 * Reads at most the limit and one byte more, so that a file that grows is
 * noticed and refused, not cut.
 */
static int read_open(struct pin_ignore_level *level, int fd)
{
	size_t left = PIN_IGNORE_BYTES_MAX - level->text_bytes;
	struct stat status;
	ssize_t length;
	size_t most;
	char *text;
	int rc;

	PIN_CHECK(level->text_bytes <= PIN_IGNORE_BYTES_MAX);
	if (fstat(fd, &status) != 0) {
		return -errno;
	}
	if (!S_ISREG(status.st_mode)) {
		return 0;
	}
	most = left < PIN_IGNORE_FILE_BYTES_MAX ? left : PIN_IGNORE_FILE_BYTES_MAX;
	if ((uint64_t)status.st_size > most) {
		return -EFBIG;
	}
	/*
	 * Of a file that has no size, or grows meanwhile, 4096 bytes are read.
	 */
	most = status.st_size > PIN_IGNORE_LINE_BYTES_MAX ? (size_t)status.st_size
							  : PIN_IGNORE_LINE_BYTES_MAX;
	text = pin_ignore_rules_reserve(&level->rules, most + 1);
	if (text == NULL) {
		return -ENOMEM;
	}
	length = read_text(fd, text, most + 1);
	if (length < 0) {
		return (int)length;
	}
	if ((size_t)length > most || (size_t)length > left) {
		return -EFBIG;
	}
	rc = pin_ignore_rules_add(&level->rules, (size_t)length);
	if (rc == 0) {
		level->text_bytes += (size_t)length;
		PIN_DCHECK(level->text_bytes <= PIN_IGNORE_BYTES_MAX);
	}
	return rc;
}

/*
 * 0 also where there is no such file, or a file that the walk shows as it is: a
 * link, a FIFO, a directory.
 */
static int read_name(struct pin_ignore_level *level, int directory_fd, const char *name)
{
	struct stat status;
	int fd;
	int rc;

	if (fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0) {
		/* Where nothing may be looked at, nothing may be read. */
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 0 : -errno;
	}
	if (!S_ISREG(status.st_mode)) {
		return 0;
	}
	/* It may have become a FIFO or a link since. */
	fd = pin_beneath_open(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		return fd == -ENOENT ? 0 : fd;
	}
	rc = read_open(level, fd);
	close(fd);
	return rc;
}

/*
 * As read_name(), for a file in folders of the directory: these are no links
 * either.
 */
static int read_file(struct pin_ignore_level *level, int directory_fd, const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[NAME_MAX + 1];
	struct stat status;
	int folder_fd;
	int rc;

	if (slash == NULL) {
		return read_name(level, directory_fd, path);
	}
	/* Mostly there is none, and no descriptor is needed to see that. */
	if (fstatat(directory_fd, path, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0 &&
		errno == ENOENT) {
		return 0;
	}
	PIN_CHECK((size_t)(slash - path) < sizeof(folder));
	memcpy(folder, path, (size_t)(slash - path));
	folder[slash - path] = '\0';
	folder_fd = pin_beneath_open(directory_fd, folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder_fd < 0) {
		return folder_fd == -ENOENT || folder_fd == -ENOTDIR || folder_fd == -EACCES ||
				folder_fd == -EXDEV
			? 0
			: folder_fd;
	}
	rc = read_name(level, folder_fd, slash + 1);
	close(folder_fd);
	return rc;
}

/* ---- levels ---- */

static bool is_repository(int directory_fd, const char *path, struct stat *out_status)
{
	return fstatat(directory_fd, path, out_status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) ==
		0 &&
		(S_ISDIR(out_status->st_mode) || S_ISREG(out_status->st_mode));
}

/* Reads what the directory has. */
static int fill_level(
	struct pin_ignore_level *level, int directory_fd, struct pin_ignore_errors *out_errors)
{
	struct stat status;

	PIN_DCHECK(level->rules.text_bytes == 0 && level->rules.count == 0); /* read once */
	level->is_top = is_repository(directory_fd, ".git", &status);
	for (size_t i = 0; i < PIN_IGNORE_FILES; i++) {
		bool is_wanted = i > 0 || (level->is_top && S_ISDIR(status.st_mode));

		out_errors->of[i] =
			is_wanted ? read_file(level, directory_fd, pin_ignore_names[i]) : 0;
		if (out_errors->of[i] == -ENOMEM) {
			return -ENOMEM;
		}
	}
	pin_ignore_rules_trim(&level->rules);
	return 0;
}

void pin_ignore_level_free(const struct pin_host *host, struct pin_ignore_level *level)
{
	if (level != NULL) {
		pin_ignore_rules_fini(&level->rules);
		pin_heap_release(host, level, PIN_HEAP_ALIGN, 1, sizeof(*level));
	}
}

/* Most directories have none, and the level is only on the stack. */
int pin_ignore_read(const struct pin_host *host, const struct pin_ignore_level *above,
	int directory_fd, size_t names_start, struct pin_ignore_level **out_level,
	struct pin_ignore_errors *out_errors)
{
	struct pin_ignore_level level = {
		.above = above,
		.rules.host = host,
		.names_start = names_start,
		.text_bytes = above == NULL ? 0 : above->text_bytes,
	};
	struct pin_ignore_level *kept;
	int rc = fill_level(&level, directory_fd, out_errors);

	PIN_DCHECK(above == NULL || names_start > above->names_start);
	*out_level = NULL;
	if (rc == 0 && !level.is_top && level.rules.count == 0) {
		pin_ignore_rules_fini(&level.rules);
		return 0;
	}
	kept = rc == 0 ? pin_heap_allocate(host, PIN_HEAP_ALIGN, 1, sizeof(*kept)) : NULL;
	if (kept == NULL) {
		pin_ignore_rules_fini(&level.rules);
		return -ENOMEM;
	}
	*kept = level;
	*out_level = kept;
	return 0;
}

/* ---- above the root ---- */

/* Of the directory that this one is in; 1: that is "/". */
static size_t parent_bytes(const char *path, size_t bytes)
{
	PIN_DCHECK(path[0] == '/' && bytes > 1);
	while (bytes > 1 && path[bytes - 1] != '/') {
		bytes--;
	}
	return bytes > 1 ? bytes - 1 : bytes;
}

/*
 * Searches for `.git` in the first `bytes` bytes of `path`, which has room
 * after them.
 */
static bool has_repository(char *path, size_t bytes, uid_t *out_owner)
{
	static const char name[] = "/.git";
	char kept[sizeof(name)];
	struct stat status;
	bool has_one;

	memcpy(kept, path + bytes, sizeof(name));
	memcpy(path + bytes, name, sizeof(name));
	has_one = is_repository(AT_FDCWD, path, &status);
	memcpy(path + bytes, kept, sizeof(name));
	*out_owner = has_one ? status.st_uid : 0;
	return has_one;
}

/*
 * The length of the path of the repository around the root, as git finds it;
 * that of the root where there is none, or none whose files are trusted: they
 * are the root owner's or the caller's.
 */
static size_t find_repository(struct pin_ignore *ignore, uid_t owner)
{
	size_t top_bytes = ignore->root_bytes;
	uid_t top_owner;

	while (!has_repository(ignore->root, top_bytes, &top_owner)) {
		if (top_bytes == 1) {
			return ignore->root_bytes;
		}
		top_bytes = parent_bytes(ignore->root, top_bytes);
	}
	return top_owner == owner || top_owner == geteuid() ? top_bytes : ignore->root_bytes;
}

enum { ROOT_CAPACITY = PATH_MAX + 8 }; /* "/.git" may be put after it */

int pin_ignore_begin(
	struct pin_ignore *ignore, const struct pin_host *host, const char *root, uid_t owner)
{
	PIN_DCHECK(ignore->root == NULL && ignore->above == NULL);
	ignore->host = host;
	ignore->root = pin_heap_allocate(host, PIN_HEAP_ALIGN, ROOT_CAPACITY, 1);
	if (ignore->root == NULL) {
		return -ENOMEM;
	}
	/* A path that is too long has no repository around it. */
	if (realpath(root, ignore->root) == NULL) {
		return 0;
	}
	ignore->root_bytes = strlen(ignore->root);
	PIN_DCHECK(ignore->root[0] == '/' && ignore->root_bytes < PATH_MAX);
	ignore->above_bytes = find_repository(ignore, owner);
	/* A root that is "/" brings its slash. */
	if (ignore->root_bytes > 1) {
		ignore->root[ignore->root_bytes] = '/';
		ignore->root_bytes++;
	}
	return 0;
}

/* The directory whose path is the first bytes of the root's. */
static int open_above(struct pin_ignore *ignore, size_t bytes)
{
	char kept = ignore->root[bytes];
	int fd;

	PIN_CHECK(bytes > 0 && bytes < ignore->root_bytes);
	ignore->root[bytes] = '\0';
	fd = open(ignore->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ignore->root[bytes] = kept;
	return fd < 0 ? -errno : fd;
}

int pin_ignore_read_above(
	struct pin_ignore *ignore, size_t *out_path_bytes, struct pin_ignore_errors *out_errors)
{
	size_t bytes = ignore->above_bytes;
	size_t names_start = bytes == 1 ? 1 : bytes + 1;
	struct pin_ignore_level *level = NULL;
	const char *slash;
	int rc = 0;
	int fd;

	/* The root itself, with the slash after it, is the walk's to read. */
	if (names_start >= ignore->root_bytes) {
		return 0;
	}
	*out_errors = (struct pin_ignore_errors){.of = {0}};
	fd = open_above(ignore, bytes);
	if (fd < 0) {
		out_errors->of[PIN_IGNORE_FILES - 1] = fd == -ENOENT ? 0 : fd;
	} else {
		rc = pin_ignore_read(
			ignore->host, ignore->above, fd, names_start, &level, out_errors);
		close(fd);
	}
	if (level != NULL) {
		ignore->above = level;
	}
	slash = memchr(ignore->root + names_start, '/', ignore->root_bytes - names_start);
	PIN_CHECK(slash != NULL); /* that after the root */
	ignore->above_bytes = (size_t)(slash - ignore->root);
	*out_path_bytes = bytes;
	return rc == 0 ? 1 : rc;
}

/* ---- the tree ---- */

/*
 * The deepest level that has an opinion decides, as in git; a nested repository
 * ends the search upwards.
 */
bool pin_ignore_hides(const struct pin_ignore_level *level, const char *path, size_t path_bytes,
	size_t name_bytes, bool is_directory)
{
	struct pin_ignore_path asked = {.name_bytes = name_bytes, .is_directory = is_directory};

	PIN_DCHECK(path[path_bytes] == '\0' && name_bytes > 0 && name_bytes <= path_bytes);
	if (strcmp(path + path_bytes - name_bytes, ".git") == 0) {
		return true;
	}
	for (; level != NULL && level->text_bytes > 0; level = level->above) {
		enum pin_ignore_verdict verdict;

		PIN_DCHECK(level->names_start <= path_bytes - name_bytes);
		asked.bytes = path + level->names_start;
		asked.path_bytes = path_bytes - level->names_start;
		verdict = pin_ignore_rules_decide(&level->rules, &asked);
		if (verdict != PIN_IGNORE_SILENT) {
			return verdict == PIN_IGNORE_HIDES;
		}
		if (level->is_top) {
			break;
		}
	}
	return false;
}

bool pin_ignore_has_failed(const struct pin_ignore_errors *errors, const char *name)
{
	for (size_t i = 0; i < PIN_IGNORE_FILES; i++) {
		if (errors->of[i] != 0 && strcmp(name, pin_ignore_names[i]) == 0) {
			return true;
		}
	}
	return false;
}

void pin_ignore_fini(struct pin_ignore *ignore)
{
	while (ignore->above != NULL) {
		struct pin_ignore_level *level = ignore->above;

		/* Made by us, and by none else. */
		ignore->above = (struct pin_ignore_level *)(uintptr_t)level->above;
		pin_ignore_level_free(ignore->host, level);
	}
	pin_heap_release(ignore->host, ignore->root, PIN_HEAP_ALIGN, ROOT_CAPACITY, 1);
	*ignore = (struct pin_ignore){.root = NULL};
}

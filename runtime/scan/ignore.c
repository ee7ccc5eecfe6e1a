/* SPDX-License-Identifier: MIT */
/*
 * The stack of ignore files on the way from the repository's top to the
 * directory that is being walked.
 *
 * walk.c enters and leaves directories and asks for each entry; gitignore.c has
 * the rules of one file.
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
	/* What getdents64 lists at once holds no longer name: LIST_BYTES. */
	NAME_BYTES_MAX = 64 << 10,
	/* A read that is interrupted, or refused for now, is made again. */
	RETRIES_MAX = 64,
	LEVELS_FIRST = 16,
};

const char *const pin_ignore_names[PIN_IGNORE_FILES] = {
	".git/info/exclude", /* only where there is a repository */
	".gitignore",
	".ignore",
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
static int read_open(struct pin_ignore *ignore, struct pin_ignore_rules *rules, int fd)
{
	size_t left = PIN_IGNORE_BYTES_MAX - ignore->text_bytes;
	struct stat status;
	ssize_t length;
	size_t most;
	char *text;
	int rc;

	PIN_CHECK(ignore->text_bytes <= PIN_IGNORE_BYTES_MAX);
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
	text = pin_ignore_rules_reserve(rules, most + 1);
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
	rc = pin_ignore_rules_add(rules, (size_t)length);
	if (rc == 0) {
		ignore->text_bytes += (size_t)length;
		PIN_DCHECK(ignore->text_bytes <= PIN_IGNORE_BYTES_MAX);
	}
	return rc;
}

/*
 * 0 also where there is no such file, or a file that the walk shows as it is: a
 * link, a FIFO, a directory.
 */
static int read_name(struct pin_ignore *ignore, struct pin_ignore_rules *rules, int directory_fd,
	const char *name)
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
	rc = read_open(ignore, rules, fd);
	close(fd);
	return rc;
}

/*
 * As read_name(), for a file in folders of the directory: these are no links
 * either.
 */
static int read_file(struct pin_ignore *ignore, struct pin_ignore_rules *rules, int directory_fd,
	const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[NAME_MAX + 1];
	struct stat status;
	int folder_fd;
	int rc;

	if (slash == NULL) {
		return read_name(ignore, rules, directory_fd, path);
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
	rc = read_name(ignore, rules, folder_fd, slash + 1);
	close(folder_fd);
	return rc;
}

/* ---- levels ---- */

/* Levels from here on are of directories that the walk has left. */
static void drop_levels(struct pin_ignore *ignore, size_t count)
{
	while (ignore->count > count) {
		struct pin_ignore_rules *rules = &ignore->levels[--ignore->count].rules;

		PIN_CHECK(rules->text_bytes <= ignore->text_bytes);
		ignore->text_bytes -= rules->text_bytes;
		pin_ignore_rules_fini(rules);
	}
	PIN_DCHECK(ignore->count > 0 || ignore->text_bytes == 0);
}

static int push_level(struct pin_ignore *ignore, size_t names_start)
{
	/* Names in a directory start after those in the one above it. */
	PIN_DCHECK(
		ignore->count == 0 || names_start > ignore->levels[ignore->count - 1].names_start);
	PIN_DCHECK(names_start <= ignore->path_capacity);
	if (ignore->count == ignore->capacity) {
		size_t capacity = ignore->capacity == 0 ? LEVELS_FIRST : 2 * ignore->capacity;
		size_t bytes = ignore->capacity * sizeof(*ignore->levels);
		struct pin_ignore_level *grown = pin_heap_resize(
			ignore->host, ignore->levels, bytes, bytes, capacity * sizeof(*grown));

		if (grown == NULL) {
			return -ENOMEM;
		}
		ignore->levels = grown;
		ignore->capacity = capacity;
	}
	PIN_DCHECK(ignore->count < ignore->capacity);
	ignore->levels[ignore->count++] = (struct pin_ignore_level){
		.rules.host = ignore->host,
		.names_start = names_start,
	};
	return 0;
}

static bool is_repository(int directory_fd, const char *path, struct stat *out_status)
{
	return fstatat(directory_fd, path, out_status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) ==
		0 &&
		(S_ISDIR(out_status->st_mode) || S_ISREG(out_status->st_mode));
}

/* Reads what the directory of the last level has. */
static int fill_level(struct pin_ignore *ignore, int directory_fd)
{
	struct pin_ignore_level *level = &ignore->levels[ignore->count - 1];
	struct stat status;

	PIN_DCHECK(ignore->count > 0 && ignore->count <= ignore->capacity);
	PIN_DCHECK(level->rules.text_bytes == 0 && level->rules.count == 0); /* read once */
	level->is_top = is_repository(directory_fd, ".git", &status);
	for (size_t i = 0; i < PIN_IGNORE_FILES; i++) {
		bool is_wanted = i > 0 || (level->is_top && S_ISDIR(status.st_mode));

		ignore->errors[i] = is_wanted
			? read_file(ignore, &level->rules, directory_fd, pin_ignore_names[i])
			: 0;
		if (ignore->errors[i] == -ENOMEM) {
			return -ENOMEM;
		}
	}
	pin_ignore_rules_trim(&level->rules);
	return 0;
}

/* The path only grows; levels refer to it by offsets, so it may move. */
static int path_reserve(struct pin_ignore *ignore, size_t bytes)
{
	size_t capacity = ignore->path_capacity == 0 ? PATH_MAX : ignore->path_capacity;
	char *grown;

	PIN_DCHECK(bytes <= SIZE_MAX / 2); /* so that doubling ends */
	while (capacity < bytes) {
		capacity *= 2;
	}
	if (capacity == ignore->path_capacity) {
		return 0;
	}
	grown = pin_heap_resize(
		ignore->host, ignore->path, ignore->path_capacity, ignore->path_capacity, capacity);
	if (grown == NULL) {
		return -ENOMEM;
	}
	ignore->path = grown;
	ignore->path_capacity = capacity;
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

/* Pushes a level for each directory from the top down to the root's parent. */
static int push_above(struct pin_ignore *ignore, size_t top_bytes)
{
	size_t root_bytes = ignore->root_bytes;
	int rc = 0;

	PIN_DCHECK(ignore->count == 0 && top_bytes > 0 && top_bytes <= root_bytes);
	for (size_t bytes = top_bytes; rc == 0 && bytes < root_bytes;) {
		size_t start = bytes == 1 ? 1 : bytes + 1;
		const char *slash = memchr(ignore->path + start, '/', root_bytes - start);

		PIN_DCHECK(start < root_bytes && ignore->path[start] != '/');
		rc = push_level(ignore, start);
		ignore->above_count = ignore->count;
		bytes = slash == NULL ? root_bytes : (size_t)(slash - ignore->path);
	}
	return rc;
}

/*
 * Finds the repository around the root, as git does, and trusts its files only
 * if they are the root owner's or the caller's.
 */
int pin_ignore_begin(
	struct pin_ignore *ignore, const struct pin_host *host, const char *root, uid_t owner)
{
	size_t top_bytes;
	uid_t top_owner;
	int rc;

	PIN_DCHECK(ignore->count == 0 && ignore->levels == NULL && ignore->path == NULL);
	ignore->host = host;
	rc = path_reserve(ignore, PATH_MAX + sizeof("/.git"));
	if (rc != 0) {
		return rc;
	}
	/* A path that is too long has no repository around it. */
	if (realpath(root, ignore->path) == NULL) {
		return 0;
	}
	ignore->root_bytes = strlen(ignore->path);
	PIN_DCHECK(ignore->path[0] == '/' && ignore->root_bytes < PATH_MAX);
	top_bytes = ignore->root_bytes;
	while (!has_repository(ignore->path, top_bytes, &top_owner)) {
		if (top_bytes == 1) {
			return 0;
		}
		top_bytes = parent_bytes(ignore->path, top_bytes);
	}
	if (top_owner != owner && top_owner != geteuid()) {
		return 0;
	}
	return push_above(ignore, top_bytes);
}

/*
 * Reads the ignore files of one directory above the root; files that cannot be
 * read are in `errors`, for the walk to report.
 */
int pin_ignore_enter_above(struct pin_ignore *ignore, size_t level, size_t *out_path_bytes)
{
	size_t start = ignore->levels[level].names_start;
	size_t bytes = start > 1 ? start - 1 : start;
	char kept = ignore->path[bytes];
	size_t count = ignore->count;
	int rc = 0;
	int fd;

	PIN_CHECK(level < ignore->above_count && ignore->above_count <= ignore->count);
	PIN_DCHECK(bytes > 0 && bytes < ignore->root_bytes);
	memset(ignore->errors, 0, sizeof(ignore->errors));
	ignore->path[bytes] = '\0';
	fd = open(ignore->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ignore->path[bytes] = kept;
	if (fd < 0) {
		ignore->errors[PIN_ARRAY_COUNT(pin_ignore_names) - 1] =
			errno == ENOENT ? 0 : -errno;
	} else {
		ignore->count = level + 1;
		rc = fill_level(ignore, fd);
		ignore->count = count;
		close(fd);
	}
	*out_path_bytes = bytes;
	return rc;
}

/* ---- the tree ---- */

/*
 * A level for each directory on the path; levels of a branch that was left are
 * dropped first.
 */
int pin_ignore_enter(struct pin_ignore *ignore, int directory_fd, size_t depth, const char *name,
	size_t name_bytes)
{
	size_t level = ignore->above_count + depth;
	size_t names_start;
	int rc;

	PIN_CHECK(level <= ignore->count);
	drop_levels(ignore, level);
	names_start = depth == 0 ? ignore->root_bytes : ignore->levels[level - 1].names_start;
	name_bytes = depth == 0 ? 0 : name_bytes;
	rc = path_reserve(ignore, names_start + name_bytes + 1 + NAME_BYTES_MAX);
	if (rc != 0) {
		return rc;
	}
	PIN_CHECK(name_bytes <= NAME_BYTES_MAX);
	memcpy(ignore->path + names_start, name, name_bytes);
	names_start += name_bytes;
	/* A root that is "/" brings its slash, and one unknown needs none. */
	if (names_start > 1 || depth > 0) {
		ignore->path[names_start++] = '/';
	}
	rc = push_level(ignore, names_start);
	PIN_DCHECK(rc != 0 || ignore->count == level + 1); /* invariant 1 */
	return rc != 0 ? rc : fill_level(ignore, directory_fd);
}

/*
 * The deepest level that has an opinion decides, as in git; a nested repository
 * ends the search upwards.
 */
bool pin_ignore_hides(
	struct pin_ignore *ignore, const char *name, size_t name_bytes, bool is_directory)
{
	struct pin_ignore_path path = {.name_bytes = name_bytes, .is_directory = is_directory};
	size_t path_end;

	if (strcmp(name, ".git") == 0) {
		return true;
	}
	PIN_DCHECK(ignore->count > 0 && name[name_bytes] == '\0' && name_bytes > 0);
	if (ignore->text_bytes == 0) {
		return false;
	}
	path_end = ignore->levels[ignore->count - 1].names_start + name_bytes;
	PIN_CHECK(path_end <= ignore->path_capacity);
	memcpy(ignore->path + path_end - name_bytes, name, name_bytes);
	for (size_t i = ignore->count; i > 0; i--) {
		const struct pin_ignore_level *level = &ignore->levels[i - 1];
		enum pin_ignore_verdict verdict;

		PIN_DCHECK(level->names_start <= path_end - name_bytes);
		path.bytes = ignore->path + level->names_start;
		path.path_bytes = path_end - level->names_start;
		verdict = pin_ignore_rules_decide(&level->rules, &path);
		if (verdict != PIN_IGNORE_SILENT) {
			return verdict == PIN_IGNORE_HIDES;
		}
		if (level->is_top) {
			break;
		}
	}
	return false;
}

bool pin_ignore_has_failed(const struct pin_ignore *ignore, const char *name)
{
	for (size_t i = 0; i < PIN_IGNORE_FILES; i++) {
		if (ignore->errors[i] != 0 && strcmp(name, pin_ignore_names[i]) == 0) {
			return true;
		}
	}
	return false;
}

void pin_ignore_fini(struct pin_ignore *ignore)
{
	drop_levels(ignore, 0);
	pin_heap_release(ignore->host, ignore->levels, PIN_HEAP_ALIGN,
		ignore->capacity * sizeof(*ignore->levels), 1);
	pin_heap_release(ignore->host, ignore->path, PIN_HEAP_ALIGN, ignore->path_capacity, 1);
	*ignore = (struct pin_ignore){.count = 0};
}

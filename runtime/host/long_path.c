/* SPDX-License-Identifier: MIT */
/*
 * Pieces end at a slash and are as long as the kernel takes. The directories
 * between them are opened with O_PATH, which asks for search permission only,
 * as resolving the path in one go would.
 */
#include "runtime/host/long_path.h"
#include "runtime/base/atomic.h"
#include "runtime/base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20u /* Linux 5.12, linux/openat2.h */
#endif

/* Short of PATH_MAX by a long name and more, so that it fits on the stack. */
#define PIECE_BYTES_MAX ((size_t)PATH_MAX - 512)

/* Bytes of `path` before the last slash that still fits, 0: there is none. */
static size_t piece_length(const char *path)
{
	size_t length = PIECE_BYTES_MAX;

	PIN_DCHECK(strlen(path) > length); /* short ones are opened in one go */
	while (length > 0 && path[length] != '/') {
		length--;
	}
	return length;
}

static int open_piece(int directory_fd, const char *path, size_t length)
{
	char piece[PIECE_BYTES_MAX + 1];
	int fd;

	PIN_CHECK(length < sizeof(piece));
	PIN_DCHECK(path[length] == '/'); /* no part is cut */
	memcpy(piece, path, length);
	piece[length] = '\0';
	fd = openat(directory_fd, piece, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * Opens a path of any length, piece by piece, as openat(2) takes less than
 * PATH_MAX bytes at once.
 */
int pin_open_long(const char *path, int flags)
{
	int saved_errno = errno;
	int directory_fd = AT_FDCWD;
	int fd;

	PIN_CHECK((flags & O_CREAT) == 0); /* there is no mode */
	for (size_t rest = strlen(path); rest >= PATH_MAX;) {
		size_t length = piece_length(path);
		int next_fd = length == 0 ? -ENAMETOOLONG : open_piece(directory_fd, path, length);

		if (directory_fd >= 0) {
			close(directory_fd);
		}
		if (next_fd < 0) {
			errno = saved_errno;
			return next_fd;
		}
		directory_fd = next_fd;
		/* A rest that begins with a slash would start at the root. */
		while (path[length] == '/') {
			length++;
		}
		PIN_CHECK(length <= rest);
		path += length;
		rest -= length;
	}
	/* Nothing is left when a piece ended at the path's trailing slash. */
	fd = openat(directory_fd, directory_fd >= 0 && *path == '\0' ? "." : path, flags);
	if (fd < 0) {
		fd = -errno;
	}
	if (directory_fd >= 0) {
		close(directory_fd);
	}
	errno = saved_errno;
	return fd;
}

/* ---- beneath a directory ---- */

/*
 * openat2(2) in one call or in pieces, and the chain of descriptors in its
 * place.
 */

/* [W:any R:any] 1: openat2 was refused. Relaxed: each thread may find out. */
static struct pin_atomic_u32 is_refused;

/* ---- forbidden parts ---- */

static bool is_parent(const char *part, size_t bytes)
{
	return bytes == 2 && part[0] == '.' && part[1] == '.';
}

static size_t skip_slashes(const char *path, size_t position)
{
	while (path[position] == '/') {
		position++;
	}
	return position;
}

int pin_beneath_check(const char *path)
{
	if (path[0] == '/') {
		return -EXDEV;
	}
	/* Two dots in a row are rare: most paths are searched once. */
	for (const char *dots = strstr(path, ".."); dots != NULL; dots = strstr(dots + 1, "..")) {
		bool begins = dots == path || dots[-1] == '/';

		if (begins && is_parent(dots, strcspn(dots, "/"))) {
			return -EXDEV;
		}
	}
	return 0;
}

int pin_beneath_error(int error)
{
	PIN_DCHECK(error < 0);
	return error == -ELOOP ? -EXDEV : error;
}

/* ---- one call ---- */

static int open_as(int directory_fd, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)flags,
		.resolve = resolve,
	};
	long fd = syscall(SYS_openat2, directory_fd, path, &how, sizeof(how));

	PIN_CHECK((flags & O_CREAT) == 0); /* there is no mode */
	PIN_DCHECK((flags & O_CLOEXEC) != 0);
	return fd < 0 ? -errno : (int)fd;
}

static int open_at_once(int directory_fd, const char *path, int flags)
{
	return open_as(directory_fd, path, flags, PIN_BENEATH_RESOLVE);
}

/*
 * Whether that error means that there is no openat2 here. EPERM can also be the
 * file's own; of the directory itself it is a filter's.
 */
static bool note_refusal(int directory_fd, int error)
{
	PIN_DCHECK(error < 0);
	if (error == -EPERM) {
		error = open_at_once(directory_fd, ".", O_PATH | O_CLOEXEC);
		if (error >= 0) {
			close(error);
		}
	}
	if (error != -ENOSYS && error != -EPERM) {
		return false;
	}
	pin_store_relaxed_u32(&is_refused, 1);
	return true;
}

/* ---- one part ---- */

/*
 * What the kernel calls a link where it must be a directory: ENOTDIR, as it
 * calls a file there.
 */
static int part_error(int directory_fd, const char *name)
{
	int error = -errno;
	struct stat status;

	if (error == -ENOTDIR &&
		fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0 &&
		S_ISLNK(status.st_mode)) {
		return -EXDEV;
	}
	return error;
}

/* `name` is one part, so that O_NOFOLLOW guards all of it. */
static int open_part(int directory_fd, const char *name, int flags)
{
	int fd = openat(directory_fd, name, flags | O_NOFOLLOW);
	struct stat status;
	int error;

	PIN_CHECK(strchr(name, '/') == NULL);
	if (fd < 0) {
		return part_error(directory_fd, name);
	}
	/* O_PATH with O_NOFOLLOW opens a link itself. */
	if ((flags & (O_PATH | O_DIRECTORY)) != O_PATH) {
		return fd;
	}
	error = fstat(fd, &status) < 0 ? -errno : 0;
	if (error == 0 && S_ISLNK(status.st_mode)) {
		error = -EXDEV;
	}
	if (error != 0) {
		close(fd);
		return error;
	}
	return fd;
}

/* ---- a chain of them ---- */

/* Short of PATH_MAX by a long name and more, so that it fits on the stack. */
/* A piece of a path, up to a slash. */
struct piece {
	char bytes[PIECE_BYTES_MAX + 1];
	size_t length;
	size_t taken; /* bytes of the path: the piece and the slashes after it */
};

/*
 * Cuts the next piece off a path that is not empty: as many parts as fit, or
 * one where `is_part`. False: a name is too long.
 */
static bool cut_piece(const char *path, bool is_part, struct piece *out_piece)
{
	size_t length = strcspn(path, "/");
	size_t taken = skip_slashes(path, length);

	if (length > PIECE_BYTES_MAX) {
		return false;
	}
	while (!is_part && path[taken] != '\0') {
		size_t next = taken + strcspn(path + taken, "/");

		if (next > PIECE_BYTES_MAX) {
			break;
		}
		length = next;
		taken = skip_slashes(path, next);
	}
	PIN_CHECK(length > 0);
	PIN_CHECK(length <= PIECE_BYTES_MAX);
	PIN_DCHECK(taken >= length);
	memcpy(out_piece->bytes, path, length);
	out_piece->bytes[length] = '\0';
	out_piece->length = length;
	out_piece->taken = taken;
	return true;
}

/* The next piece of *path, which moves past it. */
static int open_next_piece(int directory_fd, const char **path, int flags, bool is_part)
{
	struct piece piece;

	if (!cut_piece(*path, is_part, &piece)) {
		return -ENAMETOOLONG;
	}
	*path += piece.taken;
	if (**path != '\0') {
		flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
	} else if (piece.taken > piece.length) {
		flags |= O_DIRECTORY; /* that is what a slash at the end asks for */
	}
	return is_part ? open_part(directory_fd, piece.bytes, flags)
		       : open_at_once(directory_fd, piece.bytes, flags);
}

/*
 * Opens directory after directory and closes each when the next is open: two
 * descriptors, however long the path.
 */
static int open_chain(int directory_fd, const char *path, int flags, bool is_part)
{
	int parent_fd = directory_fd;

	for (;;) {
		int fd = open_next_piece(parent_fd, &path, flags, is_part);

		PIN_DCHECK(parent_fd >= 0 || parent_fd == AT_FDCWD);
		if (parent_fd != directory_fd) {
			close(parent_fd);
		}
		if (fd < 0 || *path == '\0') {
			return fd;
		}
		parent_fd = fd;
	}
}

static int open_any_length(int directory_fd, const char *path, int flags)
{
	if (pin_load_relaxed_u32(&is_refused) == 0) {
		int fd = strlen(path) < PATH_MAX ? open_at_once(directory_fd, path, flags)
						 : open_chain(directory_fd, path, flags, false);

		if (fd >= 0 || !note_refusal(directory_fd, fd)) {
			return fd;
		}
	}
	return open_chain(directory_fd, path, flags, true);
}

int pin_beneath_open(int directory_fd, const char *path, int flags)
{
	int saved_errno = errno;
	int fd = pin_beneath_check(path);

	if (fd == 0) {
		fd = *path == '\0' ? -ENOENT : open_any_length(directory_fd, path, flags);
	}
	errno = saved_errno;
	return fd < 0 ? pin_beneath_error(fd) : fd;
}

int pin_open_cached(int directory_fd, const char *path, int flags, uint64_t resolve)
{
	int saved_errno = errno;
	int fd = open_as(directory_fd, path, flags, resolve | RESOLVE_CACHED);

	errno = saved_errno;
	return fd;
}

bool pin_beneath_loops(int directory_fd, const char *path)
{
	int saved_errno = errno;
	/*
	 * RESOLVE_NO_MAGICLINKS would answer ELOOP for a magic link of procfs
	 * too. RESOLVE_BENEATH refuses to follow one as well, with EXDEV.
	 */
	int fd = open_as(directory_fd, path, O_PATH | O_CLOEXEC, RESOLVE_BENEATH);

	if (fd >= 0) {
		close(fd);
	}
	errno = saved_errno;
	return fd == -ELOOP;
}

/* SPDX-License-Identifier: MIT */
/*
 * Pieces end at a slash and are as long as the kernel takes. The directories
 * between them are opened with O_PATH, which asks for search permission only,
 * as resolving the path in one go would.
 */
#include "runtime/host/long_path.h"
#include "runtime/base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* Short of PATH_MAX by a long name and more, so that it fits on the stack. */
#define PIECE_BYTES_MAX ((size_t)PATH_MAX - 512)

/* Bytes of `path` before the last slash that still fits, 0: there is none. */
static size_t piece_length(const char *path)
{
	size_t length = PIECE_BYTES_MAX;

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
	memcpy(piece, path, length);
	piece[length] = '\0';
	fd = openat(directory_fd, piece, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int pin_open_long(const char *path, int flags)
{
	int saved_errno = errno;
	int directory_fd = AT_FDCWD;
	int fd;

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

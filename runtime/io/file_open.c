/* SPDX-License-Identifier: MIT */
/*
 * Options, paths of any length, and the look at what a path leads to.
 */
#include "runtime/io/file_open.h"
#include "runtime/base/sized.h"
#include "runtime/host/longpath.h"
#include "runtime/io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILE_FLAGS \
	((uint32_t)(PINION_FILE_READ | PINION_FILE_WRITE | PINION_FILE_CREATE | \
		PINION_FILE_EXCLUSIVE | PINION_FILE_TRUNCATE | PINION_FILE_NO_FOLLOW))

void pinion_file_options_init_sized(struct pinion_file_options *options, uint32_t size)
{
	struct pinion_file_options defaults = {
		.size = size,
		.direct = PINION_DIRECT_AUTO,
		.flags = PINION_FILE_READ,
		.mode = 0666,
		.directory_fd = AT_FDCWD,
	};

	pin_sized_give(options, size, &defaults, sizeof(defaults));
}

static int check_options(const struct pinion_file_options *options)
{
	bool writes = (options->flags & PINION_FILE_WRITE) != 0;
	bool creates = (options->flags & PINION_FILE_CREATE) != 0;

	if ((options->flags & ~FILE_FLAGS) != 0 || options->direct > PINION_DIRECT_NEVER ||
		options->mode > 07777 || options->reserved != 0) {
		return -EINVAL;
	}
	if ((options->flags & (PINION_FILE_READ | PINION_FILE_WRITE)) == 0 ||
		((options->flags & PINION_FILE_TRUNCATE) != 0 && !writes) ||
		((options->flags & PINION_FILE_EXCLUSIVE) != 0 && !creates)) {
		return -EINVAL;
	}
	return 0;
}

int pin_file_options_accept(
	struct pinion_file_options *out, const struct pinion_file_options *given)
{
	int rc;

	pinion_file_options_init(out);
	if (given == NULL) {
		return 0;
	}
	if (given->size < sizeof(given->size)) {
		return -EINVAL;
	}
	rc = pin_sized_take(out, sizeof(*out), given, given->size);
	out->size = sizeof(*out);
	return rc < 0 ? rc : check_options(out);
}

struct open_how pin_file_open_how(const struct pinion_file_options *options)
{
	uint32_t flags = options->flags;
	bool follows = (flags & PINION_FILE_NO_FOLLOW) == 0;
	uint64_t how = (uint64_t)(unsigned)pin_file_open_flags(follows);

	/* O_RDONLY is 0. */
	if ((flags & PINION_FILE_WRITE) != 0) {
		how |= (flags & PINION_FILE_READ) != 0 ? O_RDWR : O_WRONLY;
	}
	how |= (flags & PINION_FILE_CREATE) != 0 ? O_CREAT : 0;
	how |= (flags & PINION_FILE_EXCLUSIVE) != 0 ? O_EXCL : 0;
	how |= (flags & PINION_FILE_TRUNCATE) != 0 ? O_TRUNC : 0;
	return (struct open_how){
		.flags = how,
		/* openat2 refuses a mode that has no use. */
		.mode = (flags & PINION_FILE_CREATE) != 0 ? options->mode : 0,
		.resolve = options->resolve,
	};
}

int pin_file_open_flags(bool follow_links)
{
	/*
	 * O_NONBLOCK: opening a FIFO or a tape must neither wait nor act. It
	 * has no effect on regular files.
	 */
	return O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (follow_links ? 0 : O_NOFOLLOW);
}

int pin_file_check_kind(const char *path)
{
	struct stat status;
	int fd;
	int rc;

	if (stat(path, &status) == 0) {
		rc = 0;
	} else if (errno == ENAMETOOLONG) {
		/*
		 * O_PATH opens the name, not the thing: nothing happens to it.
		 */
		fd = pin_open_long(path, O_PATH | O_CLOEXEC);
		if (fd < 0) {
			return fd;
		}
		rc = fstat(fd, &status) < 0 ? -errno : 0;
		close(fd);
	} else {
		rc = -errno;
	}
	if (rc < 0) {
		return rc;
	}
	return S_ISDIR(status.st_mode) ? 0 : pin_file_check_status(&status);
}

static int open_as(int directory_fd, const char *path, const struct open_how *how)
{
	long fd = how->resolve != 0
		? syscall(__NR_openat2, directory_fd, path, how, sizeof(*how))
		: openat(directory_fd, path, (int)how->flags, (mode_t)how->mode);

	return fd < 0 ? -errno : (int)fd;
}

/*
 * Looks at what is to be opened: opening some devices has effects, and a FIFO's
 * reader or writer would notice.
 */
static int check_path(const struct pinion_file_options *options, const char *path)
{
	bool follows = (options->flags & PINION_FILE_NO_FOLLOW) == 0;
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | (follows ? 0 : O_NOFOLLOW),
		.resolve = options->resolve,
	};
	struct stat status;
	int fd = open_as(options->directory_fd, path, &how);
	int rc;

	if (fd < 0) {
		/* What does not exist can be made. */
		return fd == -ENOENT && (options->flags & PINION_FILE_CREATE) != 0 ? 0 : fd;
	}
	rc = fstat(fd, &status) < 0 ? -errno : 0;
	close(fd);
	if (rc < 0) {
		return rc;
	}
	return S_ISLNK(status.st_mode) ? -ELOOP : pin_file_check_status(&status);
}

/* As open_as(), for a path that may be longer than one call takes. */
static int open_any_length(
	const struct pinion_file_options *options, const char *path, const struct open_how *how)
{
	int rc;

	if (strlen(path) < PATH_MAX || options->directory_fd != AT_FDCWD || how->resolve != 0 ||
		(how->flags & O_CREAT) != 0) {
		rc = check_path(options, path);
		return rc < 0 ? rc : open_as(options->directory_fd, path, how);
	}
	rc = pin_file_check_kind(path);
	return rc < 0 ? rc : pin_open_long(path, (int)how->flags);
}

int pinion_file_open_with(
	struct pinion_file *file, const char *path, const struct pinion_file_options *options)
{
	struct pinion_file_options accepted;
	struct open_how how;
	int rc;

	if (file == NULL || path == NULL) {
		return -EINVAL;
	}
	rc = pin_file_options_accept(&accepted, options);
	if (rc < 0) {
		return rc;
	}
	file->fd = -1;
	how = pin_file_open_how(&accepted);
	rc = open_any_length(&accepted, path, &how);
	return rc < 0 ? rc : pin_file_adopt_with(file, rc, &accepted, NULL);
}

int pinion_file_open(struct pinion_file *file, const char *path, uint32_t direct)
{
	struct pinion_file_options options;

	pinion_file_options_init(&options);
	options.direct = direct;
	return pinion_file_open_with(file, path, &options);
}

/* SPDX-License-Identifier: MIT */
/*
 * Opens files: checks the options, opens paths of any length, and refuses all
 * but a regular file, directory or device, as the options allow.
 *
 * pinion_file_open() blocks here on the calling thread; open requests use the
 * same checks before and after the kernel's open.
 */
#include "runtime/io/file.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/base/versioned.h"
#include "runtime/host/long_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILE_FLAGS \
	((uint32_t)(PINION_FILE_READ | PINION_FILE_WRITE | PINION_FILE_CREATE | \
		PINION_FILE_EXCLUSIVE | PINION_FILE_TRUNCATE | PINION_FILE_NO_FOLLOW | \
		PINION_FILE_DIRECTORY))

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

/* The hot path passes NULL for `why`: then there is nothing to format. */
PIN_APART int pin_refuse(struct pin_refusal *why, int error, const char *format, ...)
{
	va_list arguments;

	PIN_DCHECK(error < 0); /* 0 would pass for no refusal */
	if (why != NULL) {
		va_start(arguments, format);
		vsnprintf(why->text, sizeof(why->text), format, arguments);
		va_end(arguments);
	}
	return error;
}

/*
 * Each combination that cannot work has a message of its own, since these are
 * mistakes in the caller's source.
 */
static int check_flags(uint32_t flags, struct pin_refusal *why)
{
	if ((flags & ~FILE_FLAGS) != 0) {
		return pin_refuse(why, -EINVAL, "options->flags is 0x%x: 0x%x is unknown", flags,
			flags & ~FILE_FLAGS);
	}
	if ((flags & (PINION_FILE_READ | PINION_FILE_WRITE)) == 0) {
		return pin_refuse(why, -EINVAL,
			"options->flags is 0x%x: neither PINION_FILE_READ nor _WRITE", flags);
	}
	if ((flags & PINION_FILE_TRUNCATE) != 0 && (flags & PINION_FILE_WRITE) == 0) {
		return pin_refuse(why, -EINVAL,
			"options->flags is 0x%x: PINION_FILE_TRUNCATE without _WRITE", flags);
	}
	if ((flags & PINION_FILE_DIRECTORY) != 0 &&
		(flags & (PINION_FILE_WRITE | PINION_FILE_CREATE)) != 0) {
		return pin_refuse(why, -EINVAL,
			"options->flags is 0x%x: PINION_FILE_DIRECTORY with _WRITE or _CREATE",
			flags);
	}
	if ((flags & PINION_FILE_EXCLUSIVE) != 0 && (flags & PINION_FILE_CREATE) == 0) {
		return pin_refuse(why, -EINVAL,
			"options->flags is 0x%x: PINION_FILE_EXCLUSIVE without _CREATE", flags);
	}
	return 0;
}

static int check_options(const struct pinion_file_options *options, struct pin_refusal *why)
{
	if (options->direct > PINION_DIRECT_NEVER) {
		return pin_refuse(
			why, -EINVAL, "options->direct is %u, not 0 to 2", options->direct);
	}
	if (options->mode > 07777) {
		return pin_refuse(
			why, -EINVAL, "options->mode is 0%o, more than 07777", options->mode);
	}
	if (options->reserved != 0) {
		return pin_refuse(
			why, -EINVAL, "options->reserved is %u, not 0", options->reserved);
	}
	return check_flags(options->flags, why);
}

/*
 * As every versioned struct: smaller is completed by defaults, larger must not
 * set unknown bytes.
 */
int pin_file_options_accept(struct pinion_file_options *out,
	const struct pinion_file_options *given, struct pin_refusal *why)
{
	int rc;

	pinion_file_options_init(out);
	if (given == NULL) {
		return 0;
	}
	if (given->size < sizeof(given->size)) {
		return pin_refuse(why, -EINVAL,
			"options->size is %u: call pinion_file_options_init() first", given->size);
	}
	rc = pin_sized_take(out, sizeof(*out), given, given->size);
	out->size = sizeof(*out);
	if (rc < 0) {
		return pin_refuse(why, rc,
			"options->size is %u, and a field that this library does not know is set",
			given->size);
	}
	return check_options(out, why);
}

/*
 * The options as openat2(2) takes them; one function for calls and for open
 * requests.
 */
struct open_how pin_file_open_how(const struct pinion_file_options *options)
{
	uint32_t flags = options->flags;
	bool follows = (flags & PINION_FILE_NO_FOLLOW) == 0;
	uint64_t how = (uint64_t)(unsigned)pin_file_open_flags(follows);

	PIN_DCHECK((flags & ~FILE_FLAGS) == 0); /* they were accepted */
	PIN_DCHECK(options->mode <= 07777);
	/* O_RDONLY is 0. */
	if ((flags & PINION_FILE_WRITE) != 0) {
		how |= (flags & PINION_FILE_READ) != 0 ? O_RDWR : O_WRONLY;
	}
	how |= (flags & PINION_FILE_CREATE) != 0 ? O_CREAT : 0;
	how |= (flags & PINION_FILE_EXCLUSIVE) != 0 ? O_EXCL : 0;
	how |= (flags & PINION_FILE_TRUNCATE) != 0 ? O_TRUNC : 0;
	how |= (flags & PINION_FILE_DIRECTORY) != 0 ? O_DIRECTORY : 0;
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

static int kind_of(const struct stat *status, uint32_t *out_mode)
{
	*out_mode = (uint32_t)(status->st_mode & S_IFMT);
	return S_ISDIR(status->st_mode) ? 0 : pin_file_check_status(status);
}

/* Of a descriptor of O_PATH, which is closed. */
static int kind_of_place(int fd, uint32_t *out_mode)
{
	struct stat status;
	int rc;

	if (fd < 0) {
		return fd;
	}
	rc = fstat(fd, &status) < 0 ? -errno : 0;
	close(fd);
	return rc < 0 ? rc : kind_of(&status, out_mode);
}

int pin_file_check_kind(const char *path, uint32_t *out_mode)
{
	struct stat status;

	if (stat(path, &status) == 0) {
		return kind_of(&status, out_mode);
	}
	/* O_PATH opens the name, not the thing: nothing happens to it. */
	return errno == ENAMETOOLONG
		? kind_of_place(pin_open_long(path, O_PATH | O_CLOEXEC), out_mode)
		: -errno;
}

int pin_file_check_kind_beneath(int directory_fd, const char *path, uint32_t *out_mode)
{
	return kind_of_place(pin_beneath_open(directory_fd, path, O_PATH | O_CLOEXEC), out_mode);
}

/* What pin_beneath_open() does as well, where there is no openat2. */
static bool stays_beneath(const struct open_how *how)
{
	uint64_t asked = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;

	return (how->resolve & asked) == asked &&
		(how->resolve & ~(asked | RESOLVE_NO_MAGICLINKS)) == 0 &&
		(how->flags & O_CREAT) == 0;
}

static int open_as(int directory_fd, const char *path, const struct open_how *how)
{
	long fd = how->resolve != 0
		? syscall(__NR_openat2, directory_fd, path, how, sizeof(*how))
		: openat(directory_fd, path, (int)how->flags, (mode_t)how->mode);

	PIN_DCHECK((how->flags & O_CLOEXEC) != 0); /* no program that is executed inherits it */
	if (fd >= 0) {
		return (int)fd;
	}
	return (errno == ENOSYS || errno == EPERM) && stays_beneath(how)
		? pin_beneath_open(directory_fd, path, (int)how->flags)
		: -errno;
}

/*
 * Checks the file before it is opened: opening some devices has effects, and a
 * FIFO's reader or writer would notice.
 */
int pin_file_check_path(const struct pinion_file_options *options, const char *path)
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
	if (S_ISLNK(status.st_mode)) {
		return -ELOOP;
	}
	return (options->flags & PINION_FILE_DIRECTORY) != 0 ? pin_file_check_directory(&status)
							     : pin_file_check_status(&status);
}

/* As open_as(), for a path that may be longer than one call takes. */
static int open_any_length(
	const struct pinion_file_options *options, const char *path, const struct open_how *how)
{
	uint32_t mode;
	int rc;

	PIN_DCHECK(options->size == sizeof(*options)); /* accepted before */
	if (strlen(path) < PATH_MAX || options->directory_fd != AT_FDCWD || how->resolve != 0 ||
		(how->flags & O_CREAT) != 0) {
		rc = pin_file_check_path(options, path);
		return rc < 0 ? rc : open_as(options->directory_fd, path, how);
	}
	rc = pin_file_check_kind(path, &mode);
	return rc < 0 ? rc : pin_open_long(path, (int)how->flags);
}

/* Blocks the calling thread for the open and a few calls on the descriptor. */
int pinion_file_open_with(
	struct pinion_file *file, const char *path, const struct pinion_file_options *options)
{
	struct pinion_file_options accepted;
	struct open_how how;
	int rc;

	if (file == NULL || path == NULL) {
		return -EINVAL;
	}
	rc = pin_file_options_accept(&accepted, options, NULL);
	if (rc < 0) {
		return rc;
	}
	file->fd = -1;
	PIN_DCHECK(accepted.size == sizeof(accepted));
	how = pin_file_open_how(&accepted);
	rc = open_any_length(&accepted, path, &how);
	return rc < 0 ? rc : pin_file_adopt_with(file, rc, &accepted, NULL);
}

/* ---- descriptors of other origin ---- */

enum {
	/* Flags that say how to open; a descriptor is open already. */
	OPENING_FLAGS = PINION_FILE_CREATE | PINION_FILE_EXCLUSIVE | PINION_FILE_TRUNCATE |
		PINION_FILE_NO_FOLLOW | PINION_FILE_DIRECTORY,
};

/* PINION_FILE_READ and _WRITE, as the descriptor allows them. */
static uint32_t access_of(int status_flags)
{
	switch (status_flags & O_ACCMODE) {
	case O_RDONLY:
		return PINION_FILE_READ;
	case O_WRONLY:
		return PINION_FILE_WRITE;
	default:
		return PINION_FILE_READ | PINION_FILE_WRITE;
	}
}

static int check_descriptor(int fd, int status_flags, const struct pinion_file_options *options)
{
	struct stat status;

	PIN_DCHECK(fd >= 0 && status_flags >= 0); /* fcntl(2) has seen it */
	if ((status_flags & O_PATH) != 0 || (options->flags & ~access_of(status_flags)) != 0) {
		return -EBADF;
	}
	if ((options->flags & PINION_FILE_WRITE) != 0 && (status_flags & O_APPEND) != 0) {
		return -EINVAL;
	}
	if (fstat(fd, &status) < 0) {
		return -errno;
	}
	return S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) ? -ESPIPE : 0;
}

/*
 * The descriptor's own access decides if the caller gives no options; flags
 * that concern the opening are then meaningless and refused.
 */
int pinion_file_from_fd(struct pinion_file *file, int fd, const struct pinion_file_options *options)
{
	struct pinion_file_options accepted;
	int status_flags;
	int rc;

	if (file == NULL) {
		return -EINVAL;
	}
	rc = pin_file_options_accept(&accepted, options, NULL);
	if (rc < 0) {
		return rc;
	}
	if ((accepted.flags & OPENING_FLAGS) != 0 || accepted.resolve != 0) {
		return -EINVAL;
	}
	status_flags = fcntl(fd, F_GETFL);
	if (status_flags < 0) {
		return -errno;
	}
	if (options == NULL) {
		accepted.flags = access_of(status_flags);
	}
	rc = check_descriptor(fd, status_flags, &accepted);
	return rc < 0 ? rc : pin_file_take(file, fd, &accepted, status_flags);
}

int pinion_file_open(struct pinion_file *file, const char *path, uint32_t direct)
{
	struct pinion_file_options options;

	pinion_file_options_init(&options);
	options.direct = direct;
	return pinion_file_open_with(file, path, &options);
}

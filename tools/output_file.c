/* SPDX-License-Identifier: MIT */
/*
 * The file has no name while it is written, where its file system can do that;
 * else it is beside its place. A device or a pipe is written as it is.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tools/output_file.h"

#include "tools/output.h"
#include "tools/report.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	MODE = 0666,
	/* So long a pipe's reader may take to come. */
	READER_LOOKS = 40,
	READER_LOOK_NS = 50 * 1000 * 1000,
};

static struct {
	int fd;
	char *path;  /* of the file itself, past links */
	char *draft; /* its name until it is whole */
	char *folder;
	bool has_name;	 /* that of the draft */
	bool is_special; /* a device, a pipe, or a file that has no name left */
	/* The draft, and the old file; a device number of 0: there is none. */
	struct stat known[2];
} file = {.fd = -1};

/* Where a link leads to: that is replaced, not the link. */
static char *resolve(const char *path)
{
	char *whole = realpath(path, NULL);

	/* /dev/stdout may lead to a pipe, or to a file whose name is gone. */
	file.is_special = whole == NULL && access(path, F_OK) == 0;
	return whole != NULL ? whole : strdup(path);
}

static bool set_names(const char *path)
{
	size_t bytes;
	char *copy;

	file.path = resolve(path);
	if (file.path == NULL) {
		return false;
	}
	copy = strdup(file.path);
	bytes = strlen(file.path) + 32;
	file.draft = malloc(bytes);
	if (copy != NULL) {
		file.folder = strdup(dirname(copy));
	}
	free(copy);
	if (file.draft == NULL || file.folder == NULL) {
		return false;
	}
	snprintf(file.draft, bytes, "%s.%d.part", file.path, (int)getpid());
	return true;
}

static int open_draft(void)
{
	int fd = open(file.folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, MODE);

	if (fd >= 0) {
		return fd;
	}
	fd = open(file.draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, MODE);
	file.has_name = fd >= 0;
	return fd;
}

/* The old file's owner may read the new one as before, if the kernel allows. */
static void take_owner(int fd, const struct stat *status)
{
	bool is_taken = fchown(fd, status->st_uid, status->st_gid) == 0 ||
		fchown(fd, (uid_t)-1, status->st_gid) == 0;

	(void)is_taken;
	/* Last: a change of the owner takes bits away. */
	(void)fchmod(fd, status->st_mode & 07777);
}

/*
 * A pipe without a reader would keep an open for ever. Sets errno: ENXIO, there
 * is no reader.
 */
static int open_special(void)
{
	static const struct timespec look = {.tv_nsec = READER_LOOK_NS};
	int fd = -1;

	for (int i = 0; i < READER_LOOKS && fd < 0; i++) {
		if (i > 0) {
			nanosleep(&look, NULL);
		}
		fd = open(file.path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		if (fd < 0 && errno != ENXIO) {
			return -1;
		}
	}
	if (fd >= 0) {
		(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	}
	return fd;
}

/* Sets errno. */
static int open_file(void)
{
	struct stat status;
	bool exists = stat(file.path, &status) == 0;
	int fd;

	if (!exists && errno != ENOENT) {
		return -1;
	}
	if (!exists && lstat(file.path, &status) == 0) {
		errno = ENOLINK;
		return -1;
	}

	if (exists && S_ISDIR(status.st_mode)) {
		errno = EISDIR;
		return -1;
	}
	if (exists && (file.is_special || !S_ISREG(status.st_mode))) {
		file.is_special = true;
		return open_special();
	}
	fd = open_draft();
	if (fd >= 0 && exists) {
		take_owner(fd, &status);
		file.known[1] = status;
	}
	if (fd >= 0 && fstat(fd, &file.known[0]) != 0) {
		file.known[0] = (struct stat){.st_dev = 0};
	}
	return fd;
}

static void forget(void)
{
	free(file.path);
	free(file.draft);
	free(file.folder);
	memset(&file, 0, sizeof(file));
	file.fd = -1;
}

static const char *reason_of(int error)
{
	switch (error) {
	case EISDIR:
		return "is a directory";
	case ENOLINK:
		return "is a link that leads to no file";
	case ENXIO:
		return "is a pipe that no process reads: start its reader first";
	default:
		return report_reason(error);
	}
}

/* Its folder, and the name in it that a new file would take. */
static bool find_place(const char *path, struct stat *out_folder, char *out_name, size_t bytes)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + 1);
	bool is_found = folder != NULL && stat(folder, out_folder) == 0;

	free(folder);
	snprintf(out_name, bytes, "%s", slash == NULL ? path : slash + 1);
	return is_found;
}

bool output_file_is(const char *path, const char *other)
{
	char names[2][NAME_MAX + 2];
	struct stat status[2];
	bool exists = stat(path, &status[0]) == 0;

	if (exists != (stat(other, &status[1]) == 0)) {
		return false;
	}
	if (!exists &&
		(!find_place(path, &status[0], names[0], sizeof(names[0])) ||
			!find_place(other, &status[1], names[1], sizeof(names[1])) ||
			strcmp(names[0], names[1]) != 0)) {
		return false;
	}
	/* /dev/null takes both. */
	return status[0].st_dev == status[1].st_dev && status[0].st_ino == status[1].st_ino &&
		!S_ISCHR(status[0].st_mode);
}

bool output_file_begin(const char *path)
{
	int error = ENOMEM;

	if (set_names(path)) {
		file.fd = open_file();
		error = file.fd < 0 ? errno : 0;
	}
	if (error != 0) {
		report_path(path, reason_of(error));
		forget();
		return false;
	}
	output_redirect(file.fd, path);
	return true;
}

bool output_file_has(uint64_t device, uint64_t inode)
{
	for (size_t i = 0; i < sizeof(file.known) / sizeof(file.known[0]); i++) {
		const struct stat *known = &file.known[i];

		if (known->st_dev != 0 && known->st_dev == device && known->st_ino == inode) {
			return true;
		}
	}
	return false;
}

static int give_draft_its_name(void)
{
	char self[64];

	if (file.has_name) {
		return 0;
	}
	snprintf(self, sizeof(self), "/proc/self/fd/%d", file.fd);
	if (linkat(AT_FDCWD, self, AT_FDCWD, file.draft, AT_SYMLINK_FOLLOW) != 0) {
		return -errno;
	}
	file.has_name = true;
	return 0;
}

static void sync_folder(void)
{
	int fd = open(file.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0) {
		(void)fsync(fd);
		close(fd);
	}
}

static int keep(void)
{
	int error = fsync(file.fd) != 0 ? -errno : give_draft_its_name();

	if (error == 0 && rename(file.draft, file.path) != 0) {
		error = -errno;
	}
	if (error == 0) {
		file.has_name = false;
		sync_folder();
	}
	return error;
}

bool output_file_end(bool is_kept)
{
	int error = 0;

	if (file.fd < 0) {
		return true;
	}
	if (is_kept && !file.is_special) {
		error = keep();
	}
	if (file.has_name) {
		(void)unlink(file.draft);
	}
	if (close(file.fd) != 0 && error == 0 && is_kept) {
		error = -errno;
	}
	if (error != 0) {
		report_path(file.path, output_reason(error));
	}
	forget();
	return error == 0;
}

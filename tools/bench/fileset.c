/* SPDX-License-Identifier: MIT */
/*
 * Opening, making and refusing the files a bench reads.
 */
#include "tools/bench/fileset.h"

#include "tools/report.h"
#include "tools/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pinion/file.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
	WRITE_BYTES = 1 << 20,
	/* Serves every device; the library asks for what it needs itself. */
	ALIGN_BYTES = 4096,
};

static int refuse(const char *path, const char *reason)
{
	report_path(path, reason);
	return -EOPNOTSUPP;
}

static int fail(const char *path, int error)
{
	report_path(path, report_reason(error));
	return error;
}

/*
 * File systems in memory take O_DIRECT on newer kernels, and ignore it. The
 * folder of a device's name does not matter.
 */
static int check_file_system(int fd, const char *path)
{
	struct statfs system;
	struct stat status;

	if (fstat(fd, &status) != 0 || fstatfs(fd, &system) != 0) {
		return fail(path, -errno);
	}
	if (S_ISBLK(status.st_mode)) {
		return 0;
	}
	if (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC) {
		return refuse(path, "tmpfs cannot measure the ring");
	}
	return 0;
}

static struct fileset *fileset_create(uint32_t count)
{
	struct fileset *set = calloc(1, sizeof(*set));

	if (set == NULL) {
		return NULL;
	}
	set->files = calloc(count, sizeof(*set->files));
	if (set->files == NULL) {
		free(set);
		return NULL;
	}
	set->count = count;
	for (uint32_t i = 0; i < count; i++) {
		set->files[i].fd = -1;
	}
	return set;
}

void fileset_destroy(struct fileset *set)
{
	if (set == NULL) {
		return;
	}
	for (uint32_t i = 0; i < set->count; i++) {
		if (set->files[i].fd >= 0) {
			close(set->files[i].fd);
		}
		free(set->files[i].path);
	}
	free(set->files);
	free(set);
}

/* Asks the library, which never opens what blocks or has effects. */
static int examine(const char *path, uint64_t *out_bytes)
{
	struct pinion_file file;
	int rc = pinion_file_open(&file, path, PINION_DIRECT_ALWAYS);

	if (rc != 0) {
		return fail(path, rc);
	}
	rc = check_file_system(file.fd, path);
	if (rc == 0 && file.size_bytes == 0) {
		rc = refuse(path, "is empty");
	} else if (rc == 0 && !file.is_direct) {
		rc = refuse(path, "this file system has no O_DIRECT");
	}
	*out_bytes = file.size_bytes;
	pinion_file_close(&file);
	return rc;
}

static int open_one(struct fileset_file *file, const char *path)
{
	int rc = examine(path, &file->size_bytes);

	if (rc != 0) {
		return rc;
	}
	file->path = strdup(path);
	if (file->path == NULL) {
		return fail(path, -ENOMEM);
	}
	file->fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return file->fd < 0 ? fail(path, -errno) : 0;
}

int fileset_open(const char *const *paths, uint32_t count, struct fileset **out_set)
{
	struct fileset *set = fileset_create(count);
	int rc = set == NULL ? fail(paths[0], -ENOMEM) : 0;

	for (uint32_t i = 0; rc == 0 && i < count; i++) {
		rc = open_one(&set->files[i], paths[i]);
		if (rc == 0) {
			set->total_bytes += set->files[i].size_bytes;
		}
	}
	if (rc != 0) {
		fileset_destroy(set);
		return rc;
	}
	*out_set = set;
	return 0;
}

/* xorshift64*: fast, and no compressor finds anything in it. */
static void fill(uint8_t *bytes, size_t length, uint64_t *state)
{
	uint64_t x = *state;

	while (length > 0) {
		uint64_t word;
		size_t count = length < sizeof(word) ? length : sizeof(word);

		x ^= x >> 12;
		x ^= x << 25;
		x ^= x >> 27;
		word = x * 0x2545f4914f6cdd1dULL;
		memcpy(bytes, &word, count);
		bytes += count;
		length -= count;
	}
	*state = x;
}

void fileset_fill(uint8_t *bytes, size_t length, uint64_t seed)
{
	fill(bytes, length, &seed);
}

static int write_block(int fd, const uint8_t *bytes, size_t length, uint64_t offset)
{
	while (length > 0) {
		ssize_t count = pwrite(fd, bytes, length, (off_t)offset);

		if (count < 0 && errno != EINTR) {
			return -errno;
		}
		if (count == 0) {
			return -EIO;
		}
		if (count > 0) {
			bytes += count;
			offset += (uint64_t)count;
			length -= (size_t)count;
		}
	}
	return 0;
}

/*
 * Reserves all of its space first, so that its blocks are contiguous. Checks
 * first, since a failing fallocate(2) uses up the free space, for other
 * programs too.
 */
static int reserve(int fd, uint64_t bytes)
{
	struct statfs status;

	if (fstatfs(fd, &status) == 0 &&
		bytes / (uint64_t)status.f_bsize >= (uint64_t)status.f_bavail) {
		return -ENOSPC;
	}
	return fallocate(fd, 0, 0, (off_t)bytes) == 0 || errno == EOPNOTSUPP ? 0 : -errno;
}

static int write_data(const struct fileset_file *file, uint64_t seed)
{
	uint64_t state = seed;
	uint8_t *block = aligned_alloc(ALIGN_BYTES, WRITE_BYTES);
	int rc = block == NULL ? -ENOMEM : reserve(file->fd, file->size_bytes);

	for (uint64_t offset = 0; rc == 0 && offset < file->size_bytes; offset += WRITE_BYTES) {
		uint64_t left = file->size_bytes - offset;

		fill(block, WRITE_BYTES, &state);
		rc = write_block(
			file->fd, block, left < WRITE_BYTES ? (size_t)left : WRITE_BYTES, offset);
		if (rc == 0 && signals_interrupted()) {
			rc = -ECANCELED;
		}
	}
	if (rc == 0 && fsync(file->fd) != 0) {
		rc = -errno;
	}
	free(block);
	return rc;
}

/* A descriptor of a new file without a name. */
static int make_nameless(const char *directory)
{
	char *path;
	int fd;
	int rc;

	if (asprintf(&path, "%s/.pinion-bench-XXXXXX", directory) < 0) {
		return -ENOMEM;
	}
	fd = mkostemp(path, O_CLOEXEC);
	rc = fd < 0 ? -errno : fd;
	if (fd >= 0) {
		unlink(path);
	}
	free(path);
	return rc;
}

static int make_one(struct fileset_file *file, const char *directory, uint64_t seed)
{
	int rc = make_nameless(directory);

	if (rc < 0) {
		return fail(directory, rc);
	}
	file->fd = rc;
	rc = check_file_system(file->fd, directory);
	if (rc != 0) {
		return rc;
	}
	if (fcntl(file->fd, F_SETFL, O_DIRECT) != 0) {
		return refuse(directory, "this file system has no O_DIRECT");
	}
	if (asprintf(&file->path, "/proc/self/fd/%d", file->fd) < 0) {
		file->path = NULL;
		return fail(directory, -ENOMEM);
	}
	rc = write_data(file, seed);
	return rc == 0 || rc == -ECANCELED ? rc : fail(directory, rc);
}

int fileset_make(
	const char *directory, uint32_t count, uint64_t total_bytes, struct fileset **out_set)
{
	struct fileset *set = fileset_create(count);
	uint64_t file_bytes = total_bytes / count / ALIGN_BYTES * ALIGN_BYTES;
	int rc = set == NULL ? fail(directory, -ENOMEM) : 0;

	for (uint32_t i = 0; rc == 0 && i < count; i++) {
		set->files[i].size_bytes = file_bytes;
		set->total_bytes += file_bytes;
		rc = make_one(&set->files[i], directory, i + 1);
	}
	if (rc != 0) {
		fileset_destroy(set);
		return rc;
	}
	*out_set = set;
	return 0;
}

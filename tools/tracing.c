/* SPDX-License-Identifier: MIT */
/*
 * Writes a trace beside its name, and gives it that name when it is whole.
 *
 * Invariant: all that can be known before the command runs, tracing_check()
 * finds; a trace that is lost at the end cannot be made again.
 */
#include "tools/tracing.h"

#include "tools/output.h"
#include "tools/report.h"
#include "tools/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	/* Of other processes, of which one was killed, in another container. */
	DRAFTS_MAX = 16,
	DRAFT_BYTES = 48,
	/* For the reader of a pipe. */
	READER_WAIT_NS = 20000000,
	READER_TRIES = 50,
};

/* Bytes before the last part of a path. */
static size_t folder_length(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

/* The file that a link leads to, or the path as it is; NULL: no memory. */
static char *follow(const char *path)
{
	struct stat status;

	if (lstat(path, &status) == 0 && S_ISLNK(status.st_mode)) {
		return realpath(path, NULL);
	}
	return strdup(path);
}

/* It exists, and is no regular file: a device or a pipe, perhaps. */
static bool is_special(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

/* ---- before ---- */

/* Why no file can be made in the folder of that path; NULL: it can. */
static const char *folder_trouble(const char *path)
{
	size_t length = folder_length(path);
	char *folder = strndup(path, length);
	int error = folder == NULL ? ENOMEM : 0;

	if (folder != NULL && access(length == 0 ? "." : folder, W_OK) != 0) {
		error = errno;
	}
	free(folder);
	return error == 0 ? NULL : report_reason(error);
}

/* In a sticky folder only owners and root take a file's name away. */
static bool is_kept_by_others(const char *path)
{
	size_t length = folder_length(path);
	char *folder = length == 0 ? strdup(".") : strndup(path, length);
	struct stat status;
	struct stat around;
	bool is_kept = folder != NULL && stat(folder, &around) == 0 && lstat(path, &status) == 0 &&
		(around.st_mode & S_ISVTX) != 0 && geteuid() != 0 && around.st_uid != geteuid() &&
		status.st_uid != geteuid();

	free(folder);
	return is_kept;
}

/* It is there, by a link perhaps. */
static const char *trouble_of(const char *path, const struct stat *status)
{
	const char *trouble;
	char *target;

	if (S_ISDIR(status->st_mode)) {
		return "is a directory: a trace is a file";
	}
	if (S_ISSOCK(status->st_mode)) {
		return "is a socket: a trace is a file";
	}
	if (!S_ISREG(status->st_mode)) {
		return access(path, W_OK) == 0 ? NULL : report_reason(errno);
	}
	target = follow(path);
	trouble = target == NULL ? report_reason(ENOMEM) : folder_trouble(target);
	if (trouble == NULL && is_kept_by_others(target)) {
		trouble = "is another user's, in a sticky folder: choose another name";
	}
	free(target);
	return trouble;
}

/* A file that is there and is replaced; a device number of 0: there is none. */
static struct stat former;

static const char *find_trouble(const char *path)
{
	struct stat status;

	former = (struct stat){.st_dev = 0};
	if (path[0] == '\0') {
		return "is no name: a trace needs a file";
	}
	if (stat(path, &status) == 0) {
		former = status;
		return trouble_of(path, &status);
	}
	if (path[folder_length(path)] == '\0') {
		return "ends in a slash, as directories do: a trace is a file";
	}
	if (errno != ENOENT) {
		return report_reason(errno);
	}
	if (lstat(path, &status) == 0) {
		return "is a link that leads to no file";
	}
	return folder_trouble(path);
}

bool tracing_check(const char *path)
{
	const char *trouble = find_trouble(path);

	if (trouble != NULL) {
		report_path(path, trouble);
	}
	return trouble == NULL;
}

bool tracing_has(uint64_t device, uint64_t inode)
{
	return former.st_dev != 0 && S_ISREG(former.st_mode) && former.st_dev == device &&
		former.st_ino == inode;
}

/* ---- writing ---- */

/* For some seconds, as the reader of a pipe may come a little later. */
static int open_special(const char *path)
{
	const struct timespec pause = {.tv_nsec = READER_WAIT_NS};
	int fd = -1;

	for (int i = 0; i < READER_TRIES && fd < 0; i++) {
		fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		if (fd >= 0 || errno != ENXIO || signals_interrupted()) {
			break;
		}
		nanosleep(&pause, NULL);
	}
	if (fd < 0) {
		return -errno;
	}
	/* From here on it waits for its reader. */
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) != 0) {
		int error = errno;

		close(fd);
		return -error;
	}
	return fd;
}

static int write_special(const char *path, struct pinion_trace *trace)
{
	int fd = open_special(path);
	int rc;

	if (fd < 0) {
		return fd;
	}
	signals_begin_file(path);
	rc = pinion_trace_write(trace, fd);
	signals_end_file();
	if (close(fd) != 0 && rc == 0) {
		rc = -errno;
	}
	return rc;
}

struct draft {
	const char *target;
	char *name; /* the folder of `target`, and room for DRAFT_BYTES */
};

/* A new file; the target's own name may be as long as any. */
static int open_draft(void *arg)
{
	const struct draft *draft = arg;
	size_t length = folder_length(draft->target);
	int fd = -1;

	memcpy(draft->name, draft->target, length);
	for (int i = 0; i < DRAFTS_MAX && fd < 0; i++) {
		snprintf(draft->name + length, DRAFT_BYTES, "trace.%d.%d.part", (int)getpid(), i);
		fd = open(draft->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
		if (fd < 0 && errno != EEXIST) {
			break;
		}
	}
	return fd < 0 ? -errno : fd;
}

static int write_draft(const char *path, struct draft *draft, struct pinion_trace *trace)
{
	int fd = signals_begin_draft(path, draft->name, open_draft, draft);
	int rc;

	if (fd < 0) {
		return fd;
	}
	rc = pinion_trace_write(trace, fd);
	/* Some file systems report a full disk only on close. */
	if (close(fd) != 0 && rc == 0) {
		rc = -errno;
	}
	if (rc == 0 && rename(draft->name, draft->target) != 0) {
		rc = -errno;
	}
	if (rc != 0) {
		(void)unlink(draft->name);
	}
	signals_end_file();
	return rc;
}

static int write_file(const char *path, struct pinion_trace *trace)
{
	char *target = follow(path);
	char *name = target == NULL ? NULL : malloc(strlen(target) + DRAFT_BYTES);
	struct draft draft = {.target = target, .name = name};
	int rc = name == NULL ? -ENOMEM : write_draft(path, &draft, trace);

	free(name);
	free(target);
	return rc;
}

bool tracing_write(const char *path, struct pinion_trace *trace)
{
	bool is_file = !is_special(path);
	int rc = is_file ? write_file(path, trace) : write_special(path, trace);

	if (rc != 0) {
		report_path(path,
			rc == -ENXIO ? "no program reads this pipe: there is no trace"
				     : output_reason(rc));
	}
	return rc == 0;
}

bool tracing_save(const char *path, const struct pinion_runtime *runtime)
{
	struct pinion_trace *trace = NULL;
	int rc = pinion_trace_open(runtime, &trace);
	bool is_written = false;

	if (rc == 0) {
		rc = pinion_trace_read(trace);
	}
	if (rc == 0) {
		is_written = tracing_write(path, trace);
		tracing_report_lost(trace);
	} else {
		report_path(path, report_reason(rc));
	}
	pinion_trace_close(trace);
	return is_written;
}

void tracing_report_lost(const struct pinion_trace *trace)
{
	struct pinion_trace_info info;

	pinion_trace_get_info(trace, &info, sizeof(info));
	if (info.lost_count > 0) {
		report_line("the trace lacks %llu events: each worker keeps the last %llu "
			    "(PINION_TRACE_EVENTS)",
			(unsigned long long)info.lost_count, (unsigned long long)info.ring_events);
	}
}

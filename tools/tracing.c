/* SPDX-License-Identifier: MIT */
/*
 * Writes a trace beside its name, and gives it that name when it is whole.
 */
#include "tools/tracing.h"

#include "tools/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* It exists, and is no regular file: a device or a pipe, perhaps. */
static bool is_special(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

bool tracing_check(const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t length = slash == NULL ? 0 : (size_t)(slash - path) + 1;
	char *folder = strndup(path, length);
	int error = 0;

	if (folder == NULL) {
		error = ENOMEM;
	} else if (path[length] == '\0') {
		error = EISDIR;
	} else if (access(is_special(path) ? path : length == 0 ? "." : folder, W_OK) != 0) {
		error = errno;
	}
	free(folder);
	if (error != 0) {
		report_path(path,
			error == EISDIR ? "is a directory: a trace is a file"
					: report_reason(error));
	}
	return error == 0;
}

static int write_special(const char *path, struct pinion_trace *trace)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	int rc = fd < 0 ? -errno : pinion_trace_write(trace, fd);

	if (fd >= 0 && close(fd) != 0 && rc == 0) {
		rc = -errno;
	}
	return rc;
}

static int write_draft(const char *path, struct pinion_trace *trace, const char *draft)
{
	int fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
	int rc = fd < 0 ? -errno : pinion_trace_write(trace, fd);

	if (fd < 0) {
		return rc;
	}
	/* Some file systems report a full disk only on close. */
	if (close(fd) != 0 && rc == 0) {
		rc = -errno;
	}
	if (rc == 0 && rename(draft, path) != 0) {
		rc = -errno;
	}
	if (rc != 0) {
		(void)unlink(draft);
	}
	return rc;
}

bool tracing_write(const char *path, struct pinion_trace *trace)
{
	size_t bytes = strlen(path) + 32;
	char *draft = malloc(bytes);
	int rc = -ENOMEM;

	if (draft != NULL && is_special(path)) {
		rc = write_special(path, trace);
	} else if (draft != NULL) {
		snprintf(draft, bytes, "%s.%d.part", path, (int)getpid());
		rc = write_draft(path, trace, draft);
	}
	free(draft);
	if (rc != 0) {
		report_path(path, report_reason(rc));
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

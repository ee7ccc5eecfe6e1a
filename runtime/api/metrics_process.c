/* SPDX-License-Identifier: MIT */
/*
 * Finds the metrics pages of a process among its descriptors.
 *
 * A watching thread calls it. It reads the links in /proc/PID/fd and opens the
 * pages by their name, and files that the process has open in the way of a
 * metrics file. It touches no other file: a stat of a file whose
 * server hangs would hang as well.
 *
 * Invariant: a page counts once, and for its writer only, whatever descriptors
 * of it that process, its children and its readers have.
 */
#include "runtime/api/internal.h"
#include "runtime/base/check.h"
#include "runtime/base/log.h"
#include "runtime/host/shared_page.h"
#include "runtime/host/thread_state.h"
#include "runtime/observe/metrics_page.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pinion/metrics.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	PATH_BYTES = 64,
	LINK_BYTES = 64,
	INFO_BYTES = 256,
	/* Of a newer writer, too. */
	FILE_BYTES_MAX = 8 << 20,
	FILE_BYTES_UNIT = 4096,
	/* Pages of a process; others are not found. */
	PAGES_MAX = 128,
};

enum look {
	LOOK_NONE,
	LOOK_NAMED, /* it has the name of a page */
	LOOK_FILE,  /* it may be a metrics file */
};

struct seen {
	dev_t device;
	ino_t inode;
};

struct search {
	int pid;
	uint64_t start;	    /* of the process; 0: unknown */
	uint64_t inner_pid; /* as its own namespace has it; 0: unknown */
	uint32_t wanted;    /* pages before the wanted one */
	uint32_t count;
	struct seen seen[PAGES_MAX];
};

/* What /proc says of a descriptor. */
struct described {
	unsigned long flags;
	unsigned long long inode; /* 0: unknown, before Linux 5.14 */
};

static int describe(int pid, const char *number, struct described *out_described)
{
	char path[PATH_BYTES];
	char text[INFO_BYTES];
	const char *flags;
	const char *inode;
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%.16s", pid, number);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	*out_described = (struct described){0};
	if (fd < 0) {
		return -errno;
	}
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[length > 0 ? length : 0] = '\0';
	flags = strstr(text, "flags:");
	inode = strstr(text, "ino:");
	out_described->flags = flags == NULL ? 0 : strtoul(flags + strlen("flags:"), NULL, 8);
	out_described->inode = inode == NULL ? 0 : strtoull(inode + strlen("ino:"), NULL, 10);
	return 0;
}

/* As host/shared_page.c opens a page, anonymous or of a file. */
static bool is_open_as_page(const struct described *described)
{
	return (described->flags & O_ACCMODE) == O_RDWR && (described->flags & O_CLOEXEC) != 0;
}

/* As host/shared_page.c sizes it. */
static bool may_be_file(int pid, const char *number, const char *path)
{
	struct described described;
	struct stat status;

	return describe(pid, number, &described) == 0 && is_open_as_page(&described) &&
		stat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 &&
		status.st_size <= FILE_BYTES_MAX && status.st_size % FILE_BYTES_UNIT == 0;
}

/* By the link alone: the name of a page, or that of some file. */
static enum look look_at_link(const char *path)
{
	static const char wanted[] = "/memfd:" PIN_SHARED_PAGE_NAME " (deleted)";
	char target[LINK_BYTES];
	ssize_t length = readlink(path, target, sizeof(target));

	if (length == (ssize_t)strlen(wanted) && memcmp(target, wanted, strlen(wanted)) == 0) {
		return LOOK_NAMED;
	}
	return length > 0 && target[0] == '/' ? LOOK_FILE : LOOK_NONE;
}

static enum look look_at(int pid, const char *number, const char *path)
{
	enum look look = look_at_link(path);

	return look == LOOK_FILE && !may_be_file(pid, number, path) ? LOOK_NONE : look;
}

/* False: by another descriptor it has been counted already. */
static bool is_new(struct search *search, int fd)
{
	struct stat status;

	if (fstat(fd, &status) != 0 || search->count >= PAGES_MAX) {
		return false;
	}
	for (uint32_t i = 0; i < search->count; i++) {
		if (search->seen[i].device == status.st_dev &&
			search->seen[i].inode == status.st_ino) {
			return false;
		}
	}
	PIN_DCHECK(search->count < PAGES_MAX);
	search->seen[search->count] = (struct seen){status.st_dev, status.st_ino};
	return true;
}

/* A reader has the page of another process, a child that of its parent. */
static bool is_its_own(const struct search *search, const struct pin_page_header *header)
{
	return (header->owner.process_start == 0 || search->start == 0 ||
		       header->owner.process_start == search->start) &&
		(search->inner_pid == 0 || header->owner.pid == search->inner_pid);
}

/*
 * A page by its name counts in any case, so that it is refused with a line if
 * it is none.
 */
static bool counts(struct search *search, int fd, enum look look)
{
	struct pin_page_header header;
	bool is_page = pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
		/* Relaxed: a copy. */
		pin_load_relaxed_u64(&header.magic) == PIN_PAGE_MAGIC;

	return (is_page ? is_its_own(search, &header) : look == LOOK_NAMED) && is_new(search, fd);
}

/* The descriptor of the wanted page, -ENOENT, or why it cannot be opened. */
static int try_descriptor(struct search *search, const char *number, const char *path)
{
	enum look look = look_at(search->pid, number, path);
	int fd;
	int error;

	if (look == LOOK_NONE) {
		return -ENOENT;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	error = errno;
	if (fd < 0) {
		return look == LOOK_NAMED && error != ENOENT ? -error : -ENOENT;
	}
	PIN_DCHECK(search->count <= search->wanted);
	if (!counts(search, fd, look) || search->count++ != search->wanted) {
		close(fd);
		return -ENOENT;
	}
	return fd;
}

/* /proc lists descriptors in their order. */
static int find_descriptor(struct search *search, char out_path[PATH_BYTES])
{
	const struct dirent *entry;
	DIR *folder;
	int rc = -ENOENT;

	snprintf(out_path, PATH_BYTES, "/proc/%d/fd", search->pid);
	folder = opendir(out_path);
	if (folder == NULL) {
		return errno == ENOENT ? -ESRCH : -errno;
	}
	while (rc == -ENOENT && (entry = readdir(folder)) != NULL) {
		snprintf(out_path, PATH_BYTES, "/proc/%d/fd/%.16s", search->pid, entry->d_name);
		rc = try_descriptor(search, entry->d_name, out_path);
	}
	closedir(folder);
	return rc;
}

int pinion_metrics_open_pid(int pid, uint32_t index, pinion_log_fn log, void *log_arg,
	struct pinion_metrics **out_metrics)
{
	struct pin_log line = {.fn = log, .arg = log_arg};
	struct search search = {.pid = pin_process_thread(pid),
		.start = pin_process_start(pid),
		.inner_pid = pin_process_inner_pid(pid),
		.wanted = index};
	char path[PATH_BYTES];
	int rc = find_descriptor(&search, path);

	if (rc >= 0) {
		return pin_metrics_take(rc, path, &line, out_metrics);
	}
	if (rc != -ENOENT) {
		pin_log(&line, PINION_LOG_ERROR, "metrics of process %d: %s", pid,
			rc == -ESRCH ? "there is no such process" : strerror(-rc));
	}
	return rc;
}

/* ---- is it still its writer's? ---- */

/* The page's file, as far as /proc describes it. */
struct wanted {
	unsigned long long inode;
	enum look look;
};

/*
 * 1, 0, or why /proc does not say. If it can be, not by a stat of the file: its
 * server may hang.
 */
static int is_descriptor_of(const struct wanted *wanted, int pid, const char *number)
{
	struct described described;
	char path[PATH_BYTES];
	struct stat status;
	int rc = describe(pid, number, &described);

	if (rc < 0) {
		/* Closed since it was listed. */
		return rc == -ENOENT ? 0 : rc;
	}
	snprintf(path, sizeof(path), "/proc/%d/fd/%.16s", pid, number);
	if (!is_open_as_page(&described) || look_at_link(path) != wanted->look) {
		return 0;
	}
	if (described.inode == 0) {
		if (stat(path, &status) != 0) {
			return errno == ENOENT ? 0 : -errno;
		}
		described.inode = status.st_ino;
	}
	return described.inode == wanted->inode;
}

int pinion_metrics_is_open(const struct pinion_metrics *metrics, int pid)
{
	int thread = pin_process_thread(pid);
	struct wanted wanted = {.inode = pin_metrics_inode(metrics)};
	const struct dirent *entry;
	char path[PATH_BYTES];
	DIR *folder;
	int rc = 0;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", pin_metrics_fd(metrics));
	wanted.look = look_at_link(path);
	snprintf(path, sizeof(path), "/proc/%d/fd", thread);
	folder = opendir(path);
	if (folder == NULL) {
		return errno == ENOENT ? -ESRCH : -errno;
	}
	while (rc == 0 && (entry = readdir(folder)) != NULL) {
		if (entry->d_name[0] != '.') {
			rc = is_descriptor_of(&wanted, thread, entry->d_name);
		}
	}
	closedir(folder);
	return rc;
}

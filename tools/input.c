/* SPDX-License-Identifier: MIT */
/*
 * Paths and lines in. A thread that waits for input waits for signals too.
 */
#include "tools/input.h"

#include "tools/distribution.h"
#include "tools/report.h"
#include "tools/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	READ_BYTES = 64 * 1024,
	/* Shown in place of an entry that is no path. */
	LONG_ENTRY_BYTES = 64,
};

ssize_t input_read_within(int fd, void *bytes, size_t length, uint64_t timeout_ms)
{
	int patience_ms = timeout_ms == 0 ? -1 : timeout_ms > INT_MAX ? INT_MAX : (int)timeout_ms;

	for (;;) {
		struct pollfd waiting[2] = {
			{.fd = fd, .events = POLLIN},
			{.fd = signals_fd(), .events = POLLIN},
		};
		ssize_t count;
		int ready;

		if (signals_interrupted()) {
			return -ECANCELED;
		}
		ready = poll(waiting, 2, patience_ms);
		if (ready < 0 && errno != EINTR) {
			return -errno;
		}
		if (ready == 0) {
			return -ETIMEDOUT;
		}
		if (waiting[0].revents == 0) {
			continue;
		}
		count = read(fd, bytes, length);
		if (count >= 0) {
			return count;
		}
		if (errno != EINTR && errno != EAGAIN) {
			return -errno;
		}
	}
}

ssize_t input_read(int fd, void *bytes, size_t length)
{
	return input_read_within(fd, bytes, length, 0);
}

int input_lines_init(struct input_lines *lines, const char *path, char separator)
{
	*lines = (struct input_lines){.fd = STDIN_FILENO, .separator = separator};
	if (strcmp(path, "-") != 0) {
		/*
		 * Not here, but in input_read(), a FIFO's writer is waited for:
		 * a signal ends that.
		 */
		lines->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		if (lines->fd < 0) {
			return -errno;
		}
	}
	return 0;
}

void input_lines_fini(struct input_lines *lines)
{
	if (lines->fd > STDIN_FILENO) {
		close(lines->fd);
	}
	free(lines->bytes);
	*lines = (struct input_lines){.fd = -1};
}

/* Makes room for another READ_BYTES, and a NUL, after `end`. */
static int lines_reserve(struct input_lines *lines)
{
	size_t wanted;
	char *bytes;

	if (lines->start > 0) {
		memmove(lines->bytes, lines->bytes + lines->start, lines->end - lines->start);
		lines->end -= lines->start;
		lines->start = 0;
	}
	if (lines->capacity - lines->end > READ_BYTES) {
		return 0;
	}
	wanted = lines->capacity == 0 ? 2 * READ_BYTES : 2 * lines->capacity;
	bytes = realloc(lines->bytes, wanted);
	if (bytes == NULL) {
		return -ENOMEM;
	}
	lines->bytes = bytes;
	lines->capacity = wanted;
	return 0;
}

/* Reads more, after `end`. Returns 0 or a negative errno. */
static int lines_fill(struct input_lines *lines)
{
	int error = lines_reserve(lines);
	ssize_t count;

	if (error != 0) {
		return error;
	}
	count = input_read(lines->fd, lines->bytes + lines->end, READ_BYTES);
	if (count < 0) {
		return (int)count;
	}
	lines->bytes_read += (uint64_t)count;
	if (lines->bytes_max != 0 && lines->bytes_read > lines->bytes_max) {
		return -EFBIG;
	}
	lines->end += (size_t)count;
	lines->at_end = count == 0;
	return 0;
}

/* Drops the rest of a line that is too long, up to its separator. */
static int lines_drop_rest(struct input_lines *lines)
{
	/* Kept bytes stay before those that are read and discarded. */
	size_t keep = lines->end;

	while (!lines->at_end) {
		char *separator;
		int error;

		lines->end = keep;
		error = lines_fill(lines);
		if (error != 0) {
			return error;
		}
		/* The fill has moved everything to the front of the buffer. */
		separator = memchr(lines->bytes + keep, lines->separator, lines->end - keep);
		if (separator != NULL) {
			lines->start = (size_t)(separator + 1 - lines->bytes);
			return 0;
		}
	}
	lines->start = lines->end;
	return 0;
}

/*
 * The line is too long: the caller gets its beginning, the rest is dropped.
 * Moved to the front of the buffer, the beginning stays there while the rest is
 * read after it.
 */
static int lines_cut(struct input_lines *lines, char **out_line, size_t *out_length)
{
	int error = lines_reserve(lines);

	if (error == 0) {
		lines->bytes[INPUT_LINE_BYTES_MAX] = '\0';
		lines->end = INPUT_LINE_BYTES_MAX + 1;
		error = lines_drop_rest(lines);
	}
	if (error != 0) {
		return error;
	}
	*out_line = lines->bytes;
	*out_length = INPUT_LINE_BYTES_MAX;
	return -E2BIG;
}

int input_lines_next(struct input_lines *lines, char **out_line, size_t *out_length)
{
	size_t searched = 0;

	for (;;) {
		size_t length = lines->end - lines->start;
		char *line = lines->bytes == NULL ? NULL : lines->bytes + lines->start;
		char *separator = length == searched
			? NULL
			: memchr(line + searched, lines->separator, length - searched);

		int error;

		if (separator != NULL) {
			*separator = '\0';
			*out_line = line;
			*out_length = (size_t)(separator - line);
			lines->start += *out_length + 1;
			return 1;
		}
		if (lines->at_end) {
			if (length == 0) {
				return 0;
			}
			line[length] = '\0';
			*out_line = line;
			*out_length = length;
			lines->start = lines->end;
			return 1;
		}
		if (length >= INPUT_LINE_BYTES_MAX) {
			return lines_cut(lines, out_line, out_length);
		}
		searched = length;
		error = lines_fill(lines);
		if (error != 0) {
			return error;
		}
	}
}

/* All walk the trees; a folder that cannot be entered is named once. */
static bool leaves_out(const struct input *input, const char *path)
{
	struct stat status;

	if (!sharding_leaves_out(&input->sharding, path) ||
		(input->recurse && stat(path, &status) == 0 && S_ISDIR(status.st_mode))) {
		return false;
	}
	(*input->other_shard_count)++;
	return true;
}

int input_add(const struct input *input, struct pinion_scan *scan, const char *path)
{
	int error;

	if (leaves_out(input, path)) {
		return 0;
	}
	error = input->recurse ? pinion_scan_add_tree(scan, path)
			       : pinion_scan_add_file(scan, path);

	/* Any other error concerns this path and reaches the scan's report. */
	return error == -ECANCELED ? error : 0;
}

static int feed_path(const struct input *input, struct pinion_scan *scan, const char *path)
{
	return distribution == NULL ? input_add(input, scan, path)
				    : distribution->add(input, scan, path);
}

static int feed_entry(
	const struct input *input, struct pinion_scan *scan, const char *path, size_t length)
{
	if (length == 0) {
		return 0;
	}
	if (strlen(path) != length) {
		/* report_reason() explains this one. */
		pinion_scan_add_failure(scan, path, -ENOMSG);
		return 0;
	}
	return feed_path(input, scan, path);
}

/* Counted as a failed path of its first bytes, and reported by its number. */
static void add_long_entry(
	struct pinion_scan *scan, const char *name, uint64_t entry_number, char *path)
{
	char reason[80];

	snprintf(reason, sizeof(reason), "entry %llu is longer than %d bytes: no path is",
		(unsigned long long)entry_number, INPUT_LINE_BYTES_MAX);
	report_path(name, reason);
	path[LONG_ENTRY_BYTES] = '\0';
	pinion_scan_add_failure(scan, path, -ENAMETOOLONG);
}

static int feed_list(const struct input *input, struct pinion_scan *scan, const char *list_path)
{
	const char *name = strcmp(list_path, "-") == 0 ? "standard input" : list_path;
	struct input_lines lines;
	uint64_t entry_number = 0;
	char *path;
	size_t length;
	int error = input_lines_init(&lines, list_path, input->list_is_nul ? '\0' : '\n');

	if (error != 0) {
		report_path(name, report_reason(error));
		return error;
	}
	for (;;) {
		int status = input_lines_next(&lines, &path, &length);

		if (status == 1 || status == -E2BIG) {
			entry_number++;
		}
		if (status == -E2BIG) {
			add_long_entry(scan, name, entry_number, path);
			continue;
		}
		if (status <= 0) {
			error = status;
			break;
		}
		error = feed_entry(input, scan, path, length);
		if (error != 0) {
			break;
		}
	}
	input_lines_fini(&lines);
	if (error != 0 && error != -ECANCELED) {
		report_path(name,
			error == -EISDIR ? "is a directory, not a list of paths"
					 : report_reason(error));
	}
	return error;
}

static int feed_all(const struct input *input, struct pinion_scan *scan)
{
	int error = 0;

	for (int i = 0; i < input->path_count && error == 0; i++) {
		error = feed_path(input, scan, input->paths[i]);
	}
	for (uint32_t i = 0; i < input->list_count && error != -ECANCELED; i++) {
		int list_error = feed_list(input, scan, input->lists[i]);

		if (error == 0 || list_error == -ECANCELED) {
			error = list_error;
		}
	}
	return error;
}

/* Rank 0 alone has the paths, so that a list is read once. */
int input_feed(const struct input *input, struct pinion_scan *scan)
{
	int error = 0;
	int feed_error;

	if (distribution == NULL) {
		return feed_all(input, scan);
	}
	if (!distribution->begin()) {
		return -ECANCELED;
	}
	if (distribution->rank == 0) {
		error = feed_all(input, scan);
	}
	feed_error = error == -ECANCELED ? error : distribution->feed(input, scan);
	return error == 0 ? feed_error : error;
}

/* SPDX-License-Identifier: MIT */
/*
 * Paths and lines in, and the signals that end a scan early.
 *
 * A signal is taken by whichever thread the kernel picks, so a read on the
 * main thread cannot count on being interrupted. The handler therefore also
 * rings an eventfd, and whoever waits for input waits for both.
 */
#include "tools/input.h"

#include "tools/report.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { READ_BYTES = 64 * 1024 };

static const int watched_signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { SIGNAL_COUNT = sizeof(watched_signals) / sizeof(watched_signals[0]) };

static struct sigaction previous_actions[SIGNAL_COUNT];
static bool is_watching;
static int wake_fd = -1;
/* Shared with handlers on any thread; only through __atomic builtins. */
static struct pinion_scan *watched_scan;
static int handlers_running;
static int was_interrupted;

static void handle_signal(int number)
{
	int saved_errno = errno;
	uint64_t one = 1;
	struct pinion_scan *scan;

	__atomic_fetch_add(&handlers_running, 1, __ATOMIC_SEQ_CST);
	if (__atomic_exchange_n(&was_interrupted, 1, __ATOMIC_SEQ_CST) != 0) {
		/* Raised again, it stays pending until this handler returns. */
		signal(number, SIG_DFL);
		raise(number);
	}
	scan = __atomic_load_n(&watched_scan, __ATOMIC_SEQ_CST);
	if (scan != NULL) {
		pinion_scan_cancel(scan);
	}
	if (wake_fd >= 0) {
		ssize_t written = write(wake_fd, &one, sizeof(one));

		(void)written;
	}
	__atomic_fetch_sub(&handlers_running, 1, __ATOMIC_SEQ_CST);
	errno = saved_errno;
}

static void install_handlers(void)
{
	struct sigaction action = {.sa_handler = handle_signal, .sa_flags = SA_RESTART};

	if (wake_fd < 0) {
		wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	}
	sigemptyset(&action.sa_mask);
	for (int i = 0; i < SIGNAL_COUNT; i++) {
		sigaddset(&action.sa_mask, watched_signals[i]);
	}
	for (int i = 0; i < SIGNAL_COUNT; i++) {
		sigaction(watched_signals[i], NULL, &previous_actions[i]);
		/* nohup and background jobs have them ignored: so they stay. */
		if (previous_actions[i].sa_handler != SIG_IGN) {
			sigaction(watched_signals[i], &action, NULL);
		}
	}
	is_watching = true;
}

void input_hold_signals(void)
{
	if (!is_watching) {
		install_handlers();
	}
	__atomic_store_n(&watched_scan, NULL, __ATOMIC_SEQ_CST);
	/* A handler on another thread may still hold the old pointer. */
	while (__atomic_load_n(&handlers_running, __ATOMIC_SEQ_CST) != 0) {
		poll(NULL, 0, 1);
	}
}

void input_watch_signals(struct pinion_scan *scan)
{
	if (scan == NULL) {
		input_hold_signals();
		for (int i = 0; i < SIGNAL_COUNT; i++) {
			sigaction(watched_signals[i], &previous_actions[i], NULL);
		}
		is_watching = false;
		return;
	}
	if (!is_watching) {
		install_handlers();
	}
	__atomic_store_n(&watched_scan, scan, __ATOMIC_SEQ_CST);
	/* One that came between two scans has found no scan to cancel. */
	if (input_was_interrupted()) {
		pinion_scan_cancel(scan);
	}
}

bool input_was_interrupted(void)
{
	return __atomic_load_n(&was_interrupted, __ATOMIC_SEQ_CST) != 0;
}

ssize_t input_read(int fd, void *bytes, size_t length)
{
	for (;;) {
		struct pollfd waiting[2] = {
			{.fd = fd, .events = POLLIN},
			{.fd = wake_fd, .events = POLLIN},
		};
		ssize_t count;

		if (input_was_interrupted()) {
			return -ECANCELED;
		}
		if (poll(waiting, 2, -1) < 0 && errno != EINTR) {
			return -errno;
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

/* Makes room for another READ_BYTES, and a NUL, behind `end`. */
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

/* Reads more behind `end`. Returns 0 or a negative errno. */
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
	lines->end += (size_t)count;
	lines->at_end = count == 0;
	return 0;
}

/* Drops the rest of a line that is too long, up to its separator. */
static int lines_drop_rest(struct input_lines *lines)
{
	/* What is kept for the caller stays before what is read and lost. */
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

int input_lines_next(struct input_lines *lines, char **out_line, size_t *out_length)
{
	size_t searched = 0;
	int error;

	for (;;) {
		size_t length = lines->end - lines->start;
		char *line = lines->bytes == NULL ? NULL : lines->bytes + lines->start;
		char *separator = length == searched
			? NULL
			: memchr(line + searched, lines->separator, length - searched);

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
			break;
		}
		searched = length;
		error = lines_fill(lines);
		if (error != 0) {
			return error;
		}
	}
	/*
	 * Brought to the front of the buffer, the line stays there while the
	 * rest is read behind it.
	 */
	error = lines_reserve(lines);
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

static int feed_path(const struct input *input, struct pinion_scan *scan, const char *path)
{
	int error = input->recurse ? pinion_scan_add_tree(scan, path)
				   : pinion_scan_add_file(scan, path);

	/* Any other error concerns this path and reaches the scan's report. */
	return error == -ECANCELED ? error : 0;
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

static int feed_list(const struct input *input, struct pinion_scan *scan)
{
	const char *name = strcmp(input->list_path, "-") == 0 ? "standard input" : input->list_path;
	struct input_lines lines;
	char *path;
	size_t length;
	int error = input_lines_init(&lines, input->list_path, input->list_is_nul ? '\0' : '\n');

	if (error != 0) {
		report_path(name, report_reason(error));
		return error;
	}
	for (;;) {
		int status = input_lines_next(&lines, &path, &length);

		if (status == -E2BIG) {
			pinion_scan_add_failure(scan, path, -ENAMETOOLONG);
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

int input_feed(const struct input *input, struct pinion_scan *scan)
{
	int error = 0;

	for (int i = 0; i < input->path_count && error == 0; i++) {
		error = feed_path(input, scan, input->paths[i]);
	}
	if (error == 0 && input->list_path != NULL) {
		error = feed_list(input, scan);
	}
	return error;
}

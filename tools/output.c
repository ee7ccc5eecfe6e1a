/* SPDX-License-Identifier: MIT */
/*
 * Standard output with one lock and one buffer. stdio is not used: it hides
 * which line a failure hit, and a stream that failed once may go on writing.
 */
#include "tools/output.h"

#include "tools/report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* As large as a pipe holds, so that one write can fill it. */
enum { BUFFER_BYTES = 64 * 1024 };

/* For a reader of the last lines, when a command is ended. */
enum { ABANDON_WAIT_MS = 250 };

static pthread_mutex_t output_lock = PTHREAD_MUTEX_INITIALIZER;
static char buffer[BUFFER_BYTES];
static size_t buffered_bytes;
static bool is_terminal;
static bool has_written;
static bool was_reported;
static int output_fd = STDOUT_FILENO;
static const char *output_name = "standard output";
/* Errno of the first failed write; nothing is written after it. */
static int first_error;

void output_init(void)
{
	struct sigaction action = {.sa_handler = SIG_IGN};

	/*
	 * A descriptor 0 … 2 that is closed would be taken by the next file or
	 * ring opened, and output meant for it would end there. The modes are
	 * the wrong ones on purpose: using it stays an error.
	 */
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) < 0) {
			int opened = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);

			(void)opened;
		}
	}
	sigaction(SIGPIPE, &action, NULL);
	sigaction(SIGXFSZ, &action, NULL);
	is_terminal = isatty(STDOUT_FILENO) == 1;
}

void output_redirect(int fd, const char *name)
{
	output_fd = fd;
	output_name = name;
	is_terminal = isatty(fd) == 1;
}

/* Writes everything or sets first_error. The lock is held. */
static void write_all(const char *bytes, size_t length)
{
	has_written = has_written || length > 0;
	while (length > 0 && first_error == 0) {
		ssize_t count = write(output_fd, bytes, length);

		if (count > 0) {
			bytes += count;
			length -= (size_t)count;
		} else if (count == 0) {
			/* Trying again could spin for ever. */
			first_error = EIO;
		} else if (errno == EAGAIN) {
			/*
			 * Another program made the shared description
			 * non-blocking.
			 */
			struct pollfd waiting = {.fd = output_fd, .events = POLLOUT};

			poll(&waiting, 1, -1);
		} else if (errno != EINTR) {
			first_error = errno;
		}
	}
}

static void flush_buffer(void)
{
	write_all(buffer, buffered_bytes);
	buffered_bytes = 0;
}

/* Shown at once. The lock is held. */
static void write_to_terminal(const char *text, size_t length)
{
	struct output_text shown = {0};

	output_text_escaped_lines(&shown, text, length);
	if (!shown.failed) {
		write_all(shown.bytes, shown.length);
	} else if (first_error == 0) {
		first_error = ENOMEM;
	}
	output_text_free(&shown);
}

/* The lock is held. */
static void write_buffered(const char *text, size_t length)
{
	if (length > BUFFER_BYTES - buffered_bytes) {
		flush_buffer();
	}
	if (length > BUFFER_BYTES) {
		write_all(text, length);
	} else if (first_error == 0 && length > 0) {
		memcpy(buffer + buffered_bytes, text, length);
		buffered_bytes += length;
	}
}

bool output_is_terminal(void)
{
	return is_terminal;
}

/* Whether hidden characters are only those that the caller means. */
static bool write_text(const char *text, size_t length, bool is_escaped)
{
	bool is_ok;

	pthread_mutex_lock(&output_lock);
	if (is_terminal) {
		report_lift_status();
	}
	if (is_terminal && is_escaped) {
		write_all(text, length);
	} else if (is_terminal) {
		write_to_terminal(text, length);
	} else {
		write_buffered(text, length);
	}
	is_ok = first_error == 0;
	pthread_mutex_unlock(&output_lock);
	return is_ok;
}

bool output_write(const char *text, size_t length)
{
	return write_text(text, length, false);
}

bool output_write_escaped(const char *text, size_t length)
{
	return write_text(text, length, true);
}

bool output_ok(void)
{
	bool is_ok;

	pthread_mutex_lock(&output_lock);
	is_ok = first_error == 0;
	pthread_mutex_unlock(&output_lock);
	return is_ok;
}

bool output_abandon(void)
{
	size_t position = 0;

	/* A writer that waits has the lock, and has lines that are not out. */
	if (pthread_mutex_trylock(&output_lock) != 0) {
		return false;
	}
	while (position < buffered_bytes && first_error == 0) {
		struct pollfd waiting = {.fd = output_fd, .events = POLLOUT};
		size_t length = buffered_bytes - position;
		ssize_t count;

		/* A writable pipe takes this number of bytes without a wait. */
		length = length < PIPE_BUF ? length : PIPE_BUF;
		if (poll(&waiting, 1, ABANDON_WAIT_MS) != 1) {
			return false;
		}
		count = write(output_fd, buffer + position, length);
		if (count <= 0) {
			return false;
		}
		position += (size_t)count;
	}
	return position == buffered_bytes;
}

const char *output_reason(int error)
{
	return error == EFBIG || error == -EFBIG
		? "too large for a file: past the limit (ulimit -f) or what its file system takes"
		: report_reason(error);
}

bool output_finish(void)
{
	int error;

	pthread_mutex_lock(&output_lock);
	flush_buffer();
	if (has_written && first_error == 0) {
		/* Some file systems report a full disk only on close. */
		int copy = dup(output_fd);

		if (copy >= 0 && close(copy) != 0 && errno != EINTR) {
			first_error = errno;
		}
	}
	error = was_reported ? 0 : first_error;
	was_reported = was_reported || first_error != 0;
	pthread_mutex_unlock(&output_lock);
	if (error != 0) {
		report_line("%s: %s", output_name, output_reason(error));
	}
	return output_ok();
}

bool output_print(struct output_text *text)
{
	bool is_whole = !text->failed;

	if (is_whole) {
		output_write(text->bytes, text->length);
	} else {
		report_line("%s", report_reason(ENOMEM));
	}
	output_text_free(text);
	return output_finish() && is_whole;
}

/* SPDX-License-Identifier: MIT */
/*
 * Standard output behind one lock and one buffer. stdio is not used: it hides
 * which line a failure hit, and a stream that failed once may go on writing.
 */
#include "output.h"

#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As large as a pipe holds, so that one write can fill it. */
enum { BUFFER_BYTES = 64 * 1024 };

static pthread_mutex_t output_lock = PTHREAD_MUTEX_INITIALIZER;
static char buffer[BUFFER_BYTES];
static size_t buffered_bytes;
static bool is_terminal;
static bool has_written;
static bool was_reported;
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
	is_terminal = isatty(STDOUT_FILENO) == 1;
}

/* Writes everything or sets first_error. The lock is held. */
static void write_all(const char *bytes, size_t length)
{
	has_written = has_written || length > 0;
	while (length > 0 && first_error == 0) {
		ssize_t count = write(STDOUT_FILENO, bytes, length);

		if (count > 0) {
			bytes += count;
			length -= (size_t)count;
		} else if (count == 0) {
			/* Trying again could spin for ever. */
			first_error = EIO;
		} else if (errno == EAGAIN) {
			/* Somebody made the shared description non-blocking. */
			struct pollfd waiting = {.fd = STDOUT_FILENO, .events = POLLOUT};

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

bool output_write(const char *text, size_t length)
{
	bool is_ok;

	pthread_mutex_lock(&output_lock);
	if (length > BUFFER_BYTES - buffered_bytes) {
		flush_buffer();
	}
	if (length > BUFFER_BYTES) {
		write_all(text, length);
	} else if (first_error == 0 && length > 0) {
		memcpy(buffer + buffered_bytes, text, length);
		buffered_bytes += length;
	}
	if (is_terminal) {
		flush_buffer();
	}
	is_ok = first_error == 0;
	pthread_mutex_unlock(&output_lock);
	return is_ok;
}

bool output_ok(void)
{
	bool is_ok;

	pthread_mutex_lock(&output_lock);
	is_ok = first_error == 0;
	pthread_mutex_unlock(&output_lock);
	return is_ok;
}

bool output_finish(void)
{
	int error;

	pthread_mutex_lock(&output_lock);
	flush_buffer();
	if (has_written && first_error == 0) {
		/* Some file systems tell of a full disk only on close. */
		int copy = dup(STDOUT_FILENO);

		if (copy >= 0 && close(copy) != 0 && errno != EINTR) {
			first_error = errno;
		}
	}
	error = was_reported ? 0 : first_error;
	was_reported = was_reported || first_error != 0;
	pthread_mutex_unlock(&output_lock);
	if (error != 0) {
		report_line("standard output: %s", report_reason(error));
	}
	return output_ok();
}

static bool text_reserve(struct output_text *text, size_t length)
{
	size_t capacity = text->capacity == 0 ? 128 : text->capacity;
	char *bytes;

	if (text->failed || length > SIZE_MAX / 2 - text->length) {
		text->failed = true;
		return false;
	}
	if (length <= text->capacity - text->length) {
		return true;
	}
	while (capacity - text->length < length) {
		capacity *= 2;
	}
	bytes = realloc(text->bytes, capacity);
	if (bytes == NULL) {
		text->failed = true;
		return false;
	}
	text->bytes = bytes;
	text->capacity = capacity;
	return true;
}

void output_text_append(struct output_text *text, const void *bytes, size_t length)
{
	if (length > 0 && text_reserve(text, length)) {
		memcpy(text->bytes + text->length, bytes, length);
		text->length += length;
	}
}

void output_text_string(struct output_text *text, const char *string)
{
	output_text_append(text, string, strlen(string));
}

void output_text_decimal(struct output_text *text, unsigned long long number)
{
	char digits[24];
	size_t position = sizeof(digits);

	do {
		digits[--position] = (char)('0' + (char)(number % 10));
		number /= 10;
	} while (number > 0);
	output_text_append(text, digits + position, sizeof(digits) - position);
}

size_t output_utf8_length(const char *bytes, size_t length)
{
	const unsigned char *lead = (const unsigned char *)bytes;
	size_t size;
	uint32_t code;
	/* The smallest character of each size: shorter forms are not valid. */
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};

	if (length == 0) {
		return 0;
	}
	if (lead[0] < 0x80) {
		return 1;
	}
	if (lead[0] >= 0xc2 && lead[0] < 0xe0) {
		size = 2;
		code = lead[0] & 0x1fU;
	} else if ((lead[0] & 0xf0) == 0xe0) {
		size = 3;
		code = lead[0] & 0x0fU;
	} else if (lead[0] >= 0xf0 && lead[0] < 0xf5) {
		size = 4;
		code = lead[0] & 0x07U;
	} else {
		return 0;
	}
	if (length < size) {
		return 0;
	}
	for (size_t i = 1; i < size; i++) {
		if ((lead[i] & 0xc0) != 0x80) {
			return 0;
		}
		code = code << 6 | (lead[i] & 0x3fU);
	}
	if (code < least[size] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
		return 0;
	}
	return size;
}

static bool is_utf8(const char *bytes, size_t length)
{
	while (length > 0) {
		size_t step = output_utf8_length(bytes, length);

		if (step == 0) {
			return false;
		}
		bytes += step;
		length -= step;
	}
	return true;
}

static void append_base64(struct output_text *text, const unsigned char *bytes, size_t length)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < length; i += 3) {
		size_t count = length - i < 3 ? length - i : 3;
		uint32_t group = (uint32_t)bytes[i] << 16;
		char quad[4];

		group |= count > 1 ? (uint32_t)bytes[i + 1] << 8 : 0;
		group |= count > 2 ? (uint32_t)bytes[i + 2] : 0;
		for (size_t j = 0; j < 4; j++) {
			quad[j] = j <= count ? digits[group >> (18 - 6 * j) & 63] : '=';
		}
		output_text_append(text, quad, sizeof(quad));
	}
}

static void append_json_character(struct output_text *text, unsigned char byte)
{
	static const char hex[] = "0123456789abcdef";
	char escape[6] = {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};

	switch (byte) {
	case '"':
		output_text_append(text, "\\\"", 2);
		return;
	case '\\':
		output_text_append(text, "\\\\", 2);
		return;
	case '\n':
		output_text_append(text, "\\n", 2);
		return;
	case '\r':
		output_text_append(text, "\\r", 2);
		return;
	case '\t':
		output_text_append(text, "\\t", 2);
		return;
	default:
		output_text_append(text, escape, sizeof(escape));
	}
}

void output_text_json(struct output_text *text, const char *bytes, size_t length)
{
	const unsigned char *input = (const unsigned char *)bytes;
	size_t start = 0;

	if (!is_utf8(bytes, length)) {
		output_text_string(text, "{\"bytes\":\"");
		append_base64(text, input, length);
		output_text_string(text, "\"}");
		return;
	}
	output_text_append(text, "\"", 1);
	for (size_t i = 0; i < length; i++) {
		if (input[i] < 0x20 || input[i] == '"' || input[i] == '\\') {
			output_text_append(text, bytes + start, i - start);
			append_json_character(text, input[i]);
			start = i + 1;
		}
	}
	output_text_append(text, bytes + start, length - start);
	output_text_append(text, "\"", 1);
}

void output_text_free(struct output_text *text)
{
	free(text->bytes);
	*text = (struct output_text){0};
}

/* SPDX-License-Identifier: MIT */
/*
 * A file of rules as bytes in memory, and of which kind it is.
 */
#include "tools/scan/rules_reader.h"

#include "tools/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	/* Of a file where nothing is said. */
	FILE_BYTES_MAX = 64 << 20,
	/* For each byte of patterns that may be in it: ids and comments. */
	FILE_BYTES_SHARE = 4,
	BLOCK_BYTES = 64 << 10,
	/* By these it is decided whether it is text. */
	HEAD_BYTES = 4096,
	/* Control characters that a text may have, and one more for each of: */
	CONTROLS_MAX = 8,
	CONTROLS_SHARE = 32,
};

static const uint64_t ns_per_ms = 1000000;
static const uint64_t ns_per_s = 1000000000;

static uint64_t bytes_max_of(const struct rules *rules)
{
	uint64_t wanted = rules->bytes_max * FILE_BYTES_SHARE;

	return wanted > FILE_BYTES_MAX ? wanted : FILE_BYTES_MAX;
}

static int too_large(uint64_t bytes_max, char out_reason[RULES_SOURCE_REASON_BYTES])
{
	snprintf(out_reason, RULES_SOURCE_REASON_BYTES, "the file is larger than %llu MiB",
		(unsigned long long)(bytes_max >> 20));
	return -EINVAL;
}

static bool is_text(const char *bytes, size_t length)
{
	size_t head = length < HEAD_BYTES ? length : HEAD_BYTES;
	size_t controls = 0;

	for (size_t i = 0; i < head; i++) {
		uint8_t byte = (uint8_t)bytes[i];

		controls += (byte < ' ' && byte != '\t' && byte != '\n' && byte != '\r' &&
				    byte != '\f') ||
			byte == 0x7f;
	}
	return controls <= CONTROLS_MAX || controls <= head / CONTROLS_SHARE;
}

static int reserve(struct rules_source *source, size_t *capacity)
{
	size_t wanted = *capacity == 0 ? 2 * BLOCK_BYTES : 2 * *capacity;
	char *bytes;

	if (*capacity - source->length > BLOCK_BYTES) {
		return 0;
	}
	bytes = realloc(source->bytes, wanted);
	if (bytes == NULL) {
		return -ENOMEM;
	}
	source->bytes = bytes;
	*capacity = wanted;
	return 0;
}

static int read_bytes(const struct rules_reader *reader, struct rules_source *source, int fd,
	char out_reason[RULES_SOURCE_REASON_BYTES])
{
	uint64_t bytes_max = bytes_max_of(reader->rules);
	size_t capacity = 0;

	for (;;) {
		int error = reserve(source, &capacity);
		ssize_t count;

		if (error != 0) {
			return error;
		}
		count = input_read_within(fd, source->bytes + source->length, BLOCK_BYTES,
			(reader->silence_ns_max + ns_per_ms - 1) / ns_per_ms);
		if (count == -ETIMEDOUT) {
			snprintf(out_reason, RULES_SOURCE_REASON_BYTES,
				"no data for %.3g s (--file-timeout)",
				(double)reader->silence_ns_max / (double)ns_per_s);
			return -EINVAL;
		}
		if (count < 0) {
			return (int)count;
		}
		if (count == 0) {
			source->bytes[source->length] = '\0';
			return 0;
		}
		source->length += (size_t)count;
		if (!is_text(source->bytes, source->length)) {
			snprintf(out_reason, RULES_SOURCE_REASON_BYTES,
				"is no text, and so no list of rules");
			return -EINVAL;
		}
		if (source->length > bytes_max) {
			return too_large(bytes_max, out_reason);
		}
	}
}

int rules_source_read(const struct rules_reader *reader, struct rules_source *source,
	char out_reason[RULES_SOURCE_REASON_BYTES])
{
	uint64_t bytes_max = bytes_max_of(reader->rules);
	bool is_stdin = strcmp(source->file, "-") == 0;
	/* The read, not the open, awaits a FIFO's writer: a signal ends it. */
	int fd = is_stdin ? STDIN_FILENO
			  : open(source->file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat status;
	int error;

	if (fd < 0 || fstat(fd, &status) != 0) {
		error = -errno;
	} else if (S_ISREG(status.st_mode) && (uint64_t)status.st_size > bytes_max) {
		error = too_large(bytes_max, out_reason);
	} else {
		source->device = status.st_dev;
		source->inode = status.st_ino;
		error = read_bytes(reader, source, fd, out_reason);
	}
	if (fd >= 0 && !is_stdin) {
		close(fd);
	}
	return error;
}

static size_t skip_blanks(const char *bytes, size_t at, size_t length)
{
	while (at < length && (bytes[at] == ' ' || bytes[at] == '\t')) {
		at++;
	}
	return at;
}

static bool is_key_byte(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
		(byte >= '0' && byte <= '9') || byte == '_' || byte == '-' || byte == '.';
}

/*
 * `[table]`, `key = value` or `"key" = value`. In a list of rules a tab follows
 * the id, so a tab is none of the blanks after a key here.
 */
static bool is_toml_line(const char *line, size_t length)
{
	size_t at = 0;

	if (length > 0 && (line[0] == '[' || line[0] == '"' || line[0] == '\'')) {
		return true;
	}
	while (at < length && is_key_byte(line[at])) {
		at++;
	}
	if (at == 0) {
		return false;
	}
	while (at < length && line[at] == ' ') {
		at++;
	}
	return at < length && line[at] == '=';
}

bool rules_source_is_toml(const struct rules_source *source)
{
	static const char suffix[] = ".toml";
	size_t name_length = strlen(source->file);
	size_t at = 0;

	if (name_length >= sizeof(suffix) - 1 &&
		strcmp(source->file + name_length - (sizeof(suffix) - 1), suffix) == 0) {
		return true;
	}
	if (source->length >= 3 && memcmp(source->bytes, "\xef\xbb\xbf", 3) == 0) {
		at = 3;
	}
	while (at < source->length) {
		const char *newline = memchr(source->bytes + at, '\n', source->length - at);
		size_t end = newline == NULL ? source->length : (size_t)(newline - source->bytes);

		at = skip_blanks(source->bytes, at, end);
		if (at < end && source->bytes[at] != '#' && source->bytes[at] != '\r') {
			return is_toml_line(source->bytes + at, end - at);
		}
		at = end + 1;
	}
	return false;
}

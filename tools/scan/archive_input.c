/* SPDX-License-Identifier: MIT */
/*
 * The callbacks of libarchive. Each looks whether all has to end, since the
 * library may read for long between two entries.
 */
#include "tools/scan/archive_input.h"

#if defined(HAVE_LIBARCHIVE)

#include "tools/scanning.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	READ_BYTES = 256 << 10,
	HELD_FIRST_BYTES = 64 << 10,
	/* A few bytes may grow a lot before it is a matter of ratio. */
	RATIO_BYTES_MIN = 16 << 20,
};

bool archive_run_is_over(struct archive_run *run)
{
	const struct archive_limits *limits = run->limits;

	if (run->error != 0) {
		return true;
	}
	if (run->ops->is_stopped(run->arg)) {
		run->error = -ECANCELED;
	} else if (scanning_ns_now() > run->end_ns) {
		run->error = -ETIME;
	} else if (run->bytes > limits->bytes) {
		run->error = -EFBIG;
	} else if (run->bytes > RATIO_BYTES_MIN && run->bytes / limits->ratio > run->file_bytes) {
		run->error = -EDOM;
	}
	return run->error != 0;
}

/* ---- a file ---- */

int archive_input_of_file(struct archive_input *input, struct archive_run *run, int fd)
{
	off_t end = lseek(fd, 0, SEEK_END);

	*input = (struct archive_input){.run = run, .fd = fd};
	input->buffer = malloc(READ_BYTES);
	if (input->buffer == NULL) {
		return -ENOMEM;
	}
	/* 0: of /proc, and of unknown size. */
	input->file_size = end > 0 ? (uint64_t)end : 0;
	return 0;
}

static la_ssize_t read_file(struct archive_input *input, const void **out_bytes)
{
	struct archive_run *run = input->run;
	ssize_t count;

	do {
		count = pread(input->fd, input->buffer, READ_BYTES, (off_t)input->file_at);
	} while (count < 0 && errno == EINTR);
	if (count < 0) {
		run->error = -errno;
		return ARCHIVE_FATAL;
	}
	input->file_at += (uint64_t)count;
	if (input->file_size == 0 || run->file_bytes < input->file_size) {
		run->file_bytes += (uint64_t)count;
	}
	*out_bytes = input->buffer;
	return count;
}

/* ---- an entry ---- */

void archive_input_of_entry(
	struct archive_input *input, struct archive_run *run, struct archive *outer)
{
	*input = (struct archive_input){.run = run, .fd = -1, .outer = outer};
}

int archive_input_hold(struct archive_input *input, const uint8_t *bytes, size_t length)
{
	size_t wanted = input->held_length + length;

	if (wanted > input->held_capacity) {
		size_t capacity =
			input->held_capacity == 0 ? HELD_FIRST_BYTES : 2 * input->held_capacity;
		uint8_t *held;

		capacity = capacity < wanted ? wanted : capacity;
		held = realloc(input->held, capacity);
		if (held == NULL) {
			return -ENOMEM;
		}
		input->run->held_bytes += capacity - input->held_capacity;
		input->held = held;
		input->held_capacity = capacity;
	}
	if (bytes != NULL) {
		memcpy(input->held + input->held_length, bytes, length);
	} else {
		memset(input->held + input->held_length, 0, length);
	}
	input->held_length = wanted;
	return 0;
}

static la_ssize_t read_entry(struct archive_input *input, const void **out_bytes)
{
	size_t length = input->held_length - input->held_at;
	la_int64_t offset;
	int status;

	if (length > 0) {
		*out_bytes = input->held + input->held_at;
		input->held_at = input->held_length;
		return (la_ssize_t)length;
	}
	if (input->is_whole) {
		return 0;
	}
	do {
		status = archive_library.archive_read_data_block(
			input->outer, out_bytes, &length, &offset);
	} while (status == ARCHIVE_RETRY);
	if (status == ARCHIVE_EOF) {
		return 0;
	}
	if (status != ARCHIVE_OK && status != ARCHIVE_WARN) {
		return ARCHIVE_FATAL;
	}
	input->run->bytes += length;
	return (la_ssize_t)length;
}

/* ---- both ---- */

static la_ssize_t on_read(struct archive *archive, void *arg, const void **out_bytes)
{
	struct archive_input *input = arg;

	(void)archive;
	if (archive_run_is_over(input->run)) {
		return ARCHIVE_FATAL;
	}
	return input->fd >= 0 ? read_file(input, out_bytes) : read_entry(input, out_bytes);
}

static la_int64_t on_seek(struct archive *archive, void *arg, la_int64_t offset, int whence)
{
	struct archive_input *input = arg;
	uint64_t size = input->fd >= 0 ? input->file_size : input->held_length;
	uint64_t at = input->fd >= 0 ? input->file_at : input->held_at;
	int64_t base = whence == SEEK_SET ? 0 : (int64_t)(whence == SEEK_CUR ? at : size);
	int64_t target;

	(void)archive;
	if (__builtin_add_overflow(base, offset, &target) || target < 0) {
		return ARCHIVE_FATAL;
	}
	target = (uint64_t)target > size ? (int64_t)size : target;
	if (input->fd >= 0) {
		input->file_at = (uint64_t)target;
	} else {
		input->held_at = (size_t)target;
	}
	return target;
}

/* Only a file, and held bytes, can do without being read. */
static la_int64_t on_skip(struct archive *archive, void *arg, la_int64_t request)
{
	struct archive_input *input = arg;
	uint64_t end = input->fd >= 0 ? input->file_size : input->held_length;
	uint64_t at = input->fd >= 0 ? input->file_at : input->held_at;
	uint64_t left = end > at ? end - at : 0;
	uint64_t skipped = request > 0 && (uint64_t)request < left ? (uint64_t)request : left;

	(void)archive;
	if (request <= 0) {
		return 0;
	}
	if (input->fd >= 0) {
		input->file_at += skipped;
	} else {
		input->held_at += (size_t)skipped;
	}
	return (la_int64_t)skipped;
}

int archive_input_open(struct archive_input *input, struct archive *archive)
{
	const struct archive_library *library = &archive_library;

	library->archive_read_set_callback_data(archive, input);
	library->archive_read_set_read_callback(archive, on_read);
	library->archive_read_set_skip_callback(archive, on_skip);
	if (input->fd >= 0 || input->is_whole) {
		library->archive_read_set_seek_callback(archive, on_seek);
	}
	return library->archive_read_open1(archive);
}

bool archive_input_rewind(struct archive_input *input)
{
	input->file_at = 0;
	input->held_at = 0;
	return input->fd >= 0 || input->is_whole;
}

void archive_input_fini(struct archive_input *input)
{
	if (input->held != NULL) {
		input->run->held_bytes -= input->held_capacity;
	}
	free(input->held);
	free(input->buffer);
	*input = (struct archive_input){.fd = -1};
}

#endif

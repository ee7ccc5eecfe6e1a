/* SPDX-License-Identifier: MIT */
/*
 * Pieces of text that wait for the turn of their file; see sorted_output.h.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tools/scan/sorted_output.h"

#include "tools/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sorted_piece {
	struct sorted_piece *next;
	size_t length;
	uint64_t offset; /* in the spill, where `is_spilled` */
	bool is_spilled;
	bool is_note;
	char bytes[];
};

int sorted_output_init(
	struct sorted_output *output, size_t memory_max, sorted_write_fn write, void *arg)
{
	*output = (struct sorted_output){
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.write = write,
		.arg = arg,
		.memory_max = memory_max > 0 ? memory_max : SORTED_MEMORY_MAX,
		.spill_fd = -1,
	};
	output->files = calloc(SORTED_PATHS_MAX, sizeof(*output->files));
	return output->files == NULL ? -ENOMEM : 0;
}

/* NULL: it is the first that has not ended, or none of those in flight. */
static struct sorted_file *file_that_waits(struct sorted_output *output, uint64_t sequence)
{
	return sequence > output->front && sequence - output->front < SORTED_PATHS_MAX
		? &output->files[sequence % SORTED_PATHS_MAX]
		: NULL;
}

void sorted_output_fini(struct sorted_output *output)
{
	if (output->files == NULL) {
		return;
	}
	for (size_t i = 0; i < SORTED_PATHS_MAX; i++) {
		while (output->files[i].first != NULL) {
			struct sorted_piece *piece = output->files[i].first;

			output->files[i].first = piece->next;
			free(piece);
		}
	}
	free(output->files);
	if (output->spill_fd >= 0) {
		close(output->spill_fd);
	}
	pthread_mutex_destroy(&output->lock);
	*output = (struct sorted_output){.spill_fd = -1};
}

/* ---- the file without a name ---- */

/* Nothing more is written, as it would be out of order. */
static bool fail(struct sorted_output *output, int error)
{
	const char *folder = getenv("TMPDIR");

	if (!output->has_failed) {
		report_line("--sort: lines that wait for earlier files have no room in TMPDIR, "
			    "%s: %s",
			folder != NULL ? folder : "/tmp", report_reason(error));
	}
	output->has_failed = true;
	return false;
}

/* Its name is gone before it holds a byte. */
static int open_spill(void)
{
	const char *folder = getenv("TMPDIR");
	char path[2048];
	int fd;

	folder = folder != NULL && folder[0] != '\0' ? folder : "/tmp";
	fd = open(folder, O_RDWR | O_TMPFILE | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0) {
		return fd;
	}
	if (strlen(folder) > sizeof(path) - 32) {
		return -ENAMETOOLONG;
	}
	strcpy(path, folder);
	strcat(path, "/pinion-sort.XXXXXX");
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0) {
		return -errno;
	}
	(void)unlink(path);
	return fd;
}

static int spill_bytes(struct sorted_output *output, const struct sorted_text *text)
{
	size_t done = 0;

	if (output->spill_fd < 0) {
		int fd = open_spill();

		if (fd < 0) {
			return fd;
		}
		output->spill_fd = fd;
	}
	while (done < text->length) {
		ssize_t count = pwrite(output->spill_fd, text->bytes + done, text->length - done,
			(off_t)(output->spill_end + done));

		if (count <= 0 && errno != EINTR) {
			return count == 0 ? -EIO : -errno;
		}
		done += count > 0 ? (size_t)count : 0;
	}
	return 0;
}

static int read_spilled(struct sorted_output *output, const struct sorted_piece *piece, char *bytes)
{
	size_t done = 0;

	while (done < piece->length) {
		ssize_t count = pread(output->spill_fd, bytes + done, piece->length - done,
			(off_t)(piece->offset + done));

		if (count <= 0 && errno != EINTR) {
			return count == 0 ? -EIO : -errno;
		}
		done += count > 0 ? (size_t)count : 0;
	}
	return 0;
}

/* ---- pieces ---- */

static bool keep(
	struct sorted_output *output, struct sorted_file *file, const struct sorted_text *text)
{
	bool is_spilled = output->memory_bytes + text->length > output->memory_max;
	struct sorted_piece *piece = malloc(sizeof(*piece) + (is_spilled ? 0 : text->length));
	int error = piece == NULL ? -ENOMEM : is_spilled ? spill_bytes(output, text) : 0;

	if (error != 0) {
		free(piece);
		return fail(output, error);
	}
	*piece = (struct sorted_piece){
		.length = text->length,
		.offset = output->spill_end,
		.is_spilled = is_spilled,
		.is_note = text->is_note,
	};
	output->memory_bytes += sizeof(*piece);
	if (is_spilled) {
		output->spill_end += text->length;
		output->spilled_count++;
	} else {
		memcpy(piece->bytes, text->bytes, text->length);
		output->memory_bytes += text->length;
	}
	if (file->first == NULL) {
		file->first = piece;
	} else {
		file->last->next = piece;
	}
	file->last = piece;
	return true;
}

static bool write_spilled(struct sorted_output *output, const struct sorted_piece *piece)
{
	char *bytes = malloc(piece->length);
	struct sorted_text text = {bytes, piece->length, piece->is_note};
	int error = bytes == NULL ? -ENOMEM : read_spilled(output, piece, bytes);
	bool is_written = error == 0 ? output->write(output->arg, &text) : fail(output, error);

	free(bytes);
	output->spilled_count--;
	if (output->spilled_count == 0) {
		output->spill_end = 0;
		(void)!ftruncate(output->spill_fd, 0);
	}
	return is_written;
}

/* The waiting pieces of the file at the front. */
static bool write_waiting(struct sorted_output *output, struct sorted_file *file)
{
	while (file->first != NULL) {
		struct sorted_piece *piece = file->first;
		struct sorted_text text = {piece->bytes, piece->length, piece->is_note};

		if (output->has_failed) {
			return false;
		}
		if (!(piece->is_spilled ? write_spilled(output, piece)
					: output->write(output->arg, &text))) {
			output->has_failed = true;
		}
		output->memory_bytes -= sizeof(*piece) + (piece->is_spilled ? 0 : piece->length);
		file->first = piece->next;
		free(piece);
	}
	return !output->has_failed;
}

bool sorted_output_put(
	struct sorted_output *output, uint64_t sequence, const struct sorted_text *text)
{
	struct sorted_file *file;
	bool is_ok;

	pthread_mutex_lock(&output->lock);
	file = file_that_waits(output, sequence);
	if (output->has_failed) {
		is_ok = false;
	} else if (file != NULL) {
		is_ok = keep(output, file, text);
	} else {
		is_ok = output->write(output->arg, text);
		output->has_failed = !is_ok;
	}
	pthread_mutex_unlock(&output->lock);
	return is_ok;
}

bool sorted_output_end(struct sorted_output *output, uint64_t sequence)
{
	bool is_ok;

	pthread_mutex_lock(&output->lock);
	output->files[sequence % SORTED_PATHS_MAX].has_ended = true;
	/* The first that has not ended is written as far as it is there. */
	for (;;) {
		struct sorted_file *file = &output->files[output->front % SORTED_PATHS_MAX];

		(void)write_waiting(output, file);
		if (!file->has_ended) {
			break;
		}
		file->has_ended = false;
		output->front++;
	}
	is_ok = !output->has_failed;
	pthread_mutex_unlock(&output->lock);
	return is_ok;
}

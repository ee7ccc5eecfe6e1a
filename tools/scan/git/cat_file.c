/* SPDX-License-Identifier: MIT */
/*
 * Questions in one pipe, answers in the other, whichever is ready.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* F_SETPIPE_SZ */
#endif
#include "tools/scan/git/cat_file.h"

#include "tools/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	READ_BYTES = 256 << 10,
	/* Fewer wake-ups of both sides. A user's limit may refuse it. */
	PIPE_BYTES = 256 << 10,
	HEAD_BYTES_MAX = 256,
};

bool cat_file_start(const struct git_place *place, struct cat_file *out_file)
{
	static const char *const arguments[] = {"cat-file", "--batch", "--buffer", NULL};

	*out_file = (struct cat_file){.sent = 0};
	if (!git_process_start(place, arguments, GIT_INPUT_PIPE, &out_file->process)) {
		return false;
	}
	(void)fcntl(out_file->process.out_fd, F_SETPIPE_SZ, PIPE_BYTES);
	(void)fcntl(out_file->process.in_fd, F_SETFL, O_NONBLOCK);
	out_file->questions = malloc((size_t)CAT_FILE_AHEAD * CAT_FILE_QUESTION_BYTES);
	out_file->bytes = malloc(READ_BYTES);
	return out_file->questions != NULL && out_file->bytes != NULL;
}

void cat_file_fini(const struct git_place *place, struct cat_file *file)
{
	(void)git_process_end(place, &file->process, true);
	free(file->questions);
	free(file->bytes);
	file->questions = NULL;
	file->bytes = NULL;
}

void cat_file_ask(struct cat_file *file, const char *id_text)
{
	size_t bytes = strlen(id_text);

	if (file->sent > 0) {
		memmove(file->questions, file->questions + file->sent, file->length - file->sent);
		file->length -= file->sent;
		file->sent = 0;
	}
	memcpy(file->questions + file->length, id_text, bytes);
	file->questions[file->length + bytes] = '\n';
	file->length += bytes + 1;
}

void cat_file_ask_no_more(struct cat_file *file)
{
	file->asks_no_more = true;
	if (file->sent == file->length) {
		git_process_close_input(&file->process);
	}
}

/* As far as the pipe takes it. The read notices a git that has ended. */
static void send_questions(struct cat_file *file)
{
	ssize_t count =
		write(file->process.in_fd, file->questions + file->sent, file->length - file->sent);

	if (count > 0) {
		file->sent += (size_t)count;
	} else if (errno != EAGAIN && errno != EINTR) {
		file->sent = file->length;
	}
	if (file->asks_no_more && file->sent == file->length) {
		git_process_close_input(&file->process);
	}
}

/* More after `end`, of which some room is left. */
static int fill(struct cat_file *file)
{
	for (;;) {
		struct pollfd waiting[3] = {
			{.fd = file->process.out_fd, .events = POLLIN},
			{.fd = file->sent < file->length ? file->process.in_fd : -1,
				.events = POLLOUT},
			{.fd = signals_fd(), .events = POLLIN},
		};
		ssize_t count;

		if (poll(waiting, 3, -1) < 0 && errno != EINTR) {
			return -errno;
		}
		if (signals_interrupted()) {
			return -ECANCELED;
		}
		if (waiting[1].revents != 0) {
			send_questions(file);
		}
		if (waiting[0].revents == 0) {
			continue;
		}
		count = read(file->process.out_fd, file->bytes + file->end, READ_BYTES - file->end);
		if (count > 0) {
			file->end += (size_t)count;
			return 0;
		}
		if (count == 0) {
			return -EPIPE;
		}
		if (errno != EINTR && errno != EAGAIN) {
			return -errno;
		}
	}
}

/* "ID TYPE BYTES", or "ID missing", or "ID ambiguous" and the like. */
static int parse_head(
	struct cat_file *file, const char *head, enum cat_file_kind *out_kind, uint64_t *out_bytes)
{
	const char *type = strchr(head, ' ');
	const char *size = type == NULL ? NULL : strchr(type + 1, ' ');
	char *end;

	if (type == NULL) {
		return -EBADMSG;
	}
	*out_bytes = 0;
	*out_kind = CAT_FILE_MISSING;
	if (size == NULL) {
		return 0;
	}
	errno = 0;
	*out_bytes = strtoull(size + 1, &end, 10);
	if (errno != 0 || *end != '\0' || end == size + 1) {
		return -EBADMSG;
	}
	*out_kind = strncmp(type, " blob ", 6) == 0 ? CAT_FILE_BLOB : CAT_FILE_OTHER;
	file->left = *out_bytes + 1;
	return 0;
}

int cat_file_next(struct cat_file *file, enum cat_file_kind *out_kind, uint64_t *out_bytes)
{
	size_t searched = 0;

	for (;;) {
		size_t length = file->end - file->start;
		char *head = (char *)file->bytes + file->start;
		char *end = memchr(head + searched, '\n', length - searched);
		int error;

		if (end != NULL) {
			*end = '\0';
			file->start += (size_t)(end - head) + 1;
			return parse_head(file, head, out_kind, out_bytes);
		}
		if (length > HEAD_BYTES_MAX) {
			return -EBADMSG;
		}
		memmove(file->bytes, head, length);
		file->start = 0;
		file->end = length;
		searched = length;
		error = fill(file);
		if (error != 0) {
			return error;
		}
	}
}

int cat_file_read(struct cat_file *file, const uint8_t **out_bytes, size_t *out_length)
{
	size_t there;
	int error = 0;

	*out_length = 0;
	if (file->left == 0) {
		return 0;
	}
	if (file->start == file->end) {
		file->start = 0;
		file->end = 0;
		error = fill(file);
	}
	if (error != 0) {
		return error;
	}
	there = file->end - file->start;
	if (there >= file->left) {
		/* The last byte is the newline after the blob. */
		there = (size_t)file->left;
		*out_length = there - 1;
	} else {
		*out_length = there;
	}
	*out_bytes = file->bytes + file->start;
	file->start += there;
	file->left -= there;
	/* Only the newline had not come yet. */
	return *out_length == 0 && file->left > 0 ? -EBADMSG : 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * `git cat-file --batch`, asked for many blobs ahead, so that git works on the
 * next ones while these are searched.
 *
 * git writes when a buffer of some kilobytes is full, or its input ends. As
 * long as CAT_FILE_AHEAD blobs are asked for and not read yet, their answers
 * cannot all be in that buffer, whatever their lengths: each is more than 48
 * bytes. So one of both pipes is always ready, and nothing waits forever.
 */
#ifndef PINION_TOOLS_SCAN_GIT_CAT_FILE_H
#define PINION_TOOLS_SCAN_GIT_CAT_FILE_H

#include "tools/scan/git/blobs.h"
#include "tools/scan/git/process.h"

#include <stdint.h>

enum {
	CAT_FILE_AHEAD = 512,
	CAT_FILE_QUESTION_BYTES = GIT_ID_CHARS_MAX + 1,
};

struct cat_file {
	struct git_process process;
	char *questions; /* not written yet: [sent, length) */
	size_t sent;
	size_t length;
	bool asks_no_more; /* its input ends with the last question */
	uint8_t *bytes;	   /* read, not yet taken: [start, end) */
	size_t start;
	size_t end;
	uint64_t left; /* of a blob whose head is taken, its newline included */
};

enum cat_file_kind {
	CAT_FILE_BLOB,
	CAT_FILE_MISSING,
	CAT_FILE_OTHER, /* an object of another kind; its bytes come all the same */
};

/* False: a line says why. On the first thread. */
bool cat_file_start(const struct git_place *place, struct cat_file *out_file);
void cat_file_fini(const struct git_place *place, struct cat_file *file);

/* Asks for one more, of which there are fewer than CAT_FILE_AHEAD. */
void cat_file_ask(struct cat_file *file, const char *id_text);
/* There is none. */
void cat_file_ask_no_more(struct cat_file *file);

/*
 * The answer to the oldest question: its kind and length. -EPIPE: git has
 * ended. -EBADMSG: it is not understood. -ECANCELED: a signal has come.
 */
int cat_file_next(struct cat_file *file, enum cat_file_kind *out_kind, uint64_t *out_bytes);

/*
 * The next bytes of the blob, valid until the next call; 0: all were read.
 * Errors as above.
 */
int cat_file_read(struct cat_file *file, const uint8_t **out_bytes, size_t *out_length);

#endif

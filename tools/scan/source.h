/* SPDX-License-Identifier: MIT */
/*
 * Bytes that are no file's, searched as though they were one: an entry of an
 * archive, a file of another age. They come in order and in pieces of any
 * length; a source cuts them into windows that overlap, as the library does
 * with files, so the findings do not depend on the pieces.
 *
 * Context: one thread at a time uses a source and its worker. Windows of a
 * source are searched by the thread that feeds it.
 */
#ifndef PINION_TOOLS_SCAN_SOURCE_H
#define PINION_TOOLS_SCAN_SOURCE_H

#include "tools/scan/job.h"

struct source;
struct source_facts;

/* Sources of a job one after the other. NULL: no memory. */
struct source *source_create(struct scan_job *job, struct scan_worker *worker);
/* NULL is accepted. */
void source_destroy(struct source *source);

/*
 * Begins a file that is shown as `path`, which is copied. `facts` are what else
 * findings are shown with, until the close; NULL: none.
 *
 * Errors: -ENOMEM, and those of search_open(); nothing has begun then.
 */
int source_open(struct source *source, const char *path, size_t path_bytes,
	const struct source_facts *facts);

/* The next ones have their lines in the place of `file`, where that matters. */
void source_follow(struct source *source, const struct pinion_scan_file *file);

struct decoded;

/*
 * Begins the text of `file` in another form (decode.h), which has its path and
 * facts; its findings count as the file's. `decoded` stays until the close.
 */
int source_open_decoded(
	struct source *source, const struct pinion_scan_file *file, const struct decoded *decoded);

/*
 * The next bytes. Returns 0, PINION_SCAN_ENOUGH where no more are needed, or a
 * negative errno. The source is closed in each case.
 */
int source_feed(struct source *source, const uint8_t *bytes, size_t length);

/* Zeros in place of bytes. */
int source_feed_zeros(struct source *source, uint64_t length);

/* No finding that starts before this will be shown any more. */
uint64_t source_settled_to(struct source *source);

/*
 * The end, after each open that returned 0: searches the rest, and shows the
 * findings. `error`: why the source ends early, or 0. Returns that, or the
 * error of the end itself.
 */
int source_close(struct source *source, int error);

/* After the close: it was left out as a binary file. */
bool source_is_binary(const struct source *source);

#endif

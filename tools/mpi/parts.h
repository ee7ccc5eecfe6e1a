/* SPDX-License-Identifier: MIT */
/*
 * The work of a rank that waits: parts of trees, and how it is read.
 *
 * Three kinds of threads use it. The adding thread takes the newest part and
 * adds it to the scan. While it does, that thread and workers that list
 * directories leave directories and files to others, as long as few parts wait:
 * each becomes a part. The thread of messages gives the oldest half to another
 * rank, since old parts are high up in their trees, and brings others' parts.
 *
 * Files are left in batches of names of one directory. The rank that takes a
 * batch halves it while few parts wait, so that large files spread.
 *
 * Invariants: (1) the rank is idle while the adding thread waits and no part
 * does; only messages make it work again. (2) an entry that is left to others
 * is in a part before the walk that has met it ends.
 */
#ifndef PINION_TOOLS_MPI_PARTS_H
#define PINION_TOOLS_MPI_PARTS_H

#include "tools/output_text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* Parts that wait before a walk enters a directory itself. */
	PARTS_DIRECTORIES = 64,
	/* And before it keeps a file. */
	PARTS_BATCHES = 64,
	/* And before a batch is kept whole: each half is a part of its own. */
	PARTS_HALVES = 4,
	/* Names of a batch. */
	PARTS_NAMES = 64,
	/* And their bytes, some more where the last is long. */
	PARTS_NAMES_BYTES = 32 << 10,
	/* Bytes of a message with parts; one part may have more. */
	PARTS_GIVEN_BYTES_MAX = 1 << 20,
	/* Paths of lists that wait; beyond it their reader works itself. */
	PARTS_PATHS_MAX = 4096,
};

enum part_kind {
	PART_PATH,  /* a path as it was given: the root alone */
	PART_BELOW, /* a directory below the root */
	PART_NAMES, /* some entries of a directory, or of the root */
	PART_KINDS,
};

/* In a message as in the queue; the texts, each with a NUL, are after it. */
struct part_head {
	uint32_t kind;	     /* enum part_kind */
	uint32_t root_bytes; /* without the NUL; so are the next */
	uint32_t directory_bytes;
	uint32_t names_bytes; /* with all NULs */
};

struct part {
	struct part *older;
	struct part *newer;
	struct part_head head;
	char text[];
};

static inline const char *part_root(const struct part *part)
{
	return part->text;
}

static inline const char *part_directory(const struct part *part)
{
	return part->text + part->head.root_bytes + 1;
}

static inline const char *part_names(const struct part *part)
{
	return part_directory(part) + part->head.directory_bytes + 1;
}

struct parts;

/* NULL: no memory. */
struct parts *parts_create(void);
void parts_destroy(struct parts *parts);

/*
 * Any thread. Adds the newest part; `names` is for PART_NAMES only. False: no
 * memory.
 */
bool parts_push(struct parts *parts, enum part_kind kind, const char *root, const char *directory,
	size_t directory_bytes, const char *names, size_t names_bytes);

/* A guess, as others push and take. Any thread. */
uint32_t parts_count(const struct parts *parts);

/* The adding thread's */

/*
 * Waits for a part, and takes the newest; the caller frees it. NULL: there will
 * be none, or is_stopped() has returned true.
 */
struct part *parts_take(struct parts *parts, bool (*is_stopped)(void));

/* Without waiting: NULL: there is none now. */
struct part *parts_try_take(struct parts *parts);

/* The thread of messages' */

/* Appends the oldest half, and removes it. False: there is none. */
bool parts_give(struct parts *parts, struct output_text *out_work);

/* Adds what another rank has given. False: it is none of that, or no memory. */
bool parts_accept(struct parts *parts, const void *bytes, size_t length);

/* Invariant 1. */
bool parts_are_idle(struct parts *parts);

/* parts_take() waits no more. */
void parts_end(struct parts *parts);

#endif

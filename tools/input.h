/* SPDX-License-Identifier: MIT */
/*
 * Where paths come from: operands and --files-from, for every command that
 * scans.
 */
#ifndef PINION_TOOLS_INPUT_H
#define PINION_TOOLS_INPUT_H

#include "tools/sharding.h"

#include <pinion/scan.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct input {
	char *const *paths; /* operands */
	int path_count;
	const char *const *lists; /* --files-from: files, "-" for stdin */
	uint32_t list_count;
	bool list_is_nul; /* entries end in NUL instead of newline */
	bool recurse;	  /* directories are walked rather than refused */
	struct sharding sharding;
	uint64_t *other_shard_count; /* of paths that are not added; where there are shards */
};

/*
 * Adds every path to the scan and waits for none of them; of several ranks
 * (distribution.h), what falls to this one. Returns 0, or a
 * negative errno when a list could not be read (already reported; those after
 * it are read all the same) or the scan was cancelled.
 */
int input_feed(const struct input *input, struct pinion_scan *scan);

/* One path, as it is fed. 0, or -ECANCELED. */
int input_add(const struct input *input, struct pinion_scan *scan, const char *path);

/*
 * As read(2), but returns -ECANCELED as soon as a signal has come (see
 * signals.h); other errors are negative errno values too.
 */
ssize_t input_read(int fd, void *bytes, size_t length);

/* The same, but -ETIMEDOUT when nothing comes within that time, if not 0. */
ssize_t input_read_within(int fd, void *bytes, size_t length, uint64_t timeout_ms);

/*
 * Lines and list entries up to this length are always handed out whole. Much
 * longer ones are dropped, so that no input can take all memory.
 */
enum { INPUT_LINE_BYTES_MAX = 1 << 20 };

/* A file read line by line in bounded memory. */
struct input_lines {
	int fd;
	char separator; /* \n or NUL */
	bool at_end;
	char *bytes; /* [start, end) is read but not yet handed out */
	size_t capacity;
	size_t start;
	size_t end;
	/*
	 * What the file may hold, 0: anything; to be set after init. A longer
	 * one ends with -EFBIG, also where it is a device that never ends.
	 */
	uint64_t bytes_max;
	uint64_t bytes_read;
};

/* Opens a file, "-" for stdin. Returns 0 or a negative errno. */
int input_lines_init(struct input_lines *lines, const char *path, char separator);

/*
 * Hands out the next line without its separator, NUL-terminated, writable and
 * valid until the next call. Returns 1; 0 at the end; -E2BIG for a line that
 * is too long (the first INPUT_LINE_BYTES_MAX bytes are handed out, the next
 * call goes on after it); or another negative errno, after which nothing more
 * can be read.
 */
int input_lines_next(struct input_lines *lines, char **out_line, size_t *out_length);

void input_lines_fini(struct input_lines *lines);

#endif

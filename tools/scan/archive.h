/* SPDX-License-Identifier: MIT */
/*
 * The entries of an archive, and of archives in it, as bytes: nothing is ever
 * written to a disk, so a name with `..` in it is a name like any other.
 *
 * An entry is shown as ARCHIVE!NAME, one of an archive within as
 * ARCHIVE!NAME!NAME. What a compressed file holds has the file's name without
 * the suffix, and none where there is no such suffix: `a.gz!a`, `data!`.
 *
 * An archive may be made to do harm: each has limits on depth, bytes, the ratio
 * of bytes to its own length, and time, which hold for all that is in it
 * together. At a limit it ends, with a line. The bytes before that have been
 * searched, as those of a broken archive are.
 *
 * An archive within another is held in memory, of which all of them together
 * have ARCHIVE_HELD_BYTES. Of a longer one the rest is read as it comes, which
 * does for all kinds but 7z.
 *
 * Context: a thread that may block and compute for long.
 */
#ifndef PINION_TOOLS_SCAN_ARCHIVE_H
#define PINION_TOOLS_SCAN_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ARCHIVE_HELD_BYTES = 64 << 20, ARCHIVE_DEPTH_MAX = 16 };

struct archive_limits {
	uint32_t depth;	      /* archives in archives; the outermost is 1 */
	uint64_t entry_bytes; /* of one entry; the rest of it is left out */
	uint64_t bytes;	      /* of all entries */
	uint64_t ratio;	      /* of these to the bytes of the archive */
	uint64_t time_ns;
};

#define ARCHIVE_LIMITS_STANDARD \
	((struct archive_limits){ \
		.depth = 4, \
		.entry_bytes = UINT64_C(1) << 30, \
		.bytes = UINT64_C(4) << 30, \
		.ratio = 1000, \
		.time_ns = UINT64_C(300000000000), \
	})

/* Entries, each in one count, and the archives that they are in. */
struct archive_counts {
	uint64_t archives; /* that could be opened, with those within */
	uint64_t scanned;
	uint64_t links;	    /* and devices: they have no bytes */
	uint64_t encrypted; /* no bytes without a password */
	uint64_t limited;   /* searched in part, or not opened, for a limit */
	uint64_t binary;    /* left out: `close` said so */
	uint64_t failed;    /* broken: searched as far as they could be read */
	uint64_t bytes;
};

/* What becomes of the bytes. */
struct archive_ops {
	/* As source_open(), source_feed() and source_close(). */
	int (*open)(void *arg, const char *path, size_t path_bytes);
	int (*feed)(void *arg, const uint8_t *bytes, size_t length);
	int (*close)(void *arg, int error); /* 1: none of it was searched */
	/* A line about something that was not searched. */
	void (*complain)(void *arg, const char *path, const char *reason);
	bool (*is_stopped)(void *arg);
};

/*
 * Reads the archive that is open as `fd`, from its start, and gives its entries
 * to `ops`. `path` is its name; the descriptor stays the caller's. Adds to
 * `counts`. archive_library_load() has returned true.
 *
 * Returns 0 or, after a line, -EILSEQ: it is broken, or is none; -EFBIG,
 * -ETIME: a limit; an error of reading; -ECANCELED, without a line; or the
 * error of `ops`.
 */
int archive_search(int fd, const char *path, const struct archive_limits *limits,
	const struct archive_ops *ops, void *arg, struct archive_counts *counts);

#endif

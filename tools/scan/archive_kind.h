/* SPDX-License-Identifier: MIT */
/*
 * Which bytes begin an archive or a compressed file: by what they are, whatever
 * the name is.
 */
#ifndef PINION_TOOLS_SCAN_ARCHIVE_KIND_H
#define PINION_TOOLS_SCAN_ARCHIVE_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first bytes of a file, which decide. */
enum { ARCHIVE_KIND_BYTES = 512 };

enum archive_kind {
	ARCHIVE_KIND_NONE,
	ARCHIVE_KIND_COMPRESSED, /* one file, which may be an archive */
	ARCHIVE_KIND_STREAM,	 /* entries in order: tar, cpio, ar */
	ARCHIVE_KIND_SEEKING,	 /* with a directory at its end: zip, 7z */
};

/* Of a file with these first bytes, ARCHIVE_KIND_BYTES where it has them. */
enum archive_kind archive_kind_of(const uint8_t *bytes, size_t length);

/*
 * The name of what a compressed file has inside: its own, without the folders
 * and without a suffix that says how it is compressed. Returns its length, 0:
 * the name has no such suffix. It is part of `path`, from *out_name on.
 */
size_t archive_kind_inner_name(const char *path, size_t path_bytes, const char **out_name);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The order in which files are on their device.
 *
 * A disk with heads takes some 10 ms to reach a file, and the order of a
 * directory has nothing to do with that of its files. So files of a batch are
 * read by the place of their first extent, which FIEMAP reports. A file system
 * that refuses it has its files read by inode, as the data of files with
 * neighbouring inodes are often neighbours too.
 *
 * Each file is opened for that, by the thread that adds it, and closed again.
 *
 * Used by the thread that adds a scan's files.
 * Source: Documentation/filesystems/fiemap.rst.
 */
#ifndef PIN_SCAN_EXTENT_ORDER_H
#define PIN_SCAN_EXTENT_ORDER_H

#include "runtime/scan/scan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PIN_EXTENT_FILES_MAX = 1024,
	PIN_EXTENT_PATH_BYTES_MAX = 256 << 10, /* of a batch, but for its last path */
};

/* Where a file is. */
struct pin_extent_place {
	uint64_t device;
	bool has_extent; /* files without one come first: they need no data */
	uint64_t at;	 /* its first extent, in bytes; without one, its inode */
};

struct pin_extent_file {
	struct pin_extent_place place;
	struct pin_scan_root *root; /* of which the batch is a user; NULL: none */
	size_t path;		    /* where it is in `paths` */
	size_t path_bytes;
	uint32_t index; /* as it came: a tie is broken by that */
	enum pin_slot_origin origin;
};

/* Zero-initialise. */
struct pin_extent_batch {
	struct pin_extent_file *files; /* NULL: none has come yet */
	uint32_t file_count;
	char *paths;
	size_t path_bytes;
	size_t path_capacity;
};

/*
 * Takes a file as pin_scan_add() does, and adds the batch when it is full. 0,
 * -ENOMEM, or what that returns.
 */
int pin_extent_batch_take(struct pin_extent_batch *batch, struct pinion_scan *scan,
	const char *path, size_t path_bytes, struct pin_scan_root *root,
	enum pin_slot_origin origin);

/* Adds the files that are left. The same values. */
int pin_extent_batch_send(struct pin_extent_batch *batch, struct pinion_scan *scan);

/* After the last send. */
void pin_extent_batch_fini(struct pin_extent_batch *batch, const struct pin_host *host);

#endif

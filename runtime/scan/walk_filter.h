/* SPDX-License-Identifier: MIT */
/*
 * Which entries of a tree are left out: by name, pattern, shard, size, time, or
 * as a second name of a file.
 *
 * Made for a scan, or for a walk, and asked by all that list its directories,
 * at once. Names and patterns need what the list has; the others cost
 * fstatat(2) for each regular file.
 *
 * Invariant: all is constant but the table of files with several names, which
 * has a lock and a bound.
 *
 * Elsewhere: lines of gitignore(5), gitignore.c; devices, walk_list.c, which
 * sees them when it opens a directory.
 */
#ifndef PIN_SCAN_WALK_FILTER_H
#define PIN_SCAN_WALK_FILTER_H

#include "runtime/host/host.h"
#include "runtime/scan/ignore.h"

#include <pinion/walk.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct pin_walk_file {
	dev_t device;
	ino_t inode; /* 0: none */
};

struct pin_walk_filter {
	const struct pin_host *host;
	struct pinion_walk_filter config; /* without its texts */
	struct pin_ignore_rules excluded;
	struct pin_ignore_rules included;
	bool examines;	      /* asks for the status of regular files */
	struct pin_lock lock; /* rank 3 */
	/* [lock:lock] files that have several names, in half of it at most */
	struct pin_walk_file *files;
	size_t capacity; /* a power of two, or 0 */
	size_t count;
};

/*
 * `given` NULL: *out_filter is NULL. -EINVAL, -E2BIG: a field is out of range,
 * or unknown. -EFBIG, -EILSEQ: of a text, as pin_ignore_rules_add(). -ENOMEM.
 */
int pin_walk_filter_create(const struct pin_host *host, const struct pinion_walk_filter *given,
	struct pin_walk_filter **out_filter);

void pin_walk_filter_destroy(struct pin_walk_filter *filter);

/* An entry is not left out. */
enum { PIN_WALK_KEPT = PINION_WALK_REASONS };

/* By its path below the root; PIN_WALK_KEPT, or the reason. */
uint32_t pin_walk_filter_path(
	const struct pin_walk_filter *filter, const struct pin_ignore_path *path);

/* By its status: of a regular file. */
uint32_t pin_walk_filter_status(struct pin_walk_filter *filter, const struct stat *status);

#endif

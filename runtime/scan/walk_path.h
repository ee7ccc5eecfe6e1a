/* SPDX-License-Identifier: MIT */
/*
 * A path of a walk, of any length: of a directory, from its node, or with the
 * name of an entry at its end.
 */
#ifndef PIN_SCAN_WALK_PATH_H
#define PIN_SCAN_WALK_PATH_H

#include "runtime/scan/walk_tree.h"

/* Bytes with a NUL after them. */
struct pin_walk_path {
	char *bytes;
	size_t length;
	size_t capacity;
};

/* Room for `length` bytes and a NUL; -ENOMEM. */
int pin_walk_path_reserve(const struct pin_walk *walk, struct pin_walk_path *path, size_t length);

/* The path of a directory; -ENOMEM. */
int pin_walk_path_of(const struct pin_walk *walk, struct pin_walk_path *path,
	const struct pin_directory *directory);

/* Makes it `bytes` bytes of text; -ENOMEM. */
int pin_walk_path_set(
	const struct pin_walk *walk, struct pin_walk_path *path, const char *text, size_t bytes);

/* Puts a slash, unless it ends in one, and a name after it; -ENOMEM. */
int pin_walk_path_add(const struct pin_walk *walk, struct pin_walk_path *path, const char *name,
	size_t name_bytes);

void pin_walk_path_cut(struct pin_walk_path *path, size_t bytes);
void pin_walk_path_free(const struct pin_walk *walk, struct pin_walk_path *path);

#endif
